"""Motions that a user of a display starts: joint targets and the demo motion."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol

import numpy as np

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.control.trajectories.demo_trajectory import demo_trajectory, move_time
from arm_dynamics.control.trajectories.joint_trajectory import Waypoint
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.core.status_summary import StatusSummary
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns
from arm_dynamics.safety.events import Events

INTERRUPTED = (
    "control_restarted",
    "states_missing",
    "trajectory_rejected",
    "path_tolerance_violated",
    "goal_tolerance_violated",
)
"""Events of the controller that end the current trajectory early."""
STOP_TIME = 0.5
"""Time [s] in which the arm comes to rest when the demo motion is stopped."""


def stop_waypoint(arm: ArmModel, q: Vector, v: Vector) -> Waypoint:
    """Return the stop of joints from ``q`` with velocity ``v`` (nv,) within their limits."""
    inside = np.clip(q + STOP_TIME / 3 * v, arm.lower, arm.upper)
    return Waypoint(STOP_TIME, as_readonly(inside), as_readonly(np.zeros(q.size)))


SETTLING_TIME = 0.15
"""Time [s] without another change after which a target is sent."""
MAX_DRAG_DELAY = 0.5
"""Maximum time [s] for which a moving slider delays a target."""
DISCOVERY_TIMEOUT = 5.0
"""Time [s] for which a target waits for the discovery of the controller."""
JOINT_TOLERANCE = 1e-6
"""Distance of the reference [rad or m] below which a joint target is reached."""


class Feedback(Protocol):
    """Shows the result of a user's action."""

    def done(self, text: str) -> None:
        """Report a completed action."""

    def rejected(self, reason: object) -> None:
        """Report a rejected action."""

    def note(self, text: str) -> None:
        """Report anything else, such as the progress of an action."""


class MotionOutput(Protocol):
    """Sends motions of joints to a controller."""

    @property
    def ready(self) -> bool:
        """Whether a controller accepts motions."""

    def send(self, points: Sequence[Waypoint]) -> None:
        """Start a motion through waypoints with velocities now."""


class TrajectoryFollower(Protocol):
    """Arm that follows trajectories: a ControlLoop, or a controller behind topics."""

    @property
    def arm(self) -> ArmModel:
        """The arm with its joints and limits."""

    @property
    def events(self) -> Events:
        """Events of the arm."""

    @property
    def restart_count(self) -> int:
        """Number of restarts from the measured state."""

    @property
    def latest(self) -> tuple[State, Reference, Command] | None:
        """State, reference and command of the last cycle."""

    def present(self) -> tuple[State, Reference]:
        """Return the latest state and its reference; raise TrajectoryRejected without one."""

    def follow(self, trajectory: Trajectory) -> None:
        """Start a trajectory from the present reference; raise TrajectoryRejected."""

    def request_stop(self) -> None:
        """Stop the arm along its limits."""


class JointTargets:
    """Joint targets from any thread; ``update`` sends the newest and reports its result.

    ``clear`` is called repeatedly before a target is sent until it returns True: another motion
    has ended. ``sent`` is called when a target is sent or discarded.
    """

    def __init__(
        self,
        output: MotionOutput,
        arm: ArmModel,
        status: StatusSummary,
        clear: Callable[[], bool],
        feedback: Feedback,
        sent: Callable[[], None] = lambda: None,
    ) -> None:
        self._output, self._arm, self._status = output, arm, status
        self._clear, self._feedback, self._sent = clear, feedback, sent
        self._lock = Lock()  # of the pending target
        self._pending: tuple[Vector, float, float] | None = None
        """Target, time [s] of its first change, and of its last one."""
        self._target: Vector | None = None
        self._interrupted: tuple[float, ...] = ()

    @property
    def under_way(self) -> bool:
        """Whether a target is neither reached nor rejected."""
        return self._pending is not None or self._target is not None

    def go(self, target: Sequence[float]) -> None:
        """Move the arm to ``target`` (nv,) [rad or m] once it no longer changes."""
        now = time.monotonic()
        with self._lock:
            first = now if self._pending is None else self._pending[1]
            self._pending = as_readonly(target), first, now

    def reset(self) -> None:
        """Discard the target."""
        self._pending = self._target = None

    def stop(self, q: Vector, v: Vector) -> None:
        """Stop the joints from the reference ``q`` with velocity ``v`` (nv,)."""
        self.reset()
        self._output.send([stop_waypoint(self._arm, q, v)])

    def update(self, reference: Vector | None) -> None:
        """Send a due target; report the current one's result from the reference."""
        self._send(reference)
        if self._target is None:
            return
        before, self._interrupted = self._interrupted, self._counts()
        if reference is not None and np.abs(reference - self._target).max() <= JOINT_TOLERANCE:
            self._target = None
            self._feedback.done("joint targets reached")
        elif before != self._interrupted:
            events = zip(INTERRUPTED, before, self._interrupted, strict=True)
            event = next(name for name, old, new in events if old != new)
            self._target = None
            self._feedback.rejected(self._status.values.get(f"last {event}", event))

    def _send(self, reference: Vector | None) -> None:
        """Send the pending target once it no longer changes and the controller is discovered."""
        pending, now = self._pending, time.monotonic()
        if pending is None or (
            now - pending[2] < SETTLING_TIME and now - pending[1] < MAX_DRAG_DELAY
        ):
            return
        if not self._clear():
            return
        missing = reference is None or not self._output.ready
        if missing and now - pending[2] < DISCOVERY_TIMEOUT:
            return
        with self._lock:
            if self._pending is not pending:
                return  # a newer target was given during this time
            self._pending = None
        self._sent()
        self._target = None
        if self._status.stopped:
            self._feedback.rejected(f"{self._status.emergency}; reset it before a target")
        elif reference is None or missing:
            self._feedback.rejected("joint controllers = 0; expected one that moves the arm")
        else:
            self._move(reference, pending[0])

    def _move(self, reference: Vector, target: Vector) -> None:
        """Send the motion from the reference to a target (nv,)."""
        target = as_readonly(target + whole_turns(self._arm, target, reference))
        duration = move_time(self._arm, reference, target)
        self._interrupted, self._target = self._counts(), target
        zero = as_readonly(np.zeros(target.size))
        self._output.send([Waypoint(duration, target, zero)])
        self._feedback.note(f"moving to the joint targets, {duration:.1f} s")

    def _counts(self) -> tuple[float, ...]:
        return tuple(self._status.number(event) or 0.0 for event in INTERRUPTED)


class DemoMotion:
    """Slow moves around the initial configuration, each from the current reference.

    Parameters
    ----------
    arm : ArmModel
        Arm that moves.
    output : MotionOutput
        Receives the motions.
    reference : callable
        Returns the current reference and its velocity, (nv,) each; None if not known.
    scene : Scene
        Objects around the arm.

    """

    def __init__(
        self,
        arm: ArmModel,
        output: MotionOutput,
        reference: Callable[[], tuple[Vector, Vector] | None],
        scene: Scene = EMPTY_SCENE,
    ) -> None:
        self._arm, self._output, self._reference, self._scene = arm, output, reference, scene
        self._next, self._interrupted = 0.0, tuple(0.0 for _ in INTERRUPTED)
        self.running = False

    def set_running(self, running: bool) -> str:
        """Start or stop the motion; return its state as text."""
        if running != self.running:
            tracked = None if running else self._reference()
            if tracked:
                self._output.send([stop_waypoint(self._arm, *tracked)])
            self.running, self._next = running, 0.0
        return "demo running" if running else "demo stopped"

    def continue_motion(self, simulated: float, *interrupted: float) -> None:
        """Send a motion if the last one has ended at ``simulated`` [s] or was interrupted.

        ``interrupted``: counts of the events INTERRUPTED.
        """
        if not self.running:
            return
        tracked = self._reference()
        if interrupted != self._interrupted:
            self._interrupted, self._next = interrupted, simulated
            return  # the known reference may be outdated
        if simulated < self._next or not tracked:
            return
        points = demo_trajectory(self._arm, tracked[0], self._scene)
        self._output.send(points)
        self._next = simulated + points[-1].time
