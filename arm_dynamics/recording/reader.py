"""Messages of a recording as segments, periods and gaps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError, RecordingError
from arm_dynamics.core.state import NO_STATES, Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording import bag
from arm_dynamics.recording.segment_header import RecordingSegment, load_segment


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
        except (ArmDynamicsError, ValueError, AttributeError, KeyError, TypeError) as error:
            seconds = time * 1e-9
            raise RecordingError(f"{folder}: {topic}, t = {seconds:.6f} s: {error}") from error
        if item is not None:
            yield item
    for needed in ({bag.DESCRIPTION}, {bag.COMMANDS, *bag.ARRAYS.values()}, {bag.STATES}):
        if not topics & needed:
            raise RecordingError(
                f"{folder}: messages on {' or '.join(sorted(needed))} = none;"
                " expected a recording of an arm"
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
        if topic == bag.DESCRIPTION:
            self._segment = load_segment(message.data)
            return self._segment
        if self._segment is None:
            raise RecordingError(f"messages on {bag.DESCRIPTION} = none; expected one first")
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
            raise RecordingError("commands before the state = none; expected one")
        q, v, tau = (
            self._checked(getattr(message, f), arm.nv, message.name, arm.joint_names)
            for f in ("position", "velocity", "effort")
        )
        if self._act.size != arm.na:
            raise RecordingError(
                f"actuator states on {bag.ACTUATORS} = none; expected a message before the state"
            )
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
