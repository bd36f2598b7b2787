"""Tables of recorded values: CSV, Parquet and LeRobot datasets."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.core.errors import ConfigError, InvalidValue, RecordingError
from arm_dynamics.core.requirements import to_install
from arm_dynamics.identification.motion_columns import UNITS, WORDS, unit_scale, words_of

DELIMITERS = (";", "\t", ",")
"""The first that the line of names has separates the fields; else spaces do."""
MISSING = ("", "na", "n/a", "null", "none", "-")
"""Fields without a value, in lower case."""
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
VERSIONS = ("v2.", "v3.")
"""Layouts of LeRobot datasets: one Parquet file per episode, or several episodes per file."""
FEATURE = "observation.state"
EFFORT_FEATURES = ("observation.effort", "observation.torque")
TARGET_FEATURE = "action"
QUANTITY = {FEATURE: "position", TARGET_FEATURE: "target"}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns by name; ``column`` returns the values (n,), integers or float64."""

    source: str
    names: tuple[str, ...]
    column: Callable[[str], NDArray[Any]]


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
        For a file without names, with a line of another length, or that cannot be read.

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
    names = tuple(_fields(data[0][1], delimiter))
    first = 1
    if all(_is_number(name, delimiter) for name in names):
        comments = [line for i, line in numbered if i < data[0][0]]
        named = _fields(comments[-1].lstrip().lstrip("#"), delimiter) if comments else []
        if len(named) != len(names) or any(_is_number(name, delimiter) for name in named):
            raise RecordingError(
                f"{path}: names of columns = none (line {data[0][0]} has numbers only); expected a"
                " first line of names; add one, such as time,q1,q2,tau1,tau2"
            )
        names, first = tuple(named), 0
    elif len(data) > 1:
        units = [field.strip("[]()") for field in _fields(data[1][1], delimiter)]
        has_numbers = any(_is_number(unit, delimiter) for unit in units)
        if len(units) == len(names) and not has_numbers and any(map(_is_unit, units)):
            pairs = zip(names, units, strict=True)
            names = tuple(f"{name} [{unit}]" if unit else name for name, unit in pairs)
            first = 2
    if len(set(names)) != len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise RecordingError(
            f"{path}: columns = {', '.join(repeated)} more than once; expected distinct names"
        )
    rows = []
    for i, line in data[first:]:
        fields = _fields(line, delimiter)
        if len(fields) != len(names):
            raise RecordingError(
                f"{path}: line {i}: fields = {len(fields)}; expected {len(names)} as in the names;"
                " correct or delete the line"
            )
        rows.append((i, fields))

    def column(name: str) -> NDArray[Any]:
        at = names.index(name)
        values = [_number(path, i, name, fields[at], delimiter) for i, fields in rows]
        are_integers = all(isinstance(x, int) and abs(x) < 2**63 for x in values)
        return np.array(values, dtype=np.int64 if are_integers else np.float64)

    return Table(str(path), names, column)


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    plain = '"' not in line
    fields = line.split(delimiter) if plain else next(csv.reader([line], delimiter=delimiter))
    return [field.strip() for field in fields]


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
        return int(text)
    except ValueError:
        pass
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
        return since // timedelta(microseconds=1) * 1000
    except ValueError as error:
        raise RecordingError(
            f"{path}: line {line}: {name} = '{text[:40]}'; expected a number with a decimal point,"
            " or an empty field; correct the line, or separate the fields by semicolons if numbers"
            " have decimal commas"
        ) from error


# Parquet and LeRobot ---------------------------------------------------------------------------


def read_parquet(path: Path) -> Table:
    """Read a Parquet file with one column per quantity and joint.

    Raises
    ------
    RecordingError
        For a file that cannot be read, or with vectors in its columns.
    ConfigError
        Without pyarrow.

    """
    arrow, parquet = _libraries()
    try:
        content = parquet.read_table(path)
    except (OSError, arrow.ArrowException) as error:
        raise RecordingError(f"{path}: {_reason(error)}; expected a Parquet file") from error
    if FEATURE in content.column_names:
        raise RecordingError(
            f"{path}: column '{FEATURE}' = vectors without names; expected the folder of the"
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


def read_dataset(folder: Path, episode: int | None = None) -> Table:
    """Read one episode of a LeRobot dataset, of layout v2 or v3.

    Columns are ``timestamp`` [s] and the names of the feature observation.state, as positions
    unless a name has another word; observation.effort or observation.torque adds efforts.

    Raises
    ------
    RecordingError
        For a folder that is not such a dataset.
    InvalidValue
        If the episode does not exist, or is not given where there are several.
    ConfigError
        Without pyarrow.

    """
    try:
        info = json.loads((folder / "meta" / "info.json").read_text("utf-8"))
        version, count = str(info["codebase_version"]), int(info["total_episodes"])
        features: Mapping[str, Any] = dict(info["features"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordingError(
            f"{folder}/meta/info.json: {_reason(error)}; expected codebase_version, total_episodes"
            " and features"
        ) from error
    if not version.startswith(VERSIONS):
        raise RecordingError(
            f"{folder}: codebase_version = {version}; expected v2.0 to v3.x; convert the dataset"
            " with LeRobot"
        )
    if FEATURE not in features:
        raise RecordingError(
            f"{folder}: features = {', '.join(features)}; expected {FEATURE} with joint positions"
        )
    if episode is None and count == 1:
        episode = 0
    if episode is None or not 0 <= episode < count:
        raise InvalidValue(
            f"{folder}: episode = {episode}; expected 0 to {count - 1}; pass --episode 0"
            " (episode=0) or another"
        )
    arrow, parquet = _libraries()
    vectors = [FEATURE, *(f for f in (*EFFORT_FEATURES, TARGET_FEATURE) if f in features)]
    pieces = []
    for file in sorted(folder.glob("data/**/*.parquet")):
        try:
            piece = parquet.read_table(
                file,
                columns=["timestamp", *vectors],
                filters=[("episode_index", "=", episode)],
            )
        except (OSError, arrow.ArrowException, KeyError) as error:
            raise RecordingError(
                f"{file}: {_reason(error)}; expected a file of a LeRobot dataset with timestamp,"
                f" episode_index and {FEATURE}"
            ) from error
        if piece.num_rows:
            pieces.append(piece)
        elif pieces:
            break
    if not pieces:
        raise RecordingError(
            f"{folder}/data: rows of episode {episode} = 0; expected its Parquet file; download it"
        )
    columns = {
        "timestamp [s]": np.concatenate(
            [np.asarray(p.column("timestamp").to_pylist(), float).ravel() for p in pieces]
        )
    }
    for feature in vectors:
        values = np.array([row for p in pieces for row in p.column(feature).to_pylist()], float)
        values = values.reshape(len(values), -1)
        names = _feature_names(features[feature], values.shape[1])
        if len(names) != values.shape[1]:
            raise RecordingError(
                f"{folder}: {feature} = {values.shape[1]} values; expected {len(names)} as in its"
                " names in meta/info.json"
            )
        quantity = QUANTITY.get(feature, "effort")
        columns |= {_with_word(n, quantity): values[:, i] for i, n in enumerate(names)}
    return Table(f"{folder} (episode {episode})", tuple(columns), columns.__getitem__)


def _feature_names(feature: Mapping[str, Any], size: int) -> list[str]:
    """Return the names of a feature: a list, a list in a dict, or numbers if it has none."""
    names = feature.get("names")
    if isinstance(names, dict):
        names = [name for part in names.values() for name in part]
    return [str(name) for name in names] if names else [str(i) for i in range(size)]


def _with_word(name: str, quantity: str) -> str:
    """Return a name with the word of its quantity, added in front if it has no such word."""
    known = {*WORDS["position"], *WORDS["effort"], *WORDS["current"], *WORDS["voltage"]}
    known = (known | {"vel", "velocity", "speed"}) - {"q", "i"}
    if quantity == "target":
        known = WORDS["target"]
    return name if known & set(words_of(name)) else f"{quantity}.{name}"


def _libraries() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise ConfigError(
            "Parquet: pyarrow = missing; expected the extra 'table';"
            f" {to_install('table')}; or convert the file to .csv"
        ) from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
