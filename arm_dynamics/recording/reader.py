"""A recording's messages as values: where it begins anew, and the periods that follow."""

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
from arm_dynamics.recording import bag
from arm_dynamics.recording.segment_header import RecordingSegment, load_segment


@dataclass(frozen=True, slots=True, eq=False)
class Period:
    """One command and the state that it led to, with the times [ns] of begin and end."""

    begin: int
    command: Command
    end: int
    after: State


@dataclass(frozen=True, slots=True)
class Gap:
    """Periods that the disk was too full or too slow for: how many, and times [ns] of two."""

    dropped: int
    first: int
    last: int


def read_items(folder: Path) -> Iterator[RecordingSegment | Period | Gap]:
    """All that a recording holds, in its order; a Segment comes first, and behind each Gap.

    A command without a state behind it is left out: the recording was cut off there. Raises
    RecordingRefused for what is no recording, is damaged, or has not all its topics.
    """
    found: set[str] = set()
    reader = _Reader()
    for topic, time, message in bag.messages(folder):
        found.add(topic)
        try:
            item = reader.take(topic, time, message)
        except (ArmDynamicsError, ValueError, AttributeError, KeyError, TypeError) as error:
            raise RecordingError(f"{folder}: {topic} at {time * 1e-9:.6f} s: {error}") from error
        if item is not None:
            yield item
    for needed in ({bag.DESCRIPTION}, {bag.COMMANDS, *bag.ARRAYS.values()}, {bag.STATES}):
        if not found & needed:
            raise RecordingError(
                f"{folder} is no recording of an arm: nothing on {' or '.join(sorted(needed))}"
            )


class _Reader:
    """Puts the messages of one period together."""

    def __init__(self) -> None:
        self._segment: RecordingSegment | None = None
        self._command: tuple[int, Command] | None = None
        self._act = NO_STATES

    def take(self, topic: str, time: int, message: Any) -> RecordingSegment | Period | Gap | None:
        """The item that ``message`` completes, if it does."""
        if topic == bag.GAPS:
            told = json.loads(message.data)
            return Gap(int(told["dropped"]), int(told["first"]), int(told["last"]))
        if topic == bag.DESCRIPTION:
            self._segment = load_segment(message.data)
            return self._segment
        arm = self._need_segment().arm
        if topic == bag.ACTUATORS:
            self._act = self._checked(message.data, arm.na, _labels(message), arm.act_names)
        elif topic == bag.STATES:
            return self._period(time, message)
        else:
            self._command = time, self._read_command(topic, message)
        return None

    def _need_segment(self) -> RecordingSegment:
        if self._segment is None:
            raise RecordingError(f"nothing on {bag.DESCRIPTION} came before")
        return self._segment

    def _read_command(self, topic: str, message: Any) -> Command:
        names = self._need_segment().arm.joint_names
        for interface, array in bag.ARRAYS.items():
            if topic == array:
                value = self._checked(message.data, len(names), _labels(message), names)
                return Command.checked(interface, value, len(names))
        given = [f for f in ("position", "velocity", "effort") if getattr(message, f).size]
        if len(given) != 1:
            raise RecordingError(f"{given or 'no field'} given, one field expected")
        value = self._checked(getattr(message, given[0]), len(names), message.name, names)
        return Command.checked(given[0], value, len(names))

    def _period(self, time: int, message: Any) -> Period:
        arm = self._need_segment().arm
        if self._command is None:
            raise RecordingError("a state without a command before it")
        q, v, tau = (
            self._checked(getattr(message, f), arm.nv, message.name, arm.joint_names)
            for f in ("position", "velocity", "effort")
        )
        if self._act.size != arm.na:
            raise RecordingError(f"no own states of the actuators before it on {bag.ACTUATORS}")
        (begin, command), self._command = self._command, None
        act, self._act = self._act, NO_STATES
        return Period(begin, command, time, State(time * 1e-9, q, v, tau, act))

    @staticmethod
    def _checked(values: Any, size: int, given: list[str], names: tuple[str, ...]) -> Vector:
        if tuple(given) != names or len(values) != size:
            raise RecordingError(f"{len(values)} numbers of {given} given, {names} expected")
        return np.array(values, dtype=float)


def _labels(message: Any) -> list[str]:
    return [dimension.label for dimension in message.layout.dim]
