"""Monitors of a control loop: the maximum joint error, and the reachability of the reference."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.kinematics.closed_loop_ik import pose_error
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.safety.events import Events

OUT_OF_REACH_THRESHOLD = 0.01
"""Reachability error at which ``out_of_reach`` is reported [m]; it ends at half of it."""
REACHED = 1e-3
"""Distance up to which a reference counts as reached [m]."""
PROGRESS = 0.1
"""Fraction of the distance, but at most REACHED, by which it must change to be progress."""
REST, CREEP = 0.01, 1e-6
"""Maximum joint velocity of an arm at rest, and of one that does not even creep [rad/s or m/s]."""
STALL_TIMEOUT, DETOUR = 0.5, 2.0
"""Times without progress until a stall [s]: of an arm at rest, and of one that moves."""


class MaxErrorTracker:
    """Maximum |reference - position| per joint between two readings.

    Parameters
    ----------
    names : tuple of str
        Joint names.

    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._max: Vector = np.zeros(len(names))

    def observe(self, reference: Vector, position: Vector) -> None:
        """Add a sample; both (nv,) [rad or m]."""
        self._max = np.maximum(self._max, np.abs(reference - position))

    def read(self) -> tuple[float, str]:
        """Return the maximum error since the last reading [rad or m], and its joint."""
        errors, self._max = self._max, np.zeros(len(self._names))
        index = int(np.argmax(errors))
        return float(errors[index]), self._names[index]


class ReachabilityMonitor:
    """Reports ``out_of_reach``, ``near_singularity`` and ``stalled``, once at each onset.

    The arm is stalled if it is farther than REACHED from its reference without progress for
    STALL_TIMEOUT at rest or DETOUR in motion. The event names the cause: position limits that the
    error presses joints against, a singular configuration, or an unreachable target.

    Parameters
    ----------
    controller : TaskSpaceController
        Controller with the CLIK solution.
    events : Events
        Receives the events.

    """

    def __init__(self, controller: TaskSpaceController, events: Events) -> None:
        self._controller, self._events = controller, events
        self.out_of_reach, self.near_singularity = False, False
        self.max_reachability_error = 0.0
        """Maximum reachability error since the reference was last reachable [m]."""
        self.stalled = ""
        """Cause of the present stall; "" without one."""
        self._since, self._from = controller.clik.time, 0.0

    @property
    def reachability_error(self) -> float:
        """Distance of the reference from the CLIK solution [m]; rotations times the reach."""
        return self._controller.clik.reachability_error

    @property
    def min_singular_value(self) -> float:
        """Minimum singular value of the tool's Jacobian [m]; rotations times the reach."""
        return self._controller.clik.min_singular_value

    def tool_error(self, state: State, reference: Reference) -> tuple[float, float]:
        """Return the error of the actual tool: |p_ref - p| [m], |log(R_ref Rᵀ)| [rad].

        Along the controlled axes. In contrast to ``reachability_error`` it includes unreachable
        distance, lag and static errors.
        """
        task, axes = to_task_reference(self._controller.arm, reference), self._controller.clik.axes
        position, rotation = pose(self._controller.arm, state.q)
        error = np.append(task.position - position, pin.log3(task.rotation @ rotation.T))
        counted = np.zeros(6)
        counted[axes] = error[axes]
        return float(np.linalg.norm(counted[:3])), float(np.linalg.norm(counted[3:]))

    def update(self) -> None:
        """Check the controller after one of its updates."""
        self._update_reachability()
        self._update_singularity()
        self._update_stall()

    def _update_reachability(self) -> None:
        was, error, limit = self.out_of_reach, self.reachability_error, OUT_OF_REACH_THRESHOLD
        self.out_of_reach = error > (limit / 2 if was else limit)
        both = self.out_of_reach and was
        self.max_reachability_error = max(self.max_reachability_error, error) if both else error
        if self.out_of_reach and not was:
            self._events.report(
                "out_of_reach",
                f"task-space reference: reachability error = {error:.3g} m; expected at most"
                f" {limit:g} m; the tool slows down and moves to the nearest reachable pose",
            )

    def _update_singularity(self) -> None:
        clik = self._controller.clik
        limit = self._controller.controller_gains["singular_value_threshold"] * clik.reach
        was, value = self.near_singularity, self.min_singular_value
        self.near_singularity = value < (1.1 * limit if was else limit)
        if self.near_singularity and not was:
            self._events.report(
                "near_singularity",
                f"tool Jacobian: min singular value = {value:.3g} m; expected at least"
                f" {limit:.3g} m; motion along its direction is damped",
            )

    def _update_stall(self) -> None:
        clik, distance = self._controller.clik, self.reachability_error
        rest = np.abs(clik.v).max() <= REST
        follows = clik.task is not None and clik.task.twist.any() and not rest
        progress = abs(distance - self._from) > min(PROGRESS * self._from, REACHED)
        if distance <= REACHED or follows or progress or clik.time < self._since:
            self._since, self._from, self.stalled = clik.time, distance, ""
        elif clik.time - self._since >= (STALL_TIMEOUT if rest else DETOUR) and not self.stalled:
            self.stalled = self._cause_of_stall()
            self._events.report(
                "stalled",
                f"task-space reference: distance = {distance:.3g} m without progress for"
                f" {clik.time - self._since:.3g} s; expected at most {REACHED:g} m;"
                f" cause: {self.stalled}",
            )

    def _cause_of_stall(self) -> str:
        controller, clik = self._controller, self._controller.clik
        arm, threshold = controller.arm, controller.controller_gains["singular_value_threshold"]
        task, at, error = clik.task, controller.tool.motion(clik.q, clik.v), np.zeros(6)
        assert task is not None
        every = pose_error((at.position, at.rotation), (task.position, task.rotation))
        error[clik.axes] = (clik.scale**2 * every)[clik.axes]
        pull = at.jacobian.T @ error
        least = threshold * clik.reach * self.reachability_error
        over = (clik.q >= arm.upper) & (pull > least)
        under = (clik.q <= arm.lower) & (pull < -least)
        names = [f"'{arm.joint_names[i]}'" for i in np.flatnonzero(over | under)]
        if names:
            return f"position limit of joint {', '.join(names)}"
        if self.near_singularity and np.abs(clik.v).max() > CREEP:
            return "near singularity, motion toward the target is slowed down"
        if self.near_singularity:
            return "near singularity, no joint motion brings the tool closer: unreachable from here"
        return "unreachable: no joint motion brings the tool closer"
