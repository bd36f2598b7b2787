"""Writes down what a simulation does while it does it."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np

from arm_dynamics.core.errors import ArmDynamicsError, RecordingError
from arm_dynamics.core.state import Command, State
from arm_dynamics.recording import bag
from arm_dynamics.recording.queued_bag import QueuedBag
from arm_dynamics.recording.segment_header import RecordingSegment, dump_segment, require_recordable
from arm_dynamics.simulation.simulation import Simulation


class Recorder:
    """Records a simulation into a new folder, from its present state until ``close``.

    Every command that the plant obeys is there, those of the safe stop too, and every change of
    the arm and jump of the state. A recording that cannot go on ends with the event
    "recording_ended", its reason in ``fault``; the simulation goes on. Raises RecordingRefused
    for a folder that exists or cannot be made, an arm that its URDF no longer describes, a
    simulation that is recorded already, and without rosbags.
    """

    def __init__(
        self, simulation: Simulation, folder: str | Path, *, patience: float | None = None
    ) -> None:
        """Record ``simulation`` from now on.

        Without ``patience`` each period waits for the disk, and a full disk ends the recording.
        With it a thread writes: a period waits for room in its queue for ``patience`` [s] at most
        and is dropped then; behind such a gap the recording begins anew (see ``QueuedBag``).
        """
        if simulation.on_period is not None:
            raise RecordingError(f"{folder}: this simulation is recorded already")
        require_recordable(simulation.arm)
        self.folder = Path(folder)
        self.periods = 0
        self.fault: str | None = None
        self._simulation = simulation
        self._latest: State | None = simulation.state
        self._links = simulation.arm.links
        self._segment = RecordingSegment.of(simulation, simulation.state)
        writer, events = bag.BagWriter(self.folder), simulation.watch.events
        self._bag: bag.BagWriter | QueuedBag = writer
        if patience is not None:
            self._bag = QueuedBag(writer, str(folder), events, patience)
        now = nanoseconds(simulation.state.time)
        self._bag.put(now, lambda: [self._begin(simulation.state)])
        simulation.on_period = self._on_period

    @property
    def queue(self) -> QueuedBag | None:
        """Where periods wait for the disk; None where each period itself waits for it."""
        return self._bag if isinstance(self._bag, QueuedBag) else None

    def __enter__(self) -> Recorder:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close, whatever happened: what is recorded stays readable."""
        self.close()

    def close(self) -> None:
        """Finish the recording; may be called twice. What prevents it is the ``fault``."""
        if self._simulation.on_period == self._on_period:
            self._simulation.on_period = None
        try:
            self._bag.close()
        except OSError as error:
            self.fault = self.fault or f"recording in {self.folder} is not finished: {error}"

    def _on_period(self, before: State, command: Command, after: State) -> None:
        try:
            time = nanoseconds(before.time)
            taken = self._bag.put(time, lambda: self._period(before, command, after))
        except (ArmDynamicsError, OSError) as error:
            self._end(str(error))
            return
        self._latest = after if taken else None
        self.periods += 1
        if self._bag.fault:
            self.fault, self._simulation.on_period = self._bag.fault, None

    def _period(self, before: State, command: Command, after: State) -> list[bag.Message]:
        """Messages of one period, behind a description where the model cannot follow."""
        goes_on = self._simulation.arm is self._segment.arm and _same(before, self._latest)
        messages = [] if goes_on else [self._begin(before)]
        arm, begin, end = self._segment.arm, nanoseconds(before.time), nanoseconds(after.time)
        topic, value = bag.ARRAYS.get(command.interface), command.value
        given = value if topic else {command.interface: value}
        messages.append(bag.Message(topic or bag.COMMANDS, begin, arm.joint_names, given))
        if arm.na:
            messages.append(bag.Message(bag.ACTUATORS, end, arm.act_names, after.act))
        told = {"position": after.q, "velocity": after.v, "effort": after.tau}
        return [*messages, bag.Message(bag.STATES, end, arm.joint_names, told)]

    def _begin(self, start: State) -> bag.Message:
        """Describe arm and state anew."""
        arm = self._simulation.arm
        if arm.links is not self._links:
            require_recordable(arm)
        self._segment = RecordingSegment.of(self._simulation, start)
        return bag.Message(
            bag.DESCRIPTION, nanoseconds(start.time), (), dump_segment(self._segment)
        )

    def _end(self, why: str) -> None:
        self.fault = f"recording in {self.folder} ended: {why}"
        self._simulation.watch.events.report("recording_ended", self.fault)
        self.close()


def _same(one: State, other: State | None) -> bool:
    """Whether the plant goes on from both alike."""
    if one is other or other is None:
        return other is not None
    names = ("time", "q", "v", "act")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def nanoseconds(time: float) -> int:
    """A time [s] to the nearest nanosecond."""
    return round(time * 1e9)
