"""Gains of a motor's own position and velocity law, from settings or from the table."""

from __future__ import annotations

from collections.abc import Mapping

from arm_dynamics.drivers.mit_can.motors import MitMotor
from arm_dynamics.errors import ConfigError, InvalidValue
from arm_dynamics.parameters import Parameter


def gains(settings: Mapping[str, str], id: int, model: MitMotor) -> tuple[float, float]:
    """kp [N·m/rad], kd [N·m·s/rad] of motor ``id``: ``kp_3`` before ``kp`` before the table's.

    Raises ConfigError for one out of range. kd must be above 0: undamped, a motor that holds a
    position oscillates, as Damiao's manual warns.
    """
    kp = Parameter("kp", model.kp, "N·m/rad", "stiffness", lower=0.0, upper=model.ranges.kp)
    kd = Parameter("kd", model.kd, "N·m·s/rad", "damping", above=0.0, upper=model.ranges.kd)
    return _given(settings, id, kp, model.kp), _given(settings, id, kd, model.kd)


def _given(settings: Mapping[str, str], id: int, parameter: Parameter, default: float) -> float:
    text = settings.get(f"{parameter.name}_{id}", settings.get(parameter.name))
    if text is None:
        return default
    try:
        return parameter.check(f"motor {id}", text)  # type: ignore[arg-type]
    except InvalidValue as error:
        raise ConfigError(str(error)) from error
