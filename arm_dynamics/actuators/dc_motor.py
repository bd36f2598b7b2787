"""A brushed DC motor behind a gear: volts (or a current loop's effort) in, torque out."""

from __future__ import annotations

from typing import ClassVar

from arm_dynamics.actuators.base import Actuator
from arm_dynamics.errors import UnknownName
from arm_dynamics.parameters import Parameter
from arm_dynamics.scalar import INF, clip, compiled, maximum, sign


@compiled
def brush_voltage(voltage: float, drop: float, half: float) -> float:
    """Voltage left after the brushes: V' = V - sgn(V) Vmax (1 - 2^(-|V| / Vhalf)).

    V [V], drop Vmax [V], half Vhalf [V]. Source: DynaMechs, dmRevDCMotor.
    """
    share: float = 1.0 - 2.0 ** (-abs(voltage) / half)
    return voltage - sign(voltage) * drop * share


@compiled
def dc_motor_effort(
    by_voltage: bool,
    command: float,
    v: float,
    kt: float,
    ke: float,
    resistance: float,
    gear: float,
    supply: float,
    current_limit: float,
    drop: float,
    half: float,
) -> float:
    """Torque at the joint of a DC motor with quasi-static current.

    w = N v,  i = clip((V' - Ke w) / Ra, ±i_max),  tau = N Kt i.

    By voltage V' is what the brushes leave of the command, held within the supply. By effort
    a current loop sets V' = Ra tau / (N Kt) + Ke w, as far as the supply reaches.

    command [V] or [N·m], v joint velocity [rad/s]; constants at the motor's shaft.
    Source: Siciliano et al., Robotics (2009), eqs. 5.1-5.6; brushes as in ``brush_voltage``.
    """
    back_emf = ke * gear * v
    if by_voltage:
        inner = brush_voltage(clip(command, -supply, supply), drop, half)
    else:
        reach = maximum(0.0, brush_voltage(supply, drop, half)) if supply < INF else INF
        inner = clip(resistance * command / (gear * kt) + back_emf, -reach, reach)
    current = clip((inner - back_emf) / resistance, -current_limit, current_limit)
    return gear * kt * current


class DcMotor(Actuator):
    """Brushed DC motor with gear, supply and current limits, brush drop and friction."""

    interfaces: ClassVar[tuple[str, ...]] = ("effort", "voltage")
    kernel: ClassVar[int] = 2
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("kt", None, "N·m/A", "torque constant", above=0),
        Parameter("ke", None, "V·s/rad", "back-EMF constant", lower=0),
        Parameter("resistance", None, "Ω", "winding resistance", above=0),
        Parameter("gear_ratio", 1.0, "1", "motor turns per joint turn", above=0),
        Parameter("supply_voltage", INF, "V", "largest terminal voltage", above=0),
        Parameter("current_limit", INF, "A", "largest winding current", above=0),
        Parameter("brush_drop", 0.0, "V", "brush drop at high voltage", lower=0),
        Parameter("brush_half_voltage", 1.0, "V", "voltage of half the brush drop", above=0),
        Parameter("rotor_inertia", 0.0, "kg·m²", "rotor inertia at the motor shaft", lower=0),
        Parameter("viscous_friction", 0.0, "N·m·s/rad", "at the motor shaft", lower=0),
        Parameter("coulomb_friction", 0.0, "N·m", "dry friction at the motor shaft", lower=0),
    )

    def effort(self, interface: str, value: float, q: float, v: float) -> float:
        """Torque at the joint [N·m] for volts or N·m; raises UnknownName otherwise."""
        if interface not in self.interfaces:
            raise UnknownName("interface of actuator dc_motor", interface, self.interfaces)
        return dc_motor_effort(interface == "voltage", value, v, *self.packed())

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
        """N² Jm [kg·m²]."""
        return self.constants["gear_ratio"] ** 2 * self.constants["rotor_inertia"]

    @property
    def viscous_friction(self) -> float:
        """N² fv [N·m·s/rad]."""
        return self.constants["gear_ratio"] ** 2 * self.constants["viscous_friction"]

    @property
    def dry_friction(self) -> float:
        """N fc [N·m]."""
        return self.constants["gear_ratio"] * self.constants["coulomb_friction"]

    def packed(self) -> tuple[float, ...]:
        """The electrical constants, in the order of ``dc_motor_effort``."""
        return tuple(self.constants[p.name] for p in self.parameters[:8])
