"""Motors that speak MIT-mode CAN: Damiao and CubeMars."""

from arm_dynamics.hardware.mit_can.bus import MitCan

__all__ = ["MitCan"]
