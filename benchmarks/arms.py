"""The arms that are measured, by name: how each is loaded, and what its motors are commanded."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path

from arm_dynamics import load_arm
from arm_dynamics.model.arm_model import ArmModel

FINGERS = ("panda_finger_joint1", "panda_finger_joint2")


def _file(name: str) -> Path:
    """A URDF of example-robot-data."""
    urdf = next(f for f in files("example-robot-data") or () if str(f).endswith(name)).locate()
    return Path(str(urdf))


def panda() -> ArmModel:
    """The 7-DOF Panda with its fingers locked."""
    return load_arm(_file("panda_description/urdf/panda.urdf"), lock=FINGERS)


def ur5() -> ArmModel:
    """The 6-DOF UR5."""
    return load_arm(_file("ur_description/urdf/ur5_robot.urdf"))


ARMS: dict[str, tuple[Callable[[], ArmModel], str]] = {
    "five_dof": (lambda: load_arm("five_dof"), "voltage"),
    "panda": (panda, "effort"),
}
