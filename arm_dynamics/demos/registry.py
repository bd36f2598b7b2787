"""Names of the demonstrations; a demonstration is imported only when it is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from arm_dynamics.core.errors import ArmDynamicsError, UnknownName
from arm_dynamics.core.requirements import to_install

OUT = Path("arm_dynamics_demo")
"""Folder of the figures, with one folder per demonstration."""
EXTRAS = {"matplotlib": "plot", "PIL": "plot", "viser": "viewer", "yourdfpy": "viewer"}
"""Extras of the package that install a library."""


@dataclass(frozen=True, slots=True)
class Demo:
    """Module of a demonstration and its subject.

    Each module has ``show() -> DemoResult``. The module of a live demonstration also has
    ``run(arguments) -> int``: it reads the rest of the command line, runs the viewer and writes
    figures of the session.
    """

    module: str
    text: str
    live: bool = False


DEMOS = {
    "three_link": Demo("three_link", "free fall without and with friction, animated"),
    "two_link": Demo(
        "two_link", "a swing, joint-space control, lines of the tool, gravity compensation"
    ),
    "four_joint": Demo("four_joint", "a turning arm falls; LQR with a gain table"),
    "five_dof": Demo("five_dof", "a fall braked by back-EMF, and with motors disconnected"),
    "five_dof_task": Demo("five_dof_task", "the tool draws a square, empty and with a payload"),
    "puma560": Demo("puma560", "sliders command servos of limited speed", live=True),
    "puma560_fall": Demo("puma560_fall", "a fall: stuck joints, back-EMF, supply limit"),
    "identification": Demo("identification", "a square with a wrong and with an identified model"),
}


def find_demo(name: str) -> Demo:
    """Return the demonstration ``name``; raises UnknownName with the names that exist."""
    if name not in DEMOS:
        raise UnknownName("demonstration", name, tuple(DEMOS))
    return DEMOS[name]


def load_demo(name: str) -> Any:
    """Import the module of a demonstration.

    Raises
    ------
    UnknownName
        If no demonstration has this name.
    ArmDynamicsError
        If a library is missing; the message contains the command that installs it.

    """
    module = f"arm_dynamics.demos.{find_demo(name).module}"
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        library = (error.name or "").split(".")[0]
        if library not in EXTRAS:
            raise
        raise ArmDynamicsError(
            f"demonstration '{name}': {library} is not installed; {to_install(EXTRAS[library])}"
        ) from error
