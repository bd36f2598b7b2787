"""ROS 2 parameter files, read without ROS: the same gains in plain Python and in the nodes."""

from __future__ import annotations

from collections.abc import Mapping
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


def node_parameters(file: str | Path, node: str) -> Mapping[str, Any]:
    """What a ROS 2 parameter file says to one node: its own entries over those of ``/**``.

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
        merged.update(entries)
    return merged


def build_controller(
    arm: ArmModel, name: str | None = None, file: str | Path | None = None
) -> Controller:
    """The control law that the joint controller node would run for this arm.

    ``file`` defaults to the arm's bundled parameter file, ``name`` to what it says there, else
    "pid_gravity"; without a file the law finds its gains from the model. Raises ConfigError,
    UnknownName and InvalidValue as the file deserves.
    """
    file = file or parameter_file(arm.source or arm.name)
    given = node_parameters(file, CONTROLLER_NODE) if file else {}
    law = plugins.load("controllers", name or str(given.get("controller", "pid_gravity")))
    gains = given.get("gains", {}) if name in (None, given.get("controller")) else {}
    if not all(isinstance(row, dict) for row in gains.values()):
        raise ConfigError(f"{file}: gains: a table of numbers per joint is expected")
    controller: Controller = law(arm, gains)
    return controller
