"""Feetech STS servos (SO-100, SO-101): ``Feetech`` is the driver."""

from arm_dynamics.hardware.feetech.bus import Feetech

__all__ = ["Feetech"]
