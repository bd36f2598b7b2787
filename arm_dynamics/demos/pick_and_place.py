"""An SO-101 that picks a cube from a table, carries it and puts it down, simulated with contact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import atan2, cos, sin
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from arm_dynamics.collision.free_inverse_kinematics import free_inverse_kinematics
from arm_dynamics.collision.scene import SceneObject
from arm_dynamics.collision.scene_files import load_scene
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.feasibility import solve_feasible
from arm_dynamics.control.trajectories.joint_splines import quintic_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.control.trajectories.profiles import quintic
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.dynamics.kinematics.frames import joint_origins, pose
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.model.solids import Shape
from arm_dynamics.simulation.contact.contact_dynamics import LINK_FRICTION
from arm_dynamics.simulation.simulation import Simulation
from arm_dynamics.simulation.trace import MotionRecord

DT, PERIOD = 1e-3, 2e-3
"""Time step and control period [s]."""
SAMPLE = 0.01
"""Time [s] between two samples of a record."""
EDGE, MASS, FRICTION = 0.025, 0.02, 0.5
"""Edge [m], mass [kg] and Coulomb coefficient of the cube."""
PLACES = ((0.2, 0.0), (0.17, 0.12))
"""Positions (x, y) [m] of the cube on the table."""
GAP = 0.003
"""Distance [m] of the fixed jaw from the cube before the grasp."""
HEIGHT, LIFT = 0.0165, 0.05
"""Height [m] of the tool in a grasp, and of the lift above it."""
CLEARANCE = 0.006
"""Smallest distance [m] of the links from each other and from the table."""
OPEN, CLOSED = 0.45, 0.1
"""References of the gripper [rad]; at CLOSED the jaws are nearer than the cube is wide."""
REST = 0.1
"""Time [s] between two motions."""
JAW_EDGE = (-0.0123, -0.0724)
"""Upper edge (x, y) [m] of the moving jaw's tip, in its link."""
GRIPPER, FIXED_JAW, MOVING_JAW = "gripper", "wrist_roll_link", "gripper_link"


class Phase(NamedTuple):
    """A motion by name, with its start and end [s]."""

    name: str
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class PickRecord:
    """Samples of one motion with the cube.

    Attributes
    ----------
    motion : MotionRecord
        Motion of the arm, n samples.
    position, rotation : (n, 3), (n, 3, 3) array
        Pose of the cube [m].
    force : (n, 2) array
        Normal forces [N] of the fixed and the moving jaw on the cube.
    phases : tuple of Phase
        Motions of the plan.
    target : (2,) array
        Planned position (x, y) of the cube [m].
    computing : float
        Processor time of simulation and control [s].
    residual : float
        Largest residual of the contact problem [m/s].

    """

    motion: MotionRecord
    position: Matrix
    rotation: FloatArray
    force: Matrix
    phases: tuple[Phase, ...]
    target: Vector
    computing: float
    residual: float

    @property
    def held(self) -> slice:
        """Samples from the end of the grasp to the start of the release."""
        ends = {phase.name: phase for phase in self.phases}
        first, last = ends["grasp"].end + REST, ends["release"].start
        found = np.flatnonzero((self.motion.time >= first) & (self.motion.time <= last))
        return slice(int(found[0]), int(found[-1]) + 1)

    @property
    def in_hand(self) -> tuple[Matrix, FloatArray]:
        """Positions (n, 3) [m] and rotations (n, 3, 3) of the cube in tool axes."""
        tools = [pose(self.motion.arm, q) for q in self.motion.q]
        pairs = list(zip(tools, self.position, self.rotation, strict=True))
        offsets = as_readonly([R.T @ (x - p) for (p, R), x, _ in pairs])
        return offsets, as_readonly([R.T @ turned for (_, R), _, turned in pairs])

    @property
    def slip(self) -> tuple[float, float]:
        """Largest change [m] and [rad] of the pose of the held cube in tool axes."""
        offsets, turns = (x[self.held] for x in self.in_hand)
        cosines = (np.trace(turns[0].T @ turns, axis1=1, axis2=2) - 1) / 2
        angle = np.arccos(np.clip(cosines, -1, 1)).max()
        return float(np.linalg.norm(offsets - offsets[0], axis=1).max()), float(angle)

    @property
    def grip_force(self) -> Vector:
        """Normal force (n,) [N] of the moving jaw at rest, without dry friction in its joint.

        F = -τ / r with the lever r = -(x sin q + y cos q) of its edge about the joint's axis.
        """
        i, (x, y) = self.motion.arm.index(GRIPPER), JAW_EDGE
        q = self.motion.q[:, i]
        return as_readonly(self.motion.tau[:, i] / (x * np.sin(q) + y * np.cos(q)))

    @property
    def error(self) -> float:
        """Distance [m] of the cube from its target at the end."""
        target = (*self.target, EDGE / 2)
        return float(np.linalg.norm(self.position[-1] - target))


class _Plan:
    """Motions in sequence from a configuration at rest, with a rest of REST after each."""

    def __init__(self, arm: ArmModel, q: Vector, time: float) -> None:
        self._arm, self.q, self._time = arm, q, time
        self._waypoints = list[Waypoint]()
        self.phases = list[Phase]()

    @property
    def trajectory(self) -> JointTrajectory:
        """All motions as one trajectory."""
        return JointTrajectory(tuple(self._waypoints))

    def move(self, name: str, duration: float, q: Vector) -> None:
        """Append a joint-space motion to ``q`` (nv,) [rad]."""
        times = [self._time, self._time + duration]
        self._append(name, quintic_trajectory([self.q, q], times))

    def grip(self, name: str, duration: float, position: float) -> None:
        """Append a motion of the gripper to ``position`` [rad]."""
        q = self.q.copy()
        q[self._arm.index(GRIPPER)] = position
        self.move(name, duration, q)

    def line(self, name: str, duration: float, height: float) -> None:
        """Append a vertical line of the tool by ``height`` [m] with constant orientation."""
        start = CartesianTrajectory.from_configuration(self._arm, self.q, self._time)
        path = start.line(start.position + np.array([0.0, 0.0, height]), quintic(duration))
        self._append(name, solve_feasible(self._arm, path, np.ones(6)).joints())

    def _append(self, name: str, motion: JointTrajectory) -> None:
        self.q = motion.waypoints[-1].q
        self.phases.append(Phase(name, motion.start, motion.end))
        self._time = motion.end + REST
        zero = np.zeros(self._arm.nv)
        after = motion.waypoints[1:] if self._waypoints else motion.waypoints
        self._waypoints += [*after, Waypoint(self._time, self.q, zero, zero)]


class PickAndPlace:
    """Simulation of an SO-101, its controller and a cube on a table."""

    def __init__(self) -> None:
        self.arm, table = load_arm("so101"), load_scene("table")
        position = np.array([*PLACES[0], EDGE / 2])
        shape = Shape("box", (EDGE, EDGE, EDGE))
        cube = SceneObject("cube", shape, position, mass=MASS, friction=FRICTION)
        scene = table.with_object(cube)
        home = self.arm.configuration("initial")
        self.collision = SelfCollision(self.arm, CLEARANCE, home, scene=table)
        self.simulation = Simulation(self.arm, scene=scene, dt=DT, period=PERIOD)
        controller = build_controller(self.arm, period=PERIOD)
        # Without an integral the effort of the gripper remains p (q_ref - q) at the cube.
        controller.set_gains({GRIPPER: controller.values[GRIPPER] | {"i": 0.0}})
        driver = SimulationDriver(self.arm, self.simulation)
        self.loop = ControlLoop(driver, controller, scene=scene)
        self.loop.step()

    def carry(
        self,
        source: tuple[float, float],
        target: tuple[float, float],
        observe: Callable[[], None] = lambda: None,
    ) -> PickRecord:
        """Carry the cube from ``source`` to ``target`` (x, y) [m] and return to the start.

        ``observe`` is called after each control period.
        """
        loop, arm = self.loop, self.arm
        plan = self._plan(source, target)
        loop.follow(plan.trajectory, effort_check=True)
        rows, every, computing, residual = list[Any](), round(SAMPLE / PERIOD), 0.0, 0.0
        for k in range(round((plan.trajectory.end - self.simulation.state.time) / PERIOD)):
            if k % every == 0:
                rows.append(self._sample())
            start = process_time()
            loop.step()
            computing += process_time() - start
            contacts = self.simulation.contacts
            residual = max(residual, 0.0 if contacts is None else contacts.residual)
            observe()
        time, q, v, tau, position, rotation, force = (
            as_readonly(column) for column in zip(*rows, strict=True)
        )
        return PickRecord(
            MotionRecord(arm, time, q, v, tau), position, rotation, force, tuple(plan.phases),
            as_readonly(target), computing, residual,
        )  # fmt: skip

    def _plan(self, source: tuple[float, float], target: tuple[float, float]) -> _Plan:
        """Return the motion from the present reference."""
        state, reference = self.loop.present()
        plan, home = _Plan(self.arm, reference.q, state.time), reference.q
        plan.move("approach", 1.2, self._above(source, GAP, plan.q, OPEN))
        plan.line("reach", 0.8, -LIFT)
        plan.grip("grasp", 0.5, CLOSED)
        plan.line("lift", 0.8, LIFT)
        plan.move("carry", 1.2, self._above(target, 0.0, plan.q, CLOSED))
        plan.line("lower", 0.8, -LIFT)
        plan.grip("release", 0.5, OPEN)
        plan.line("retreat", 0.8, LIFT)
        plan.move("return", 1.2, home)
        return plan

    def _above(
        self, place: tuple[float, float], gap: float, near: Vector, gripper: float
    ) -> Vector:
        """Return the configuration (nv,) [rad] above a cube, with the fixed jaw towards the base.

        The tool points down. Cube and fixed jaw have parallel faces at a distance of ``gap`` [m];
        ``near`` is the start of the motion to it.
        """
        pan = joint_origins(self.arm, near)[0]
        angle = atan2(place[1] - pan[1], place[0] - pan[0])
        out, left = np.array([cos(angle), sin(angle), 0]), np.array([-sin(angle), cos(angle), 0])
        tool = np.array([*place, HEIGHT + LIFT]) - (EDGE / 2 + gap) * out
        rotation = np.column_stack([-out, left, [0, 0, -1]])
        found = free_inverse_kinematics(self.collision, tool, rotation, initial_guess=near)
        q = found.q.copy()
        q[self.arm.index(GRIPPER)] = gripper
        return as_readonly(q)

    def _sample(self) -> tuple[Any, ...]:
        """Return the values of a PickRecord's arrays in the present state."""
        state, cube = self.simulation.state, self.simulation.scene["cube"]
        force = [self._normal_force(link) for link in (FIXED_JAW, MOVING_JAW)]
        return state.time, state.q, state.v, state.tau, cube.position, cube.rotation, force

    def _normal_force(self, link: str) -> float:
        """Return the normal force [N] of a link on the cube in the last step."""
        contacts, total = self.simulation.contacts, 0.0
        if contacts is not None:
            for k, ends in enumerate(zip(contacts.first, contacts.second, strict=True)):
                if set(ends) == {"cube", link}:
                    total += float(contacts.force[k] @ contacts.normal[k])
        return total


def heaviest_mass(force: float) -> float:
    """Return the mass [kg] that two jaws hold at rest: 2 μ F / g."""
    return 2 * float(np.sqrt(FRICTION * LINK_FRICTION)) * force / 9.81
