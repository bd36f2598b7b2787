"""The DC motor's settled law the other way round: from an effort to the voltage that gives it."""

from __future__ import annotations

from arm_dynamics.actuators.dc_motor_law import (
    COPPER,
    CURRENT_LIMIT,
    DERATING,
    DROP,
    GEAR,
    HALF,
    HOTTEST,
    KE,
    KT,
    RESISTANCE,
    SUPPLY,
)
from arm_dynamics.actuators.winding import (
    derated_current,
    driving_voltage,
    settled_current,
    terminal_voltage,
    warm_resistance,
)
from arm_dynamics.arrays import Vector
from arm_dynamics.scalar import INF, NUMBER, VECTOR, clip, compiled, compiled_for


@compiled_for(NUMBER, NUMBER, NUMBER, VECTOR)
def voltage_for_effort(effort: float, v: float, temperature: float, c: Vector) -> float:
    """V = V(V'),  V' = clip(R i + Ke N v, ±V'(supply)),  i = clip(τ / (N Kt), ±i_max(T)).

    effort τ [N·m] at the joint before friction, v joint velocity [rad/s], winding temperature
    [°C], constants c of ``dc_motor_law``; returns [V]. V(V') is ``winding.terminal_voltage``.
    The settled effort at V is τ, or the nearest that supply and current limit let be reached;
    brushes that eat the whole supply leave 0 V.
    """
    r = warm_resistance(c[RESISTANCE], c[COPPER], temperature)
    limit = derated_current(c[CURRENT_LIMIT], temperature, c[DERATING], c[HOTTEST])
    wanted = r * clip(effort / (c[GEAR] * c[KT]), -limit, limit) + c[KE] * c[GEAR] * v
    inner = driving_voltage(False, 0.0, wanted, c[SUPPLY], c[DROP], c[HALF])
    return clip(terminal_voltage(inner, c[DROP], c[HALF]), -c[SUPPLY], c[SUPPLY])


@compiled
def effort_of_voltage(voltage: float, v: float, temperature: float, c: Vector) -> float:
    """Settled effort [N·m] of ``voltage`` [V]: what ``voltage_for_effort`` inverts.

    τ = N Kt clip((V'(clip(V, ±supply)) - Ke N v) / R(T), ±i_max(T)), at the winding temperature
    [°C] that is given, whether the motor has a thermal model or play, or not.
    """
    r = warm_resistance(c[RESISTANCE], c[COPPER], temperature)
    limit = derated_current(c[CURRENT_LIMIT], temperature, c[DERATING], c[HOTTEST])
    inner = driving_voltage(True, voltage, 0.0, c[SUPPLY], c[DROP], c[HALF])
    effort: float = c[GEAR] * c[KT] * settled_current(inner, c[KE] * c[GEAR] * v, r, limit)
    return effort


@compiled_for(NUMBER, NUMBER, NUMBER, VECTOR)
def extreme_effort(way: float, v: float, temperature: float, c: Vector) -> float:
    """Largest settled effort [N·m] along ``way`` (1 or -1) at speed v [rad/s].

    τ = N Kt clip((±V'(supply) - Ke N v) / R, ±i_max(T)).
    """
    r = warm_resistance(c[RESISTANCE], c[COPPER], temperature)
    limit = derated_current(c[CURRENT_LIMIT], temperature, c[DERATING], c[HOTTEST])
    reach = driving_voltage(False, 0.0, way * INF, c[SUPPLY], c[DROP], c[HALF])
    effort: float = c[GEAR] * c[KT] * settled_current(reach, c[KE] * c[GEAR] * v, r, limit)
    return effort
