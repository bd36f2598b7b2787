"""Parameters of a servo motor: motor constants, position loop and friction; files of BAM.

References
----------
Rhoban/bam, "Better Actuator Models": the files ``m1.json`` to ``m6.json`` of ``bam.fit`` and the
constants of each servo's position loop, which the files do not contain.

"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.compiled_math import INF, NUMBER, VECTOR, clip, compiled_for, where
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.identification.servos.servo_friction import ServoFriction

GAIN, VELOCITY_GAIN, SUPPLY, MAX_DUTY, MAX_CURRENT, VELOCITY_LIMIT = range(6)
BY_CURRENT, KT, RESISTANCE = range(6, 9)


@dataclass(frozen=True, slots=True)
class PositionLoop:
    """Position loop of a servo motor, with constants at the output shaft.

    By voltage: duty = clip(k_p g (q_ref - q), ±duty_max), V = duty V_s.
    By current: i = clip(k_p g (q_ref - q) - d sqrt(k_p) v, ±i_max), within the supply.

    Parameters
    ----------
    supply_voltage : float
        Supply V_s [V].
    gain : float
        Gain k_p as set in the servo [1].
    error_gain : float
        Duty [1/rad] or current [A/rad] per gain and position error g.
    max_duty : float
        Largest duty [1], above 0 and at most 1.
    max_current : float
        Largest current [A] of a loop by current.
    damping : float
        Damping d of a loop by current [A·s/rad].
    velocity_limit : float
        Largest velocity of the internal target [rad/s].
    by_current : bool
        Whether the loop commands a current; otherwise a voltage.

    Raises
    ------
    InvalidValue
        For a value out of its range.

    """

    supply_voltage: float
    gain: float
    error_gain: float = 1.0
    max_duty: float = 1.0
    max_current: float = inf
    damping: float = 0.0
    velocity_limit: float = inf
    by_current: bool = False

    def __post_init__(self) -> None:
        """Check every constant."""
        check_float("position loop: supply_voltage [V]", self.supply_voltage, above=0)
        check_float("position loop: gain", self.gain, lower=0)
        check_float("position loop: error_gain", self.error_gain, above=0)
        check_float("position loop: max_duty", self.max_duty, above=0, upper=1)
        check_float("position loop: damping [A·s/rad]", self.damping, lower=0)
        if self.max_current != inf:
            check_float("position loop: max_current [A]", self.max_current, above=0)
        if self.velocity_limit != inf:
            check_float("position loop: velocity_limit [rad/s]", self.velocity_limit, above=0)


SERVOS: Mapping[str, PositionLoop] = {
    "mx64": PositionLoop(15.0, 32.0, 0.158, max_duty=0.9625),
    "mx106": PositionLoop(15.0, 32.0, 0.158, max_duty=0.9625),
    "xl320": PositionLoop(7.5, 32.0, 0.05048199),
    "xl330": PositionLoop(7.5, 400.0, 4096 / (2 * pi) / (256 * 885)),
    "sts3215": PositionLoop(7.4, 32.0, 0.166, max_duty=0.97, velocity_limit=3400 * 2 * pi / 4096),
    "erob80_50": PositionLoop(48.0, 100.0, max_current=12.0, damping=1.0, by_current=True),
    "erob80_100": PositionLoop(48.0, 100.0, max_current=12.0, damping=2.0, by_current=True),
}
"""Position loops by BAM's name of the servo. Gains of eRob are those of their controller: set
``gain``."""


@dataclass(frozen=True, slots=True)
class ServoParameters:
    """A servo motor: motor constants at the output shaft, position loop and friction.

    Parameters
    ----------
    kt : float
        Torque constant and back-EMF constant at the output shaft [N·m/A, V·s/rad].
    resistance : float
        Winding resistance [Ω].
    armature : float
        Reflected rotor inertia [kg·m²].
    friction : ServoFriction
        Friction at the output shaft.
    loop : PositionLoop
        Position loop of the servo.
    offset : float
        Angle [rad] of gravity's zero: gravity is that of q + offset.
    model : str
        Friction model of the file, "m1" to "m6"; "" without a file.
    servo : str
        BAM's name of the servo; "" without a file.

    Raises
    ------
    InvalidValue
        For a constant that is not positive or not finite.

    """

    kt: float
    resistance: float
    armature: float
    friction: ServoFriction
    loop: PositionLoop
    offset: float = 0.0
    model: str = ""
    servo: str = ""

    def __post_init__(self) -> None:
        """Check the constants."""
        check_float("servo: kt [N·m/A]", self.kt, above=0)
        check_float("servo: resistance [Ω]", self.resistance, above=0)
        check_float("servo: armature [kg·m²]", self.armature, lower=0)
        check_float("servo: offset [rad]", self.offset)
        check_type(ServoFriction, "servo: friction", self.friction)
        check_type(PositionLoop, "servo: loop", self.loop)

    def with_loop(self, **changes: Any) -> ServoParameters:
        """Return the servo with changed constants of its position loop, for example ``gain``.

        Raises InvalidValue for a value out of its range, UnknownName for another name.
        """
        known = tuple(PositionLoop.__dataclass_fields__)
        for name in changes:
            if name not in known:
                raise UnknownName("constant of the position loop", name, known)
        return replace(self, loop=replace(self.loop, **changes))

    @property
    def constants(self) -> Vector:
        """Constants (9,) of motor and position loop, as the compiled functions take them."""
        loop = self.loop
        gain, damping = loop.gain * loop.error_gain, loop.damping * sqrt(loop.gain)
        limits = (loop.supply_voltage, loop.max_duty, loop.max_current, loop.velocity_limit)
        motor = (float(loop.by_current), self.kt, self.resistance)
        return np.array([gain, damping, *limits, *motor])

    def command(self, target: float, q: float, v: float) -> float:
        """Return the command of the position loop: voltage [V], or current [A].

        target and q [rad], v [rad/s]; without the velocity limit of the target, which has a state.
        """
        target, q = check_float("target [rad]", target), check_float("q [rad]", q)
        return loop_command(target, q, check_float("v [rad/s]", v), self.constants)

    def torque(self, command: float, v: float) -> float:
        """Return the motor torque [N·m] before friction of a command [V or A]; v [rad/s]."""
        command = check_float("command", command)
        return motor_torque(command, check_float("v [rad/s]", v), self.constants)


@compiled_for(NUMBER, NUMBER, NUMBER, VECTOR)
def loop_command(target: float, q: float, v: float, c: Vector) -> float:
    """Return the command of the position loop: V [V] or i [A], see ``PositionLoop``.

    target, q [rad], v [rad/s]; c (9,) are ``ServoParameters.constants``.
    """
    error = c[GAIN] * (target - q)
    voltage = c[SUPPLY] * clip(error, -c[MAX_DUTY], c[MAX_DUTY])
    current = clip(error - c[VELOCITY_GAIN] * v, -c[MAX_CURRENT], c[MAX_CURRENT])
    return where(c[BY_CURRENT] > 0.0, current, voltage)


@compiled_for(NUMBER, NUMBER, VECTOR)
def motor_torque(command: float, v: float, c: Vector) -> float:
    """Return the torque of the DC motor [N·m] at the output shaft, before friction.

    By voltage: τ = k_t V / R - k_t² v / R.  By current: τ = clip(k_t i, k_t (±V_s - k_t v) / R).

    command [V or A], v [rad/s]; c (9,) are ``ServoParameters.constants``.
    """
    braking = c[KT] * c[KT] * v / c[RESISTANCE]
    full = c[KT] / c[RESISTANCE] * c[SUPPLY]
    by_current = clip(c[KT] * command, -full - braking, full - braking)
    by_voltage = c[KT] * command / c[RESISTANCE] - braking
    return where(c[BY_CURRENT] > 0.0, by_current, by_voltage)


STRIBECK_KEYS = {
    "stribeck": "friction_stribeck",
    "stribeck_velocity": "dtheta_stribeck",
    "stribeck_exponent": "alpha",
}
DIRECTIONAL_KEYS = {
    "motor_load": "load_friction_motor",
    "external_load": "load_friction_external",
    "motor_load_stribeck": "load_friction_motor_stribeck",
    "external_load_stribeck": "load_friction_external_stribeck",
}
LOAD_KEYS = {"motor_load": "load_friction_base", "external_load": "load_friction_base"}
LOAD_STRIBECK_KEYS = {
    "motor_load_stribeck": "load_friction_stribeck",
    "external_load_stribeck": "load_friction_stribeck",
}
QUADRATIC_KEYS = {
    "motor_quadratic": "load_friction_motor_quad",
    "external_quadratic": "load_friction_external_quad",
}
BASE_KEYS = {"coulomb": "friction_base", "viscous": "friction_viscous"}
MODEL_KEYS: Mapping[str, Mapping[str, str]] = {
    "m1": BASE_KEYS,
    "m2": BASE_KEYS | STRIBECK_KEYS,
    "m3": BASE_KEYS | LOAD_KEYS,
    "m4": BASE_KEYS | STRIBECK_KEYS | LOAD_KEYS | LOAD_STRIBECK_KEYS,
    "m5": BASE_KEYS | STRIBECK_KEYS | DIRECTIONAL_KEYS,
    "m6": BASE_KEYS | STRIBECK_KEYS | DIRECTIONAL_KEYS | QUADRATIC_KEYS,
}
"""Keys of the file that each model needs, by coefficient of ``ServoFriction``."""
UNITS = {
    "kt": "N·m/A",
    "R": "Ω",
    "armature": "kg·m²",
    "friction_base": "N·m",
    "friction_stribeck": "N·m",
    "friction_viscous": "N·m·s/rad",
    "dtheta_stribeck": "rad/s",
    "load_friction_motor_quad": "1/(N·m)",
    "load_friction_external_quad": "1/(N·m)",
    "q_offset": "rad",
    "max_velocity": "rad/s",
}
CURRENT_LOOP_RESISTANCE = 2.0
"""Resistance [Ω] of a servo with a loop by current, if the file has none, as in BAM."""
POSITIVE_KEYS = ("kt", "R", "dtheta_stribeck", "alpha", "error_gain_ratio", "max_velocity")


def read_bam(path: str | Path, *, loop: PositionLoop | None = None) -> ServoParameters:
    """Read a parameter file of BAM (``m1.json`` to ``m6.json``).

    The file has the motor constants, the friction model and the name of the servo. Supply
    voltage and gains of the servo are those of ``SERVOS``. Keys that the friction model does not
    need are ignored, as in BAM. All keys that it needs must be present; BAM uses defaults for
    missing ones. The exception is ``R`` of a servo with a loop by current: 2 Ω, as in BAM.

    Parameters
    ----------
    path : str or Path
        JSON file.
    loop : PositionLoop, optional
        Position loop of the servo. Required for a servo that ``SERVOS`` does not list.

    Returns
    -------
    ServoParameters
        Parameters in SI units, at the output shaft.

    Raises
    ------
    ConfigError
        For a file that cannot be read or is not JSON, an unknown friction model or servo, a
        missing key, and a value out of its range.

    References
    ----------
    arXiv:2410.08650, section II: models M1 to M6.

    """
    values = _read_object(Path(path))
    model = _choice(path, values, "model", tuple(MODEL_KEYS))
    servo = _choice(path, values, "actuator", None if loop else tuple(SERVOS))
    keys = MODEL_KEYS[model]
    friction = ServoFriction(**{name: _number(path, values, key) for name, key in keys.items()})
    loop = loop or SERVOS[servo]
    ratio = _number(path, values, "error_gain_ratio", 1.0)
    if "max_velocity" in values:
        loop = replace(loop, velocity_limit=_number(path, values, "max_velocity"))
    return ServoParameters(
        kt=_number(path, values, "kt"),
        resistance=_number(path, values, "R", CURRENT_LOOP_RESISTANCE if loop.by_current else None),
        armature=_number(path, values, "armature"),
        friction=friction,
        loop=replace(loop, error_gain=loop.error_gain * ratio),
        offset=_number(path, values, "q_offset", 0.0, lower=-INF),
        model=model,
        servo=servo,
    )


def _read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(values, dict):
        kind = type(values).__name__
        raise ConfigError(f"{path}: content = a {kind}; expected a JSON object of a BAM file")
    return values


def _choice(
    path: str | Path, values: Mapping[str, Any], key: str, known: tuple[str, ...] | None
) -> str:
    """Return the text at ``key``, one of ``known`` if that is given."""
    if key not in values:
        raise ConfigError(f"{path}: {key} is missing; expected a parameter file of BAM")
    value = values[key]
    if not isinstance(value, str) or (known is not None and value not in known):
        allowed = f"one of {', '.join(known)}" if known else "a name"
        remedy = "; pass loop=PositionLoop(...) for another servo" if key == "actuator" else ""
        raise ConfigError(f"{path}: {key} = {value!r}; expected {allowed}{remedy}")
    return value


def _number(
    path: str | Path,
    values: Mapping[str, Any],
    key: str,
    default: float | None = None,
    lower: float = 0.0,
) -> float:
    """Return the finite number at ``key``, at least ``lower`` or above 0."""
    value, unit = values.get(key, default), UNITS.get(key, "1")
    if value is None:
        model = values.get("model")
        raise ConfigError(f"{path}: {key} is missing; expected a number [{unit}] for model {model}")
    positive = key in POSITIVE_KEYS
    bound = "above 0" if positive else f"at least {lower:g}"
    expected = f"a number {bound}" if lower > -INF else "a finite number"
    number = float(value) if isinstance(value, (int, float)) else float("nan")
    fits = abs(number) < INF and number >= lower and not (positive and number <= 0)
    if not fits or isinstance(value, bool):
        raise ConfigError(f"{path}: {key} = {value!r} {unit}; expected {expected}")
    return number
