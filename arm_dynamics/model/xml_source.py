"""XML read with the line of every element, so that a fault can point into the file.

Document type declarations are rejected: a URDF requires none, and entities in them can expand
without bound. Elements nested deeper than any URDF's, and bytes that are not text outside of
comments, are also rejected.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.parsers import expat

from arm_dynamics.core.errors import ArmDynamicsError, ConfigError

MAX_NESTING = 100
"""Depth of nested elements; a URDF has about 6."""
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_DECLARED = re.compile(r"""(<\?xml[^>]*?\sencoding\s*=\s*)(?:"([^">]*)"|'([^'>]*)')""")
_COMMENT = re.compile(
    r"<!\[CDATA\[(?:(?!<!\[CDATA\[).)*?\]\]>|<!--(?P<text>(?:(?!<!--).)*?)-->", re.DOTALL
)
_HYPHENS = re.compile("-{2,}|-$")
_ENCODINGS = ("utf-8", "utf-16", "ascii", "iso8859-1", "iso8859-15", "cp1252")


class XmlSyntaxError(ArmDynamicsError):
    """Text that is not well-formed XML, or that has a document type declaration."""

    def __init__(self, line: int, problem: str, remedy: str) -> None:
        super().__init__(f"line {line}: {problem}; {remedy}")
        self.line, self.problem, self.remedy = line, problem, remedy


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """One element: tag, attributes, text, children, and the line of its start tag."""

    tag: str
    line: int
    attributes: dict[str, str]
    text: str
    children: tuple[Node, ...]

    def get(self, attribute: str) -> str | None:
        """Return the attribute's text, or None."""
        return self.attributes.get(attribute)

    def find(self, tag: str) -> Node | None:
        """Return the first child with this tag, or None."""
        return next((child for child in self.children if child.tag == tag), None)

    def find_all(self, tag: str) -> tuple[Node, ...]:
        """Return all children with this tag."""
        return tuple(child for child in self.children if child.tag == tag)

    def walk(self) -> Iterator[Node]:
        """Yield the node and all below it, in document order."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


def read_text(path: Path) -> str:
    """Return an XML file's text, decoded by its byte order mark or its declaration.

    UTF-8 without either. Bytes that are not UTF-8 become U+FFFD, which ``parse_xml`` rejects
    outside of comments. The declaration in the text becomes UTF-8. Raises ConfigError
    for a file that cannot be read, and for an encoding that is unknown or does not apply.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error}; expected a readable file") from error
    mark = next((name for start, name in _MARKS.items() if data.startswith(start)), "")
    match = None if mark else _DECLARED.match(data[:200].decode("latin-1"))
    declared = (match[2] or match[3] or "") if match else ""
    try:
        encoding = codecs.lookup(mark or declared or "utf-8").name
    except (LookupError, ValueError):
        encoding = ""
    if not mark and encoding not in _ENCODINGS:
        known = ", ".join(_ENCODINGS)
        raise ConfigError(
            f"{path}: encoding = '{declared}'; expected one of {known}; save the file as UTF-8"
        )
    try:
        text = data.decode(encoding, "replace" if encoding.startswith("utf-8") else "strict")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: {error}; expected text in {encoding}; save the file as UTF-8"
        ) from error
    return text if encoding == "utf-8" else _DECLARED.sub(r'\1"UTF-8"', text, count=1)


def double_hyphens(text: str) -> tuple[int, ...]:
    """Return the lines of the comments with double hyphens, which XML does not allow."""
    if "--" not in text:
        return ()
    return tuple(
        text.count("\n", 0, match.start()) + 1
        for match in _COMMENT.finditer(text)
        if _HYPHENS.search(match["text"] or "")
    )


def with_valid_comments(text: str) -> str:
    """Return an XML text with ``=`` for double hyphens in comments; no other place moves.

    A comment in which another one begins is preserved: its end may be missing.
    """

    def valid(match: re.Match[str]) -> str:
        if match["text"] is None:
            return match[0]
        return f"<!--{_HYPHENS.sub(lambda found: '=' * len(found[0]), match['text'])}-->"

    return _COMMENT.sub(valid, text)


@lru_cache(maxsize=2)  # the audit, the model and the hardware info read the same text
def parse_xml(text: str) -> Node:
    """Return the root element of ``text``; raise XmlSyntaxError with the line of the error.

    Double hyphens in comments are accepted.
    """
    roots: list[Node] = []
    data = with_valid_comments(text).encode("utf-8", "surrogatepass")
    try:
        _node_parser(roots).Parse(data, True)
    except expat.ExpatError as error:
        problem = f"not well-formed XML: {expat.ErrorString(error.code)}"
        raise XmlSyntaxError(
            error.lineno, problem, "close and quote every tag and attribute"
        ) from error
    # Prefixes that are not declared: expat accepts them unless it resolves namespaces.
    try:
        expat.ParserCreate("utf-8", " ").Parse(data, True)
    except expat.ExpatError as error:
        problem = f"not well-formed XML: {expat.ErrorString(error.code)}"
        remedy = 'declare it (xmlns:…="…") or remove it; expand xacro first'
        raise XmlSyntaxError(error.lineno, problem, remedy) from error
    return roots[0]


@dataclass(slots=True)
class _OpenElement:
    tag: str
    line: int
    attributes: dict[str, str]
    text: list[str] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)


def _node_parser(roots: list[Node]) -> Any:
    """Return an expat parser that appends the root element to ``roots``."""
    parser = expat.ParserCreate("utf-8")
    open_elements: list[_OpenElement] = []

    def require_decoded(text: str) -> None:
        if _UNKNOWN in text:
            problem = "has bytes that are not UTF-8"
            remedy = 'save the file as UTF-8, or declare encoding="ISO-8859-1"'
            raise XmlSyntaxError(parser.CurrentLineNumber, problem, remedy)

    def start_element(tag: str, attributes: dict[str, str]) -> None:
        line = parser.CurrentLineNumber
        if len(open_elements) == MAX_NESTING:
            problem = f"elements are nested more than {MAX_NESTING} deep"
            raise XmlSyntaxError(line, problem, "close the elements before it: a URDF nests some 6")
        for pair in attributes.items():
            require_decoded("".join(pair))
        open_elements.append(_OpenElement(tag, line, attributes))

    def end_element(_tag: str) -> None:
        it = open_elements.pop()
        node = Node(it.tag, it.line, it.attributes, "".join(it.text).strip(), tuple(it.children))
        (open_elements[-1].children if open_elements else roots).append(node)

    def characters(text: str) -> None:
        require_decoded(text)
        open_elements[-1].text.append(text)

    def doctype(*_declaration: object) -> None:
        problem = "<!DOCTYPE> is rejected: entities can expand without bound"
        raise XmlSyntaxError(parser.CurrentLineNumber, problem, "remove it")

    parser.StartElementHandler, parser.EndElementHandler = start_element, end_element
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = characters, doctype
    return parser
