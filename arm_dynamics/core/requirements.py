"""Commands that install optional libraries into the environment that runs."""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from shlex import quote

from arm_dynamics.core.errors import ArmDynamicsError


def to_install(extra: str) -> str:
    """Return the command that installs the libraries of an extra of this package.

    It names the running interpreter and the libraries themselves, and so works in every
    environment and folder.
    """
    try:
        every = requires("arm_dynamics") or []
    except PackageNotFoundError:  # a source tree that is not installed
        every = []
    marked = [re.split(r"\s*;\s*", entry, maxsplit=1) for entry in every]
    found = [
        quote(entry[0])
        for entry in marked
        if len(entry) == 2 and re.search(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]", entry[1])
    ]
    return f"{quote(sys.executable)} -m pip install {' '.join(found) or f'arm_dynamics[{extra}]'}"


def require_matplotlib(purpose: str) -> None:
    """Raise ArmDynamicsError with the remedy if matplotlib is missing, which figures need."""
    if find_spec("matplotlib") is None:
        raise ArmDynamicsError(f"{purpose}: matplotlib is not installed; {to_install('plot')}")


def ros_missing() -> str:
    """Return the message about missing ROS 2: wheels exist for x86-64 Linux only."""
    if sys.platform == "linux" and platform.machine() == "x86_64":
        remedy = f"{to_install('ros')}, or source a ROS 2 installation"
    else:
        remedy = "install ROS 2 with RoboStack (pixi.toml) or apt, and source it"
    return f"rclpy is not installed; {remedy}"
