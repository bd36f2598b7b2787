"""Motor models: one class a file, found by name through ``arm_dynamics.plugins``."""

from arm_dynamics.actuators.base import Actuator

__all__ = ["Actuator"]
