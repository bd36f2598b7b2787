"""Parameter file with gains, which the nodes and ``build_controller`` load."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path

import yaml

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.files import output_file


def parameter_text(
    arm: str,
    controller: str,
    law: Controller,
    found: Mapping[str, Mapping[str, float]],
    notes: Sequence[str],
) -> str:
    """Return YAML in the form of ``config/<arm>.yaml``.

    It contains all gains of the controller, except infinite ones, which are the default, and the
    payload of its model.

    Parameters
    ----------
    arm, controller : str
        Names.
    law : Controller
        Controller.
    found : Mapping
        Joint to gains that replace the controller's.
    notes : sequence of str
        Comments at the top.

    """
    units = ", ".join(f"{p.name} [{p.unit}]" for p in law.parameters)
    lines = [*(f"# {note}" for note in notes), f"# Keys and units: {units}."]
    lines += ["simulator:", "  ros__parameters:", f"    arm: {_plain(arm)}", ""]
    lines += ["joint_controller:", "  ros__parameters:", f"    arm: {_plain(arm)}"]
    lines += [f"    controller: {controller}"]
    if law.arm.payload.mass > 0:
        lines += [f"    payload_mass: {law.arm.payload.mass!r}"]
    lines += ["    gains:"]
    for j, joint in enumerate(law.arm.joint_names):
        own = {p.name: float(law.gains[p.name][j]) for p in law.parameters}
        row = {**own, **found.get(joint, {})}
        inside = ", ".join(f"{name}: {value!r}" for name, value in row.items() if isfinite(value))
        lines.append(f"      {_plain(joint)}: {{{inside}}}")
    return "\n".join(lines) + "\n"


def replace_text(file: Path, text: str) -> Path:
    """Write ``text`` to ``file`` atomically; raises ConfigError if that fails."""
    fresh = file.with_name(f".{file.name}.new")
    try:
        with output_file(file):
            fresh.write_text(text, encoding="utf-8")
            os.replace(fresh, file)
    finally:
        with suppress(OSError):  # already renamed if writing succeeded
            fresh.unlink()
    return file


def _plain(text: str) -> str:
    """``text`` for YAML, quoted if needed."""
    return str(yaml.safe_dump(text, width=10**6).splitlines()[0])
