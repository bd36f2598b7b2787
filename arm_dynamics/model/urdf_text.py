"""Edits in the text of a URDF: everything else, comments and blanks included, is preserved.

``with_params`` changes params of <ros2_control> joints.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.model.xml_source import with_valid_comments

TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
STEP = "  "
"""Indentation of an inserted line, if the text has no line to copy it from."""


@dataclass(slots=True, eq=False)
class Element:
    """An element or comment in the text: bytes ``start`` to ``end``.

    The start tag ends at ``content``, and the end tag begins at ``close``; both are ``end`` for an
    element without an end tag. A comment has the tag "" and its text in ``attributes["text"]``.
    """

    tag: str
    attributes: dict[str, str]
    start: int
    content: int = 0
    close: int = 0
    end: int = 0
    children: list[Element] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Attribute ``name``, "" if missing."""
        return self.attributes.get("name", "")

    def find_all(self, tag: str) -> Iterator[Element]:
        """Yield the children with this tag."""
        return (child for child in self.children if child.tag == tag)

    def find(self, tag: str) -> Element | None:
        """Return the first child with this tag, or None."""
        return next(self.find_all(tag), None)

    @property
    def elements(self) -> list[Element]:
        """Children without the comments."""
        return [child for child in self.children if child.tag]


class UrdfText:
    """Text of a URDF with its elements, and edits that ``text`` applies.

    Lines of inserted text get the indentation of their place and the line ends of the file.
    Double hyphens in comments, which XML does not allow, become ``=``.
    """

    def __init__(self, text: str) -> None:
        self.data = with_valid_comments(text).encode("utf-8", "surrogatepass")
        self.root = _parse(self.data)
        self._edits: list[tuple[int, int, bytes]] = []
        self._removed: list[Element] = []

    def replace(self, element: Element, text: str) -> None:
        """Replace an element."""
        self._edit(element.start, element.end, self._lines(text, self._indent(element.start)))

    def remove(self, element: Element) -> None:
        """Remove an element, and its line if nothing else is on it; before any ``append``."""
        self._removed.append(element)
        start, end = element.start, element.end
        line = self._line_start(start)
        rest = re.compile(rb"[ \t]*(?:\r?\n|$)").match(self.data, end)
        if rest and not self.data[line:start].strip():
            start, end = line, rest.end()
        self._edit(start, end, b"")

    def insert_before(self, element: Element, text: str) -> None:
        """Insert lines above an element."""
        indent = self._indent(element.start)
        lines = self._lines(text, indent) + self._newline + indent
        self._edit(element.start, element.start, lines)

    def append(self, parent: Element, text: str) -> None:
        """Insert lines after the last child element of ``parent``, which may have none."""
        children = [child for child in parent.elements if child not in self._removed]
        if children:
            indent, place = self._indent(children[-1].start), children[-1].end
            self._edit(place, place, self._newline + indent + self._lines(text, indent))
            return
        indent = self._indent(parent.start)
        inner = indent + STEP.encode()
        lines = self._newline + inner + self._lines(text, inner)
        if parent.content == parent.end:  # <tag/> becomes <tag> ... </tag>
            tag = self.data[parent.start : parent.end]
            opened = tag[: tag.rindex(b"/")].rstrip() + b">"
            closed = self._newline + indent + f"</{parent.tag}>".encode()
            self._edit(parent.start, parent.end, opened + lines + closed)
            return
        tail = b"" if self.data[parent.content : parent.close].strip(b" \t") else (
            self._newline + indent
        )  # fmt: skip
        self._edit(parent.content, parent.content, lines + tail)

    def text(self) -> str:
        """Return the text with all edits."""
        data = self.data
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2], reverse=True):
            data = data[:start] + new + data[end:]
        return data.decode("utf-8", "surrogatepass")

    def _edit(self, start: int, end: int, new: bytes) -> None:
        """Add an edit; insertions at one place keep their order."""
        for k, (first, last, old) in enumerate(self._edits):
            if first == last == start == end:
                self._edits[k] = (start, end, old + new)
                return
        self._edits.append((start, end, new))

    @property
    def _newline(self) -> bytes:
        return b"\r\n" if b"\r\n" in self.data else b"\n"

    def _line_start(self, place: int) -> int:
        return self.data.rfind(b"\n", 0, place) + 1

    def _indent(self, place: int) -> bytes:
        """Return the blanks at the start of the line of ``place``."""
        blanks = re.compile(rb"[ \t]*").match(self.data, self._line_start(place), place)
        return blanks.group() if blanks else b""

    def _lines(self, text: str, indent: bytes) -> bytes:
        return (self._newline + indent).join(line.encode() for line in text.split("\n"))


def element_text(
    tag: str, attributes: Mapping[str, str], text: str | None = None, children: Sequence[str] = ()
) -> str:
    """Return an element with escaped attributes and content, or with children on lines below."""
    start = f"<{tag}" + "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    if children:
        inner = "\n".join(children).replace("\n", f"\n{STEP}")
        return f"{start}>\n{STEP}{inner}\n</{tag}>"
    return f"{start} />" if text is None else f"{start}>{escape(text)}</{tag}>"


def comment_text(text: str) -> str:
    """Return a comment; double hyphens, which XML does not allow in one, become single ones."""
    safe = "".join(c for c in text if c in "\n\t" or c.isprintable())
    return f"<!-- {re.sub('-{2,}', '-', safe).rstrip('-')} -->"


def _parse(data: bytes) -> Element:
    """Return the root element of a URDF with the places of all elements."""
    parser = expat.ParserCreate("utf-8")
    document = Element("", {}, 0)
    open_elements = [document]

    def tag_end(start: int) -> int:
        match = TAG.match(data, start)
        return match.end() if match else start

    def start_element(tag: str, attributes: dict[str, str]) -> None:
        start = parser.CurrentByteIndex
        element = Element(tag, attributes, start, tag_end(start))
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end_element(_tag: str) -> None:
        element = open_elements.pop()
        if data[element.content - 2 : element.content] == b"/>":
            element.close = element.end = element.content
        else:
            element.close = parser.CurrentByteIndex
            element.end = tag_end(element.close)

    def comment(text: str) -> None:
        start = parser.CurrentByteIndex
        match = COMMENT.match(data, start)
        end = match.end() if match else start
        open_elements[-1].children.append(Element("", {"text": text}, start, end, end, end))

    parser.StartElementHandler, parser.EndElementHandler = start_element, end_element
    parser.CommentHandler = comment
    parser.Parse(data, True)
    return document.elements[0]


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
    text = UrdfText(urdf)
    joints = control_joints(text)
    missing = [joint for joint in changes if joint not in joints]
    if missing:
        raise ConfigError(
            f"<ros2_control>: joints = {', '.join(sorted(joints)) or 'none'}; expected also"
            f" {', '.join(missing)}"
        )
    for joint, params in changes.items():
        if params and not joints[joint].elements:
            raise ConfigError(f"<ros2_control> joint '{joint}' is empty; expected a motor")
        set_params(text, joints[joint], params)
    return text.text()


def control_joints(text: UrdfText) -> dict[str, Element]:
    """Return the joints of the <ros2_control> blocks; of a repeated name the first one."""
    found: dict[str, Element] = {}
    for block in text.root.find_all("ros2_control"):
        for joint in block.find_all("joint"):
            found.setdefault(joint.name, joint)
    return found


def set_params(
    text: UrdfText, joint: Element, params: Mapping[str, str], removed: Collection[str] = ()
) -> None:
    """Replace the text of params of a <ros2_control> joint; add missing ones after the others."""
    present = {param.name: param for param in reversed(list(joint.find_all("param")))}
    for name in present.keys() & set(removed):
        text.remove(present[name])
    for name, value in params.items():
        param = element_text("param", {"name": name}, value)
        if name in present:
            text.replace(present[name], param)
        else:
            text.append(joint, param)
