"""Demonstrations by name; only the chosen one is imported."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from arm_dynamics.core.errors import ArmDynamicsError, UnknownName
from arm_dynamics.core.requirements import to_install

OUT = Path("arm_dynamics_demo")
"""Folder of the figures, one folder a demonstration in it."""
EXTRAS = {"matplotlib": "plot", "PIL": "plot", "viser": "viewer", "yourdfpy": "viewer"}
"""What pip calls the extra that brings a library."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A module and what it shows.

    Every module has ``show() -> DemoResult``; one with a live page has ``run(arguments) -> int``,
    which gets the rest of the command line, ends with the page and leaves figures of it.
    """

    module: str
    text: str
    live: bool = False


DEMOS = {
    "three_link": Demo("three_link", "free fall without and with friction, animated"),
    "two_link": Demo("two_link", "a swing, three joint laws, lines of the tool, gravity held"),
    "four_joint": Demo("four_joint", "a turning arm falls; LQR reaches from anywhere in its table"),
    "five_dof": Demo("five_dof", "falling: braked by back-EMF, and with motors disconnected"),
    "five_dof_task": Demo("five_dof_task", "the tool draws a square, empty and with a payload"),
    "puma560": Demo("puma560", "sliders command servos of limited speed", live=True),
    "puma560_fall": Demo("puma560_fall", "let go: stuck joints, back-EMF, a supply that ends"),
}


def find_demo(name: str) -> Demo:
    """The demonstration ``name``; raises UnknownName listing those that exist."""
    if name not in DEMOS:
        raise UnknownName("demonstration", name, tuple(DEMOS))
    return DEMOS[name]


def load_demo(name: str) -> Any:
    """The module of a demonstration.

    Raises UnknownName for one that does not exist, ArmDynamicsError naming the extra to install
    when its library is missing.
    """
    module = f"arm_dynamics.demos.{find_demo(name).module}"
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        library = (error.name or "").split(".")[0]
        if library not in EXTRAS:
            raise
        raise ArmDynamicsError(
            f"demonstration '{name}' needs {library}: {to_install(EXTRAS[library])}"
        ) from error
