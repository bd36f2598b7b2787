"""Names of the demonstrations; a demonstration is imported only when it is loaded.

``examples/gallery`` lists and loads its figures with the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """Module of a demonstration, and its subject.

    Each module has ``show() -> DemoResult``. The module of a live demonstration also has
    ``run(arguments) -> int``: it reads the rest of the command line, runs the viewer and writes
    figures of the session.
    """

    module: str
    text: str
    live: bool = False


DEMOS = {
    "three_link": Demo(
        "arm_dynamics.demos.three_link", "free fall without and with friction, animated"
    ),
    "pick": Demo("arm_dynamics.demos.pick", "SO-101 picks a cube and puts it down", live=True),
    "swing_up": Demo(
        "arm_dynamics.demos.swing_up", "half of the gravity torque: iLQR swings up, LQR does not"
    ),
    "obstacles": Demo(
        "arm_dynamics.demos.obstacles", "a wall and a ball between the targets: MPPI"
    ),
    "push": Demo(
        "arm_dynamics.demos.push", "a cube on the ground: MPPI with contact pushes it to a place"
    ),
    "fast_square": Demo(
        "arm_dynamics.demos.fast_square", "motors at 12 V: computed torque lags, MPC anticipates"
    ),
    "moving_target": Demo(
        "arm_dynamics.demos.moving_target",
        "20 ms from state to command, in MPC or ignored",
    ),
    "puma560": Demo(
        "arm_dynamics.demos.puma560", "sliders command servos of limited speed", live=True
    ),
}


def find_demo(name: str, demos: Mapping[str, Demo] = DEMOS) -> Demo:
    """Return the demonstration ``name``; raises UnknownName with the names that exist."""
    if name not in demos:
        raise UnknownName("demonstration", name, tuple(demos))
    return demos[name]


def load_demo(name: str, demos: Mapping[str, Demo] = DEMOS) -> Any:
    """Import the module of a demonstration.

    Raises
    ------
    UnknownName
        If no demonstration has this name.
    ArmDynamicsError
        If a library is missing; the message contains the command that installs it.

    """
    module = find_demo(name, demos).module
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        library = (error.name or "").split(".")[0]
        if library not in EXTRAS:
            raise
        raise ArmDynamicsError(
            f"demonstration '{name}': {library} is not installed; {to_install(EXTRAS[library])}"
        ) from error
