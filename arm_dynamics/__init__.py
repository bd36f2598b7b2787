"""Dynamics, simulation and control of robot arms.

The names that users need first; the packages below export the others. Names are imported at
their first use: Ctrl-C must end a program while numpy and Pinocchio are still being imported.
Start reading at ``control/control_loop.py`` and ``simulation/plant.py``.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.collision.scene_files import load_scene
    from arm_dynamics.control.control_loop import ControlLoop
    from arm_dynamics.core.errors import ArmDynamicsError, DriverFault, InvalidValue
    from arm_dynamics.core.parameters import Parameter
    from arm_dynamics.core.state import Command, Reference, State
    from arm_dynamics.dynamics.kinematics.inverse_kinematics import (
        inverse_kinematics,
        nearest_reachable,
    )
    from arm_dynamics.model.arm_model import ArmModel
    from arm_dynamics.model.load import load_arm
    from arm_dynamics.simulation.forward_model import forward_model, pack_state, unpack_state
    from arm_dynamics.simulation.plant import Plant
    from arm_dynamics.simulation.simulation import Simulation

_MODULES = {
    "ArmDynamicsError": ".core.errors",
    "ArmModel": ".model.arm_model",
    "Command": ".core.state",
    "ControlLoop": ".control.control_loop",
    "DriverFault": ".core.errors",
    "InvalidValue": ".core.errors",
    "Parameter": ".core.parameters",
    "Plant": ".simulation.plant",
    "Reference": ".core.state",
    "Simulation": ".simulation.simulation",
    "State": ".core.state",
    "forward_model": ".simulation.forward_model",
    "inverse_kinematics": ".dynamics.kinematics.inverse_kinematics",
    "load_arm": ".model.load",
    "load_scene": ".collision.scene_files",
    "nearest_reachable": ".dynamics.kinematics.inverse_kinematics",
    "pack_state": ".simulation.forward_model",
    "unpack_state": ".simulation.forward_model",
}

__all__ = [
    "ArmDynamicsError",
    "ArmModel",
    "Command",
    "ControlLoop",
    "DriverFault",
    "InvalidValue",
    "Parameter",
    "Plant",
    "Reference",
    "Simulation",
    "State",
    "forward_model",
    "inverse_kinematics",
    "load_arm",
    "load_scene",
    "nearest_reachable",
    "pack_state",
    "unpack_state",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
