"""A recording as arrays: one row for each state, with the command before it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.curves_svg import curves_svg
from arm_dynamics.core.errors import MALFORMED, ArmDynamicsError, ConfigError, RecordingError
from arm_dynamics.core.files import output_file
from arm_dynamics.core.requirements import to_install
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import parse_arm
from arm_dynamics.recording import bag
from arm_dynamics.recording.segment_header import RecordingSegment, load_segment

INTERFACES = {topic: interface for interface, topic in bag.ARRAYS.items()}
"""Topic of a command array → its interface."""
FIELDS = ("position", "velocity", "effort")


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """States and commands of a run, as ``load`` reads them.

    ``time`` (n,) [s]; ``q`` [rad or m], ``v`` [rad/s or m/s] and ``tau`` [N·m or N] (n, nv), NaN
    where the arm did not report them; ``act`` (n, na) are the states of the actuators
    ``act_names``. ``commands`` maps an interface to (n, nv): the command before each state,
    NaN where none came on that interface. ``references`` maps "position" and "velocity" to
    (n, nv), the reference of the controller for each state, NaN where none was recorded; it is
    empty in recordings without references. ``arm`` is the recorded arm with its limits, None if the
    recording does not describe it.
    """

    joint_names: tuple[str, ...]
    time: Vector
    q: Vector
    v: Vector
    tau: Vector
    act_names: tuple[str, ...]
    act: Vector
    commands: Mapping[str, Vector]
    references: Mapping[str, Vector] = field(default_factory=dict)
    arm: ArmModel | None = None

    @classmethod
    def load(cls, folder: str | Path) -> Recording:
        """Read a folder that ``record``, ``sim --record`` or a node's ``record`` wrote.

        Raises RecordingError for a folder that is not a recording, or a damaged one.
        """
        rows, arm = _read(Path(folder))
        if not rows:
            raise RecordingError(f"{folder}: states = 0; expected at least one")
        columns = dict.fromkeys(name for _, row in rows for name in row)
        table = {name: np.array([row.get(name, np.nan) for _, row in rows]) for name in columns}
        joints = tuple(dict.fromkeys(n.partition(".")[2] for n in columns if n.startswith(FIELDS)))
        acts = tuple(n.removeprefix("actuator.") for n in columns if n.startswith("actuator."))
        missing = np.full(len(rows), np.nan)

        def stacked(prefix: str, names: tuple[str, ...]) -> Vector:
            found = [table.get(f"{prefix}.{name}", missing) for name in names]
            return np.array(found).T if found else np.empty((len(rows), 0))

        given = dict.fromkeys(n.split(".")[1] for n in columns if n.startswith("command."))
        position, velocity, effort = (stacked(field, joints) for field in FIELDS)
        return cls(
            joints,
            np.array([time for time, _ in rows]),
            position,
            velocity,
            effort,
            act_names=acts,
            act=stacked("actuator", acts),
            commands={name: stacked(f"command.{name}", joints) for name in given},
            references={
                name: stacked(f"reference.{name}", joints)
                for name in ("position", "velocity")
                if any(column.startswith(f"reference.{name}.") for column in columns)
            },
            arm=arm,
        )

    def _repr_html_(self) -> str:
        """Positions over time, for notebooks."""
        name = "" if self.arm is None else f" of {self.arm.name}"
        seconds = float(self.time[-1] - self.time[0])
        title = f"Recording{name}: {len(self.time)} states in {seconds:.6g} s"
        chart = curves_svg(self.time, self.q, self.joint_names, "position [rad, m] over time")
        return f"<div><b>{escape(title)}</b></div>{chart}"

    @property
    def position_error(self) -> Vector | None:
        """Return reference minus position (n, nv) [rad or m]; None without references."""
        reference = self.references.get("position")
        return None if reference is None else reference - self.q

    def columns(self) -> dict[str, Vector]:
        """Return all values by name: "time", "position.J1", "command.effort.J1" ..., each (n,)."""
        parts = {"position": self.q, "velocity": self.v, "effort": self.tau}
        parts |= {f"reference.{name}": values for name, values in self.references.items()}
        parts |= {f"command.{name}": values for name, values in self.commands.items()}
        found = {"time": self.time}
        for part, values in parts.items():
            found |= {f"{part}.{n}": values[:, i] for i, n in enumerate(self.joint_names)}
        return found | {f"actuator.{n}": self.act[:, i] for i, n in enumerate(self.act_names)}

    def frame(self) -> Any:
        """Return the columns as a pandas DataFrame indexed by time; raises ConfigError."""
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise ConfigError(
                f"DataFrame: pandas is not installed; {to_install('table')}"
            ) from error
        return pandas.DataFrame(self.columns()).set_index("time")

    def write(self, file: str | Path) -> Path:
        """Write the columns as CSV, or as Parquet where the file's name ends with ``.parquet``.

        Numbers are written so that reading returns the same to the last bit. Raises ConfigError
        for another ending, a file that exists or cannot be written, and without pyarrow.
        """
        path = Path(file)
        if path.suffix not in (".csv", ".parquet"):
            raise ConfigError(f"file = '{path}'; expected a name that ends with .csv or .parquet")
        if path.exists():
            raise ConfigError(f"file {path}: exists already; expected a new name")
        columns = self.columns()
        with output_file(path) as place:
            if path.suffix == ".parquet":
                try:
                    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
                except ImportError as error:
                    raise ConfigError(
                        f"Parquet: pyarrow is not installed; {to_install('table')}; or write .csv"
                    ) from error
                parquet.write_table(arrow.table(columns), place)
            else:
                rows = zip(*(values.tolist() for values in columns.values()), strict=True)
                lines = (",".join(map(repr, row)) for row in rows)
                place.write_text("\n".join([",".join(columns), *lines]) + "\n", "utf-8")
        return path


Row = tuple[float, dict[str, float]]
"""Time [s] and named values of a state."""


def _read(folder: Path) -> tuple[list[Row], ArmModel | None]:
    """Return a row for each state with the last command and actuator states, and the arm.

    The reference of a state has its stamp, but may come from another thread or process: before or
    after the state.
    """
    rows: list[Row] = []
    states: dict[int, dict[str, float]] = {}  # [µs] to values, since time last stepped back
    references: dict[int, dict[str, float]] = {}
    command: dict[str, float] = {}
    acts: dict[str, float] = {}
    arm: ArmModel | None = None

    def add(nanoseconds: int, time: float, values: dict[str, float]) -> None:
        if rows and time < rows[-1][0]:
            states.clear()
            references.clear()
        states[nanoseconds // 1000] = values
        values |= _near(references, nanoseconds) or {}
        rows.append((time, values))

    for topic, nanoseconds, message in bag.messages(folder):
        try:
            if topic == bag.DESCRIPTION and arm is None:
                segment = load_segment(message.data)
                arm, start = segment.arm, segment.start.time
                add(round(start * 1e9), start, _initial_values(segment))
            elif topic == bag.URDF and arm is None:  # that of a segment is exact
                arm = _described(message.data)
            elif topic == bag.STATES:
                add(nanoseconds, nanoseconds / 1e9, {**_joint_values(message), **command, **acts})
            elif topic == bag.REFERENCES:
                named = {f"reference.{n}": x for n, x in _joint_values(message).items()}
                references[nanoseconds // 1000] = named
                values = _near(states, nanoseconds)
                if values is not None:
                    values |= named
            elif topic == bag.ACTUATORS:
                acts = _labeled("actuator", message)
            elif topic == bag.COMMANDS:
                command = {f"command.{n}": x for n, x in _joint_values(message).items()}
            elif topic in INTERFACES:
                command = _labeled(f"command.{INTERFACES[topic]}", message)
        except (ArmDynamicsError, *MALFORMED) as error:
            raise RecordingError(f"{folder}: {topic}: {error}") from error
    return rows, arm


def _near(table: Mapping[int, dict[str, float]], nanoseconds: int) -> dict[str, float] | None:
    """Return the values of a stamp within 1 µs: a clock's time as a float is exact to 0.3 µs."""
    at = nanoseconds // 1000
    return next((table[at + k] for k in (0, -1, 1) if at + k in table), None)


def _described(urdf: str) -> ArmModel | None:
    """Return the arm of a URDF in a recording; None if this version does not accept it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loading the arm already issued its warnings
        try:
            return parse_arm(urdf)
        except ArmDynamicsError:
            return None


def _initial_values(segment: RecordingSegment) -> dict[str, float]:
    """Return the initial state of a simulation, without a command before it."""
    arm, state = segment.arm, segment.start
    named = {"position": state.q, "velocity": state.v, "effort": state.tau}
    values = {
        f"{part}.{name}": float(x)
        for part, vector in named.items()
        for name, x in zip(arm.joint_names, vector, strict=True)
    }
    acts = zip(arm.act_names, state.act.tolist(), strict=True)
    return values | {f"actuator.{name}": x for name, x in acts}


def _joint_values(message: Any) -> dict[str, float]:
    return {
        f"{field}.{name}": float(x)
        for field in FIELDS
        for name, x in zip(message.name, getattr(message, field), strict=False)
    }


def _labeled(prefix: str, message: Any) -> dict[str, float]:
    names = (dimension.label for dimension in message.layout.dim)
    return {f"{prefix}.{n}": float(x) for n, x in zip(names, message.data, strict=True)}
