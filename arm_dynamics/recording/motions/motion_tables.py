"""Tables of recorded values: CSV and Parquet."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.core.errors import ConfigError, RecordingError
from arm_dynamics.core.requirements import to_install
from arm_dynamics.recording.motions.motion_columns import UNITS, listed, unit_scale

DELIMITERS = (";", "\t", ",")
"""The first that the line of names has separates the fields; else spaces do."""
MISSING = ("", "na", "n/a", "null", "none", "-")
"""Fields without a value, in lower case."""
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
DATASET_STATE = "observation.state"
"""Column of vectors in the files of a LeRobot dataset."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns by name; ``column`` returns the values (n,), integers or float64.

    ``robot_type`` is that of a LeRobot dataset, empty if it names none; None for other tables.
    """

    source: str
    names: tuple[str, ...]
    column: Callable[[str], NDArray[Any]]
    robot_type: str | None = None


# CSV -------------------------------------------------------------------------------------------


def read_csv(path: Path) -> Table:
    """Read a text file with a line of names; the delimiter is a comma, semicolon, tab or space.

    Lines that begin with ``#`` are comments; the last one before the numbers may hold the names.
    A line of units below the names is appended to them in brackets. Numbers may have a decimal
    comma where the delimiter is another character. The words of ``MISSING`` and empty fields are
    not numbers (NaN). Dates of ISO 8601 become integer nanoseconds, in UTC without a time zone.
    Text that is not UTF-8 is UTF-16 with a byte order mark, else Latin-1.

    Raises
    ------
    RecordingError
        For a file without names, also of ``ros2 topic echo``, with a line of another length, or
        that cannot be read.

    """
    try:
        content = path.read_bytes()
        is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        try:
            lines = content.decode("utf-16" if is_utf16 else "utf-8-sig").splitlines()
        except UnicodeDecodeError:
            if is_utf16 or b"\0" in content:
                raise
            lines = content.decode("latin-1").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: {error}; expected a text file; save it as UTF-8") from error
    numbered = [(i, line) for i, line in enumerate(lines, 1) if line.strip()]
    data = [(i, line) for i, line in numbered if not line.lstrip().startswith("#")]
    if not data:
        raise RecordingError(f"{path}: lines = 0; expected a line of names, then numbers")
    delimiter = next((d for d in DELIMITERS if d in data[0][1].strip()), " ")

    def split(i: int, line: str) -> list[str]:
        try:
            return _fields(line, delimiter)
        except csv.Error as error:
            raise RecordingError(
                f"{path}: line {i}: length = {len(line)} characters: {error}; expected fields of"
                " numbers; delete the line"
            ) from error

    names = tuple(split(*data[0]))
    _reject_topic_echo(path, names, split(*data[min(1, len(data) - 1)]), delimiter)
    first = 1
    if all(_is_number(name, delimiter) for name in names):
        comments = [(i, line.lstrip().lstrip("#")) for i, line in numbered if i < data[0][0]]
        named = split(*comments[-1]) if comments else []
        if len(named) != len(names) or any(_is_number(name, delimiter) for name in named):
            raise RecordingError(
                f"{path}: no names of columns (line {data[0][0]} has numbers only); add a"
                " first line of names, such as time,q1,q2,tau1,tau2; ros2 topic echo"
                " writes none"
            )
        names, first = tuple(named), 0
    elif len(data) > 1:
        units = [field.strip("[]()") for field in split(*data[1])]
        has_numbers = any(_is_number(unit, delimiter) for unit in units)
        if len(units) == len(names) and not has_numbers and any(map(_is_unit, units)):
            pairs = zip(names, units, strict=True)
            names = tuple(f"{name} [{unit}]" if unit else name for name, unit in pairs)
            first = 2
    if len(set(names)) != len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise RecordingError(
            f"{path}: columns = {listed(repeated)} more than once; expected distinct names"
        )
    rows = []
    for i, line in data[first:]:
        fields = split(i, line)
        if len(fields) != len(names):
            raise RecordingError(
                f"{path}: line {i}: fields = {len(fields)}; expected {len(names)} as in the names;"
                " correct or delete the line"
            )
        rows.append((i, fields))

    def column(name: str) -> NDArray[Any]:
        at = names.index(name)
        values = [_number(path, i, name, fields[at], delimiter) for i, fields in rows]
        are_integers = all(isinstance(x, int) for x in values)
        return np.array(values, dtype=np.int64 if are_integers else np.float64)

    return Table(str(path), names, column)


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    plain = '"' not in line
    fields = line.split(delimiter) if plain else next(csv.reader([line], delimiter=delimiter))
    return [field.strip() for field in fields]


def _reject_topic_echo(
    path: Path, names: tuple[str, ...], second: list[str], delimiter: str
) -> None:
    """Raise RecordingError for messages that ``ros2 topic echo`` printed, as YAML or with --csv."""
    is_yaml = names[0] in ("header:", "---")
    texts = {i: name for i, name in enumerate(names) if not _is_number(name, delimiter)}
    is_repeated = len(second) == len(names) and all(second[i] == x for i, x in texts.items())
    is_csv = len(texts) < len(names) and names[0].isdecimal() and bool(texts) and is_repeated
    if is_yaml or (is_csv and list(names) != second):
        form = "messages in YAML" if is_yaml else "values"
        raise RecordingError(
            f"{path}: line 1 = {form}, as ros2 topic echo prints them; expected the names of the"
            " columns; record the topic with ros2 bag record, or add a first line of names"
        )


def _is_number(text: str, delimiter: str) -> bool:
    try:
        float(text if delimiter == "," else text.replace(",", "."))
    except ValueError:
        return False
    return True


def _is_unit(text: str) -> bool:
    """Return whether a text is a unit of a quantity."""
    return any(unit_scale(key, f"x [{text}]") for key in UNITS)


def _number(path: Path, line: int, name: str, text: str, delimiter: str) -> int | float:
    """Return an integer, a float, or NaN for an empty field; a date in ns since 1970."""
    try:
        whole = int(text)
    except ValueError:
        pass
    else:
        return whole if abs(whole) < 2**63 else float(text)
    try:
        return float(text if delimiter == "," else text.replace(",", "."))
    except ValueError:
        if text.lower() in MISSING:
            return np.nan
    try:
        # Python 3.10 reads three or six digits of a second.
        digits = re.sub(r"[.,](\d+)", lambda found: f".{found[1]:0<6.6}", text.removesuffix("Z"))
        date = datetime.fromisoformat(digits)
        since = date.replace(tzinfo=date.tzinfo or timezone.utc) - EPOCH
        nanoseconds = since // timedelta(microseconds=1) * 1000
        return nanoseconds if abs(nanoseconds) < 2**63 else float(nanoseconds)
    except ValueError as error:
        raise RecordingError(
            f"{path}: line {line}: {name} = '{text[:40]}'; expected a number with a decimal point,"
            " or an empty field; correct the line, or separate the fields by semicolons if numbers"
            " have decimal commas"
        ) from error


# Parquet ---------------------------------------------------------------------------------------


def read_parquet(path: Path) -> Table:
    """Read a Parquet file with one column per quantity and joint.

    Raises
    ------
    RecordingError
        For a file that cannot be read, or with vectors in its columns.
    ConfigError
        Without pyarrow.

    """
    arrow, parquet = parquet_libraries()
    try:
        content = parquet.read_table(path)
    except (OSError, arrow.ArrowException) as error:
        raise RecordingError(f"{path}: {reason(error)}; expected a Parquet file") from error
    if DATASET_STATE in content.column_names:
        raise RecordingError(
            f"{path}: column '{DATASET_STATE}' = vectors without names; expected the folder of the"
            " LeRobot dataset, which has meta/info.json"
        )
    kinds = arrow.types
    numeric = [
        field.name
        for field in content.schema
        if kinds.is_integer(field.type) or kinds.is_floating(field.type)
        or kinds.is_decimal(field.type) or kinds.is_timestamp(field.type)
    ]  # fmt: skip
    stamps = {f.name for f in content.schema if kinds.is_timestamp(f.type)}

    def column(name: str) -> NDArray[Any]:
        values = content.column(name)
        if name in stamps:  # a stamp with its unit, in ns
            values = values.cast(arrow.timestamp("ns")).cast(arrow.int64())
        found: NDArray[Any] = values.to_numpy()
        return found if found.dtype.kind in "iu" else found.astype(np.float64)

    return Table(str(path), tuple(numeric), column)


def parquet_libraries() -> tuple[Any, Any]:
    """Return pyarrow and pyarrow.parquet; raises ConfigError without them."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise ConfigError(
            "Parquet: pyarrow = missing; expected the extra 'table';"
            f" {to_install('table')}; or convert the file to .csv"
        ) from error


def reason(error: Exception) -> str:
    """Return the text of an error of another library as one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
