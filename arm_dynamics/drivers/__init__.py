"""Arms behind one seam, found by name through ``arm_dynamics.plugins``."""

from arm_dynamics.drivers.base import Driver

__all__ = ["Driver"]
