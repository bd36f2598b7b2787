"""Parameters of a simulated arm and of its simulation, and their changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.parameters import Parameter, by_joint
from arm_dynamics.model.arm_model import ArmModel

PAYLOAD = Parameter("payload_mass", 0.0, "kg", "point mass at the tool", lower=0, upper=1e3)
JOINT_NUMBERS = (
    Parameter("damping", 0.0, "N·m·s/rad", "viscous friction of the joint", lower=0, upper=1e4),
    Parameter("friction", 0.0, "N·m", "dry friction of the joint", lower=0, upper=1e4),
)
FACTOR = Parameter(
    "real_time_factor", 1.0, "1", "simulated seconds per second", lower=0.01, upper=1000
)
TIMEOUT = Parameter(
    "command_timeout", 0.1, "s", "age at which a command expires", above=0, upper=10
)
LIVE = (FACTOR, TIMEOUT)


def changed_arm(arm: ArmModel, values: Mapping[str, Any]) -> ArmModel:
    """Return the arm with changed parameters; raise the arm's errors for invalid values."""
    if PAYLOAD.name in values:
        arm = arm.with_payload(values[PAYLOAD.name])
    if "gravity" in values:
        arm = arm.with_gravity(values["gravity"])
    for joint, numbers in by_joint(values, "joints").items():
        arm = arm.with_joint(joint, **numbers)
    for joint, constants in by_joint(values, "motors").items():
        arm = arm.with_motor(joint, **constants)
    return arm


def affects_arm(names: Iterable[str]) -> bool:
    """Return whether any of these parameters changes the arm."""
    return any(
        n in (PAYLOAD.name, "gravity") or n.startswith(("joints.", "motors.")) for n in names
    )


def control_period(rate: float, dt: float) -> float:
    """Return 1 / rate [s]; raise ConfigError with the nearest rate that divides into time steps."""
    if not 0 < rate * dt <= 1:
        raise ConfigError(
            f"update_rate = {rate:g} Hz; expected above 0 and at most 1 / dt = {1 / dt:g} Hz"
        )
    steps = round(1 / (rate * dt))
    if abs(steps * dt * rate - 1) > 1e-9:
        nearest = 1 / (steps * dt)
        raise ConfigError(
            f"update_rate = {rate:g} Hz; expected a period that is a multiple of dt = {dt:g} s;"
            f" set {nearest:.12g} Hz"
        )
    return 1 / rate
