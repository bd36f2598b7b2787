"""Winding of a motor: brushes, resistance, steady-state current, limits and temperature."""

from __future__ import annotations

from arm_dynamics.core.compiled_math import INF, clip, compiled, maximum, minimum, sign, where

REFERENCE_TEMPERATURE = 25.0
"""Temperature [°C] at which the winding has its stated resistance."""
MIN_RESISTANCE_FRACTION = 0.1
"""Smallest fraction of the stated resistance: the linear model reaches zero near -230 °C."""
HOTTER_THAN_ANY = 1e9
"""Temperature [°C] that stands for no limit."""
NEWTON_STEPS = 60


@compiled
def brush_voltage(voltage: float, drop: float, half: float) -> float:
    """Return the voltage behind the brushes: V' = V - sgn(V) Vmax (1 - 2^(-|V| / Vhalf)).

    V [V], drop Vmax [V], half Vhalf [V]. Where Vmax ln 2 > Vhalf the drop exceeds small voltages,
    and V' opposes V there: the equation is kept as published. Source: DynaMechs, dmRevDCMotor.
    """
    fraction: float = 1.0 - 2.0 ** (-abs(voltage) / half)
    return voltage - sign(voltage) * drop * fraction


@compiled
def terminal_voltage(inner: float, drop: float, half: float) -> float:
    """Inverse of ``brush_voltage``: the voltage V of largest |V| with V'(V) = ``inner``; 0 for 0.

    V = |V'| + Vmax (1 - 2^(-V / Vhalf)) by Newton's method from V = |V'| + Vmax. V' is convex
    there and the start lies right of the root, so that every step stays right of it. Where V'
    is not monotone (Vmax ln 2 > Vhalf) this is the rising branch: no V between 0 and its foot.
    """
    size = abs(inner)
    guess = size + drop
    for _ in range(NEWTON_STEPS):
        fading = drop * 2.0 ** (-guess / half)
        slope = 1.0 - fading * 0.6931471805599453 / half
        over = guess - drop + fading - size
        guess = guess - where(slope > 0.0, over / where(slope > 0.0, slope, 1.0), 0.0)
    return sign(inner) * maximum(guess, size)  # |V| >= |V'| despite rounding


@compiled
def warm_resistance(resistance: float, coefficient: float, temperature: float) -> float:
    """Return R(T) = R max(1 + α (T - 25 °C), 0.1).

    R [Ω] at 25 °C, α [1/K] (copper: 0.0039), T [°C]; returns [Ω].
    Source: maxon, Key information on DC motors, with its α of copper.
    """
    factor = 1.0 + coefficient * (temperature - REFERENCE_TEMPERATURE)
    return resistance * maximum(factor, MIN_RESISTANCE_FRACTION)


@compiled
def derated_current(limit: float, temperature: float, start: float, end: float) -> float:
    """Return the current limit [A]: full up to T_start, 0 from T_end, linear in between.

    i_max(T) = i_max clip((T_end - T) / (T_end - T_start), 0, 1); no derating for T_end = ∞.
    """
    top, bottom = minimum(end, HOTTER_THAN_ANY), minimum(start, 0.5 * HOTTER_THAN_ANY)
    scale = clip((top - temperature) / (top - bottom), 0.0, 1.0)
    return where(end < INF, limit * scale, limit)


@compiled
def requested_current(
    by_voltage: bool, inner: float, torque: float, emf: float, kt: float, resistance: float
) -> float:
    """Return the steady-state current [A] of a command before any limit.

    i = (V' - e) / R by voltage,  i = τ / Kt by torque.

    V' ``inner`` [V] behind the brushes, e ``emf`` [V], τ [N·m] at the shaft, Kt [N·m/A], R [Ω].
    """
    return where(by_voltage, (inner - emf) / resistance, torque / kt)


@compiled
def effective_voltage(
    by_voltage: bool, command: float, looped: float, supply: float, drop: float, half: float
) -> float:
    """Return V' [V] behind the brushes, of a command within the supply.

    V' = V'(clip(V, ±supply)) by voltage;  V' = clip(``looped``, ±V'(supply)) by torque, where
    ``looped`` = R τ / Kt + e is the voltage of a current loop.
    """
    voltage = where(by_voltage, clip(command, -supply, supply), supply)
    inner = brush_voltage(voltage, drop, half)
    reach = maximum(inner, 0.0)  # by torque: the brush drop may exceed the supply
    return where(by_voltage, inner, clip(looped, -reach, reach))


@compiled
def settled_current(inner: float, emf: float, resistance: float, limit: float) -> float:
    """Return the steady-state current [A]: i = clip((V' - e) / R, ±i_max).

    V' ``inner`` [V], e ``emf`` [V], R [Ω], i_max ``limit`` [A]. The amplifier limits the
    voltage so that the current settles at the limit, driving and braking.
    Source: B. Siciliano et al., Robotics (2009), chapter 5, for the winding.
    """
    return clip((inner - emf) / resistance, -limit, limit)


@compiled
def settled_temperature(current: float, resistance: float, ambient: float, thermal: float) -> float:
    """Return the steady-state temperature [°C]: T = T_ambient + R_th R i².

    i [A], R [Ω], R_th [K/W]; it gets there as τ_th dt/dτ = T - t, a first-order model.
    Source: maxon, Key information on DC motors, with its two time constants taken as one.
    """
    return ambient + thermal * resistance * current * current
