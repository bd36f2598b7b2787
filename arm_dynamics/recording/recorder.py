"""Recorders: of a running simulation, and of the states and commands of any arm."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import TracebackType

import numpy as np

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core.errors import ArmDynamicsError, RecordingError
from arm_dynamics.core.state import Command, Reference, State, TaskReference
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.robot_description import robot_description
from arm_dynamics.recording import bag
from arm_dynamics.recording.queued_bag import QueuedBag
from arm_dynamics.recording.segment_header import RecordingSegment, dump_segment, require_recordable
from arm_dynamics.safety.events import Events
from arm_dynamics.simulation.simulation import Simulation

RECORDING_TIMEOUT = 1.0
"""Maximum time [s] for which simulated time stops for a full queue of the recording."""
MAX_WAITING = 1000
"""References that wait for the next period; older ones are dropped while time is stopped."""


class References:
    """References of a controller that wait for the thread that records; any thread adds them."""

    def __init__(self, joint_names: tuple[str, ...]) -> None:
        self._names = joint_names
        self._waiting: deque[bag.Message] = deque(maxlen=MAX_WAITING)
        self._newest: int | None = None

    def add(self, stamp: float, reference: Reference) -> None:
        """Add the reference for the state at ``stamp`` [s]; those of the tool are omitted."""
        time = nanoseconds(stamp)
        if isinstance(reference, TaskReference):
            return
        if time != self._newest:  # a controller repeats its reference while time is stopped
            self._newest = time
            values = {"position": reference.q, "velocity": reference.v}
            self._waiting.append(bag.Message(bag.REFERENCES, time, self._names, values))

    def take(self) -> list[bag.Message]:
        """Return and remove the waiting messages."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]


class Recorder:
    """Records a simulation to a new folder, from its state at construction until ``close``.

    All commands that the plant receives are recorded, also those of a controlled stop, and every
    change of the arm or jump of its state. If recording fails, the event ``recording_failed`` is
    reported, ``fault`` states the reason, and the simulation continues.
    """

    def __init__(
        self,
        simulation: Simulation,
        folder: str | Path,
        *,
        loop: ControlLoop | None = None,
        patience: float | None = None,
    ) -> None:
        """Start recording.

        Parameters
        ----------
        simulation : Simulation
            Simulation.
        folder : str or Path
            New folder.
        loop : ControlLoop, optional
            Control loop of the simulation, whose references are recorded too.
        patience : float, optional
            None: each period waits for the disk, and a full disk ends the recording. Otherwise a
            thread writes, and a period waits for free space in its queue for at most this time [s];
            then it is dropped, and the recording starts again after the gap (see ``QueuedBag``).

        Raises
        ------
        RecordingError
            If the folder exists or cannot be created, the arm differs from its URDF, the simulation
            is recorded already, or rosbags is missing.

        """
        if simulation.on_period is not None:
            raise RecordingError(f"{folder}: recorders of the simulation = 1; expected none")
        require_recordable(simulation.arm)
        self.folder = Path(folder)
        self.periods = 0
        self.fault: str | None = None
        self.references = References(simulation.arm.joint_names)
        """Receives references of a controller in another thread or process."""
        self._simulation, self._loop = simulation, loop
        self._latest: State | None = simulation.state
        self._links = simulation.arm.links
        self._segment = RecordingSegment.of(simulation, simulation.state)
        writer, events = bag.BagWriter(self.folder), simulation.watchdog.events
        self._bag: bag.BagWriter | QueuedBag = writer
        if patience is not None:
            self._bag = QueuedBag(writer, str(folder), events, patience)
        now = nanoseconds(simulation.state.time)
        urdf = bag.Message(bag.URDF, now, (), robot_description(simulation.arm))
        self._bag.put(now, lambda: [self._begin(simulation.state), urdf])
        simulation.on_period = self._on_period

    @property
    def queue(self) -> QueuedBag | None:
        """Queue of periods to be written; None if each period waits for the disk."""
        return self._bag if isinstance(self._bag, QueuedBag) else None

    def __enter__(self) -> Recorder:
        """Return the recorder."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close, also after an exception: the recording stays readable."""
        self.close()

    def detach(self) -> None:
        """Record no further period; in the thread that advances the simulation."""
        if self._simulation.on_period == self._on_period:
            self._simulation.on_period = None

    def close(self) -> None:
        """Finish the recording; may be called twice. ``fault`` states why it failed, if so."""
        self.detach()
        try:
            self._bag.close()
        except OSError as error:
            self.fault = self.fault or f"recording {self.folder}: {error}; expected to be finished"

    def _on_period(self, before: State, command: Command, after: State) -> None:
        try:
            time = nanoseconds(before.time)
            recorded = self._bag.put(time, lambda: self._period(before, command, after))
        except (ArmDynamicsError, OSError) as error:
            self.fault = f"recording {self.folder} failed: {error}"
            self._simulation.watchdog.events.report("recording_failed", self.fault)
            self.close()
            return
        self._latest = after if recorded else None
        self.periods += 1
        if self._bag.fault:
            self.fault, self._simulation.on_period = self._bag.fault, None

    def _period(self, before: State, command: Command, after: State) -> list[bag.Message]:
        """Return the messages of one period, after a segment header if the model cannot continue.

        It continues if the arm is the same and time, q, v and act are those of the last period.
        """
        continues = self._simulation.arm is self._segment.arm and self._latest is not None
        if continues and before is not self._latest:
            continues = all(
                np.array_equal(getattr(before, name), getattr(self._latest, name))
                for name in ("time", "q", "v", "act")
            )
        messages = [] if continues else [self._begin(before)]
        loop = self._loop
        if loop is not None and loop.state is not None and loop.reference is not None:
            self.references.add(loop.state.time, loop.reference)
        messages += self.references.take()
        arm, begin, end = self._segment.arm, nanoseconds(before.time), nanoseconds(after.time)
        topic, value = bag.ARRAYS.get(command.interface), command.value
        given = value if topic else {command.interface: value}
        messages.append(bag.Message(topic or bag.COMMANDS, begin, arm.joint_names, given))
        if arm.na:
            messages.append(bag.Message(bag.ACTUATORS, end, arm.act_names, after.act))
        values = {"position": after.q, "velocity": after.v, "effort": after.tau}
        return [*messages, bag.Message(bag.STATES, end, arm.joint_names, values)]

    def _begin(self, start: State) -> bag.Message:
        """Return the segment header of the present arm and ``start``."""
        arm = self._simulation.arm
        if arm.links is not self._links:
            require_recordable(arm)
        self._segment = RecordingSegment.of(self._simulation, start)
        return bag.Message(
            bag.DESCRIPTION, nanoseconds(start.time), (), dump_segment(self._segment)
        )


class StateLog:
    """Records states, references and commands of an arm to a new rosbag2 folder, until ``close``.

    A background thread writes. Only ``close`` waits for the disk, for a few seconds at most.
    ``queue`` reports the effects of a full or slow disk; the arm continues. Raises RecordingError
    if the folder exists or cannot be created, or rosbags is missing.
    """

    def __init__(self, arm: ArmModel, folder: str | Path, events: Events) -> None:
        self.folder, self._names = Path(folder), arm.joint_names
        self.references = References(arm.joint_names)
        """References of the controller; recorded with the next state."""
        self._urdf = arm.urdf
        self._recorded: State | None = None
        self.queue = QueuedBag(bag.BagWriter(self.folder), str(folder), events)

    def cycle(self, state: State, reference: Reference | None, command: Command) -> None:
        """Record a control cycle, unless its state is recorded already."""
        if state is self._recorded:
            return
        self._recorded = state
        if reference is not None:
            self.references.add(state.time, reference)
        self.state(state.time, state)
        self.command(state.time, command)

    def state(self, stamp: float, state: State) -> None:
        """Record a state with its time stamp [s]; joints without feedback are omitted."""
        if self._urdf:
            self._put(bag.Message(bag.URDF, nanoseconds(stamp), (), self._urdf))
            self._urdf = ""
        known = np.flatnonzero(np.isfinite(state.q + state.v))
        names = tuple(self._names[i] for i in known.tolist())
        q, v, tau = state.q[known], state.v[known], state.tau[known]
        values = {"position": q, "velocity": v, "effort": tau}
        self._put(bag.Message(bag.STATES, nanoseconds(stamp), names, values))
        for message in self.references.take():
            self._put(message)

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


def nanoseconds(time: float) -> int:
    """Return a time [s] rounded to nanoseconds."""
    return round(time * 1e9)
