"""Arms of other vendors by name, from the packages example-robot-data and robot_descriptions."""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path

from arm_dynamics.core.errors import ConfigError

DATA, DESCRIPTIONS = "example-robot-data", "robot_descriptions"
FILES = {
    "kinova": "kinova.urdf",
    "panda": "panda.urdf",
    "so100": "so100.urdf",
    "talos_left_arm": "talos_left_arm.urdf",
    "ur3": "ur3_robot.urdf",
    "ur5": "ur5_robot.urdf",
    "ur10": "ur10_robot.urdf",
    "xarm7": "xarm7.urdf",
    "z1": "z1.urdf",
}
"""File in example-robot-data of each arm with a fixed base, by name."""
GRIPPERS = {
    "panda": ("panda_finger_joint1", "panda_finger_joint2"),
    "talos_left_arm": tuple(
        f"gripper_left_{name}joint"
        for name in (
            "", "inner_double_", "fingertip_1_", "fingertip_2_", "fingertip_3_", "motor_single_",
            "inner_single_",
        )
    ),
}  # fmt: skip
"""Joints of grippers, which are locked: mimic joints, or without effort for their friction."""
SUFFIX = "_description"


def packaged_names() -> tuple[str, ...]:
    """Return the names of the arms of example-robot-data, if that is installed."""
    return tuple(FILES) if _files() else ()


def packaged_urdf(name: str) -> Path | None:
    """Return the URDF of an arm's name in an installed package, or None.

    ``panda`` is an arm of example-robot-data, ``panda_description`` one of robot_descriptions,
    which downloads it at its first use.

    Raises
    ------
    ConfigError
        If robot_descriptions has no URDF of that name, or cannot download it.

    """
    if name in FILES:
        return _files().get(FILES[name])
    module = f"{DESCRIPTIONS}.{name}"
    if not (name.endswith(SUFFIX) and name.isidentifier() and find_spec(DESCRIPTIONS)):
        return None
    if find_spec(module) is None:
        return None
    try:
        return Path(import_module(module).URDF_PATH)
    except AttributeError as error:
        raise ConfigError(f"{module}: no URDF; expected a description with one") from error
    except Exception as error:  # of git and of the network
        raise ConfigError(f"{module}: {error}; expected a connection for the download") from error


def gripper_joints(name: str) -> tuple[str, ...]:
    """Return the joints of an arm of these packages that are locked, by its name."""
    return GRIPPERS.get(name.removesuffix(SUFFIX), ())


@cache
def _files() -> dict[str, Path]:
    """Return the URDFs of example-robot-data by their names; none if it is not installed."""
    try:
        files = metadata.files(DATA) or ()
    except metadata.PackageNotFoundError:
        return {}
    return {file.name: Path(str(file.locate())) for file in files if file.suffix == ".urdf"}
