"""ROS 2 parameter files, read without ROS: the same gains in plain Python and in the nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from arm_dynamics import plugins, resources
from arm_dynamics.controllers.base import Controller
from arm_dynamics.errors import ConfigError
from arm_dynamics.model.arm_model import ArmModel

CONTROLLER_NODE = "joint_controller"


def parameter_file(arm: str | Path) -> Path | None:
    """The bundled parameter file of an arm's name or URDF path; None when there is none."""
    path = resources.folder("config") / f"{Path(arm).stem}.yaml"
    return path if path.is_file() else None


def node_parameters(file: str | Path, node: str) -> dict[str, Any]:
    """Parameter name → value for one node in a ROS 2 file: its own entries over those of ``/**``.

    Names are dotted (``gains.R1.p``), whether the file has them so or as tables in tables.
    Raises ConfigError naming the file when it cannot be read or has another shape.
    """
    try:
        content = yaml.safe_load(Path(file).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{file}: not a readable YAML file: {error}") from error
    merged: dict[str, Any] = {}
    for name in ("/**", node, f"/{node}"):
        section = content.get(name, {}) if isinstance(content, dict) else None
        entries = section.get("ros__parameters", {}) if isinstance(section, dict) else None
        if not isinstance(entries, dict):
            raise ConfigError(f"{file}: {name}: ros__parameters: with entries is expected")
        merged.update(_dotted(entries))
    return merged


def _dotted(table: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def build_controller(
    arm: ArmModel, name: str | None = None, file: str | Path | None = None
) -> Controller:
    """The control law that the joint controller node runs for this arm and parameter file.

    ``file`` defaults to the arm's bundled parameter file, ``name`` to what it says there, else
    "pid_gravity". As in the node, the law takes those of the file's gains that it has, finds
    the others from the model, and knows the file's payload_mass. Raises ConfigError for a file
    that cannot be read or a gain that is no number, UnknownName for a law or joint that does
    not exist, InvalidValue for a number out of its range.
    """
    file = parameter_file(arm.source or arm.name) if file is None else file
    given = node_parameters(file, CONTROLLER_NODE) if file is not None else {}
    name = controller_name(arm, name, file)
    law = plugins.load("controllers", name)
    gains = _gains(given, law, file)
    with plugins.guarded("controllers", name):
        controller: Controller = law(arm, gains)
    if "payload_mass" in given:
        mass = _number(given["payload_mass"], f"{file}: payload_mass")
        controller.use_model(arm.with_payload(mass))
    return controller


def controller_name(arm: ArmModel, name: str | None = None, file: str | Path | None = None) -> str:
    """The registered name of the law that ``build_controller`` builds; errors as there."""
    file = parameter_file(arm.source or arm.name) if file is None else file
    given = node_parameters(file, CONTROLLER_NODE) if file is not None else {}
    return name or str(given.get("controller", "pid_gravity"))


def _gains(
    given: Mapping[str, Any], law: type[Controller], file: str | Path | None
) -> dict[str, dict[str, float]]:
    """Those of the entries ``gains.<group>.<name>`` that the law has, by group."""
    gains: dict[str, dict[str, float]] = {}
    for entry, value in given.items():
        head, _, rest = entry.partition(".")
        if head != "gains":
            continue
        group, _, gain = rest.rpartition(".")
        if not group:
            raise ConfigError(f"{file}: {entry}: {value}: a table of numbers per joint is expected")
        known = _parameters(law, group)
        if known is None:
            continue
        row = gains.setdefault(group, {})
        if gain in known:
            row[gain] = _number(value, f"{file}: joint '{group}': gain {gain}")
    return gains


def _parameters(law: type[Controller], group: str) -> set[str] | None:
    """Names of the law's parameters in ``group``; None for a kind of group that it has not."""
    if group == "law" or group.startswith("tool."):
        own = law.law_parameters if group == "law" else law.axis_parameters
        return {p.name for p in own} or None
    return {p.name for p in law.parameters}


def _number(value: Any, where: str) -> float:
    """``value`` as a number; YAML takes some, such as 1e3, for text."""
    try:
        if not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise ConfigError(f"{where}: {value!r}: a number is expected")
