"""Changes of params of <ros2_control> joints in the text of a URDF; the other text is preserved."""

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
    """Replacement of the bytes ``start`` to ``end`` by ``text``."""

    start: int
    end: int
    text: bytes


def with_params(urdf: str, changes: Mapping[str, Mapping[str, str]]) -> str:
    """Return the URDF's text with changed <param>s of joints.

    Comments, order and blanks are preserved.

    Parameters
    ----------
    urdf : str
        Text of the URDF.
    changes : Mapping[str, Mapping[str, str]]
        ``changes[joint][name]``: new text of a param. A param that a joint does not have is added
        after its others.

    Returns
    -------
    str
        The changed text.

    Raises
    ------
    ConfigError
        For a joint that the <ros2_control> block does not have, and for one without params.

    """
    data = urdf.encode("utf-8")
    reader = _Reader(data, changes)
    missing = [joint for joint in changes if joint not in reader.joints]
    if missing:
        raise ConfigError(
            f"<ros2_control>: joints = {', '.join(sorted(reader.joints)) or 'none'}; expected also"
            f" {', '.join(missing)}"
        )
    for edit in sorted(reader.edits, key=lambda one: one.start, reverse=True):
        data = data[: edit.start] + edit.text + data[edit.end :]
    return data.decode("utf-8")


class _Reader:
    """Parser that finds the params and makes the ``edits`` of ``changes``."""

    def __init__(self, data: bytes, changes: Mapping[str, Mapping[str, str]]) -> None:
        self.data, self.changes = data, changes
        self.edits: list[_Edit] = []
        self.joints: set[str] = set()
        self._path: list[tuple[str, str, int]] = []  # tag, name and first byte of open elements
        self._left: dict[str, str] = {}
        self._last = (0, 0)  # first and last byte of the joint's last child
        parser = self._parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler, parser.EndElementHandler = self._start_tag, self._end_tag
        parser.Parse(data, True)

    def _start_tag(self, tag: str, attributes: dict[str, str]) -> None:
        name = attributes.get("name", "")
        self._path.append((tag, name, self._parser.CurrentByteIndex))
        if self._place == PLACE:
            self.joints.add(name)
            self._left, self._last = dict(self.changes.get(name, {})), (0, 0)

    def _end_tag(self, _tag: str) -> None:
        place, (tag, name, start) = self._place, self._path[-1]
        if place[:-1] == PLACE:
            end = TAG.match(self.data, start)
            if not (end and end.group().endswith(b"/>")):  # the element has a closing tag
                end = TAG.match(self.data, self._parser.CurrentByteIndex)
            self._last = (start, end.end() if end else start)
            if tag == "param" and name in self._left:
                self.edits.append(_Edit(*self._last, _param(name, self._left.pop(name))))
        elif place == PLACE and self._left:
            self.edits.append(self._new_params(name))
        self._path.pop()

    @property
    def _place(self) -> list[str]:
        return [tag for tag, _, _ in self._path]

    def _new_params(self, joint: str) -> _Edit:
        """Return the insertion of new params, each on a separate line after the last child."""
        start, end = self._last
        if not end:
            raise ConfigError(f"<ros2_control> joint '{joint}' is empty; expected a motor")
        line = self.data.rfind(b"\n", 0, start) + 1
        blank = re.match(rb"[ \t]*", self.data[line:])
        indent = b"\n" + (blank.group() if blank else b"")
        lines = b"".join(indent + _param(name, text) for name, text in self._left.items())
        return _Edit(end, end, lines)


def _param(name: str, text: str) -> bytes:
    return f'<param name="{escape(name)}">{escape(text)}</param>'.encode()
