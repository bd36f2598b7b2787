"""Arms behind one seam, found by name through ``arm_dynamics.core.plugins``."""

from arm_dynamics.hardware.driver import Driver

__all__ = ["Driver"]
