"""A brushed DC motor behind a gear: volts (or a current loop's effort) in, torque out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from arm_dynamics.actuators.base import ActState, Actuator
from arm_dynamics.actuators.gearing import contact_effort, gear_loss
from arm_dynamics.actuators.winding import (
    asked_current,
    brush_voltage,
    derated_current,
    settled_current,
    settled_temperature,
    warm_resistance,
)
from arm_dynamics.arrays import Vector
from arm_dynamics.errors import InvalidValue, UnknownName
from arm_dynamics.friction import stribeck_level
from arm_dynamics.parameters import Parameter
from arm_dynamics.scalar import INF, clip, compiled, where

KT, KE, RESISTANCE, GEAR, SUPPLY, CURRENT_LIMIT, DROP, HALF, INDUCTANCE = range(9)
EFFICIENCY, BACK_EFFICIENCY, ROTOR_INERTIA, VISCOUS, COULOMB, STICTION, STRIBECK = range(9, 16)
THERMAL, THERMAL_TIME, AMBIENT, DERATING, HOTTEST, COPPER = range(16, 22)
PLAY, STIFFNESS, DAMPING = range(22, 25)

CURRENT, TEMPERATURE, ROTOR, GAP = range(4)
"""Slots of the own states: winding current [A], temperature [°C], rotor speed over the gear
ratio [rad/s], rotor angle over the gear ratio minus the joint's [rad]."""


@compiled
def winding_resistance(a: Vector, c: Vector) -> float:
    """R [Ω] at the winding's temperature; constant without a thermal model."""
    warm = warm_resistance(c[RESISTANCE], c[COPPER], a[TEMPERATURE])
    return where(c[THERMAL] > 0.0, warm, c[RESISTANCE])


@compiled
def back_emf(v: float, a: Vector, c: Vector) -> float:
    """e = Ke N v [V], with the rotor's own speed where the gear has play."""
    return c[KE] * c[GEAR] * where(c[PLAY] > 0.0, a[ROTOR], v)


@compiled
def motor_settled(by_voltage: bool, command: float, v: float, a: Vector, c: Vector) -> float:
    """Current [A] at which the winding settles for ``command`` [V, or N·m at the joint]."""
    limit = derated_current(c[CURRENT_LIMIT], a[TEMPERATURE], c[DERATING], c[HOTTEST])
    shaft = where(by_voltage, command, command / c[GEAR])
    emf = back_emf(v, a, c)
    r = winding_resistance(a, c)
    return settled_current(by_voltage, shaft, emf, c[KT], r, c[SUPPLY], limit, c[DROP], c[HALF])


@compiled
def motor_current(by_voltage: bool, command: float, v: float, a: Vector, c: Vector) -> float:
    """Winding current [A]: its own state with inductance, else the settled one."""
    settled = motor_settled(by_voltage, command, v, a, c)
    return where(c[INDUCTANCE] > 0.0, a[CURRENT], settled)


@compiled
def dc_motor_effort(by_voltage: bool, command: float, v: float, a: Vector, c: Vector) -> float:
    """Effort at the joint [N·m] before friction: τ = N Kt i, or what the teeth pass on.

    i settles at clip((V' - Ke N v) / R(T), ±i_max(T)), see ``settled_current``, at once without
    inductance, else as in ``dc_motor_rates``. With play the teeth pass on ``contact_effort``.

    command [V] or [N·m at the joint], v joint velocity [rad/s], own states a (4,), constants c.
    """
    drive = c[GEAR] * c[KT] * motor_current(by_voltage, command, v, a, c)
    passed = contact_effort(a[GAP], a[ROTOR] - v, c[PLAY], c[STIFFNESS], c[DAMPING])
    return where(c[PLAY] > 0.0, passed, drive)


@compiled
def dc_motor_asked(by_voltage: bool, command: float, v: float, a: Vector, c: Vector) -> float:
    """Effort at the joint [N·m] that the command asks for, before any limit; settled current."""
    inner = brush_voltage(command, c[DROP], c[HALF])
    r, emf = winding_resistance(a, c), back_emf(v, a, c)
    current = asked_current(by_voltage, inner, command / c[GEAR], emf, c[KT], r)
    return c[GEAR] * c[KT] * current


@compiled
def dc_motor_rates(
    by_voltage: bool, command: float, v: float, a: Vector, c: Vector, rate: Vector, source: Vector
) -> None:
    """λ and n of ż = n - λ z for the four own states, into ``rate`` and ``source`` (4,).

    L di/dt = V' - e - R i, held within the limits:  λ = R / L,  n = λ i_settled;
    τ_th dT/dt = T_settled - T:  λ = 1 / τ_th,  n = λ T_settled;
    N² J dw/dt = N Kt i - N² b w - τ_teeth:  λ = (N² b + d) / (N² J), d where teeth touch;
    ds/dt = w - v.
    """
    r = winding_resistance(a, c)
    current = motor_current(by_voltage, command, v, a, c)
    settled = motor_settled(by_voltage, command, v, a, c)
    rate[CURRENT] = where(c[INDUCTANCE] > 0.0, r / c[INDUCTANCE], 0.0)
    source[CURRENT] = where(c[INDUCTANCE] > 0.0, rate[CURRENT] * settled, 0.0)
    hot = settled_temperature(current, r, c[AMBIENT], c[THERMAL])
    rate[TEMPERATURE] = where(c[THERMAL] > 0.0, 1.0 / c[THERMAL_TIME], 0.0)
    source[TEMPERATURE] = rate[TEMPERATURE] * hot
    square = c[GEAR] * c[GEAR]
    inertia = where(c[PLAY] > 0.0, square * c[ROTOR_INERTIA], 1.0)
    passed = contact_effort(a[GAP], a[ROTOR] - v, c[PLAY], c[STIFFNESS], c[DAMPING])
    damped = where(passed != 0.0, c[DAMPING], 0.0)
    drive = c[GEAR] * c[KT] * current - passed + damped * a[ROTOR]
    rate[ROTOR] = (square * c[VISCOUS] + damped) / inertia
    source[ROTOR] = drive / inertia
    rate[GAP] = 0.0
    source[GAP] = a[ROTOR] - v


@compiled
def dc_motor_dry(against: float, v: float, effort: float, c: Vector) -> float:
    """Largest dry friction at the joint [N·m] against motion along ``against`` (1 or -1).

    f = N f_stribeck(N v) + gear loss of the effort that passes through the gear. With play
    the motor's own friction acts on the rotor, not here.
    """
    level = c[GEAR] * stribeck_level(c[GEAR] * v, c[COULOMB], c[STICTION], c[STRIBECK])
    return where(c[PLAY] > 0.0, 0.0, level) + gear_loss(
        against * effort, c[EFFICIENCY], c[BACK_EFFICIENCY]
    )


@compiled
def rotor_after_friction(a: Vector, c: Vector, dt: float) -> None:
    """w⁺ = sgn(w) max(|w| - dt f / (N J), 0): a rotor that gear play leaves to itself; in place.

    f = f_stribeck(N w) at the shaft [N·m], J at the shaft; the one-joint case of
    ``friction.dry_velocity``.
    """
    level = stribeck_level(c[GEAR] * a[ROTOR], c[COULOMB], c[STICTION], c[STRIBECK])
    inertia = where(c[PLAY] > 0.0, c[GEAR] * c[ROTOR_INERTIA], 1.0)
    loss = where(c[PLAY] > 0.0, dt * level / inertia, 0.0)
    a[ROTOR] = a[ROTOR] - clip(a[ROTOR], -loss, loss)


class DcMotor(Actuator):
    """Brushed DC motor with gear; friction with stiction; optional own states.

    inductance > 0 adds the winding's current, thermal_resistance > 0 its temperature,
    backlash > 0 the rotor's speed and its gap to the joint. Raises InvalidValue for constants
    that contradict each other.
    """

    interfaces: ClassVar[tuple[str, ...]] = ("effort", "voltage")
    kernel: ClassVar[int] = 2
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("kt", None, "N·m/A", "torque constant", above=0),
        Parameter("ke", None, "V·s/rad", "back-EMF constant", lower=0),
        Parameter("resistance", None, "Ω", "winding resistance at 25 °C", above=0),
        Parameter("gear_ratio", 1.0, "1", "motor turns per joint turn", above=0),
        Parameter("supply_voltage", INF, "V", "largest terminal voltage", above=0),
        Parameter("current_limit", INF, "A", "largest winding current", above=0),
        Parameter("brush_drop", 0.0, "V", "brush drop at high voltage", lower=0),
        Parameter("brush_half_voltage", 1.0, "V", "voltage of half the brush drop", above=0),
        Parameter("inductance", 0.0, "H", "of the winding; 0: the current settles at once", 0.0),
        Parameter("efficiency", 1.0, "1", "of the gear, driven by the motor", above=0, upper=1),
        Parameter("back_efficiency", 1.0, "1", "of the gear, back-driven", above=0, upper=1),
        Parameter("rotor_inertia", 0.0, "kg·m²", "rotor inertia at the motor shaft", lower=0),
        Parameter("viscous_friction", 0.0, "N·m·s/rad", "at the motor shaft", lower=0),
        Parameter("coulomb_friction", 0.0, "N·m", "dry friction at the motor shaft", lower=0),
        Parameter("stiction", 0.0, "N·m", "break-away at the shaft; 0: as Coulomb", lower=0),
        Parameter("stribeck_velocity", 1.0, "rad/s", "of the shaft; stiction fades", above=0),
        Parameter("thermal_resistance", 0.0, "K/W", "winding to ambient; 0: stays cold", lower=0),
        Parameter("thermal_time_constant", 60.0, "s", "of the winding", above=0),
        Parameter("ambient_temperature", 25.0, "°C", "around the motor", lower=-273.15),
        Parameter("derating_temperature", INF, "°C", "above it less current is allowed"),
        Parameter("maximum_temperature", INF, "°C", "from it on no current is allowed"),
        Parameter("temperature_coefficient", 0.0039, "1/K", "of the resistance", lower=0),
        Parameter("backlash", 0.0, "rad", "play of the gear at the joint", lower=0),
        Parameter("gear_stiffness", 0.0, "N·m/rad", "of touching teeth, at the joint", lower=0),
        Parameter("gear_damping", 0.0, "N·m·s/rad", "of touching teeth, at the joint", lower=0),
    )

    def __init__(self, joint: str, effort_limit: float, constants: Mapping[str, float]) -> None:
        super().__init__(joint, effort_limit, constants)
        _refuse_contradictions(f"actuator of joint '{joint}'", self.constants)
        self._packed = np.array(self.packed())
        self._slots = list(self.slots)

    def effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Torque at the joint [N·m] for volts or N·m; raises UnknownName otherwise."""
        return dc_motor_effort(self._by_voltage(interface), value, v, self._own(act), self._packed)

    def computed_effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Torque at the joint [N·m] that the command asks for, before any limit."""
        return dc_motor_asked(self._by_voltage(interface), value, v, self._own(act), self._packed)

    @property
    def states(self) -> tuple[ActState, ...]:
        """Current, temperature, rotor speed and gap, as far as the constants call for them."""
        every = (
            ActState("current", "A"),
            ActState("temperature", "°C", self.constants["ambient_temperature"]),
            ActState("rotor_velocity", "rad/s", 0.0, 1),
            ActState("gap", "rad", 0.0, 2),
        )
        return tuple(every[slot] for slot in self.slots)

    @property
    def slots(self) -> tuple[int, ...]:
        """CURRENT, TEMPERATURE, ROTOR and GAP, those that ``states`` lists."""
        c = self.constants
        present = (c["inductance"], c["thermal_resistance"], c["backlash"], c["backlash"])
        return tuple(slot for slot, size in enumerate(present) if size > 0)

    def rates(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float]
    ) -> tuple[Sequence[float], Sequence[float]]:
        """λ and n of ż = n - λ z, see ``dc_motor_rates``."""
        rate, source = np.zeros(4), np.zeros(4)
        by_voltage, own = self._by_voltage(interface), self._own(act)
        dc_motor_rates(by_voltage, value, v, own, self._packed, rate, source)
        return rate[self._slots].tolist(), source[self._slots].tolist()

    def dry(self, v: float, effort: float) -> tuple[float, float]:
        """Largest dry friction at the joint [N·m] against forward and against backward motion."""
        return (
            dc_motor_dry(1.0, v, effort, self._packed),
            dc_motor_dry(-1.0, v, effort, self._packed),
        )

    def command_limit(self, interface: str) -> float:
        """The effort limit [N·m], or the supply voltage [V]."""
        return self.constants["supply_voltage"] if interface == "voltage" else self.effort_limit

    @property
    def electric_damping(self) -> float:
        """N² Kt Ke / Ra [N·m·s/rad], by which the back-EMF brakes."""
        c = self.constants
        return c["gear_ratio"] ** 2 * c["kt"] * c["ke"] / c["resistance"]

    @property
    def armature(self) -> float:
        """N² Jm [kg·m²]; none where play parts the rotor from the joint."""
        return 0.0 if self._play else self._squared("rotor_inertia")

    @property
    def viscous_friction(self) -> float:
        """N² fv [N·m·s/rad]; none where play parts the rotor from the joint."""
        return 0.0 if self._play else self._squared("viscous_friction")

    @property
    def dry_friction(self) -> float:
        """N max(fs, fc) [N·m]; none where play parts the rotor from the joint."""
        c = self.constants
        return 0.0 if self._play else c["gear_ratio"] * max(c["coulomb_friction"], c["stiction"])

    @property
    def rubs(self) -> bool:
        """Whether the joint feels dry friction of motor or gear."""
        c = self.constants
        return self.dry_friction > 0 or min(c["efficiency"], c["back_efficiency"]) < 1

    def packed(self) -> tuple[float, ...]:
        """All constants, in the order of ``parameters``."""
        return tuple(self.constants.values())

    @property
    def _play(self) -> bool:
        return self.constants["backlash"] > 0

    def _squared(self, name: str) -> float:
        return self.constants["gear_ratio"] ** 2 * self.constants[name]

    def _by_voltage(self, interface: str) -> bool:
        if interface not in self.interfaces:
            raise UnknownName("interface of actuator dc_motor", interface, self.interfaces)
        return interface == "voltage"

    def _own(self, act: Sequence[float]) -> Vector:
        """The four slots, filled with ``act``, or with the states at rest."""
        own = np.array([0.0, self.constants["ambient_temperature"], 0.0, 0.0])
        if len(act):
            own[self._slots] = act
        return own


def _refuse_contradictions(owner: str, c: Mapping[str, float]) -> None:
    if 0 < c["stiction"] < c["coulomb_friction"]:
        raise InvalidValue(
            f"{owner}: stiction = {c['stiction']:g} N·m: at least coulomb_friction ="
            f" {c['coulomb_friction']:g} N·m, or 0 for the same"
        )
    if c["backlash"] > 0 and (c["gear_stiffness"] == 0 or c["rotor_inertia"] == 0):
        raise InvalidValue(
            f"{owner}: backlash = {c['backlash']:g} rad needs gear_stiffness and rotor_inertia"
            f" above 0; given: {c['gear_stiffness']:g} N·m/rad, {c['rotor_inertia']:g} kg·m²"
        )
    if c["maximum_temperature"] < INF and not (
        c["derating_temperature"] < c["maximum_temperature"]
        and c["current_limit"] < INF
        and c["thermal_resistance"] > 0
    ):
        raise InvalidValue(
            f"{owner}: maximum_temperature = {c['maximum_temperature']:g} °C needs a"
            " derating_temperature below it, a current_limit and a thermal_resistance"
        )
