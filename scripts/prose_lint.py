"""Report words of the project's prose and names that are not in its glossary.

``prose_lint.py [FILE or DIRECTORY ...]`` prints ``file:line: word => replacement`` for Markdown
text, docstrings, comments, string literals and names of Python, and comments of YAML, XML, TOML,
shell and Makefiles. Code spans are not prose. A name is checked where it is bound: functions,
classes, parameters, variables and attributes; its words are separated by ``_`` or a capital.
Exit code 1 means at least one finding. The rules and the list of exemptions are in prose_rules.py.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import token
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from prose_rules import (
    EXEMPTIONS,
    HEADING_RULES,
    MAX_SENTENCE_WORDS,
    NAME_RULES,
    RULES,
    SUMMARY_STARTS,
    Rule,
)

ROOT = Path(__file__).resolve().parent.parent
FILLER = "\N{MIDDLE DOT}"
"""Stands for each character of a code span: it is not part of a word."""
CODE = re.compile(r"``.+?``|`[^`]+`|\]\([^)]*\)|<[^<>\s][^<>]*>|\w+(?:\.\w+)+")
FIELD = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
SKIPPED = {"build", "install", "log", "dist", "node_modules", "__pycache__", "data", "control_msgs"}
HIDDEN = {".github", ".ci"}
HASH_SUFFIXES = {".yaml", ".yml", ".toml", ".cfg", ".cff", ".rviz", ".txt", ".sh", ".importlinter"}
XML_SUFFIXES = {".urdf", ".xml", ".xacro", ".srdf"}
FSTRING = tuple(
    getattr(token, name, -1) for name in ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")
)
"""Token types of Python 3.12; below, an f-string is one STRING token."""
PROPERTIES = {"property", "cached_property", "setter"}
STATEMENT_ENDS = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
KIND_RULES = {"heading": HEADING_RULES, "name": NAME_RULES}
ANY_RULE = re.compile("|".join(rule.pattern for rule in RULES), re.IGNORECASE)


class Finding(NamedTuple):
    """One word that should be replaced."""

    path: str
    line: int
    word: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word} => {self.replacement}"


class Passage:
    """Connected prose: its text in one line, and the line of the file of each character."""

    def __init__(self, kind: str, pieces: Iterable[tuple[int, str]]) -> None:
        self.kind = kind
        text, self._starts = "", []
        for line, piece in pieces:
            self._starts.append((len(text), line))
            text += piece
        self.raw = text
        self.text = CODE.sub(lambda found: FILLER * len(found[0]), text)

    def line(self, position: int) -> int:
        """Return the line of the file at ``position`` of the text."""
        return max(start for start in self._starts if start[0] <= position)[1]


def joined(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return stripped lines, with one space after each."""
    return [(line, f"{text.strip()} ") for line, text in lines]


def markdown(text: str) -> Iterator[Passage]:
    """Yield headings, paragraphs, list items and table rows; comments of Python code blocks."""
    paragraph: list[tuple[int, str]] = []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        fence = re.match(r"\s*(```+|~~~+)\s*\{?(\w*)", line)
        if fence or not line.strip() or re.match(r"\s*(#|\||[-*+] |\d+\. )", line):
            if paragraph:
                yield Passage("prose", joined(paragraph))
            paragraph = []
        if fence:
            start = number
            while number < len(lines) and not lines[number].strip().startswith(fence[1]):
                number += 1
            block = "\n".join(lines[start:number])
            number += 1
            if fence[2] == "python":
                yield from python(block, start)
        elif re.match(r"#+ ", line):
            yield Passage("heading", [(number, line.rstrip())])
        elif line.lstrip().startswith("|"):
            yield Passage("table", [(number, line.strip())])
        elif line.strip():
            paragraph.append((number, line))
    if paragraph:
        yield Passage("prose", joined(paragraph))


def literal_lines(item: tokenize.TokenInfo) -> list[tuple[int, str]]:
    """Return the lines of a STRING token, without quotes and replacement fields."""
    prefix, quote, body = re.fullmatch(
        r"(\w*)('''|\"\"\"|'|\")(.*)\2", item.string, re.DOTALL
    ).groups()
    if "f" in prefix.lower():
        body = FIELD.sub(lambda found: re.sub(r"[^\n]", FILLER, found[0]), body)
    return split_lines(body, item.start[0], triple=len(quote) == 3)


def split_lines(body: str, first: int, *, triple: bool) -> list[tuple[int, str]]:
    """Return (line, text) of a literal; escaped line feeds separate words."""
    body = body.replace("\\n", "  ")
    if not triple:
        return [(first, body)]
    return joined((first + k, text) for k, text in enumerate(body.split("\n")))


def python(text: str, offset: int = 0) -> Iterator[Passage]:
    """Yield docstrings, comments and string literals; concatenated literals are one passage."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):  # a fragment in a document
        yield from hash_comments(text, offset)
        return
    yield from python_comments(tokens, offset)
    yield from python_literals(tokens, offset)


def names(text: str) -> Iterator[Passage]:
    """Yield the words of each name that a Python file binds; nothing of a fragment."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        name = bound_name(node)
        if name:
            words = " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name))
            yield Passage("name", [(node.lineno, words)])


def bound_name(node: ast.AST) -> str | None:
    """Return the name that ``node`` binds, if it binds one."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr
    return None


def python_comments(tokens: list[tokenize.TokenInfo], offset: int) -> Iterator[Passage]:
    """Yield comments; successive lines of nothing else are one passage."""
    block: list[tuple[int, str]] = []
    column = -1
    for item in tokens:
        if item.type != tokenize.COMMENT:
            continue
        line, start = item.start
        alone = not item.line[:start].strip()
        if block and not (alone and start == column and line + offset == block[-1][0] + 1):
            yield Passage("comment", joined(block))
            block = []
        block.append((line + offset, item.string.lstrip("#")))
        column = start if alone else -1
    if block:
        yield Passage("comment", joined(block))


def python_literals(tokens: list[tokenize.TokenInfo], offset: int) -> Iterator[Passage]:
    """Yield docstrings and string literals without their replacement fields."""
    literal: list[tuple[int, str]] = []
    depth = 0
    before, first = tokenize.NEWLINE, tokenize.NEWLINE
    for item in tokens:
        if item.type in {tokenize.COMMENT, tokenize.NL}:
            continue
        line, is_part = item.start[0], depth > 0 or item.type in {tokenize.STRING, FSTRING[0]}
        if is_part and not literal:
            first = before
        depth += (item.type == FSTRING[0]) - (item.type == FSTRING[2])
        if item.type == tokenize.STRING and depth == 0:
            literal += [(number + offset, text) for number, text in literal_lines(item)]
        elif item.type == FSTRING[1] and depth == 1:
            literal += split_lines(item.string, line + offset, triple=False)
        elif is_part:
            literal.append((line + offset, FILLER if depth and item.type != FSTRING[0] else ""))
        elif literal:
            is_doc = item.type == tokenize.NEWLINE and first in STATEMENT_ENDS
            yield Passage("docstring" if is_doc else "literal", literal)
            literal = []
        before = item.type


def hash_comments(text: str, offset: int = 0) -> Iterator[Passage]:
    """Yield comments that start with #; those on successive lines are one passage."""
    comment: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), offset + 1):
        found = re.match(r"""((?:[^#'"]|'[^']*'|"[^"]*")*?)(?:^|(?<=\s))#+[!:]?(.*)""", line)
        if comment and (not found or found[1].strip()):
            yield Passage("comment", joined(comment))
            comment = []
        if found:
            comment.append((number, found[2]))
    if comment:
        yield Passage("comment", joined(comment))


def xml_comments(text: str) -> Iterator[Passage]:
    """Yield comments of XML."""
    for found in re.finditer(r"<!--(.*?)-->", text, re.DOTALL):
        first = text.count("\n", 0, found.start()) + 1
        lines = enumerate(found[1].split("\n"), first)
        yield Passage("comment", joined(lines))


def passages(path: Path) -> list[Passage]:
    """Return the prose of a file by its kind; nothing for a kind without prose."""
    if path.suffix == ".md":
        return list(markdown(path.read_text("utf-8")))
    if path.suffix == ".py":
        text = path.read_text("utf-8")
        return [*python(text), *names(text)]
    if path.suffix in XML_SUFFIXES:
        return list(xml_comments(path.read_text("utf-8")))
    if path.suffix in HASH_SUFFIXES or path.name in {"Makefile", "run", ".importlinter"}:
        return list(hash_comments(path.read_text("utf-8")))
    return []


def matches(rule: Rule, text: str) -> Iterator[re.Match[str]]:
    """Yield the uses of a word that the rule does not allow."""
    allowed = [m.span() for m in re.finditer(rule.allowed, text)] if rule.allowed else []
    for found in re.finditer(rule.pattern, text, re.IGNORECASE):
        if not any(a < found.end() and found.start() < b for a, b in allowed):
            yield found


def is_exempt(path: str, raw: str, span: tuple[int, int]) -> bool:
    """Return whether the list of exemptions covers a place of a passage."""
    for exemption in EXEMPTIONS:
        if fnmatch(path, exemption.path):
            if not exemption.text:
                return True
            for found in re.finditer(re.escape(exemption.text), raw):
                if found.start() < span[1] and span[0] < found.end():
                    return True
    return False


def findings(path: str, prose: Iterable[Passage]) -> Iterator[Finding]:
    """Yield the words to replace in the prose of the file ``path``."""
    for passage in prose:
        rules = RULES if ANY_RULE.search(passage.text) else ()
        for rule in (*rules, *KIND_RULES.get(passage.kind, ())):
            if any(fnmatch(path, pattern) for pattern in rule.paths):
                continue
            for found in matches(rule, passage.text):
                if not is_exempt(path, passage.raw, found.span()):
                    line = passage.line(found.start())
                    yield Finding(path, line, found[0], rule.replacement)


def summaries(path: str, text: str) -> Iterator[Finding]:
    """Yield functions whose docstring starts with an article or a pronoun; not properties."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorators = [getattr(d, "id", getattr(d, "attr", "")) for d in node.decorator_list]
        first = re.match(r"(\w+)", ast.get_docstring(node) or "")
        if first and first[1].lower() in SUMMARY_STARTS and not PROPERTIES & set(decorators):
            line = node.body[0].lineno
            yield Finding(path, line, f"{first[1]} ...", "Return ..., or another imperative")


def long_sentences(path: str, prose: Iterable[Passage]) -> Iterator[Finding]:
    """Yield sentences of more than MAX_SENTENCE_WORDS words."""
    for passage in prose:
        if is_exempt(path, passage.raw, (0, len(passage.raw))):
            continue
        if passage.kind in {"prose", "docstring", "comment"}:
            for sentence in re.finditer(r"[^.!?;:]+(?:[.!?;:](?!\s)[^.!?;:]*)*", passage.text):
                words = re.findall(r"[^\W\d_]{2,}", sentence[0])
                if len(words) > MAX_SENTENCE_WORDS:
                    start = sentence.start() + len(sentence[0]) - len(sentence[0].lstrip())
                    text = f"{len(words)} words: {' '.join(words[:4])} ..."
                    yield Finding(path, passage.line(start), text, "one fact per sentence")


def package_errors() -> set[str]:
    """Return the names of the package's exception classes that take a message."""
    bases: dict[str, set[str]] = {}
    composed = set()
    for file in (ROOT / "arm_dynamics").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {b.id for b in node.bases if isinstance(b, ast.Name)}
                composed |= {node.name for part in node.body if composes_message(part)}
    errors, size = {"ArmDynamicsError"}, 0
    while size < len(errors):
        size = len(errors)
        errors |= {name for name, above in bases.items() if above & errors}
    return errors - composed


def composes_message(node: ast.AST) -> bool:
    """Return whether ``node`` is an ``__init__`` without a parameter ``message``."""
    if not isinstance(node, ast.FunctionDef) or node.name != "__init__":
        return False
    return "message" not in {argument.arg for argument in node.args.args}


def messages(path: str, text: str, errors: set[str]) -> Iterator[Finding]:
    """Yield raised package errors whose message names no value, expectation or absence."""
    for node in ast.walk(ast.parse(text)):
        call = node.exc if isinstance(node, ast.Raise) else None
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        literals = [a for a in call.args if isinstance(a, ast.JoinedStr) or is_text(a)]
        if name not in errors or not literals:
            continue
        message = "".join(part.value for a in literals for part in ast.walk(a) if is_text(part))
        names_fault = re.search(r" = |expected|required|\b(no|not)\b", message)
        if not names_fault and re.search(r"[^\W\d_]{2}", message):
            yield Finding(path, node.lineno, f"{name}({message[:50]!r})", "' = ' and 'expected'")


def is_text(node: ast.AST) -> bool:
    """Return whether ``node`` is a string literal."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def files(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the files at and below ``places``, without generated and third-party ones."""
    for place in places:
        if place.is_file():
            yield place
        elif place.is_dir():
            kept = [
                child
                for child in sorted(place.iterdir())
                if child.name not in SKIPPED
                and not child.name.endswith(".egg-info")
                and (not child.is_dir() or not child.name.startswith(".") or child.name in HIDDEN)
            ]
            yield from files(kept)
        else:
            raise SystemExit(f"prose_lint: path = {place}; expected a file or directory")


def directory(path: str) -> str:
    """Return the directory under which a summary counts a file."""
    parts = Path(path).parts[:-1]
    return "/".join(parts[: 2 if parts[:1] == ("arm_dynamics",) else 1]) or "."


def parse_arguments(given: list[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description="Report words that are not in the glossary.")
    parser.add_argument("paths", nargs="*", type=Path, help="files and directories [all]")
    parser.add_argument("--summary", action="store_true", help="number of findings by directory")
    parser.add_argument("--messages", action="store_true", help="check raised error messages only")
    parser.add_argument("--warnings", action="store_true", help="list sentences and summaries only")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Print all findings; return the exit code."""
    options = parse_arguments(given)
    places = [place.resolve() for place in options.paths]
    errors = package_errors() if options.messages else set()
    found: list[Finding] = []
    for file in files(places or [ROOT]):
        path = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else str(file)
        if options.messages:
            if file.suffix == ".py":
                found += messages(path, file.read_text("utf-8"), errors)
        elif options.warnings:
            found += long_sentences(path, passages(file))
            if file.suffix == ".py":
                found += summaries(path, file.read_text("utf-8"))
        else:
            found += sorted(findings(path, passages(file)), key=lambda finding: finding.line)
    if options.summary:
        counts = Counter(directory(finding.path) for finding in found)
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            print(f"{count:6d}  {name}")
        print(f"{len(found):6d}  in total")
    else:
        print("".join(f"{finding}\n" for finding in found), end="")
    return int(bool(found) and not options.warnings)


if __name__ == "__main__":
    sys.exit(main())
