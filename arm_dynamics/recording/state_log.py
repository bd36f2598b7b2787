"""Recording of the states and commands of an arm, in a thread besides its control loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from arm_dynamics.core.state import Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording import bag
from arm_dynamics.recording.queued_bag import QueuedBag
from arm_dynamics.recording.recorder import nanoseconds
from arm_dynamics.safety.events import Events


class StateLog:
    """States and commands of an arm in a new rosbag2 folder, until ``close``.

    Only ``close`` waits for the disk, for a few seconds at most. ``queue`` reports the effects of a
    full or slow disk; the arm continues. Raises RecordingError if the folder exists or cannot be
    created, or rosbags is missing.
    """

    def __init__(self, arm: ArmModel, folder: str | Path, events: Events) -> None:
        self.folder, self._names = Path(folder), arm.joint_names
        self.queue = QueuedBag(bag.BagWriter(self.folder), str(folder), events)

    def state(self, stamp: float, state: State) -> None:
        """Record a state with its time stamp [s]; joints without feedback are omitted."""
        known = np.flatnonzero(np.isfinite(state.q + state.v))
        names = tuple(self._names[i] for i in known.tolist())
        q, v, tau = state.q[known], state.v[known], state.tau[known]
        values = {"position": q, "velocity": v, "effort": tau}
        self._put(bag.Message(bag.STATES, nanoseconds(stamp), names, values))

    def command(self, stamp: float, command: Command) -> None:
        """Record a command sent at ``stamp`` [s]."""
        topic, value = bag.ARRAYS.get(command.interface), np.array(command.value)
        values = value if topic else {command.interface: value}
        self._put(bag.Message(topic or bag.COMMANDS, nanoseconds(stamp), self._names, values))

    def close(self) -> None:
        """Write the queue and finish; may be called twice."""
        self.queue.close()

    def _put(self, message: bag.Message) -> None:
        self.queue.put(message.time, lambda: [message])
