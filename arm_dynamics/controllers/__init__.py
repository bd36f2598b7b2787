"""Control laws: one class a file, found by name through ``arm_dynamics.plugins``."""

from arm_dynamics.controllers.base import Controller

__all__ = ["Controller"]
