"""Robot-arm dynamics, motors and control: a URDF arm simulated, controlled and driven."""

from arm_dynamics.errors import ArmDynamicsError
from arm_dynamics.forward_model import forward_model, pack_state, unpack_state
from arm_dynamics.kinematics.inverse import inverse_kinematics, nearest_reachable
from arm_dynamics.loop import ControlLoop
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.plant import Plant
from arm_dynamics.simulation import Simulation
from arm_dynamics.state import Command, Reference, State

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
