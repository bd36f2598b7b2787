"""Equations of the DC motor as compiled functions of command, velocity, states and constants.

Actuator states ``act`` (4,) are in the slots CURRENT, TEMPERATURE, ROTOR, GAP; those that a motor
does not have are ignored. Constants ``c`` are in the order of ``dc_motor.PARAMETERS``.
``voltage_for_effort`` is the inverse of the steady-state effort.
"""

from __future__ import annotations

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import (
    BOOLEAN,
    INF,
    NUMBER,
    VECTOR,
    clip,
    compiled,
    compiled_for,
    exp,
    where,
)
from arm_dynamics.simulation.actuators.gearing import contact_effort, gear_loss
from arm_dynamics.simulation.actuators.winding import (
    brush_voltage,
    derated_current,
    effective_voltage,
    requested_current,
    settled_current,
    settled_temperature,
    terminal_voltage,
    warm_resistance,
)
from arm_dynamics.simulation.friction import stribeck_friction

KT, KE, RESISTANCE, GEAR, SUPPLY, CURRENT_LIMIT, DROP, HALF, INDUCTANCE = range(9)
EFFICIENCY, BACK_EFFICIENCY, ROTOR_INERTIA, VISCOUS, COULOMB, STICTION, STRIBECK = range(9, 16)
THERMAL, THERMAL_TIME, AMBIENT, DERATING, MAX_TEMPERATURE, TEMPERATURE_COEFFICIENT = range(16, 22)
BACKLASH, STIFFNESS, DAMPING = range(22, 25)

CURRENT, TEMPERATURE, ROTOR, GAP = range(4)
"""Slots of the actuator states: winding current [A], temperature [°C], rotor speed over the gear
ratio [rad/s], rotor angle over the gear ratio minus the joint's [rad]."""


@compiled
def winding_resistance(act: Vector, c: Vector) -> float:
    """Return R [Ω] at the winding temperature; constant without a thermal model."""
    warm = warm_resistance(c[RESISTANCE], c[TEMPERATURE_COEFFICIENT], act[TEMPERATURE])
    return where(c[THERMAL] > 0.0, warm, c[RESISTANCE])


@compiled
def back_emf(v: float, act: Vector, c: Vector) -> float:
    """Return e = Ke N v [V], with the rotor velocity for v with backlash."""
    emf: float = c[KE] * c[GEAR] * where(c[BACKLASH] > 0.0, act[ROTOR], v)
    return emf


@compiled
def current_limit(act: Vector, c: Vector) -> float:
    """Return the largest current [A] at the winding temperature."""
    return derated_current(c[CURRENT_LIMIT], act[TEMPERATURE], c[DERATING], c[MAX_TEMPERATURE])


@compiled_for(BOOLEAN, NUMBER, NUMBER, VECTOR, VECTOR)
def settled_motor_current(
    by_voltage: bool, command: float, v: float, act: Vector, c: Vector
) -> float:
    """Return the steady-state current [A] for ``command`` [V, or N·m at the joint]."""
    r, emf = winding_resistance(act, c), back_emf(v, act, c)
    looped = r * (command / c[GEAR]) / c[KT] + emf
    inner = effective_voltage(by_voltage, command, looped, c[SUPPLY], c[DROP], c[HALF])
    return settled_current(inner, emf, r, current_limit(act, c))


@compiled
def motor_current(by_voltage: bool, command: float, v: float, act: Vector, c: Vector) -> float:
    """Return the winding current [A]: the state with inductance, else the steady-state one."""
    settled = settled_motor_current(by_voltage, command, v, act, c)
    return where(c[INDUCTANCE] > 0.0, act[CURRENT], settled)


@compiled
def dc_motor_effort(by_voltage: bool, command: float, v: float, act: Vector, c: Vector) -> float:
    """Return the effort at the joint [N·m] before friction: τ = N Kt i, or the tooth contact.

    i tends to clip((V' - Ke N v) / R(T), ±i_max(T)), see ``settled_current``: without a transient
    if the inductance is 0, else as in ``dc_motor_act_dot_terms``. With backlash τ is
    ``contact_effort``.

    command [V] or [N·m at the joint], v joint velocity [rad/s].
    """
    drive = c[GEAR] * c[KT] * motor_current(by_voltage, command, v, act, c)
    passed = contact_effort(act[GAP], act[ROTOR] - v, c[BACKLASH], c[STIFFNESS], c[DAMPING])
    return where(c[BACKLASH] > 0.0, passed, drive)


@compiled
def dc_motor_computed_effort(
    by_voltage: bool, command: float, v: float, act: Vector, c: Vector
) -> float:
    """Return the steady-state effort at the joint [N·m] of the command before any limit."""
    inner = brush_voltage(command, c[DROP], c[HALF])
    r, emf = winding_resistance(act, c), back_emf(v, act, c)
    current = requested_current(by_voltage, inner, command / c[GEAR], emf, c[KT], r)
    effort: float = c[GEAR] * c[KT] * current
    return effort


@compiled
def back_emf_damping(by_voltage: bool, command: float, v: float, act: Vector, c: Vector) -> float:
    """Return -∂(N Kt i_settled)/∂v [N·m·s/rad], the back-EMF damping at steady-state current.

    N² Kt Ke / R where the voltage is given; 0 where a limit or a current loop holds the current.
    """
    r, emf = winding_resistance(act, c), back_emf(v, act, c)
    looped = r * (command / c[GEAR]) / c[KT] + emf
    inner = effective_voltage(by_voltage, command, looped, c[SUPPLY], c[DROP], c[HALF])
    slope = c[GEAR] * c[GEAR] * c[KT] * c[KE] / r
    slope = where(abs(inner - emf) < r * current_limit(act, c), slope, 0.0)
    return where(by_voltage, slope, where(inner == looped, 0.0, slope))


@compiled
def winding_damping(
    by_voltage: bool, command: float, v: float, act: Vector, c: Vector, dt: float
) -> float:
    """Return -∂τ(i⁺)/∂v [N·m·s/rad] of a current i⁺ integrated exactly over dt at v.

    N² Kt Ke / R (1 - e^(-dt R/L)), see ``back_emf_damping``; 0 without inductance and with
    backlash.
    """
    inductance = where(c[INDUCTANCE] > 0.0, c[INDUCTANCE], 1.0)
    fraction = 1.0 - exp(-dt * winding_resistance(act, c) / inductance)
    own = where(c[INDUCTANCE] > 0.0, where(c[BACKLASH] > 0.0, 0.0, fraction), 0.0)
    return own * back_emf_damping(by_voltage, command, v, act, c)


@compiled
def dc_motor_step_damping(
    by_voltage: bool, command: float, v: float, act: Vector, c: Vector, dt: float
) -> float:
    """Return -∂τ/∂v [N·m·s/rad] of the effort at the joint within a step of dt [s].

    That of the steady-state current, or ``winding_damping``; with backlash that of the tooth
    contact.
    """
    settled = where(c[INDUCTANCE] > 0.0, 0.0, back_emf_damping(by_voltage, command, v, act, c))
    winding = winding_damping(by_voltage, command, v, act, c, dt)
    passed = contact_effort(act[GAP], act[ROTOR] - v, c[BACKLASH], c[STIFFNESS], c[DAMPING])
    teeth = where(passed != 0.0, c[DAMPING], 0.0)
    return where(c[BACKLASH] > 0.0, teeth, settled + winding)


@compiled
def dc_motor_act_dot_terms(
    by_voltage: bool,
    command: float,
    v: float,
    act: Vector,
    c: Vector,
    decay: Vector,
    source: Vector,
) -> None:
    """Write λ and n of ż = n - λ z of the four states into ``decay`` and ``source`` (4,).

    L di/dt = V' - e - R i, held within the limits:  λ = R / L,  n = λ i_settled;
    τ_th dT/dt = T_settled - T:  λ = 1 / τ_th,  n = λ T_settled;
    N² J dw/dt = N Kt i - N² b w - τ_teeth:  N² J λ = N² b + d where teeth touch + back-EMF;
    ds/dt = w - v.

    Source: B. Siciliano et al., Robotics (2009), chapter 5, for winding and rotor.
    """
    current = motor_current(by_voltage, command, v, act, c)
    _winding_act_dot_terms(by_voltage, command, v, current, act, c, decay, source)
    square = c[GEAR] * c[GEAR]
    inertia = where(c[BACKLASH] > 0.0, square * c[ROTOR_INERTIA], 1.0)
    passed = contact_effort(act[GAP], act[ROTOR] - v, c[BACKLASH], c[STIFFNESS], c[DAMPING])
    emf = where(c[INDUCTANCE] > 0.0, 0.0, back_emf_damping(by_voltage, command, v, act, c))
    linear = where(passed != 0.0, c[DAMPING], 0.0) + emf
    decay[ROTOR] = (square * c[VISCOUS] + linear) / inertia
    source[ROTOR] = (c[GEAR] * c[KT] * current - passed + linear * act[ROTOR]) / inertia
    decay[GAP] = 0.0
    source[GAP] = act[ROTOR] - v


@compiled
def _winding_act_dot_terms(
    by_voltage: bool,
    command: float,
    v: float,
    current: float,
    act: Vector,
    c: Vector,
    decay: Vector,
    source: Vector,
) -> None:
    r, settled = winding_resistance(act, c), settled_motor_current(by_voltage, command, v, act, c)
    inductance = where(c[INDUCTANCE] > 0.0, c[INDUCTANCE], 1.0)
    decay[CURRENT] = where(c[INDUCTANCE] > 0.0, r / inductance, 0.0)
    source[CURRENT] = decay[CURRENT] * settled
    hot = settled_temperature(current, r, c[AMBIENT], c[THERMAL])
    decay[TEMPERATURE] = where(c[THERMAL] > 0.0, 1.0 / c[THERMAL_TIME], 0.0)
    source[TEMPERATURE] = decay[TEMPERATURE] * hot


@compiled_for(NUMBER, NUMBER, NUMBER, VECTOR)
def dc_motor_dry_friction(against: float, v: float, effort: float, c: Vector) -> float:
    """Return the largest dry friction at the joint [N·m] against motion along ``against`` (±1).

    f = N f_stribeck(N v) + gear loss of the effort through the gear. With backlash the friction
    of the motor acts on the rotor, not here. Without backlash the rotor's friction and inertia
    count as behind the gear: the gear loses a fraction of N Kt i.
    """
    level = c[GEAR] * stribeck_friction(c[GEAR] * v, c[COULOMB], c[STICTION], c[STRIBECK])
    return where(c[BACKLASH] > 0.0, 0.0, level) + gear_loss(
        against * effort, c[EFFICIENCY], c[BACK_EFFICIENCY]
    )


@compiled
def rotor_after_friction(before: float, decay: float, act: Vector, c: Vector, dt: float) -> None:
    """Apply dry friction f = f_stribeck(N w) [N·m at the shaft] to a rotor behind backlash.

    w⁺ = w - clip(w, ±f h / (N J)),  s⁺ = s + dt (w⁺ - w),  h = (1 - e^(-λ dt)) / λ; in place.

    λ ``decay`` [1/s] is the rate with which the step integrated w. ``before`` is w at the start of
    the step: breakaway applies at rest and at a reversal of the rotor. This is the one-joint case
    of ``friction.velocity_after_dry_friction``.
    """
    speed = where(before * act[ROTOR] > 0.0, before, 0.0)
    level = stribeck_friction(c[GEAR] * speed, c[COULOMB], c[STICTION], c[STRIBECK])
    x = decay * dt
    reach = where(x > 1e-5, (1.0 - exp(-x)) / where(x > 0.0, x, 1.0), 1.0 - 0.5 * x)
    inertia = where(c[BACKLASH] > 0.0, c[GEAR] * c[ROTOR_INERTIA], 1.0)
    most = where(c[BACKLASH] > 0.0, dt * reach * level / inertia, 0.0)
    loss = clip(act[ROTOR], -most, most)
    act[ROTOR] = act[ROTOR] - loss
    act[GAP] = act[GAP] - dt * loss


@compiled_for(NUMBER, NUMBER, NUMBER, VECTOR)
def voltage_for_effort(effort: float, v: float, temperature: float, c: Vector) -> float:
    """Return the voltage of a steady-state effort.

    V = V(V'),  V' = clip(R i + Ke N v, ±V'(supply)),  i = clip(τ / (N Kt), ±i_max(T)).

    effort τ [N·m] at the joint before friction, v joint velocity [rad/s], winding temperature
    [°C], constants c; returns [V]. V(V') is ``winding.terminal_voltage``.
    The steady-state effort at V is τ, or the nearest within supply and current limit; if the
    brush drop exceeds the supply, V is 0.
    """
    r = warm_resistance(c[RESISTANCE], c[TEMPERATURE_COEFFICIENT], temperature)
    limit = derated_current(c[CURRENT_LIMIT], temperature, c[DERATING], c[MAX_TEMPERATURE])
    desired = r * clip(effort / (c[GEAR] * c[KT]), -limit, limit) + c[KE] * c[GEAR] * v
    inner = effective_voltage(False, 0.0, desired, c[SUPPLY], c[DROP], c[HALF])
    return clip(terminal_voltage(inner, c[DROP], c[HALF]), -c[SUPPLY], c[SUPPLY])


@compiled
def effort_of_voltage(voltage: float, v: float, temperature: float, c: Vector) -> float:
    """Return the steady-state effort [N·m] of ``voltage`` [V]; see ``voltage_for_effort``.

    τ = N Kt clip((V'(clip(V, ±supply)) - Ke N v) / R(T), ±i_max(T)), at the winding temperature
    [°C] that is given, regardless of thermal model and backlash.
    """
    r = warm_resistance(c[RESISTANCE], c[TEMPERATURE_COEFFICIENT], temperature)
    limit = derated_current(c[CURRENT_LIMIT], temperature, c[DERATING], c[MAX_TEMPERATURE])
    inner = effective_voltage(True, voltage, 0.0, c[SUPPLY], c[DROP], c[HALF])
    effort: float = c[GEAR] * c[KT] * settled_current(inner, c[KE] * c[GEAR] * v, r, limit)
    return effort


@compiled_for(NUMBER, NUMBER, NUMBER, VECTOR)
def extreme_effort(direction: float, v: float, temperature: float, c: Vector) -> float:
    """Return the largest steady-state effort [N·m] along ``direction`` (±1) at v [rad/s].

    τ = N Kt clip((±V'(supply) - Ke N v) / R, ±i_max(T)).
    """
    r = warm_resistance(c[RESISTANCE], c[TEMPERATURE_COEFFICIENT], temperature)
    limit = derated_current(c[CURRENT_LIMIT], temperature, c[DERATING], c[MAX_TEMPERATURE])
    reach = effective_voltage(False, 0.0, direction * INF, c[SUPPLY], c[DROP], c[HALF])
    effort: float = c[GEAR] * c[KT] * settled_current(reach, c[KE] * c[GEAR] * v, r, limit)
    return effort
