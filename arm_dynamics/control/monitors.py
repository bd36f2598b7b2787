"""The worst joint error over a stretch of time.

Tells when a tool's reference leaves what the arm can follow, and when a singularity is near.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.kinematics import pose
from arm_dynamics.dynamics.kinematics.closed_loop_ik import pose_error
from arm_dynamics.safety.events import Events


class MaxErrorTracker:
    """Keeps max |reference - position| per joint between two readings."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._worst: Vector = np.zeros(len(names))

    def observe(self, reference: Vector, position: Vector) -> None:
        """Note one instant; both (nv,) [rad]."""
        self._worst = np.maximum(self._worst, np.abs(reference - position))

    def read(self) -> tuple[float, str]:
        """The largest error [rad] since the last reading, and its joint."""
        worst, self._worst = self._worst, np.zeros(len(self._names))
        index = int(np.argmax(worst))
        return float(worst[index]), self._names[index]


OUT_OF_REACH_THRESHOLD = 0.01
"""Distance [m] of the reference from where the arm can be that is told; it is over at half."""
REACHED = 1e-3
"""Distance [m] up to which a reference counts as reached."""
PROGRESS = 0.1
"""Change of the distance, as a fraction of it but at most REACHED, that is progress."""
REST, CREEP = 0.01, 1e-6
"""Speeds [rad/s or m/s] of all joints below which the arm is at rest, and does not even creep."""
STALL_TIMEOUT, DETOUR = 0.5, 2.0
"""Times [s] without progress to a stall: of an arm at rest, and of one that moves."""


class ReachabilityMonitor:
    """Reports ``out_of_reach``, ``near_singular`` and ``stalled`` once each time it becomes so.

    The arm is stalled if it is farther than REACHED from its reference and makes no progress
    toward it, for PATIENCE at rest or for DETOUR in motion. ``stalled`` then names the cause:
    position limits that the error presses joints against, a singular configuration that no joint
    motion leaves toward the target or that slows it down, or an unreachable target.
    ``max_reachability_error`` is the largest distance [m] since the arm was last within reach.
    """

    def __init__(self, law: TaskSpaceController, events: Events) -> None:
        self._law, self._events = law, events
        self.out_of_reach, self.near_singularity = False, False
        self.max_reachability_error = 0.0
        self.stalled = ""
        """Cause of the present stall, empty while there is none."""
        self._since, self._from = law.clik.time, 0.0

    @property
    def reachability_error(self) -> float:
        """Of the reference from where the arm can be [m]; rotations times the arm's reach."""
        return self._law.clik.reachability_error

    @property
    def min_singular_value(self) -> float:
        """Smallest singular value of the tool's Jacobian [m]; rotations times the arm's reach."""
        return self._law.clik.min_singular_value

    def tool_error(self, state: State, reference: Reference) -> tuple[float, float]:
        """How far the real tool is from its reference: |p_ref - p| [m], |log(R_ref Rᵀ)| [rad].

        Along the axes that the arm controls. Unlike ``reachability_error`` this counts all: what is out of
        reach, what lags, what gravity bends.
        """
        task, axes = to_task_reference(self._law.arm, reference), self._law.clik.axes
        position, rotation = pose(self._law.arm, state.q)
        error = np.append(task.position - position, pin.log3(task.rotation @ rotation.T))
        counted = np.zeros(6)
        counted[axes] = error[axes]
        return float(np.linalg.norm(counted[:3])), float(np.linalg.norm(counted[3:]))

    def update(self) -> None:
        """Look at the law after one of its updates."""
        self._look_distance()
        self._look_weakest()
        self._look_stall()

    def _look_distance(self) -> None:
        was, distance = self.out_of_reach, self.reachability_error
        self.out_of_reach = distance > (
            OUT_OF_REACH_THRESHOLD / 2 if was else OUT_OF_REACH_THRESHOLD
        )
        self.max_reachability_error = (
            max(self.max_reachability_error, distance) if self.out_of_reach and was else distance
        )
        if self.out_of_reach and not was:
            self._events.report(
                "out_of_reach",
                f"the tool's reference is more than {OUT_OF_REACH_THRESHOLD:g} m from where the arm can follow:"
                f" it slows down and goes to the nearest pose",
            )

    def _look_weakest(self) -> None:
        limit = self._law.controller_gains["weak"] * self._law.clik.reach
        was, weakest = self.near_singularity, self.min_singular_value
        self.near_singularity = weakest < (1.1 * limit if was else limit)
        if self.near_singularity and not was:
            self._events.report(
                "near_singular",
                f"the smallest singular value of the tool's Jacobian is {weakest:.3g} m, below"
                f" {limit:.3g} m: motion along its direction is slowed down",
            )

    def _look_stall(self) -> None:
        virtual, distance = self._law.clik, self.reachability_error
        rest = np.abs(virtual.v).max() <= REST
        follows = virtual.task is not None and virtual.task.twist.any() and not rest
        progress = abs(distance - self._from) > min(PROGRESS * self._from, REACHED)
        if distance <= REACHED or follows or progress or virtual.time < self._since:
            self._since, self._from, self.stalled = virtual.time, distance, ""
        elif virtual.time - self._since >= (STALL_TIMEOUT if rest else DETOUR) and not self.stalled:
            self.stalled = self._cause_of_stall()
            self._events.report(
                "stalled",
                f"task-space reference: distance = {distance:.3g} m without progress for"
                f" {virtual.time - self._since:.3g} s; expected at most {REACHED:g} m;"
                f" cause: {self.stalled}",
            )

    def _cause_of_stall(self) -> str:
        law, virtual = self._law, self._law.clik
        task, at, error = virtual.task, law.tool.motion(virtual.q, virtual.v), np.zeros(6)
        assert task is not None
        every = pose_error(at.position, at.rotation, task.position, task.rotation)
        error[virtual.axes] = (virtual.scale**2 * every)[virtual.axes]
        pull = at.jacobian.T @ error
        least = law.controller_gains["weak"] * virtual.reach * self.reachability_error
        over = (virtual.q >= law.arm.upper) & (pull > least)
        under = (virtual.q <= law.arm.lower) & (pull < -least)
        names = [f"'{law.arm.joint_names[i]}'" for i in np.flatnonzero(over | under)]
        if names:
            return f"position limit of joint {', '.join(names)}"
        if self.near_singularity and np.abs(virtual.v).max() > CREEP:
            return "near singularity, motion toward the target is slowed down"
        if self.near_singularity:
            return "near singularity, no joint motion brings the tool closer: unreachable from here"
        return "unreachable: no joint motion brings the tool closer"
