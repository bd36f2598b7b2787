"""Arm behind topics that follows the trajectories of a page, and its recorder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from arm_dynamics.control.joint_motions import INTERRUPTED, stop_waypoint
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue, TrajectoryRejected
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.core.status_summary import StatusSummary
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.topics.controller_clients import TrackingSubscription, TrajectoryPublisher
from arm_dynamics.ros.topics.services import RemoteParameters
from arm_dynamics.safety.events import Events


class FollowedTopics:
    """Joint controller of this namespace as a TrajectoryFollower."""

    def __init__(
        self,
        arm: ArmModel,
        output: TrajectoryPublisher,
        tracking: TrackingSubscription,
        status: StatusSummary,
        events: Events,
    ) -> None:
        self.arm, self.events = arm, events
        self.restart_count = 0
        """Number of events of the controller that end a trajectory."""
        self._state: State | None = None
        self._counts = [0.0 for _ in INTERRUPTED]
        self._output, self._tracking, self._status = output, tracking, status

    def update(self, state: State) -> None:
        """Accept a new state, and the events that the diagnostics of the controller report."""
        self._state = state
        before, self._counts = self._counts, [self._status.number(e) or 0.0 for e in INTERRUPTED]
        for event, old, new in zip(INTERRUPTED, before, self._counts, strict=True):
            if new > old:
                self.restart_count += 1
                text = self._status.values.get(f"last {event}", event)
                self.events.report("control_restarted", text)

    @property
    def latest(self) -> tuple[State, Reference, Command] | None:
        """Newest state and reference; the command is the effort of the state."""
        state, tracked = self._state, self._tracking.newest
        if state is None or tracked is None:
            return None
        rest = as_readonly(np.zeros(self.arm.nv))
        reference = Reference(tracked.reference, tracked.velocity, rest)
        return state, reference, Command("effort", state.tau, stamp=state.time)

    def present(self) -> tuple[State, Reference]:
        """Return the newest state and reference; raise TrajectoryRejected without them."""
        if self.latest is None:
            raise TrajectoryRejected("joint_states and tracking = none; expected both")
        return self.latest[:2]

    def follow(self, trajectory: Trajectory) -> None:
        """Publish the waypoints of a trajectory; the controller checks it again."""
        waypoints = getattr(trajectory, "waypoints", None)
        if waypoints is None:
            raise InvalidValue(f"trajectory = {type(trajectory).__name__}; expected waypoints")
        now = self.present()[0].time
        trajectory.check(self.arm)
        self._output.send([replace(point, time=point.time - now) for point in waypoints])

    def request_stop(self) -> None:
        """Publish a stop from the reference."""
        reference = self.present()[1]
        self._output.send([stop_waypoint(self.arm, reference.q, reference.v)])


class RemoteRecorder:
    """Recorder of the simulator of this namespace (MotionRecorder)."""

    def __init__(self, simulator: RemoteParameters) -> None:
        self._simulator = simulator
        self._recording = False

    def begin(self, folder: Path) -> None:
        """Start to record."""
        self._simulator.set({"recording_path": str(folder)})
        self._recording = True

    def end(self) -> str:
        """Finish; return why the recording failed."""
        if not self._recording:
            return ""
        self._recording = False
        try:
            self._simulator.set({"recording_path": ""})
        except ArmDynamicsError as error:
            return str(error)
        return ""

    def close(self) -> None:
        """Request the end without waiting: the simulator may end too."""
        if self._recording:
            self._recording = False
            self._simulator.post({"recording_path": ""})
