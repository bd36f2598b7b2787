"""Params of a URDF's <ros2_control> joints changed in its text: all else stays as it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.parsers import expat
from xml.sax.saxutils import escape

from arm_dynamics.core.errors import ConfigError

TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
PLACE = ["robot", "ros2_control", "joint"]


@dataclass(frozen=True, slots=True)
class _Edit:
    """Bytes ``start`` to ``end`` become ``text``."""

    start: int
    end: int
    text: bytes


def with_params(urdf: str, changes: Mapping[str, Mapping[str, str]]) -> str:
    """The URDF's text with the <param>s of joints changed: ``changes[joint][name]``.

    A param that a joint does not have is added behind its others. Comments, order and blanks
    stay. Raises ConfigError for a joint that the <ros2_control> block does not have.
    """
    data = urdf.encode("utf-8")
    reader = _Reader(data, changes)
    missing = [joint for joint in changes if joint not in reader.joints]
    if missing:
        raise ConfigError(f"<ros2_control> has no joint {', '.join(missing)}")
    for edit in sorted(reader.edits, key=lambda one: one.start, reverse=True):
        data = data[: edit.start] + edit.text + data[edit.end :]
    return data.decode("utf-8")


class _Reader:
    """Finds where the params are; ``edits`` are what ``changes`` make of them."""

    def __init__(self, data: bytes, changes: Mapping[str, Mapping[str, str]]) -> None:
        self.data, self.changes = data, changes
        self.edits: list[_Edit] = []
        self.joints: set[str] = set()
        self._path: list[tuple[str, str, int]] = []  # tag, name and first byte of open elements
        self._left: dict[str, str] = {}
        self._last = (0, 0)  # first and last byte of the joint's last child
        parser = self._parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler, parser.EndElementHandler = self._begin, self._end
        parser.Parse(data, True)

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        name = attributes.get("name", "")
        self._path.append((tag, name, self._parser.CurrentByteIndex))
        if self._place == PLACE:
            self.joints.add(name)
            self._left, self._last = dict(self.changes.get(name, {})), (0, 0)

    def _end(self, _tag: str) -> None:
        place, (tag, name, start) = self._place, self._path[-1]
        if place[:-1] == PLACE:
            self._last = (start, self._end_of(start))
            if tag == "param" and name in self._left:
                self.edits.append(_Edit(*self._last, _param(name, self._left.pop(name))))
        elif place == PLACE and self._left:
            self.edits.append(self._added(name))
        self._path.pop()

    @property
    def _place(self) -> list[str]:
        return [tag for tag, _, _ in self._path]

    def _end_of(self, start: int) -> int:
        """Behind the element that began at ``start`` and ends here: with its tag or without one."""
        opened = TAG.match(self.data, start)
        if opened and opened.group().endswith(b"/>"):
            return opened.end()
        closed = TAG.match(self.data, self._parser.CurrentByteIndex)
        return closed.end() if closed else start

    def _added(self, joint: str) -> _Edit:
        """Add new params, each on a separate line after the last child."""
        start, end = self._last
        if not end:
            raise ConfigError(f"<ros2_control> joint '{joint}' is empty: it has no motor")
        line = self.data.rfind(b"\n", 0, start) + 1
        blank = re.match(rb"[ \t]*", self.data[line:])
        indent = b"\n" + (blank.group() if blank else b"")
        lines = b"".join(indent + _param(name, text) for name, text in self._left.items())
        return _Edit(end, end, lines)


def _param(name: str, text: str) -> bytes:
    return f'<param name="{escape(name)}">{escape(text)}</param>'.encode()
