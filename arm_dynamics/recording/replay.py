"""Replay: the forward model runs the commands of a recording and is compared with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import MALFORMED, ArmDynamicsError, RecordingError
from arm_dynamics.core.state import NO_STATES, Command, State
from arm_dynamics.core.timing import StepClock
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording import bag
from arm_dynamics.recording.recorder import nanoseconds
from arm_dynamics.recording.segment_header import RecordingSegment, load_segment
from arm_dynamics.simulation.forward_model import forward_model, pack_state, split_state_vector

PARTS = ("q", "v", "act")


@dataclass(frozen=True, slots=True, eq=False)
class Period:
    """One command and the state after it, with the times [ns] of begin and end."""

    begin: int
    command: Command
    end: int
    after: State


@dataclass(frozen=True, slots=True)
class Gap:
    """Periods dropped by a full or slow disk: their number, first and last time [ns]."""

    dropped: int
    first: int
    last: int


@dataclass(slots=True)
class ReplayReport:
    """Result of a replay: its extent, and the differences of the recording from the model."""

    arm: str = ""
    seconds: float = 0.0
    periods: int = 0
    segments: int = 0
    gaps: list[Gap] = field(default_factory=list)
    """Periods dropped by a full or slow disk."""
    finished: bool = True
    """Whether the recording was closed; else it ends where it was interrupted."""
    largest: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    """Largest difference of q [rad], v [rad/s] and act; inf if one is NaN."""
    first: str | None = None
    """Location of the first difference; None if all is identical to the last bit."""

    def compare(self, what: str, where: str, recorded: Vector, computed: Vector) -> None:
        """Update the report by one of PARTS."""
        same = recorded == computed
        if same.all():
            return
        difference = np.where(same, 0.0, np.abs(recorded - computed))
        largest = float(np.where(np.isfinite(difference), difference, np.inf).max())
        self.largest[what] = max(self.largest[what], largest)
        if self.first is None:
            i = int(np.flatnonzero(~same)[0])
            self.first = f"{where}: {recorded[i]:.17g} recorded, {computed[i]:.17g} computed"


def replay(folder: str | Path) -> ReplayReport:
    """Run the forward model from the recorded start under the recorded commands.

    The motion continues from the computed state, never from a recorded one. A change of the arm, a
    jump of its state or a gap starts a segment from its recorded initial state. Applied efforts are
    not part of the state and are not compared.

    Parameters
    ----------
    folder : str or Path
        Recording.

    Returns
    -------
    ReplayReport
        Extent and differences.

    Raises
    ------
    RecordingError
        If the folder is not a recording, lacks a topic or a period, or cannot be read.

    """
    report = ReplayReport(finished=bag.is_finished(Path(folder)))
    run: _Run | None = None
    for item in read_items(Path(folder)):
        if isinstance(item, RecordingSegment):
            run = _Run(item)
            report.arm = item.arm.name
            report.segments += 1
        elif isinstance(item, Gap):
            report.gaps.append(item)
        else:
            assert run is not None  # a segment comes first
            try:
                run.follow(item, report)
            except ArmDynamicsError as error:
                raise RecordingError(f"{folder}: at t = {run.time:.6f} s: {error}") from error
    return report


class _Run:
    """Motion of one segment."""

    def __init__(self, segment: RecordingSegment) -> None:
        self._segment, self.time, self._clock = segment, segment.start.time, StepClock()
        self._vector = pack_state(segment.arm, segment.start)

    def follow(self, period: Period, report: ReplayReport) -> None:
        """Compute one period and compare."""
        segment = self._segment
        end = self._clock.after(self.time, segment.dt, segment.steps)
        times = (period.begin, nanoseconds(self.time)), (period.end, nanoseconds(end))
        # The simulation counts from before this segment: its last bit may differ.
        if any(abs(recorded - computed) > 1 for recorded, computed in times):
            raise RecordingError(
                f"period = {period.begin * 1e-9:.6f} s to {period.end * 1e-9:.6f} s;"
                f" expected the one that ends at {end:.6f} s"
            )
        for _ in range(segment.steps):
            self._vector = forward_model(
                segment.arm, self._vector, period.command.value, segment.dt,
                integrator=segment.integrator, interface=period.command.interface,
            )  # fmt: skip
        self.time = end
        report.periods += 1
        report.seconds += segment.steps * segment.dt
        arm, computed = self._segment.arm, split_state_vector(self._segment.arm, self._vector)
        for what in PARTS:
            recorded, model = getattr(period.after, what), getattr(computed, what)
            names = arm.act_names if what == "act" else arm.joint_names
            differs = np.flatnonzero(recorded != model)
            if differs.size:
                where = f"t = {self.time:.6f} s, {what}[{names[int(differs[0])]}]"
                report.compare(what, where, recorded, model)


def read_items(folder: Path) -> Iterator[RecordingSegment | Period | Gap]:
    """Yield the contents of a recording in order; a segment comes first, and after each gap.

    A command without a state after it, at the end of an interrupted recording, is omitted.

    Raises
    ------
    RecordingError
        If the folder is not a recording, is damaged, or lacks a topic.

    """
    topics: set[str] = set()
    reader = _Reader()
    for topic, time, message in bag.messages(folder):
        topics.add(topic)
        try:
            item = reader.take(topic, time, message)
        except (ArmDynamicsError, *MALFORMED) as error:
            seconds = time * 1e-9
            raise RecordingError(f"{folder}: {topic}, t = {seconds:.6f} s: {error}") from error
        if item is not None:
            yield item
    for needed in ({bag.DESCRIPTION}, {bag.COMMANDS, *bag.ARRAYS.values()}, {bag.STATES}):
        if not topics & needed:
            raise RecordingError(
                f"{folder}: no messages on {' or '.join(sorted(needed))}; expected a recording of"
                " an arm"
            )


class _Reader:
    """Combines the messages of a period."""

    def __init__(self) -> None:
        self._segment: RecordingSegment | None = None
        self._command: tuple[int, Command] | None = None
        self._act = NO_STATES

    def take(self, topic: str, time: int, message: Any) -> RecordingSegment | Period | Gap | None:
        """Return the item that ``message`` completes, or None."""
        if topic == bag.GAPS:
            gap = json.loads(message.data)
            return Gap(int(gap["dropped"]), int(gap["first"]), int(gap["last"]))
        if topic in (bag.REFERENCES, bag.URDF):
            return None
        if topic == bag.DESCRIPTION:
            self._segment = load_segment(message.data)
            return self._segment
        if self._segment is None:
            raise RecordingError(
                f"no message on {bag.DESCRIPTION} before this one: only recordings of a simulation"
                " can be replayed; arm-dynamics plot draws others"
            )
        arm = self._segment.arm
        if topic == bag.ACTUATORS:
            self._act = self._checked(message.data, arm.na, _labels(message), arm.act_names)
        elif topic == bag.STATES:
            return self._end_period(arm, time, message)
        else:
            self._command = time, self._read_command(arm, topic, message)
        return None

    def _read_command(self, arm: ArmModel, topic: str, message: Any) -> Command:
        """Return the command in a message."""
        names = arm.joint_names
        for interface, array in bag.ARRAYS.items():
            if topic == array:
                value = self._checked(message.data, len(names), _labels(message), names)
                return Command.checked(interface, value, len(names))
        given = [f for f in ("position", "velocity", "effort") if getattr(message, f).size]
        if len(given) != 1:
            raise RecordingError(f"fields = {given or 'none'}; expected one")
        value = self._checked(getattr(message, given[0]), len(names), message.name, names)
        return Command.checked(given[0], value, len(names))

    def _end_period(self, arm: ArmModel, time: int, message: Any) -> Period:
        """Return the period that the state in ``message`` ends."""
        if self._command is None:
            raise RecordingError("no command before the state")
        q, v, tau = (
            self._checked(getattr(message, f), arm.nv, message.name, arm.joint_names)
            for f in ("position", "velocity", "effort")
        )
        if self._act.size != arm.na:
            raise RecordingError(f"no actuator states on {bag.ACTUATORS} before the state")
        (begin, command), self._command = self._command, None
        act, self._act = self._act, NO_STATES
        return Period(begin, command, time, State(time * 1e-9, q, v, tau, act))

    @staticmethod
    def _checked(values: Any, size: int, given: list[str], names: tuple[str, ...]) -> Vector:
        if tuple(given) != names or len(values) != size:
            raise RecordingError(f"{len(values)} values of joints = {given}; expected {names}")
        return np.array(values, dtype=float)


def _labels(message: Any) -> list[str]:
    return [dimension.label for dimension in message.layout.dim]
