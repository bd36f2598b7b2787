"""What an arm showed and was told, written down aside from the loop that moves it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.errors import ArmDynamicsError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording import bag
from arm_dynamics.recording.recorder import nanoseconds
from arm_dynamics.safety.events import Events
from arm_dynamics.state import Command, State

Entry = tuple[str, float, tuple[str, ...], Mapping[str, Vector]]
"""Topic, stamp [s], joints, and their values by field, or by "" where there is but one."""


class StateLog:
    """States and commands of an arm in a new rosbag2 folder, until ``close``.

    No call but ``close`` waits for the disk. A log that cannot go on ends with the event
    "recording_ended"; the arm goes on. Raises RecordingRefused for a folder that exists or cannot
    be made, and without rosbags.
    """

    def __init__(self, arm: ArmModel, folder: str | Path, events: Events) -> None:
        self.folder, self._names, self._events = Path(folder), arm.joint_names, events
        self._bag = bag.BagWriter(self.folder)
        self._queue: SimpleQueue[Entry | None] = SimpleQueue()
        self._thread = Thread(target=self._write, name="recording")
        self._thread.start()

    def state(self, stamp: float, state: State) -> None:
        """A state under the stamp [s] that it was shown with; joints that are unknown are not."""
        known = np.flatnonzero(np.isfinite(state.q + state.v))
        names = tuple(self._names[i] for i in known.tolist())
        told = {"position": state.q[known], "velocity": state.v[known], "effort": state.tau[known]}
        self._queue.put((bag.STATES, stamp, names, told))

    def command(self, stamp: float, command: Command) -> None:
        """A command that the arm was given at ``stamp`` [s]."""
        topic = bag.ARRAYS.get(command.interface, bag.COMMANDS)
        field = "" if topic != bag.COMMANDS else command.interface
        self._queue.put((topic, stamp, self._names, {field: np.array(command.value)}))

    def close(self) -> None:
        """Write what is left and finish; may be called twice."""
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        try:
            while (entry := self._queue.get()) is not None:
                topic, stamp, names, told = entry
                if "" in told:
                    self._bag.numbers(topic, nanoseconds(stamp), names, told[""])
                else:
                    self._bag.joints(topic, nanoseconds(stamp), names, **told)
            self._bag.close()
        except (ArmDynamicsError, OSError) as error:
            self._events.report("recording_ended", f"recording in {self.folder} ended: {error}")
