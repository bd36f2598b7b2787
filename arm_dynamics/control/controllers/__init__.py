"""Control laws: one class a file, found by name through ``arm_dynamics.core.plugins``."""

from arm_dynamics.control.controllers.controller import Controller

__all__ = ["Controller"]
