"""Motor models: one class per file, found by name through ``arm_dynamics.core.plugins``."""

from arm_dynamics.simulation.actuators.actuator import Actuator

__all__ = ["Actuator"]
