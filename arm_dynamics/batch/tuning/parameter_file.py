"""Parameter file with gains, which the nodes and ``build_controller`` load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

import yaml

from arm_dynamics.control.controllers.controller import Controller


def parameter_text(
    arm: str,
    name: str,
    controller: Controller,
    found: Mapping[str, Mapping[str, float]],
    notes: Sequence[str],
) -> str:
    """Return YAML in the form of ``config/<arm>.yaml``.

    It contains all gains of the controller, except infinite ones, which are the default, and the
    payload of its model.

    Parameters
    ----------
    arm, name : str
        Names of the arm and the controller.
    controller : Controller
        Controller.
    found : Mapping
        Joint to gains that replace the controller's.
    notes : sequence of str
        Comments at the top.

    """
    units = ", ".join(f"{p.name} [{p.unit}]" for p in controller.parameters)
    lines = [*(f"# {note}" for note in notes), f"# Keys and units: {units}."]
    lines += ["simulator:", "  ros__parameters:", f"    arm: {_plain(arm)}", ""]
    lines += ["joint_controller:", "  ros__parameters:", f"    arm: {_plain(arm)}"]
    lines += [f"    controller: {name}"]
    if controller.arm.payload.mass > 0:
        lines += [f"    payload_mass: {controller.arm.payload.mass!r}"]
    lines += ["    gains:"]
    for j, joint in enumerate(controller.arm.joint_names):
        own = {p.name: float(controller.gains[p.name][j]) for p in controller.parameters}
        row = {**own, **found.get(joint, {})}
        inside = ", ".join(f"{gain}: {value!r}" for gain, value in row.items() if isfinite(value))
        lines.append(f"      {_plain(joint)}: {{{inside}}}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """``text`` for YAML, quoted if needed."""
    return str(yaml.safe_dump(text, width=10**6).splitlines()[0])
