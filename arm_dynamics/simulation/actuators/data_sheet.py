"""Constants of ``dc_motor`` from a data sheet, with checks of its consistency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, nan, pi, sqrt
from types import MappingProxyType

from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.simulation.actuators.dc_motor import PARAMETERS

TOLERANCE = 0.1
"""Relative difference allowed between two numbers; motors of one type scatter as much."""
DERIVED = ("kt", "ke", "resistance", "coulomb_friction", "viscous_friction")
BASIC = ("nominal_voltage", "no_load_speed", "stall_torque", "no_load_current")
UNITS = MappingProxyType(
    {
        "nominal_voltage": "V",
        "no_load_speed": "rad/s",
        "stall_torque": "N·m",
        "no_load_current": "A",
        "stall_current": "A",
        "resistance": "Ω",
        "torque_constant": "N·m/A",
        "speed_constant": "rad/s/V",
    }
)


def from_rpm(speed: float) -> float:
    """Return ω = 2π n / 60 [rad/s] of n [rpm], or rad/s/V of rpm/V."""
    return check_float("speed [rpm]", speed) * 2 * pi / 60


@dataclass(frozen=True, slots=True)
class DataSheet:
    """Data sheet of a DC motor, and the constants k, R and friction that follow from it.

    At the nominal voltage V, with k = Kt = Ke and shaft friction M_c + b ω = k i0 at no load::

        V = k ω0 + R i0,   M_c = (1 - s) k i0,   b = s k i0 / ω0,   M_H = k V / R - M_c

    so that k is the positive root of  (1 - s) i0 ω0 k² + (ω0 M_H + s V i0) k - V M_H = 0,  and
    R = k² ω0 / (M_H - s k i0).

    V ``nominal_voltage`` [V], ω0 ``no_load_speed`` [rad/s], M_H ``stall_torque`` [N·m] net of
    friction, as a brake measures it (manufacturers that state k V / R
    differ by i0 / stall current, a percent or two), i0 ``no_load_current`` [A], s
    ``viscous_fraction`` of the no-load friction.
    With a gear, speed and torque are those of its output: ω0 → ω0 N and M_H → M_H / (N η); of
    k i0 the gear loses 1 - η, so that M_c and b are η of the above.
    ``stall_current`` [A], ``resistance`` [Ω], ``torque_constant`` [N·m/A] and
    ``speed_constant`` [rad/s/V] of the motor itself are checked against the rest when given.

    Raises
    ------
    InvalidValue
        For a number out of range, and for two numbers that differ from a consistent pair by more
        than ``tolerance``, with their values and the consistent one.

    References
    ----------
    maxon, Key information on DC motors (motor as an energy converter); M_H net of friction as in
    Faulhaber, Technical information on DC-micromotors.

    """

    nominal_voltage: float
    no_load_speed: float
    stall_torque: float
    no_load_current: float
    stall_current: float | None = None
    resistance: float | None = None
    torque_constant: float | None = None
    speed_constant: float | None = None
    gear_ratio: float = 1.0
    efficiency: float = 1.0
    viscous_fraction: float = 0.0
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        """Check every number alone, then each against the others."""
        for name, unit in UNITS.items():
            value = getattr(self, name)
            if value is not None or name in BASIC:
                lower = {"lower": 0.0} if name == "no_load_current" else {"above": 0.0}
                check_float(f"data sheet: {name} [{unit}]", value, **lower)
        check_float("data sheet: gear_ratio", self.gear_ratio, above=0)
        check_float("data sheet: efficiency", self.efficiency, above=0, upper=1)
        check_float("data sheet: viscous_fraction", self.viscous_fraction, lower=0, upper=1)
        check_float("data sheet: tolerance", self.tolerance, lower=0)
        volts, ohms, amperes = self.nominal_voltage, self.resistance, self.stall_current
        stalls = {"stall_current": amperes}
        if ohms is not None:
            stalls["nominal_voltage / resistance"] = volts / ohms
        for name, current in stalls.items():
            if current is not None and self.no_load_current >= current:
                raise InvalidValue(
                    f"data sheet: no_load_current = {self.no_load_current:g} A is not below"
                    f" {name} = {current:g} A: such a motor does not turn"
                )
        self._require_finite_constants()
        if ohms is not None and amperes is not None:
            self._compare("resistance", "stall_current", volts / amperes)
        if self.torque_constant is not None and self.speed_constant is not None:
            self._compare("torque_constant", "speed_constant", 1 / self.speed_constant)
        self._compare("resistance", "stall_torque", self.r)
        self._compare("stall_current", "stall_torque", volts / self.r)
        self._compare("torque_constant", "no_load_speed", self.k)
        self._compare("speed_constant", "no_load_speed", 1 / self.k)

    @property
    def shaft_speed(self) -> float:
        """No-load speed of the motor's own shaft [rad/s]."""
        return self.no_load_speed * self.gear_ratio

    @property
    def shaft_torque(self) -> float:
        """Stall torque at the motor's own shaft [N·m]."""
        return self.stall_torque / (self.gear_ratio * self.efficiency)

    @property
    def k(self) -> float:
        """Kt = Ke [N·m/A = V·s/rad] that the four basic numbers give."""
        volts, idle = self.nominal_voltage, self.no_load_current
        square = (1 - self.viscous_fraction) * idle * self.shaft_speed
        linear = self.shaft_speed * self.shaft_torque + self.viscous_fraction * volts * idle
        constant = volts * self.shaft_torque
        return 2 * constant / (linear + sqrt(linear * linear + 4 * square * constant))

    @property
    def r(self) -> float:
        """R [Ω] that the four basic numbers give."""
        viscous = self.viscous_fraction * self.k * self.no_load_current
        return self.k * self.k * self.shaft_speed / (self.shaft_torque - viscous)

    def constants(self, **more: float) -> Mapping[str, float]:
        """Return the constants of a ``dc_motor``, with ``more`` (rotor_inertia, inductance ...).

        Only the four basic numbers determine kt, ke, resistance and friction: such a motor has
        the no-load and stall points of the sheet. Raises UnknownName for a constant that does not
        exist, InvalidValue for one that the sheet determines.
        """
        names = tuple(p.name for p in PARAMETERS)
        for name, value in more.items():
            if name not in names:
                raise UnknownName("constant of dc_motor", name, names)
            if name in (*DERIVED, "gear_ratio", "efficiency"):
                raise InvalidValue(
                    f"data sheet: {name} = {value!r}: the data sheet determines it; omit it"
                )
        friction = self.efficiency * self.k * self.no_load_current
        return MappingProxyType(
            {
                "kt": self.k,
                "ke": self.k,
                "resistance": self.r,
                "coulomb_friction": (1 - self.viscous_fraction) * friction,
                "viscous_friction": self.viscous_fraction * friction / self.shaft_speed,
                "gear_ratio": self.gear_ratio,
                "efficiency": self.efficiency,
                **more,
            }
        )

    def _require_finite_constants(self) -> None:
        """Raise InvalidValue if valid numbers give a constant that is not finite."""
        try:
            made = {**self.constants(), "1 / kt": 1 / self.k, "1 / resistance": 1 / self.r}
        except ArithmeticError:
            made = {"kt": nan}
        for name, value in made.items():
            if not isfinite(value):
                raise InvalidValue(
                    f"data sheet: {name} = {value:g} follows from"
                    f" {', '.join(f'{basic} = {getattr(self, basic):g}' for basic in BASIC)};"
                    " expected a finite number"
                )

    def _compare(self, name: str, other: str, expected: float) -> None:
        """Raise InvalidValue unless ``name`` is ``expected``, which follows from ``other``."""
        value = getattr(self, name)
        if value is None or abs(value / expected - 1) <= self.tolerance:
            return
        gear = "" if self.gear_ratio == 1 else " (or the gear's efficiency is another)"
        raise InvalidValue(
            f"data sheet: {name} = {value:g} {UNITS[name]} and {other} ="
            f" {getattr(self, other):g} {UNITS[other]} contradict each other: {name} ="
            f" {expected:.4g} {UNITS[name]} ± {100 * self.tolerance:g} % would be consistent{gear}"
        )
