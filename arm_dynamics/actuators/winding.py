"""A motor's winding: brushes, resistance, the current it settles at, its limits and its heat."""

from __future__ import annotations

from arm_dynamics.scalar import INF, clip, compiled, maximum, sign, where

REFERENCE_TEMPERATURE = 25.0
"""Temperature [°C] at which the winding has its stated resistance."""


@compiled
def brush_voltage(voltage: float, drop: float, half: float) -> float:
    """Voltage left after the brushes: V' = V - sgn(V) Vmax (1 - 2^(-|V| / Vhalf)).

    V [V], drop Vmax [V], half Vhalf [V]. Source: DynaMechs, dmRevDCMotor.
    """
    share: float = 1.0 - 2.0 ** (-abs(voltage) / half)
    return voltage - sign(voltage) * drop * share


@compiled
def warm_resistance(resistance: float, coefficient: float, temperature: float) -> float:
    """R(T) = R (1 + α (T - 25 °C)).

    R [Ω] at 25 °C, α [1/K] (copper: 0.0039), T [°C]; returns [Ω].
    Source: IEC 60034-1 (2022), 8.6.2, for copper near room temperature.
    """
    return resistance * (1.0 + coefficient * (temperature - REFERENCE_TEMPERATURE))


@compiled
def derated_current(limit: float, temperature: float, start: float, end: float) -> float:
    """Current limit [A], whole up to T_start, none from T_end on, linear between.

    i_max(T) = i_max clip((T_end - T) / (T_end - T_start), 0, 1); no derating for T_end = ∞.
    """
    share = clip((end - temperature) / (end - start), 0.0, 1.0)
    return where(end < INF, limit * share, limit)


@compiled
def asked_current(
    by_voltage: bool, inner: float, torque: float, emf: float, kt: float, resistance: float
) -> float:
    """Settled current [A] that a command asks for, before any limit.

    i = (V' - e) / R by voltage,  i = τ / Kt by torque.

    V' ``inner`` [V] behind the brushes, e ``emf`` [V], τ [N·m] at the shaft, Kt [N·m/A], R [Ω].
    """
    return where(by_voltage, (inner - emf) / resistance, torque / kt)


@compiled
def settled_current(
    by_voltage: bool,
    command: float,
    emf: float,
    kt: float,
    resistance: float,
    supply: float,
    limit: float,
    drop: float,
    half: float,
) -> float:
    """Current [A] at which the winding settles at its present speed, within all limits.

    i = clip((V' - e) / R, ±i_max). By voltage, V' is what the brushes leave of the command
    held within the supply; by torque, a current loop sets V' = R τ / Kt + e within the supply.

    command [V] or [N·m at the shaft], e back-EMF [V], R [Ω], Kt [N·m/A], supply and drop [V].
    Source: Siciliano et al., Robotics (2009), eqs. 5.1-5.6.
    """
    reach = where(supply < INF, maximum(0.0, brush_voltage(supply, drop, half)), INF)
    given = brush_voltage(clip(command, -supply, supply), drop, half)
    looped = clip(resistance * command / kt + emf, -reach, reach)
    inner = where(by_voltage, given, looped)
    return clip((inner - emf) / resistance, -limit, limit)


@compiled
def settled_temperature(current: float, resistance: float, ambient: float, thermal: float) -> float:
    """Temperature [°C] at which the winding settles: T = T_ambient + R_th R i².

    i [A], R [Ω], R_th [K/W]; it gets there as ṫ = (T - t) / τ_th.
    Source: Maxon, Key information on maxon DC motors, "Thermal behaviour" (first-order model).
    """
    return ambient + thermal * resistance * current * current
