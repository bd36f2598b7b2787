"""Targets from a page for a control loop of this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.core.status_summary import StatusSummary
from arm_dynamics.safety.events import event_values
from arm_dynamics.viewer.page import PERIOD, ArmPage
from arm_dynamics.viewer.target_controls import TargetControls


class LoopOutput:
    """Sends motions to a control loop of this process."""

    ready = True

    def __init__(self, loop: ControlLoop, requests: LoopRequests) -> None:
        self._loop, self._requests = loop, requests

    def send(self, points: Sequence[Waypoint]) -> None:
        """Start a motion through waypoints with velocities in the next cycle."""
        self._requests.post(lambda: self._follow(points))

    def reference(self) -> tuple[Vector, Vector] | None:
        """Return the reference of the last cycle and its velocity, (nv,) each."""
        reference = self._loop.reference
        return None if reference is None else (reference.q, reference.v)

    def _follow(self, points: Sequence[Waypoint]) -> None:
        try:
            now = self._loop.present()[0].time
            waypoints = tuple(replace(point, time=point.time + now) for point in points)
            self._loop.follow(JointTrajectory(waypoints))
        except TrajectoryRejected as error:
            self._loop.events.report("trajectory_rejected", str(error))


class LoopControls:
    """Sliders and named configurations of a page as targets of a control loop.

    Parameters
    ----------
    page : ArmPage
        Page with control.
    loop : ControlLoop
        The loop.
    on_motion : callable
        Called before a target moves the arm.

    """

    def __init__(
        self, page: ArmPage, loop: ControlLoop, on_motion: Callable[[], object] = lambda: None
    ) -> None:
        self._loop, self._status = loop, StatusSummary()
        self.requests = LoopRequests()
        """Requests that ``update`` serves."""
        output = LoopOutput(loop, self.requests)

        def clear() -> bool:
            on_motion()
            return True

        self._targets = TargetControls(page, loop.arm, output, self._status, clear, handle=False)
        self._due = 0.0

    def reset(self) -> None:
        """Discard the target."""
        self._targets.reset()

    def update(self) -> None:
        """Start requested motions, and let the sliders follow; after each cycle of the loop."""
        self.requests.serve()
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + PERIOD
        self._status.take("loop", True, "running", event_values(self._loop.events))
        reference = self._loop.reference
        self._targets.update(None if reference is None else reference.q)
