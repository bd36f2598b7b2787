"""What is measured of a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel

QUANTITIES = {
    "settling": "s", "overshoot": "rad", "peak_torque": "N·m", "peak_current": "A",
}  # fmt: skip
"""What is found of each run, and its unit."""


def settling(error: Vector, period: float, band: float) -> Vector:
    """Time [s] (lanes, nv) from which |error| (lanes, periods, nv) stays within ``band``.

    The end of the last period that ends outside; 0 for none, ∞ where the last one of all does.
    """
    outside = ~(np.abs(error) <= band)
    periods = error.shape[1]
    last = periods - np.argmax(outside[:, ::-1], axis=1)
    count = np.where(outside.any(axis=1), last, 0)
    return np.where(count == periods, np.inf, count * period)


def torque_constant(arm: ArmModel, vary: Mapping[str, Vector]) -> Vector | None:
    """N Kt [N·m/A] at the joint, by lane or of the arm; None unless all joints have DC motors.

    Nor with gear play, where the current is not what the joint feels.
    """
    constants = [actuator.constants for actuator in arm.actuators]
    if any("kt" not in c or c["backlash"] > 0 for c in constants):
        return None
    kt = vary.get("motor.kt", np.array([c["kt"] for c in constants]))
    gear = vary.get("motor.gear_ratio", np.array([c["gear_ratio"] for c in constants]))
    whole: Vector = kt * gear
    return whole
