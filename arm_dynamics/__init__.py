"""Robot-arm dynamics, motors and control: a URDF arm simulated, controlled and driven.

The names below are imported at their first use: Ctrl-C must end a program
while numpy and Pinocchio are still being imported (arm_dynamics.ros.start).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arm_dynamics.errors import ArmDynamicsError
    from arm_dynamics.forward_step import forward_model, pack_state, unpack_state
    from arm_dynamics.kinematics.inverse import inverse_kinematics, nearest_reachable
    from arm_dynamics.loop import ControlLoop
    from arm_dynamics.model.arm_model import ArmModel
    from arm_dynamics.model.load import load_arm
    from arm_dynamics.plant import Plant
    from arm_dynamics.simulation import Simulation
    from arm_dynamics.state import Command, Reference, State

_MODULES = {
    "ArmDynamicsError": "errors",
    "ArmModel": "model.arm_model",
    "Command": "state",
    "ControlLoop": "loop",
    "Plant": "plant",
    "Reference": "state",
    "Simulation": "simulation",
    "State": "state",
    "forward_model": "forward_step",
    "inverse_kinematics": "kinematics.inverse",
    "load_arm": "model.load",
    "nearest_reachable": "kinematics.inverse",
    "pack_state": "forward_step",
    "unpack_state": "forward_step",
}

__all__ = [
    "ArmDynamicsError",
    "ArmModel",
    "Command",
    "ControlLoop",
    "Plant",
    "Reference",
    "Simulation",
    "State",
    "forward_model",
    "inverse_kinematics",
    "load_arm",
    "nearest_reachable",
    "pack_state",
    "unpack_state",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
