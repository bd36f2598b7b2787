"""What an arm showed and was told, written down aside from the loop that moves it."""

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

    No call but ``close`` waits for the disk, and ``close`` does for a few seconds at most. What
    a full or slow disk does to the recording is said in ``queue``; the arm continues. Raises
    RecordingRefused for a folder that exists or cannot be made, and without rosbags.
    """

    def __init__(self, arm: ArmModel, folder: str | Path, events: Events) -> None:
        self.folder, self._names = Path(folder), arm.joint_names
        self.queue = QueuedBag(bag.BagWriter(self.folder), str(folder), events)

    def state(self, stamp: float, state: State) -> None:
        """A state under the stamp [s] that it was shown with; joints that are unknown are not."""
        known = np.flatnonzero(np.isfinite(state.q + state.v))
        names = tuple(self._names[i] for i in known.tolist())
        told = {"position": state.q[known], "velocity": state.v[known], "effort": state.tau[known]}
        self._put(bag.Message(bag.STATES, nanoseconds(stamp), names, told))

    def command(self, stamp: float, command: Command) -> None:
        """A command that the arm was given at ``stamp`` [s]."""
        topic, value = bag.ARRAYS.get(command.interface), np.array(command.value)
        told = value if topic else {command.interface: value}
        self._put(bag.Message(topic or bag.COMMANDS, nanoseconds(stamp), self._names, told))

    def close(self) -> None:
        """Write what is left and finish; may be called twice."""
        self.queue.close()

    def _put(self, message: bag.Message) -> None:
        self.queue.put(message.time, lambda: [message])
