"""Compile the functions of all arms and store them: later starts on this machine load them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from pkgutil import walk_packages

import arm_dynamics
from arm_dynamics.cli.terminal import progress_bar
from arm_dynamics.core.code_cache import COMPILED_PACKAGES, cache_folder
from arm_dynamics.core.compiled_math import demand, warm_up
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.plant import Plant


def run(arguments: Sequence[str]) -> int:
    """Compile the time step, controllers, driver safety, contact and inverse kinematics."""
    SuggestingParser(prog="arm-dynamics compile", description=__doc__).parse_args(arguments)
    started, folder = time.monotonic(), cache_folder()
    if folder is None:
        raise ArmDynamicsError("no folder of compiled code is trusted: nothing would be stored")
    import_compiled_modules()
    demand()
    with progress_bar("functions") as progress:
        Plant(load_arm("five_dof"))  # its functions have no declared types
        count = warm_up(progress)
    print(
        f"{count} functions compiled for all arms in {time.monotonic() - started:.0f} s: {folder}"
    )
    return 0


def import_compiled_modules() -> None:
    """Import all modules that may declare compiled functions, except for missing libraries."""
    for package in COMPILED_PACKAGES:
        root = import_module(f"arm_dynamics.{package}")
        for module in walk_packages(root.__path__, f"{root.__name__}."):
            try:
                import_module(module.name)
            except ModuleNotFoundError as error:
                if (error.name or "").startswith(arm_dynamics.__name__):
                    raise
