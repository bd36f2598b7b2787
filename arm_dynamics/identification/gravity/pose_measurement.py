"""Measurement of static poses by an arm that approaches each of them slowly from both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.joint_motions import TrajectoryFollower
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.gravity.gravity_calibration import StaticPose
from arm_dynamics.identification.gravity.pose_selection import (
    CLEARANCE,
    approach_distance,
    path_is_free,
)
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns

APPROACH_TIME, SETTLING_TIME, READING_TIME = 1.5, 0.5, 0.5
"""Duration [s] of an approach, of the rest after it, and of the readings that are averaged."""
MIN_MOVE_TIME = 0.5
"""Shortest duration [s] of a motion between two poses."""
MAX_SPREAD = 0.01
"""Largest difference [rad or m] between the positions of a pose."""
MAX_ATTEMPTS = 3
"""Largest number of attempts at a motion that is disturbed."""
LATENCY = 0.02
"""Time [s] from the present state to the start of a motion."""
Step = Callable[[str], bool]
"""One control cycle with a text of the progress; returns False to stop the measurement."""


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """Motion to a target (nv,) [rad or m] in a duration [s].

    ``side`` is the direction -1 or 1 of all joints to a pose that is measured at the end; 0 if
    nothing is measured.
    """

    target: Vector
    duration: float
    side: float = 0.0


@requires_arm
def plan_legs(
    arm: ArmModel, poses: Matrix, speed: float, scene: Scene = EMPTY_SCENE
) -> tuple[Leg, ...]:
    """Return the motions from the initial configuration through the poses and back.

    Each pose q is approached from q - δ and from q + δ (``approach_distance``). Motions between
    poses whose straight joint-space path collides lead over the initial configuration.

    Parameters
    ----------
    arm : ArmModel
        Arm at its initial configuration.
    poses : Matrix
        Configurations (n, nv) of ``choose_poses`` [rad or m].
    speed : float
        Largest velocity between poses [rad/s or m/s], above 0; also at most the velocity limits.
    scene : Scene
        Objects around the arm, as for ``choose_poses``.

    """
    speeds = np.minimum(check_float("speed [rad/s]", speed, above=0), arm.velocity_limit)
    return tuple(_legs(arm, poses, speeds, scene))


def leg_to_start(arm: ArmModel, q: Vector, speed: float) -> Leg:
    """Return the motion from ``q`` (nv,) [rad or m] to the initial configuration, see plan_legs."""
    start = arm.configuration("initial")
    return _move(q + whole_turns(arm, q, start), start, np.minimum(speed, arm.velocity_limit))


def measure_poses(
    loop: ControlLoop,
    legs: Sequence[Leg],
    step: Step | None = None,
    *,
    stiffness: float | None = None,
) -> list[StaticPose]:
    """Return the static poses that an arm reaches along all legs.

    Torque must be enabled. The controller should have no integral term, which changes the effort
    at rest. If the control loop restarts during a motion, or the arm is not at rest after it, the
    arm returns to the start of the motion and repeats it; the event ``pose_repeated`` names the
    cause.

    Parameters
    ----------
    loop : ControlLoop
        Loop of the arm and a joint-space controller, at rest at the start of the first leg.
    legs : Sequence[Leg]
        Motions of ``plan_legs``.
    step : callable, optional
        Runs one control cycle; default: ``loop.step``, which suffices for a simulation.
    stiffness : float, optional
        Stiffness of position servos [N·m/rad], whose efforts are computed from position errors;
        default: measured efforts.

    Returns
    -------
    list of StaticPose
        Two poses for each configuration; fewer if ``step`` returned False.

    Raises
    ------
    InvalidValue
        For efforts that are not measured, and for a motion that is disturbed MAX_ATTEMPTS times.
    TrajectoryRejected
        If a motion exceeds a limit.

    """
    poses: list[StaticPose] = []
    cycle = step or (lambda _: loop.step() is not None or True)
    for text in pose_cycles(loop, legs, poses, stiffness=stiffness):
        if not cycle(text):
            break
    return poses


def pose_cycles(
    loop: TrajectoryFollower,
    legs: Sequence[Leg],
    poses: list[StaticPose],
    *,
    stiffness: float | None = None,
) -> Iterator[str]:
    """Add the static poses along all legs to ``poses``; see ``measure_poses``.

    Yields a text of the progress before each control cycle, which the caller runs.
    """
    total = sum(leg.side != 0 for leg in legs)
    run = _Run(loop)
    yield from run.until_end(SETTLING_TIME, "at rest")
    begin = loop.present()[1].q
    for leg in legs:
        text = f"pose {len(poses) + 1} of {total}" if leg.side else "moving"
        motions: tuple[Leg, ...] = (leg,)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            restarts = loop.restart_count
            for motion in motions:
                yield from run.through(motion, text)
            if not (problem := run.disturbance(restarts, leg)):
                break
            if attempt == MAX_ATTEMPTS:
                raise InvalidValue(f"{text}, {MAX_ATTEMPTS} attempts: {problem}")
            loop.events.report("pose_repeated", f"{text}: {problem}; repeating the motion")
            motions = Leg(begin, leg.duration), leg
        if leg.side:
            poses.append(_pose(loop, leg, run, stiffness))
        begin = leg.target


class _Run:
    """Control cycles, with the states and commands of each."""

    def __init__(self, loop: TrajectoryFollower) -> None:
        self._loop = loop
        self.readings: list[tuple[Vector, Vector, Vector]] = []

    def through(self, leg: Leg, text: str) -> Iterator[str]:
        """Follow the leg and read the pose at its end."""
        state, reference = self._loop.present()
        self._loop.follow(_trajectory(self._loop.arm, leg, reference.q, state.time))
        rest = SETTLING_TIME if leg.side else 0.0
        yield from self.until_end(leg.duration + LATENCY + rest, text)
        self.readings.clear()
        if leg.side:
            yield from self.until_end(READING_TIME, text)

    def until_end(self, duration: float, text: str) -> Iterator[str]:
        """Run cycles for ``duration`` [s]."""
        end: float | None = None
        while True:
            yield text
            if self._loop.latest is None:
                continue
            state, _, command = self._loop.latest
            end = state.time + duration if end is None else end
            self.readings.append((state.q, state.tau, command.value))
            if state.time >= end:
                return

    def disturbance(self, restarts: int, leg: Leg) -> str:
        """Return why the pose at the end of a leg cannot be used, "" if it can."""
        if self._loop.restart_count != restarts:
            count = self._loop.restart_count - restarts
            return f"restarts of the control loop = {count}; expected 0"
        spread = np.ptp([q for q, _, _ in self.readings], axis=0).max() if leg.side else 0.0
        if spread > MAX_SPREAD:
            return (
                f"change of position = {spread:.3g} rad at rest; expected at most {MAX_SPREAD:g}"
                " rad: increase the stiffness or support the base"
            )
        return ""


def _pose(loop: TrajectoryFollower, leg: Leg, run: _Run, stiffness: float | None) -> StaticPose:
    """Return the mean of the readings."""
    q, effort, command = (np.array(values) for values in zip(*run.readings, strict=True))
    mean = q.mean(axis=0)
    turned = mean + whole_turns(loop.arm, mean, leg.target)
    side = np.full(mean.size, leg.side)
    if stiffness is not None:
        shift = turned - mean
        return StaticPose.of_servo(turned, command.mean(axis=0) + shift, stiffness, side)
    if not np.isfinite(effort).all():
        raise InvalidValue("effort = not measured; expected efforts of all joints; set a stiffness")
    return StaticPose(turned, effort.mean(axis=0), side)


def _legs(arm: ArmModel, poses: Matrix, speeds: Vector, scene: Scene) -> Iterator[Leg]:
    delta, start = approach_distance(arm), np.array(arm.configuration("initial"))
    collision, at = SelfCollision(arm, CLEARANCE, start, scene=scene), start
    for q in poses:
        low = q - delta
        if at is not start and not path_is_free(collision, at, low):
            yield _move(at, start, speeds)
            at = start
        yield _move(at, low, speeds)
        yield Leg(q, APPROACH_TIME, 1.0)
        yield _move(q, q + delta, speeds)
        yield Leg(q, APPROACH_TIME, -1.0)
        yield _move(q, low, speeds)
        at = low
    yield _move(at, start, speeds)


def _move(begin: Vector, end: Vector, speeds: Vector) -> Leg:
    """Return a quintic motion, whose largest velocity is 15/8 |Δq| / T."""
    return Leg(end, max(MIN_MOVE_TIME, 15 / 8 * float((np.abs(end - begin) / speeds).max())))


def _trajectory(arm: ArmModel, leg: Leg, q: Vector, now: float) -> JointTrajectory:
    """Return the quintic motion from rest at ``q`` to the leg's target."""
    zero, begin = as_readonly(np.zeros(arm.nv)), now + LATENCY
    target = as_readonly(leg.target + whole_turns(arm, leg.target, q))
    motion = JointTrajectory(
        (
            Waypoint(begin, as_readonly(q), zero, zero),
            Waypoint(begin + leg.duration, target, zero, zero),
        )
    )
    motion.check(arm)
    return motion
