"""Measured arms by name: loading function and command interface."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path

from arm_dynamics import load_arm
from arm_dynamics.model.arm_model import ArmModel

FINGERS = ("panda_finger_joint1", "panda_finger_joint2")


def _file(name: str) -> Path:
    """Return the path of a URDF of example-robot-data."""
    urdf = next(f for f in files("example-robot-data") or () if str(f).endswith(name)).locate()
    return Path(str(urdf))


def panda() -> ArmModel:
    """Return the 7-DOF Panda with locked fingers."""
    return load_arm(_file("panda_description/urdf/panda.urdf"), lock=FINGERS)


def ur5() -> ArmModel:
    """Return the 6-DOF UR5."""
    return load_arm(_file("ur_description/urdf/ur5_robot.urdf"))


ARMS: dict[str, tuple[Callable[[], ArmModel], str]] = {
    "five_dof": (lambda: load_arm("five_dof"), "voltage"),
    "panda": (panda, "effort"),
}
