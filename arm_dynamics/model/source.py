"""XML read with the line of every element, so that a fault can point into the file.

Document type declarations are refused: a URDF needs none, and entities in them can expand
without bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.parsers import expat

from arm_dynamics.errors import ArmDynamicsError


class BadXml(ArmDynamicsError):
    """Text that is not well-formed XML, or that carries a document type declaration."""

    def __init__(self, line: int, problem: str, remedy: str) -> None:
        super().__init__(f"line {line}: {problem}; {remedy}")
        self.line, self.problem, self.remedy = line, problem, remedy


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """One element: tag, attributes, own text, children, and the line of its start tag."""

    tag: str
    line: int
    attributes: dict[str, str]
    text: str
    children: tuple[Node, ...]

    def get(self, attribute: str) -> str | None:
        """The attribute's text, or None."""
        return self.attributes.get(attribute)

    def first(self, tag: str) -> Node | None:
        """The first child with this tag, or None."""
        return next((child for child in self.children if child.tag == tag), None)

    def every(self, tag: str) -> tuple[Node, ...]:
        """All children with this tag."""
        return tuple(child for child in self.children if child.tag == tag)

    def walk(self) -> Iterator[Node]:
        """The node and all below it, in document order."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


def parse(text: str) -> Node:
    """Return the root element of ``text``; raise BadXml with the line of what stops it."""
    builder = _Builder()
    parser = builder.parser
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        problem = f"not well-formed XML: {expat.ErrorString(error.code)}"
        raise BadXml(error.lineno, problem, "close and quote every tag and attribute") from error
    _check_namespaces(text)
    return builder.done[0]


def _check_namespaces(text: str) -> None:
    """What ElementTree refuses beyond expat, which ``parse`` asks for plain names."""
    try:
        ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        problem = f"not well-formed XML: {expat.ErrorString(error.code)}"
        remedy = 'declare it (xmlns:…="…") or remove it; expand xacro first'
        raise BadXml(error.position[0], problem, remedy) from error


@dataclass(slots=True)
class _Open:
    tag: str
    line: int
    attributes: dict[str, str]
    text: list[str] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)


class _Builder:
    """Expat's handlers; the outermost finished element ends in ``done``."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.open: list[_Open] = []
        self.done: list[Node] = []

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.open.append(_Open(tag, self.parser.CurrentLineNumber, attributes))

    def _end(self, _tag: str) -> None:
        it = self.open.pop()
        node = Node(it.tag, it.line, it.attributes, "".join(it.text).strip(), tuple(it.children))
        (self.open[-1].children if self.open else self.done).append(node)

    def _characters(self, text: str) -> None:
        self.open[-1].text.append(text)

    def _refuse(self, *_declaration: object) -> None:
        line = self.parser.CurrentLineNumber
        raise BadXml(line, "<!DOCTYPE> is refused: entities can expand without bound", "remove it")
