"""Segment header of a recording: arm, time step and state as JSON, exact to the last bit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, version
from math import isfinite, nan
from typing import Any

from arm_dynamics.core.arrays import as_readonly, check_float, check_vector
from arm_dynamics.core.errors import MALFORMED, ArmDynamicsError, InvalidValue, RecordingError
from arm_dynamics.core.state import State
from arm_dynamics.model.arm_model import ArmModel, Joint, Payload
from arm_dynamics.model.load import parse_arm
from arm_dynamics.simulation.forward_model import pack_state, unpack_state
from arm_dynamics.simulation.simulation import Simulation

FORMAT = "arm_dynamics recording 1"
LIBRARIES = ("arm_dynamics", "numpy", "pin", "numba")
"""Packages whose version may change the last bit of a result."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordingSegment:
    """An arm that continues from ``start`` by periods of ``steps`` time steps dt [s]."""

    arm: ArmModel
    dt: float
    steps: int
    integrator: str
    start: State

    @classmethod
    def of(cls, simulation: Simulation, start: State) -> RecordingSegment:
        """Return the segment of a simulation from ``start`` on."""
        arm = simulation.arm
        start = unpack_state(arm, pack_state(arm, start), start.time)
        integrator = simulation.plant.integrator.name
        return cls(arm, simulation.dt, simulation.steps, integrator, start)


def dump_segment(segment: RecordingSegment) -> str:
    """Return the segment as JSON; numbers that are not finite are strings ("inf")."""
    start = segment.start
    return json.dumps(
        {
            "format": FORMAT,
            "arm": _plain(_arm(segment.arm)),
            "dt": segment.dt,
            "steps": segment.steps,
            "integrator": segment.integrator,
            "start": _plain({"time": start.time, "q": start.q, "v": start.v, "act": start.act}),
            "versions": {name: _version(name) for name in LIBRARIES},
        },
        allow_nan=False,
    )


def load_segment(text: str) -> RecordingSegment:
    """Return the segment of a JSON text; raises RecordingError for one of another format."""
    try:
        given = json.loads(text)
        if given["format"] != FORMAT:
            raise InvalidValue(f"format = '{given['format']}'; expected '{FORMAT}'")
        arm, start = _read_arm(given["arm"]), given["start"]
        state = State(
            check_float("time", start["time"]),
            check_vector("q", _floats(start["q"]), arm.nv),
            check_vector("v", _floats(start["v"]), arm.nv),
            as_readonly([nan] * arm.nv),
            check_vector("act", _floats(start["act"]), arm.na),
        )
        dt, steps = check_float("dt [s]", given["dt"], above=0), int(given["steps"])
        return RecordingSegment(arm, dt, steps, str(given["integrator"]), state)
    except (ArmDynamicsError, *MALFORMED) as error:
        raise RecordingError(f"segment header: {error!r}; expected one of this format") from error


def require_recordable(arm: ArmModel) -> None:
    """Raise RecordingError for an arm whose links are not those of its URDF."""
    if _read_arm(_arm(arm)).links != arm.links:
        raise RecordingError(
            f"arm '{arm.name}': links = changed; expected those of its URDF for a recording"
        )


def _arm(arm: ArmModel) -> dict[str, Any]:
    return {
        "name": arm.name,
        "urdf": arm.urdf,
        "tool_frame": arm.tool_frame,
        "locked": list(arm.locked),
        "gravity": arm.gravity,
        "payload": {"mass": arm.payload.mass, "center": arm.payload.center},
        "joints": [{f.name: getattr(joint, f.name) for f in fields(Joint)} for joint in arm.joints],
    }


def _read_arm(given: Mapping[str, Any]) -> ArmModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loading the arm already issued its warnings
        arm = parse_arm(given["urdf"], lock=given["locked"])
    payload = Payload(
        check_float("payload mass [kg]", given["payload"]["mass"], lower=0),
        check_vector("payload center", _floats(given["payload"]["center"]), 3),
    )
    return replace(
        arm,
        name=given["name"],
        tool_frame=given["tool_frame"],
        gravity=check_vector("gravity", _floats(given["gravity"]), 3),
        payload=payload,
        joints=tuple(_read_joint(joint) for joint in given["joints"]),
    )


def _read_joint(given: Mapping[str, Any]) -> Joint:
    """Return a joint of its JSON fields: texts, numbers (inf is a text) and constants."""
    texts = ("name", "kind", "actuator")
    values: dict[str, Any] = {
        k: x if k in texts else float(x) for k, x in given.items() if k != "constants"
    }
    return Joint(**values, constants={k: float(x) for k, x in given["constants"].items()})


def _plain(value: Any) -> Any:
    """Return ``value`` in JSON types."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, str):
        return value
    if hasattr(value, "__iter__"):
        return [_plain(entry) for entry in value]
    return float(value) if isfinite(value) else str(float(value))


def _floats(values: list[Any]) -> list[float]:
    return [float(x) for x in values]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
