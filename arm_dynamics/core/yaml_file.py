"""YAML files read strictly: ambiguous content is an error with its line.

Keys are text as it is written, each once. Unquoted decimal numbers are numbers, also ``1e3``, as
ROS reads them. Aliases are rejected: ROS does not read them, and they can expand without bound.
Tags of other programs, several documents, and tables nested deeper than any parameter are also
rejected. The tag of a Python tuple is accepted: launch_ros writes lists with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from arm_dynamics.core.errors import ConfigError

MAX_SIZE = 1_000_000
"""Bytes of a file."""
MAX_NESTING = 20
_DECIMAL = re.compile(r"[+-]?(?:0|[1-9][0-9]*|(?=\.[0-9]))(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_TEXT = "tag:yaml.org,2002:str"


def read_yaml(file: str | Path) -> Any:
    """Return the document of the file; None for an empty file.

    Raises ConfigError naming the file, and the line and key where they are known.
    """
    return parse_yaml(_read(file), file)[0]


def parse_yaml(data: bytes, file: str | Path) -> tuple[Any, dict[tuple[str, ...], int]]:
    """Return the document of a text, and the line of each key by the keys above it and its own.

    Raises ConfigError as ``read_yaml``, with the name ``file``.
    """
    try:
        if len(data) > MAX_SIZE:
            raise ConfigError(f"{file}: size = {len(data)} bytes; expected at most {MAX_SIZE}")
        text = data.decode("utf-8-sig")
        _check_events(text)
        loader = _Loader(text)
        root = loader.get_single_node()
        document = None if root is None else loader.construct_document(root)
        return document, dict(_key_lines(root, ()))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{file}: line {line}: expected UTF-8; save the file as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        problem = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        raise ConfigError(f"{file}: {where}{problem}; expected a readable YAML file") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"{file}: {problem}; expected a readable YAML file") from error


def _read(file: str | Path) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: {error}; expected a readable YAML file") from error


def _key_lines(node: Any, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        keys = (*above, str(key.value))
        yield keys, key.start_mark.line + 1
        yield from _key_lines(value, keys)


def _check_events(text: str) -> None:
    """Reject events before the document is composed: the composer is recursive."""
    depth = documents = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            _reject(event, f"'*{event.anchor}' is an alias, which ROS does not read; write it out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        documents += isinstance(event, yaml.DocumentStartEvent)
        if depth > MAX_NESTING:
            _reject(event, f"tables are nested more than {MAX_NESTING} deep")
        if documents > 1:
            _reject(event, "a second document; expected one a file")


class _Loader(yaml.SafeLoader):
    """Keys as text, each once; numbers decimal."""

    def table(self, node: yaml.MappingNode) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                _reject(key, "a table or list is a key; expected a name")
            if key.value in entries:
                _reject(key, f"'{key.value}' is given twice; remove one of them")
            entries[key.value] = self.construct_object(value, deep=True)
        return entries

    def decimal(self, node: yaml.ScalarNode) -> float | int:
        text = node.value
        if text.lower().lstrip("+-") in (".inf", ".nan"):
            return float(text.replace(".", ""))
        if not _DECIMAL.fullmatch(text):
            _reject(node, f"'{text}' is ambiguous; write a decimal number")
        return float(text) if set(text) & set(".eE") else int(text)

    def sequence(self, node: yaml.SequenceNode) -> list[Any]:
        return self.construct_sequence(node, deep=True)

    def text(self, node: yaml.ScalarNode) -> str | float:
        plain = node.style is None and _DECIMAL.fullmatch(node.value)
        return float(node.value) if plain else str(node.value)


def _reject(where: Any, problem: str) -> None:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=where.start_mark)


for _tag in _NUMBERS:
    _Loader.add_constructor(_tag, _Loader.decimal)
_Loader.add_constructor("tag:yaml.org,2002:python/tuple", _Loader.sequence)
_Loader.add_constructor(_TEXT, _Loader.text)
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.table)
