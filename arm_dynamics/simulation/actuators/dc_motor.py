"""Brushed DC motor with gear: voltage, or effort of a current loop, in; torque out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, nan, sqrt, tanh
from typing import ClassVar

import numpy as np

from arm_dynamics.core.arrays import Vector, check_float, check_vector
from arm_dynamics.core.compiled_math import INF
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.simulation.actuators import dc_motor_equations
from arm_dynamics.simulation.actuators.actuator import Actuator, ActuatorState, Inconsistency
from arm_dynamics.simulation.actuators.gearing import require_stable_tooth_contact
from arm_dynamics.simulation.actuators.winding import warm_resistance

PARAMETERS = (
    Parameter("kt", None, "N·m/A", "torque constant", above=0),
    Parameter("ke", None, "V·s/rad", "back-EMF constant", lower=0),
    Parameter("resistance", None, "Ω", "winding resistance at 25 °C", above=0),
    Parameter("gear_ratio", 1.0, "1", "motor turns per joint turn", above=0),
    Parameter("supply_voltage", INF, "V", "largest terminal voltage", above=0),
    Parameter("current_limit", INF, "A", "largest winding current", above=0),
    Parameter("brush_drop", 0.0, "V", "brush drop at high voltage", lower=0),
    Parameter("brush_half_voltage", 1.0, "V", "voltage of half the brush drop", above=0),
    Parameter("inductance", 0.0, "H", "of the winding; 0: no transient of the current", 0.0),
    Parameter("efficiency", 1.0, "1", "of the gear, driven: acts on N kt i", above=0, upper=1),
    Parameter(
        "back_efficiency", 1.0, "1", "of the gear, back-driven: acts on N kt i", above=0, upper=1
    ),
    Parameter("rotor_inertia", 0.0, "kg·m²", "rotor inertia at the motor shaft", lower=0),
    Parameter("viscous_friction", 0.0, "N·m·s/rad", "at the motor shaft", lower=0),
    Parameter("coulomb_friction", 0.0, "N·m", "dry friction at the motor shaft", lower=0),
    Parameter("stiction", 0.0, "N·m", "break-away at the shaft; 0: as Coulomb", lower=0),
    Parameter("stribeck_velocity", 1.0, "rad/s", "of the shaft; stiction fades", above=0),
    Parameter("thermal_resistance", 0.0, "K/W", "winding to ambient; 0: stays cold", lower=0),
    Parameter("thermal_time_constant", 60.0, "s", "of the winding", above=0),
    Parameter("ambient_temperature", 25.0, "°C", "around the motor", lower=-273.15),
    Parameter("derating_temperature", INF, "°C", "above it less current is allowed"),
    Parameter("max_temperature", INF, "°C", "from it on no current is allowed"),
    Parameter("temperature_coefficient", 0.0039, "1/K", "of the resistance", lower=0),
    Parameter("backlash", 0.0, "rad", "of the gear, at the joint", lower=0),
    Parameter("gear_stiffness", 0.0, "N·m/rad", "of touching teeth, at the joint", lower=0),
    Parameter("gear_damping", 0.0, "N·m·s/rad", "of touching teeth, at the joint", lower=0),
)


class DcMotor(Actuator):
    """Brushed DC motor with gear, friction with stiction and optional actuator states.

    inductance > 0 adds the winding current, thermal_resistance > 0 its temperature, backlash > 0
    the rotor velocity and its gap to the joint. The equations are in ``dc_motor_equations``. In SI
    units a motor that neither creates nor loses energy in its conversion has ke = kt; other
    values are accepted. Raises InvalidValue for constants that contradict each other.
    """

    interfaces: ClassVar[tuple[str, ...]] = ("effort", "voltage")
    kernel_id: ClassVar[int] = 2
    parameters: ClassVar[tuple[Parameter, ...]] = PARAMETERS

    def __init__(self, joint: str, effort_limit: float, constants: Mapping[str, float]) -> None:
        super().__init__(joint, effort_limit, constants)
        self._packed = np.array(self.kernel_constants())
        c = self.constants
        present = (c["inductance"], c["thermal_resistance"], c["backlash"], c["backlash"])
        self._slots = [slot for slot, size in enumerate(present) if size > 0]

    @classmethod
    def inconsistencies(cls, constants: Mapping[str, float]) -> Iterator[Inconsistency]:
        """Yield stiction below Coulomb, backlash without stiffness, derating without limits."""
        c = constants
        if 0 < c["stiction"] < c["coulomb_friction"]:
            problem = f"is below coulomb_friction = {c['coulomb_friction']:g} N·m"
            yield Inconsistency("stiction", problem, "allowed: at least as much, or 0 for the same")
        if c["backlash"] > 0:
            for name, unit in (("gear_stiffness", "N·m/rad"), ("rotor_inertia", "kg·m²")):
                if c[name] == 0:
                    remedy = f"give {name} above 0 {unit}, or no backlash"
                    yield Inconsistency("backlash", f"needs a {name}", remedy)
        start, end = c["derating_temperature"], c["max_temperature"]
        if end == INF and start < INF:
            remedy = "give max_temperature above it"
            yield Inconsistency("derating_temperature", "needs a max_temperature", remedy)
        if end == INF:
            return
        if not start < end:
            problem = f"is not above derating_temperature = {start:g} °C"
            yield Inconsistency("max_temperature", problem, "derating ends above where it begins")
        if c["current_limit"] == INF:
            remedy = "give current_limit, which falls to 0 there"
            yield Inconsistency("max_temperature", "needs a current_limit", remedy)
        if c["thermal_resistance"] == 0:
            remedy = "give thermal_resistance above 0 K/W"
            yield Inconsistency("max_temperature", "needs a winding that warms up", remedy)

    def effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Return the torque at the joint [N·m] for a command [V] or [N·m].

        Raises UnknownName for another interface, InvalidValue for a non-finite number.
        """
        return dc_motor_equations.dc_motor_effort(
            *self._kernel_arguments(interface, value, v, act), self._packed
        )

    def computed_effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Return the torque at the joint [N·m] of the command before any limit."""
        return dc_motor_equations.dc_motor_computed_effort(
            *self._kernel_arguments(interface, value, v, act), self._packed
        )

    def voltage_for(self, effort: float, v: float, temperature: float = 25.0) -> float:
        """Return the voltage [V] whose steady-state ``effort`` [N·m] is this, or the nearest.

        The inverse of ``effort`` without actuator states, for a winding of ``temperature`` [°C];
        v [rad/s]. See ``dc_motor_equations.voltage_for_effort``; ``effort_range`` returns the
        limits. Raises InvalidValue for a non-finite number.
        """
        effort, v = check_float("effort [N·m]", effort), check_float("v [rad/s]", v)
        temperature = check_float("temperature [°C]", temperature)
        return dc_motor_equations.voltage_for_effort(effort, v, temperature, self._packed)

    def voltage(self, interface: str, value: float, v: float, act: Sequence[float] = ()) -> float:
        """Return the motor voltage [V]: the command, or ``voltage_for`` the commanded effort.

        Within the supply; v [rad/s]. The transient of the winding is omitted.
        """
        if interface == "voltage":
            supply = self.constants["supply_voltage"]
            return min(max(value, -supply), supply)
        return self.voltage_for(
            value, v, float(self._slot_values(act)[dc_motor_equations.TEMPERATURE])
        )

    def temperature(self, act: Sequence[float] = ()) -> float:
        """Return the winding temperature [°C]; NaN without a thermal model."""
        thermal = dc_motor_equations.TEMPERATURE in self._slots
        return float(self._slot_values(act)[dc_motor_equations.TEMPERATURE]) if thermal else nan

    @property
    def continuous_effort(self) -> float:
        """N kt sqrt((T - T_a) / (R_th R(T))) [N·m] at T, where derating begins; inf without it."""
        c = self.constants
        hot = min(c["derating_temperature"], c["max_temperature"])
        if not c["thermal_resistance"] > 0 or hot == INF:
            return inf
        resistance = warm_resistance(c["resistance"], c["temperature_coefficient"], hot)
        rise = max(hot - c["ambient_temperature"], 0.0)
        current = sqrt(rise / (c["thermal_resistance"] * resistance))
        return c["gear_ratio"] * c["kt"] * min(current, c["current_limit"])

    def effort_range(self, v: float, temperature: float = 25.0) -> tuple[float, float]:
        """Return the smallest and largest steady-state effort [N·m].

        At speed v [rad/s] and winding ``temperature`` [°C].

        Supply voltage and current limit bound it; infinite without either.
        """
        v, temperature = check_float("v [rad/s]", v), check_float("temperature [°C]", temperature)
        return (
            dc_motor_equations.extreme_effort(-1.0, v, temperature, self._packed),
            dc_motor_equations.extreme_effort(1.0, v, temperature, self._packed),
        )

    @property
    def states(self) -> tuple[ActuatorState, ...]:
        """Current, temperature, rotor velocity and gap, as far as the constants require them."""
        every = (
            ActuatorState("current", "A"),
            ActuatorState("temperature", "°C", self.constants["ambient_temperature"]),
            ActuatorState("rotor_velocity", "rad/s", 0.0, 1),
            ActuatorState("gap", "rad", 0.0, 2),
        )
        return tuple(every[slot] for slot in self.kernel_slots)

    @property
    def kernel_slots(self) -> tuple[int, ...]:
        """CURRENT, TEMPERATURE, ROTOR and GAP, those that ``states`` lists."""
        return tuple(self._slots)

    def act_dot_terms(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float]
    ) -> tuple[Sequence[float], Sequence[float]]:
        """Return λ and n of ż = n - λ z, see ``dc_motor_act_dot_terms``."""
        decay, source = np.zeros(4), np.zeros(4)
        arguments = self._kernel_arguments(interface, value, v, act)
        dc_motor_equations.dc_motor_act_dot_terms(*arguments, self._packed, decay, source)
        return decay[self._slots].tolist(), source[self._slots].tolist()

    def dry_friction_bounds(self, v: float, effort: float) -> tuple[float, float]:
        """Return the largest dry friction [N·m] against forward and against backward motion."""
        return (
            dc_motor_equations.dc_motor_dry_friction(1.0, v, effort, self._packed),
            dc_motor_equations.dc_motor_dry_friction(-1.0, v, effort, self._packed),
        )

    def apply_internal_friction(
        self, before: Sequence[float], act: Sequence[float], decay: Sequence[float], dt: float
    ) -> Sequence[float]:
        """Return the states after dt [s] of rotor friction, see ``rotor_after_friction``."""
        values, rotor = self._slot_values(act), self._slots.index(dc_motor_equations.ROTOR)
        dc_motor_equations.rotor_after_friction(
            before[rotor], decay[rotor], values, self._packed, dt
        )
        after: list[float] = values[self._slots].tolist()
        return after

    def command_limit(self, interface: str) -> float:
        """Return the effort limit [N·m], or the supply voltage [V]."""
        return self.constants["supply_voltage"] if interface == "voltage" else self.effort_limit

    def step_damping(self, dt: float) -> float:
        """Return N² (fv + Kt Ke / R tanh(dt R / 2L)) [N·m·s/rad]; 0 with backlash.

        The hyperbolic tangent is the remaining factor of the back-EMF damping when the current is
        integrated exactly before the joint moves: a step is stable while dt step_damping < 2 M.
        """
        return (
            0.0 if self._has_backlash else self.viscous_friction + self._step_back_emf_damping(dt)
        )

    def winding_damping(self, dt: float) -> float:
        """Return the part of ``step_damping`` that acts through the current state."""
        has_current_state = self.constants["inductance"] > 0 and not self._has_backlash
        return self._step_back_emf_damping(dt) if has_current_state else 0.0

    def require_stable(self, compliance: float, dt: float) -> None:
        """Raise InvalidValue if the tooth contact is unstable with a step of dt [s]."""
        c = self.constants
        if self._has_backlash:
            braking = self._step_back_emf_damping(dt) if c["inductance"] > 0 else 0.0
            rotor = self._reflected("rotor_inertia")
            stiffness, damping = c["gear_stiffness"], c["gear_damping"]
            require_stable_tooth_contact(
                self.joint, stiffness, damping, rotor, compliance, braking, dt
            )

    @property
    def back_emf_damping(self) -> float:
        """N² Kt Ke / R [N·m·s/rad]; 0 with backlash, where the back-EMF acts on the rotor."""
        return 0.0 if self._has_backlash else self._full_back_emf_damping

    @property
    def armature(self) -> float:
        """N² Jm [kg·m²]; 0 with backlash, where the rotor is a state."""
        return 0.0 if self._has_backlash else self._reflected("rotor_inertia")

    @property
    def viscous_friction(self) -> float:
        """N² fv [N·m·s/rad]; 0 with backlash, where the rotor is a state."""
        return 0.0 if self._has_backlash else self._reflected("viscous_friction")

    @property
    def breakaway_effort(self) -> float:
        """N max(fs, fc) [N·m]; 0 with backlash, where the rotor is a state."""
        return 0.0 if self._has_backlash else self.constants["gear_ratio"] * self._shaft_breakaway

    @property
    def has_dry_friction(self) -> bool:
        """Whether motor or gear cause dry friction at the joint."""
        c = self.constants
        return self.breakaway_effort > 0 or min(c["efficiency"], c["back_efficiency"]) < 1

    @property
    def has_internal_friction(self) -> bool:
        """Whether dry friction acts on a rotor behind backlash."""
        return self._has_backlash and self._shaft_breakaway > 0

    def kernel_constants(self) -> tuple[float, ...]:
        """Return all constants, in the order of ``parameters``."""
        return tuple(self.constants.values())

    @property
    def _has_backlash(self) -> bool:
        return dc_motor_equations.GAP in self._slots  # also where a batch varies the constant

    @property
    def _shaft_breakaway(self) -> float:
        return max(self.constants["coulomb_friction"], self.constants["stiction"])

    def _reflected(self, name: str) -> float:
        ratio = self.constants["gear_ratio"]
        return ratio * ratio * self.constants[name]  # infinite where a power would overflow

    def _step_back_emf_damping(self, dt: float) -> float:
        c = self.constants
        lag = 2 * c["inductance"] / c["resistance"]
        return self._full_back_emf_damping * (tanh(dt / lag) if lag > 0 else 1.0)

    @property
    def _full_back_emf_damping(self) -> float:
        return self._reflected("kt") * self.constants["ke"] / self.constants["resistance"]

    def _kernel_arguments(
        self, interface: str, value: float, v: float, act: Sequence[float]
    ) -> tuple[bool, float, float, Vector]:
        """Return the compiled equations' arguments: by voltage?, command, velocity, states."""
        if interface not in self.interfaces:
            raise UnknownName("interface of actuator dc_motor", interface, self.interfaces)
        u, values = check_float(f"{interface} command", value), self._slot_values(act)
        return interface == "voltage", u, check_float("v [rad/s]", v), values

    def _slot_values(self, act: Sequence[float]) -> Vector:
        """Return the four slots, filled with ``act`` or with the initial states."""
        values = np.array([0.0, self.constants["ambient_temperature"], 0.0, 0.0])
        if np.size(act):
            values[self._slots] = check_vector("act", act, len(self._slots))
        return values
