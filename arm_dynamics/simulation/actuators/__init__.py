"""Motor models: one class a file, found by name through ``arm_dynamics.core.plugins``."""

from arm_dynamics.simulation.actuators.actuator import Actuator

__all__ = ["Actuator"]
