"""The DC motor term by term, in an arm, against closed forms; and the sum of all terms."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from conftest import chain, examples, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from test_plant import table

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.audit.fault import UrdfRejected
from arm_dynamics.simulation.actuators.data_sheet import DataSheet
from arm_dynamics.simulation.actuators.dc_motor import DcMotor
from arm_dynamics.simulation.actuators.winding import (
    brush_voltage,
    terminal_voltage,
    warm_resistance,
)
from arm_dynamics.simulation.plant import Plant

MASS = 0.02 + 0.25**2
"""Inertia of the joint of ``chain({})`` about its axis [kg·m²]."""
BASIC = {"kt": 0.5, "ke": 0.5, "resistance": 2.0}
EVERYTHING = BASIC | {
    "gear_ratio": 3.0, "supply_voltage": 24.0, "current_limit": 8.0, "brush_drop": 0.5,
    "brush_half_voltage": 0.6, "inductance": 1e-3, "efficiency": 0.9, "back_efficiency": 0.8,
    "rotor_inertia": 2e-3, "viscous_friction": 1e-3, "coulomb_friction": 0.02, "stiction": 0.04,
    "stribeck_velocity": 2.0, "thermal_resistance": 20.0, "thermal_time_constant": 0.5,
    "derating_temperature": 60.0, "max_temperature": 120.0, "backlash": 0.02,
    "gear_stiffness": 200.0, "gear_damping": 0.5,
}  # fmt: skip


def turntable(**constants):
    """Return an arm with one vertical axis, without gravity torque."""
    arm = chain({"axis": "0 0 1", "kind": "continuous"})
    return arm.with_actuator("dc_motor", **(BASIC | constants))


def motor(**constants):
    return DcMotor("J", 100.0, BASIC | constants)


def command_of(interface, *value):
    return Command.checked(interface, value, len(value))


def run(arm, state, command, dt, steps):
    return Plant(arm).step(state, command, dt, steps)


def at(v, *act):
    return State.of([0.0], [v], act=act)


# The winding ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [1e-6, 1e-4, 1e-3, 0.1])
@pytest.mark.parametrize("start", [0.0, -3.0])
def test_current_rises_exponentially_exactly_at_any_step(dt, start):
    """i(t) = V/R + (i0 - V/R) exp(-t R/L), with L/R = 0.1 ms."""
    arm = turntable(ke=0.0, inductance=2e-4)
    plant, state = Plant(arm), at(0.0, start)
    for n in range(1, 6):
        state = plant.step(state, command_of("voltage", 6.0), dt)
        exact = 3.0 + (start - 3.0) * np.exp(-n * dt / 1e-4)
        assert state.act[0] == pytest.approx(exact, abs=1e-12)
        assert state.tau[0] == pytest.approx(0.5 * exact, abs=1e-12)


def test_the_current_loop_and_limits_act_on_the_settled_current():
    arm = turntable(ke=0.0, inductance=2e-4, current_limit=2.0)
    for command, end in ((command_of("voltage", 6.0), 2.0), (command_of("effort", 0.7), 1.4)):
        after = run(arm, at(0.0, 0.0), command, 5e-5, 1)
        assert after.act[0] == pytest.approx(end * (1 - np.exp(-0.5)), abs=1e-12)


def linear_motor(arm, volts, start, time):
    """Return the exact (i, v, q) of a motor without limits.

    L i' = V - Ke N v - R i, M v' = N Kt i - N² b v.
    """
    c = arm.actuators[0].constants
    kt, ke, n = c["kt"], c["ke"], c["gear_ratio"]
    mass = MASS + n**2 * c["rotor_inertia"]
    a = np.zeros((4, 4))
    a[0] = [
        -c["resistance"] / c["inductance"],
        -ke * n / c["inductance"],
        0,
        volts / c["inductance"],
    ]
    a[1, :2] = n * kt / mass, -(n**2) * c["viscous_friction"] / mass
    a[2, 1] = 1
    return (expm(a * time) @ [*start, 1.0])[:3]


@pytest.mark.quick(1)
@pytest.mark.parametrize("inductance", [2e-4, 2e-2])
def test_the_whole_linear_motor_to_first_order(inductance):
    arm = turntable(
        inductance=inductance, gear_ratio=4.0, rotor_inertia=1e-3, viscous_friction=1e-3
    )
    exact = linear_motor(arm, 12.0, [1.0, -2.0, 0.0], 0.05)
    errors = []
    for dt in (5e-6, 2.5e-6, 1.25e-6):  # step at which a winding of 0.1 ms is not stiff
        end = run(arm, at(-2.0, 1.0), command_of("voltage", 12.0), dt, round(0.05 / dt))
        errors.append(np.abs(np.subtract([end.act[0], end.v[0], end.q[0]], exact)).max())
    coarse = run(arm, at(-2.0, 1.0), command_of("voltage", 12.0), 1e-3, 50)
    miss = np.subtract([coarse.act[0], coarse.v[0], coarse.q[0]], exact)
    assert np.abs(miss).max() < 0.1 * np.abs(exact).max()
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 1.0, atol=0.15)


def test_a_winding_of_a_tenth_of_a_millisecond_is_stable_at_a_millisecond():
    arm = turntable(inductance=2e-4, gear_ratio=4.0)
    end = run(arm, at(-20.0, 30.0), command_of("voltage", 12.0), 1e-3, 3000)
    exact = linear_motor(arm, 12.0, [30.0, -20.0, 0.0], 3.0)
    assert end.v[0] == pytest.approx(exact[1], rel=1e-9)
    assert end.act[0] == pytest.approx(exact[0], abs=1e-9)


@pytest.mark.quick(1)
@pytest.mark.parametrize("rotor", [0.0, 2e-3])
def test_an_arm_with_windings_of_a_tenth_of_a_millisecond_is_accurate_at_a_millisecond(rotor):
    """five_dof, R = 1 Ω, falling against its back-EMF, compared with steps 100 times smaller."""
    arm = five_dof().with_motors(inductance=1e-4, rotor_inertia=rotor)
    start, short = State.of(arm.configuration("initial")), command_of("voltage", *[0.0] * 5)
    Plant(arm).require_stable(start.q, 1e-3)
    ends = [Plant(arm).step(start, short, dt, round(1 / dt)) for dt in (1e-3, 1e-5)]
    np.testing.assert_allclose(ends[0].q, ends[1].q, atol=2e-3)
    np.testing.assert_allclose(ends[0].tau, ends[1].tau, atol=2e-2)


def test_the_largest_stable_step_with_inductance():
    """Just below the limit of require_stable the motion decays, just above it grows.

    This limit is that of the explicit method. The default integrator treats the winding implicitly,
    so only friction limits its step.
    """
    arm = turntable(inductance=0.05, viscous_friction=0.02, gear_ratio=10.0)
    plant = Plant(arm, "explicit_euler")

    def allowed(dt):
        try:
            plant.require_stable([0.0], dt)
        except InvalidValue:
            return False
        return True

    low, high = 1e-4, 10.0
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if allowed(middle) else (low, middle)
    for dt, grows in ((0.99 * low, False), (1.01 * low, True)):
        end = plant.step(at(1.0, 0.0), command_of("voltage", 0.0), dt, 2000)
        assert (abs(end.v[0]) > 1) == grows
    assert low > 2 * MASS / (arm.actuators[0].back_emf_damping + 2.0)


@pytest.mark.parametrize("dt", [1e-3, 0.1, 10.0])
def test_current_and_velocity_settle_at_any_step(dt):
    arm = turntable(inductance=2e-4, gear_ratio=50.0)
    Plant(arm).require_stable([0.0], dt)
    end = run(arm, at(-20.0, 30.0), command_of("voltage", 12.0), dt, 400)
    free = 12.0 / (50.0 * arm.actuators[0].constants["ke"])
    assert end.v[0] == pytest.approx(free, rel=1e-9)
    assert end.act[0] == pytest.approx(0.0, abs=1e-6)


def test_back_emf_brakes_a_running_joint():
    """M v' = -N² Kt Ke / R v."""
    end = run(turntable(gear_ratio=2.0), at(3.0), command_of("voltage", 0.0), 1e-5, 20000)
    assert end.v[0] == pytest.approx(3 * np.exp(-4 * 0.25 / 2 / MASS * 0.2), rel=1e-4)


def test_the_motor_reaches_its_no_load_speed():
    end = run(turntable(gear_ratio=2.0), at(0.0), command_of("voltage", 12.0), 1e-3, 5000)
    assert end.v[0] == pytest.approx(12 / (0.5 * 2), rel=1e-9)


def test_supply_and_current_limit_bound_the_acceleration():
    for limits, current in (({"supply_voltage": 6.0}, 3.0), ({"current_limit": 2.5}, 2.5)):
        arm = turntable(ke=0.0, **limits)
        end = run(arm, at(0.0), command_of("voltage", 24.0), 1e-3, 1)
        assert end.v[0] / 1e-3 == pytest.approx(0.5 * current / MASS, rel=1e-12)


def test_the_brush_drop_reduces_the_acceleration():
    arm = turntable(ke=0.0, brush_drop=1.0, brush_half_voltage=2.0)
    end = run(arm, at(0.0), command_of("voltage", 4.0), 1e-3, 1)
    assert end.v[0] / 1e-3 == pytest.approx(0.5 * (4 - 0.75) / 2 / MASS, rel=1e-12)


# Heat -----------------------------------------------------------------------------------------

WARM = {"ke": 0.0, "thermal_resistance": 5.0, "thermal_time_constant": 10.0}


@pytest.mark.parametrize("dt", [1e-2, 1.0, 30.0])
def test_the_winding_warms_and_cools_to_first_order_exactly(dt):
    """T(t) = T_amb + R_th R i² + (T0 - ...) exp(-t/τ) at constant current and resistance."""
    arm = turntable(**WARM, temperature_coefficient=0.0, ambient_temperature=20.0)
    for effort, start in ((1.5, 20.0), (0.0, 90.0)):
        end = run(arm, at(0.0, start), command_of("effort", effort), dt, 3)
        settled = 20 + 5 * 2 * (effort / 0.5) ** 2
        exact = settled + (start - settled) * np.exp(-3 * dt / 10)
        assert end.act[0] == pytest.approx(exact, abs=1e-10)


def test_heat_at_rest_is_the_ambient_temperature():
    arm = turntable(**WARM, ambient_temperature=40.0)
    assert (arm.act_names, arm.initial_act.tolist()) == (("J1.temperature",), [40.0])


def test_steady_temperature_with_temperature_dependent_resistance():
    """T - T_amb = R_th i² R(T) at constant current, = R_th V² / R(T) at constant voltage."""
    arm = turntable(**WARM)
    by_effort = run(arm, at(0.0), command_of("effort", 1.0), 0.1, 5000)
    gain = 5 * 2 * 2.0**2
    assert by_effort.act[0] == pytest.approx(25 + gain / (1 - gain * 0.0039), rel=1e-9)
    by_voltage = run(arm, at(0.0), command_of("voltage", 6.0), 0.1, 5000)
    gain, alpha = 5 * 6.0**2 / 2, 0.0039
    rise = (np.sqrt(1 + 4 * alpha * gain) - 1) / (2 * alpha)  # x (1 + α x) = gain
    assert by_voltage.act[0] == pytest.approx(25 + rise, rel=1e-9)
    assert by_voltage.tau[0] == pytest.approx(0.5 * 6 / (2 * (1 + alpha * rise)), rel=1e-9)


def test_heat_reduces_the_torque_of_a_voltage_but_not_that_of_a_current_loop():
    m = motor(**WARM)
    assert m.effort("voltage", 6.0, 0, 0, [75.0]) == pytest.approx(0.5 * 6 / (2 * 1.195))
    assert m.effort("effort", 1.3, 0, 0, [75.0]) == pytest.approx(1.3)


def test_resistance_is_positive_at_any_temperature():
    assert warm_resistance(2.0, 0.0039, 25.0) == 2.0
    assert warm_resistance(2.0, 0.0039, -273.15) == pytest.approx(0.2)
    assert warm_resistance(2.0, 1e6, -40.0) == pytest.approx(0.2)


@pytest.mark.parametrize(("hot", "ratio"), [(20, 1), (80, 1), (90, 0.75), (115, 0.125), (130, 0)])
def test_derating_reduces_the_current_linearly(hot, ratio):
    m = motor(**WARM, current_limit=3.0, derating_temperature=80.0, max_temperature=120.0)
    for interface in ("effort", "voltage"):
        assert m.effort(interface, 99.0, 0, 0, [hot]) == pytest.approx(0.5 * 3 * ratio, abs=1e-12)
        assert m.effort(interface, -99.0, 0, 0, [hot]) == pytest.approx(-1.5 * ratio, abs=1e-12)


def test_derating_keeps_the_winding_below_its_maximum():
    arm = turntable(**WARM, current_limit=20.0, derating_temperature=80.0, max_temperature=120.0)
    end = run(arm, at(0.0), command_of("effort", 50.0), 0.1, 3000)
    limit = 20 * (120 - end.act[0]) / 40
    assert 80 < end.act[0] < 120
    assert end.act[0] == pytest.approx(
        25 + 5 * warm_resistance(2.0, 0.0039, end.act[0]) * limit**2, rel=1e-6
    )


# Inertia and friction -------------------------------------------------------------------------


def test_reflected_inertia():
    """a = N Kt i / (M + N² J)."""
    arm = turntable(ke=0.0, gear_ratio=10.0, rotor_inertia=2e-3)
    end = run(arm, at(0.0), command_of("voltage", 4.0), 1e-3, 1)
    assert end.v[0] / 1e-3 == pytest.approx(10 * 0.5 * 2 / (MASS + 100 * 2e-3), rel=1e-12)


def test_deceleration_by_viscous_friction():
    arm = turntable(ke=0.0, gear_ratio=3.0, viscous_friction=0.01)
    end = run(arm, at(2.0), command_of("voltage", 0.0), 1e-5, 30000)
    assert end.v[0] == pytest.approx(2 * np.exp(-9 * 0.01 / MASS * 0.3), rel=1e-4)


def test_deceleration_by_coulomb_friction_is_linear_until_rest():
    arm = turntable(ke=0.0, gear_ratio=4.0, coulomb_friction=0.02)
    rate = 4 * 0.02 / MASS
    half = run(arm, at(1.0), command_of("voltage", 0.0), 1e-3, 500)
    assert half.v[0] == pytest.approx(1 - 0.5 * rate, rel=1e-12)
    stopped = run(arm, half, command_of("voltage", 0.0), 1e-3, 1000)
    assert stopped.v[0] == 0.0
    assert stopped.q[0] == pytest.approx(1 / (2 * rate), rel=2e-3)
    assert run(arm, stopped, command_of("voltage", 0.0), 1e-3, 1000).q[0] == stopped.q[0]


STICKY = {"gear_ratio": 4.0, "coulomb_friction": 0.02, "stiction": 0.05, "stribeck_velocity": 3.0}


@pytest.mark.parametrize("direction", [1, -1])
def test_breakaway_above_stiction_then_stribeck_friction(direction):
    arm = turntable(ke=0.0, **STICKY)
    held = run(arm, State.of([0.4]), command_of("effort", direction * 0.1999), 1e-3, 1000)
    assert (held.q[0], held.v[0]) == (0.4, 0.0)
    plant, state = Plant(arm), State.of([0.4])
    first = plant.step(state, command_of("effort", direction * 0.21), 1e-3)
    assert first.v[0] == pytest.approx(direction * (0.21 - 0.2) / MASS * 1e-3, rel=1e-9)
    second = plant.step(first, command_of("effort", direction * 0.21), 1e-3)
    level = 4 * (0.02 + 0.03 * np.exp(-((4 * first.v[0] / 3) ** 2)))
    assert second.v[0] - first.v[0] == pytest.approx(
        direction * (0.21 - level) / MASS * 1e-3, rel=1e-9
    )


@given(st.floats(-3, 3))
def test_friction_follows_the_stribeck_curve(v):
    """4 fs at rest, 4 fc at high velocity; no other effort acts."""
    level = 4 * (0.02 + 0.03 * np.exp(-((4 * v / 3) ** 2)))
    forward, backward = motor(**STICKY).dry_friction_bounds(v, 0.0)
    assert forward == backward == pytest.approx(level, rel=1e-12)


def test_without_stiction_breakaway_is_at_coulomb_friction():
    assert motor(coulomb_friction=0.02).dry_friction_bounds(0.0, 0.0) == (0.02, 0.02)
    assert (
        motor(coulomb_friction=0.02, stribeck_velocity=1e-300).dry_friction_bounds(0.0, 0.0)[0]
        == 0.02
    )
    assert motor(stiction=0.05, stribeck_velocity=1e-300).dry_friction_bounds(1.0, 0.0)[0] == 0.0


@pytest.mark.parametrize(("push", "stops"), [(0.15, True), (0.25, False)])
def test_a_reversing_joint_stops_below_stiction(push, stops):
    """At any previous velocity: 0.15 N·m is above Coulomb's 0.08 and below the breakaway 0.2."""
    arm = turntable(ke=0.0, **STICKY)
    end = run(arm, at(2.0), command_of("effort", -push), 1e-2, 300)
    assert (end.v[0] == 0.0) == stops


@pytest.mark.parametrize(("ratio", "stays"), [(1.001, True), (0.999, False)])
def test_gravity_overcomes_stiction_of_a_geared_motor(ratio, stays):
    arm = chain({}).with_actuator("dc_motor", **BASIC, gear_ratio=5.0)
    weight = abs(rigid_body.gravity(arm, [0.3])[0])
    arm = arm.with_motors(stiction=ratio * weight / 5, coulomb_friction=0.1 * weight / 5)
    end = run(arm, State.of([0.3]), command_of("voltage", 0.0), 1e-3, 50)
    assert (end.q[0] == 0.3) == stays


@pytest.mark.parametrize(("ratio", "stays"), [(1.001, True), (0.999, False)])
def test_inertial_coupling_overcomes_stiction(ratio, stays):
    """At rest J1 receives M12 / M22 of the effort of J2, balanced only by stiction."""
    arm = chain({"axis": "0 0 1"}, {"axis": "0 0 1"}).with_actuator("dc_motor", **BASIC)
    mass = rigid_body.mass_matrix(arm, [0.0, 0.0])
    reaction = 0.4 * mass[0, 1] / mass[1, 1]
    arm = arm.with_motor("J1", stiction=ratio * reaction, coulomb_friction=0.5 * reaction)
    end = run(arm, State.of([0.0, 0.0]), command_of("effort", 0.0, 0.4), 1e-4, 1)
    assert (end.v[0] == 0.0) == stays
    assert end.v[1] > 0


# Gear losses ----------------------------------------------------------------------------------

LOSSY = {"ke": 0.0, "gear_ratio": 2.0, "efficiency": 0.7, "back_efficiency": 0.6}


@given(effort=st.floats(-5, 5), v=st.floats(-5, 5))
def test_power_through_the_gear(effort, v):
    """Joint power = η motor power when driving; motor power = η_b joint power when back-driven."""
    forward, backward = motor(**LOSSY).dry_friction_bounds(v, effort)
    joint = effort - (forward if v > 0 else -backward)
    if effort * v > 1e-12:
        assert joint * v == pytest.approx(0.7 * effort * v, rel=1e-12)
    elif effort * v < -1e-12:
        assert effort * v == pytest.approx(0.6 * joint * v, rel=1e-12)


def test_gear_losses_scale_the_acceleration():
    arm = turntable(**LOSSY)
    for v, gain in ((1.0, 0.7), (-1.0, 1 / 0.6), (0.0, 0.7)):
        end = run(arm, at(v), command_of("effort", 1.2), 1e-4, 1)
        assert (end.v[0] - v) / 1e-4 == pytest.approx(1.2 * gain / MASS, rel=1e-9)


@pytest.mark.parametrize(
    ("ratio", "direction"), [(0.69, -1), (0.71, 0), (1.0, 0), (1.66, 0), (1.67, 1)]
)
def test_the_gear_sticks_between_driving_and_back_driving(ratio, direction):
    """Against a gravity torque G the joint rests while G/η > τ > η_b G; effort = G / ratio."""
    arm = chain({}).with_actuator("dc_motor", **(BASIC | LOSSY))
    weight = rigid_body.gravity(arm, [0.3])[0]
    end = run(arm, State.of([0.3]), command_of("effort", weight / ratio), 1e-4, 20)
    moved = (end.q[0] - 0.3) * np.sign(weight)
    assert np.sign(moved) == -direction


# Both computed and applied effort -------------------------------------------------------------


def test_computed_and_applied_effort_and_what_else_acts():
    arm = turntable(supply_voltage=6.0, coulomb_friction=0.1, viscous_friction=0.02, gear_ratio=2.0)
    plant, state = Plant(arm), at(0.5)
    found = plant.efforts(state, command_of("voltage", 10.0))
    emf = 0.5 * 2 * 0.5
    assert found.computed[0] == pytest.approx(2 * 0.5 * (10 - emf) / 2)
    assert found.applied[0] == pytest.approx(2 * 0.5 * (6 - emf) / 2)
    assert found.viscous[0] == pytest.approx(-4 * 0.02 * 0.5)
    assert (found.dry_friction_forward[0], found.dry_friction_backward[0], found.stop[0]) == (
        0.2,
        0.2,
        0.0,
    )
    after = plant.step(state, command_of("voltage", 10.0), 1e-6)
    net = found.applied + found.viscous + found.stop - found.dry_friction_forward
    assert (after.v[0] - 0.5) / 1e-6 == pytest.approx(net[0] / MASS, rel=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        found.applied[0] = 1.0


def test_the_applied_effort_depends_on_end_stops_and_actuator_states():
    arm = chain({"upper": 0.5}).with_actuator("dc_motor", **BASIC, inductance=1e-3)
    arm = arm.with_joint("J1", stop_stiffness=40.0, stop_damping=2.0)
    found = Plant(arm).efforts(State.of([0.6], [0.3], act=[1.5]), command_of("effort", 3.0))
    assert found.stop[0] == pytest.approx(-40 * 0.1 - 2 * 0.3)
    assert (found.computed[0], found.applied[0]) == pytest.approx((3.0, 0.75))
    assert Plant(arm).efforts(State.of([0.0]), command_of("effort", 3.0)).applied[0] == 0.0


def test_prescribed_motion_reports_the_required_effort():
    arm = chain({}).with_actuator("rate_limited")
    found = Plant(arm).efforts(State.of([0.4]), command_of("position", 0.4))
    np.testing.assert_allclose(found.applied, rigid_body.gravity(arm, [0.4]), rtol=1e-12)
    assert found.computed == found.applied


def test_efforts_does_not_change_the_state():
    arm = five_dof().with_actuator("dc_motor", **EVERYTHING)
    start = State.of([0.1, -1.1, 0.5, 0.3, -1.0], [1, -2, 1, 3, -4])
    volts = command_of("voltage", *[9.0] * 5)
    plant = Plant(arm)
    plain = plant.step(start, volts, 1e-4, 5)
    plant.efforts(plain, command_of("effort", *[1.0] * 5))
    again = plant.step(start, volts, 1e-4, 5)
    for name in ("q", "v", "tau", "act"):
        np.testing.assert_array_equal(getattr(again, name), getattr(plain, name))


def test_efforts_rejects_the_inputs_that_a_step_rejects():
    plant = Plant(turntable())
    with pytest.raises(InvalidValue, match="2 positions"):
        plant.efforts(State.of([0.0, 0.0]), command_of("effort", 1.0))
    with pytest.raises(CommandRejected):
        plant.efforts(at(0.0), command_of("effort", 1.0, 2.0))
    with pytest.raises(UnknownName, match="position"):
        plant.efforts(at(0.0), command_of("position", 1.0))


# The sum of all terms -------------------------------------------------------------------------

BENCH = table("motor_vectors.csv")
NAMES = {
    "Kt": "kt", "Kb": "ke", "Ra": "resistance", "fc": "coulomb_friction",
    "fv": "viscous_friction", "Vmax": "brush_drop", "Vhalf": "brush_half_voltage",
}  # fmt: skip


def bench_torque(row):
    """Return the torque of the package's motor model in a row of the bench."""
    arm = turntable(**{ours: row[name] for name, ours in NAMES.items()})
    found = Plant(arm).efforts(at(row["vel_in"]), command_of("voltage", row["V"]))
    net = found.applied[0] + found.viscous[0] + row["ext_torque"]
    if row["vel_in"] == 0:
        return net + np.clip(-net, -found.dry_friction_forward[0], found.dry_friction_backward[0])
    return net - (
        found.dry_friction_forward[0] if row["vel_in"] > 0 else -found.dry_friction_backward[0]
    )


def torque_without_reversal_rule(row):
    """Return the original program's torque of a row without its stop at a reversal."""
    inner = row["V"] - np.sign(row["V"]) * row["Vmax"] * (1 - 2 ** (-abs(row["V"]) / row["Vhalf"]))
    electric = row["Kt"] * (inner - row["Kb"] * row["vel_in"]) / row["Ra"]
    lost = row["fv"] * row["vel_in"] + row["fc"] * np.sign(row["vel_in"])
    return electric + row["ext_torque"] - lost


def test_motor_torques_equal_the_published_bench():
    """One call of the published motor per row, with its external torque.

    Rows without a velocity reversal agree. At a reversal the original program stops the motor for
    one call at any torque; the package continues at its velocity. There it agrees with the original
    equation without that rule.
    """
    rows = [dict(zip(BENCH, values, strict=True)) for values in zip(*BENCH.values(), strict=True)]
    assert len(rows) == 80
    turned = np.array([row["vel_in"] * row["prev_in"] < 0 for row in rows])
    found = np.array([bench_torque(row) for row in rows])
    given = np.array([row["torque_out"] for row in rows])
    np.testing.assert_allclose(found[~turned], given[~turned], rtol=1e-12, atol=1e-12)
    assert turned.any()
    assert not BENCH["vel_out"][turned].any()
    assert not np.isclose(found[turned], given[turned], rtol=1e-6, atol=0).any()
    free = [torque_without_reversal_rule(row) for row in rows]
    np.testing.assert_allclose(found[turned], np.array(free)[turned], rtol=1e-12, atol=1e-12)


def test_the_bench_contains_reversals_rest_and_brushes():
    turned = BENCH["vel_in"] * BENCH["prev_in"] < 0
    assert 0 < turned.sum() < 40
    assert (BENCH["vel_in"][~turned] == 0).sum() > 5
    assert (BENCH["torque_out"][BENCH["vel_in"] == 0] == 0).sum() > 2
    assert (BENCH["Vmax"] > 0).sum() > 10


class PythonDcMotor(DcMotor):
    """The DC motor without a kernel, as in a plugin."""

    kernel_id: ClassVar[int] = 0


NO_DRY_FRICTION = {
    "efficiency": 1.0, "back_efficiency": 1.0, "coulomb_friction": 0.0, "stiction": 0.0,
}  # fmt: skip
NO_STATES = {"inductance", "thermal_resistance", "thermal_time_constant", "derating_temperature",
             "max_temperature", "backlash", "gear_stiffness", "gear_damping"}  # fmt: skip


@pytest.mark.parametrize(("interface", "size"), [("voltage", 12.0), ("effort", 6.0)])
@pytest.mark.parametrize(
    ("constants", "states", "tolerance"),
    [
        (EVERYTHING, 4, (1e-12, 1e-13)),  # the impulses of dry friction, in another order
        (EVERYTHING | NO_DRY_FRICTION, 4, (1e-14, 1e-15)),  # numpy's exponential and the compiler's
        (
            {k: c for k, c in (EVERYTHING | NO_DRY_FRICTION).items() if k not in NO_STATES},
            0,
            (0, 0),
        ),
    ],
)
def test_a_plugin_with_every_actuator_state_equals_the_kernel(
    monkeypatch, interface, size, constants, states, tolerance
):
    registered = {**plugins.BUILT_IN["actuators"], "own": "test_dc_motor:PythonDcMotor"}
    monkeypatch.setitem(plugins.BUILT_IN, "actuators", registered)
    compiled = five_dof().with_actuator("dc_motor", **constants)
    own = replace(compiled, joints=tuple(replace(j, actuator="own") for j in compiled.joints))
    assert {a.kernel_id for a in own.actuators} == {0}
    names = ("R1.current", "R1.temperature", "R1.rotor_velocity", "R1.gap")
    assert compiled.act_names[:4] == names[:states]
    start = State.of([0.1, -1.1, 0.5, 0.3, -1.0], [1, -2, 1, 3, -4])
    command = command_of(interface, *(size * np.array([1, -1, 0.5, -0.5, 0.1])))
    one, other = (Plant(arm).step(start, command, 1e-4, 200) for arm in (own, compiled))
    assert (one.act != compiled.initial_act).all()
    for name in ("q", "v", "tau", "act"):
        pair = (getattr(state, name) for state in (one, other))
        np.testing.assert_allclose(*pair, *tolerance, err_msg=name)


# Random constants -----------------------------------------------------------------------------

size = st.floats(1e-4, 1e4)
anything = st.fixed_dictionaries(
    {"kt": size, "ke": size, "resistance": size, "gear_ratio": st.floats(0.01, 1000)},
    optional={
        "supply_voltage": size, "brush_drop": size, "brush_half_voltage": size,
        "inductance": size, "rotor_inertia": size, "viscous_friction": size,
        "coulomb_friction": st.just(0.5), "stiction": st.just(0.9), "stribeck_velocity": size,
        "thermal_resistance": size, "thermal_time_constant": size,
        "temperature_coefficient": st.floats(0, 1), "efficiency": st.floats(0.01, 1),
        "back_efficiency": st.floats(0.01, 1),
    },
)  # fmt: skip
play = st.sampled_from(
    [{}, {"backlash": 0.1, "gear_stiffness": 1e3, "gear_damping": 5.0, "rotor_inertia": 0.01}]
)
hot = st.sampled_from(
    [
        {"current_limit": 3.0},
        {
            "current_limit": 3.0, "thermal_resistance": 2.0, "derating_temperature": 60.0,
            "max_temperature": 61.0,
        },
    ]
)  # fmt: skip
number = st.floats(-1e4, 1e4)


@settings(max_examples=examples(300))
@given(anything, play, st.just({}) | hot, number, number, st.lists(number, min_size=4, max_size=4))
def test_every_motor_equation_is_finite(constants, gear, limits, command, v, act):
    m = motor(**(constants | gear | limits))
    own = act[: len(m.states)]
    for interface in m.interfaces:
        decay, source = m.act_dot_terms(interface, command, 0.0, v, own)
        assert np.isfinite([*decay, *source]).all()
        assert min(decay, default=0.0) >= 0
        effort = m.effort(interface, command, 0.0, v, own)
        assert np.isfinite([effort, m.computed_effort(interface, command, 0.0, v, own)]).all()
        assert min(m.dry_friction_bounds(v, effort)) >= 0
        assert np.isfinite(m.dry_friction_bounds(v, effort)).all()
    if m.has_internal_friction:
        assert np.isfinite(m.apply_internal_friction(own, own, decay, 1e-3)).all()


@settings(max_examples=examples(300))
@given(anything, play, number, st.lists(number, min_size=4, max_size=4))
def test_an_unpowered_motor_dissipates_energy(constants, gear, v, act):
    """d/dt (L i²/2 + J w²/2 + tooth spring) + power into the joint <= 0 at 0 V, where Ke = Kt."""
    m = motor(**(constants | gear | {"ke": constants["kt"]}))
    c, own = m.constants, act[: len(m.states)]
    decay, source = m.act_dot_terms("voltage", 0.0, 0.0, v, own)
    change = {s.name: n - x * z for s, x, n, z in zip(m.states, decay, source, own, strict=True)}
    state = {s.name: z for s, z in zip(m.states, own, strict=True)}
    terms = [m.effort("voltage", 0.0, 0.0, v, own) * v]
    if c["inductance"] > 0:
        terms.append(c["inductance"] * state["current"] * change["current"])
    if c["backlash"] > 0:
        inertia = c["gear_ratio"] ** 2 * c["rotor_inertia"]
        bent = state["gap"] - np.clip(state["gap"], -0.5 * c["backlash"], 0.5 * c["backlash"])
        terms.append(inertia * state["rotor_velocity"] * change["rotor_velocity"])
        terms.append(c["gear_stiffness"] * bent * change["gap"])
    assert sum(terms) <= 1e-9 * sum(map(abs, terms))


def stored_energy(arm, state):
    """Return the energy of arm, rotors, teeth and windings [J]."""
    total = rigid_body.kinetic_energy(arm, state.q, state.v) + rigid_body.potential_energy(
        arm, state.q
    )
    for actuator, own in zip(arm.actuators, state.act.reshape(arm.nv, 4), strict=True):
        c = actuator.constants
        bent = max(abs(own[3]) - 0.5 * c["backlash"], 0.0)
        total += 0.5 * c["inductance"] * own[0] ** 2 + 0.5 * c["gear_stiffness"] * bent**2
        total += 0.5 * c["gear_ratio"] ** 2 * c["rotor_inertia"] * own[2] ** 2
    return total


def test_an_unpowered_arm_with_every_term_dissipates_energy():
    arm = five_dof().with_actuator("dc_motor", **(EVERYTHING | {"current_limit": 1e3}))
    for name in arm.joint_names:
        arm = arm.with_joint(name, stop_stiffness=0.0, stop_damping=0.0)
    plant, state = Plant(arm), State.of([0.1, -1.1, 0.5, 0.3, -1.0], [1, -2, 1, 3, -4])
    state = replace(state, act=arm.initial_act)
    energies = [stored_energy(arm, state)]
    for _ in range(50):
        state = plant.step(state, command_of("voltage", *[0.0] * 5), 2e-5, 200)
        energies.append(stored_energy(arm, state))
    assert np.diff(energies).max() <= 1e-5
    assert energies[-1] < energies[0] - 0.5


@pytest.mark.parametrize(
    ("constants", "text"),
    [
        ({"coulomb_friction": 0.2, "stiction": 0.1},
         r"'J': stiction = 0.1 N·m is below coulomb_friction = 0.2 N·m; .*0 for the same"),
        ({"backlash": 0.1, "rotor_inertia": 1e-3}, "backlash = 0.1 rad needs a gear_stiffness"),
        ({"backlash": 0.1, "gear_stiffness": 1e3}, "backlash = 0.1 rad needs a rotor_inertia"),
        ({"derating_temperature": 80.0}, "derating_temperature = 80 °C needs a max_temp"),
        ({"max_temperature": 80.0, "derating_temperature": 80.0, "current_limit": 1.0,
          "thermal_resistance": 1.0},
         "max_temperature = 80 °C is not above derating_temperature = 80 °C"),
        ({"max_temperature": 80.0, "derating_temperature": 70.0, "thermal_resistance": 1.0},
         "max_temperature = 80 °C needs a current_limit"),
        ({"max_temperature": 80.0, "derating_temperature": 70.0, "current_limit": 1.0},
         "needs a winding that warms up"),
    ],
)  # fmt: skip
def test_inconsistent_constants_are_rejected(constants, text):
    with pytest.raises(InvalidValue, match=text):
        motor(**constants)


def urdf_with(**constants):
    given = "".join(f'<param name="{name}">{value}</param>' for name, value in constants.items())
    joint = f'<joint name="J1"><param name="actuator">dc_motor</param>{given}</joint>'
    return {"more": f'<ros2_control name="arm" type="system">{joint}</ros2_control>'}


def test_an_arm_takes_a_motor_from_its_data_sheet():
    sheet = DataSheet(24.0, 800.0, 2.4, 0.1, gear_ratio=1.0)
    arm = chain({"axis": "0 0 1", "kind": "continuous"}).with_actuator(
        "dc_motor", **sheet.constants(rotor_inertia=1e-5)
    )
    end = run(arm, at(0.0), command_of("voltage", 24.0), 0.1, 8000)
    assert end.v[0] == pytest.approx(800.0, rel=1e-9)


def test_every_constant_is_read_from_the_urdf():
    arm = chain({}, **urdf_with(**EVERYTHING))
    assert dict(arm.actuators[0].constants) == motor(**EVERYTHING).constants
    assert arm.na == 4


def test_a_urdf_with_inconsistent_constants_is_rejected():
    wrong = EVERYTHING | {"stiction": 0.001, "rotor_inertia": 0.0}
    with pytest.raises(UrdfRejected) as caught:
        chain({}, **urdf_with(**wrong))
    text = [str(fault) for fault in caught.value.faults if fault.severity == "error"]
    assert len(text) == 2
    assert "joint 'J1' <param stiction>: 0.001 is below coulomb_friction" in text[0]
    assert "joint 'J1' <param backlash>: 0.02 needs a rotor_inertia" in text[1]


# The inverse ----------------------------------------------------------------------------------

LIMITED = {
    "gear_ratio": 5.0,
    "supply_voltage": 12.0,
    "current_limit": 4.0,
    "brush_half_voltage": 0.8,
}


@settings(max_examples=examples(300))
@given(effort=st.floats(-40, 40), v=st.floats(-8, 8), drop=st.floats(0, 6), hot=st.floats(-20, 150))
def test_the_voltage_of_an_effort_gives_that_or_the_nearest_effort(effort, v, drop, hot):
    m = motor(**LIMITED, brush_drop=drop, thermal_resistance=1.0)
    volts = m.voltage_for(effort, v, hot)
    low, high = m.effort_range(v, hot)
    assert abs(volts) <= 12
    assert low <= high
    found = m.effort("voltage", volts, 0.0, v, [hot])
    assert found == pytest.approx(np.clip(effort, low, high), rel=1e-9, abs=1e-9)
    assert m.effort("effort", effort, 0.0, v, [hot]) == pytest.approx(found, rel=1e-9, abs=1e-9)


def test_without_limits_every_effort_has_a_voltage():
    m = motor(brush_drop=1.0)
    assert m.effort_range(3.0) == (-np.inf, np.inf)
    assert m.effort("voltage", m.voltage_for(1e3, 3.0), 0, 3.0) == pytest.approx(1e3, rel=1e-12)
    assert motor().voltage_for(1.0, 2.0) == pytest.approx(2 * 1.0 / 0.5 + 0.5 * 2.0)


@settings(max_examples=examples(300))
@given(inner=st.floats(-50, 50), drop=st.floats(0, 10), half=st.floats(0.01, 10))
def test_terminal_voltage_inverts_the_brush_drop(inner, drop, half):
    """On the rising branch, where small voltages give no current; 0 for 0."""
    volts = terminal_voltage(inner, drop, half)
    assert brush_voltage(volts, drop, half) == pytest.approx(inner, rel=1e-9, abs=1e-7)
    assert np.sign(volts) == np.sign(inner)
    assert terminal_voltage(-inner, drop, half) == -volts
    assert abs(volts) >= abs(inner)
    more = brush_voltage(1.001 * volts, drop, half)
    assert abs(more) >= abs(inner) - 1e-7


def test_a_brush_drop_above_the_supply_leaves_only_zero_effort():
    m = motor(supply_voltage=0.5, brush_drop=2.0, brush_half_voltage=0.5)
    assert m.effort_range(0.0) == (0.0, 0.0)
    assert m.voltage_for(3.0, 0.0) == 0.0


def test_winding_damping_requires_a_current_state():
    """tanh(dt R / 2L) of N² Kt Ke / R; zero without inductance or with backlash."""
    braking, dt = 0.5 * 0.5 / 2.0, 1e-3
    stiff, own = DcMotor("J1", 10.0, BASIC), DcMotor("J1", 10.0, BASIC | {"inductance": 2e-3})
    play = {"backlash": 0.02, "gear_stiffness": 200.0, "rotor_inertia": 2e-3}
    parted = DcMotor("J1", 10.0, BASIC | {"inductance": 2e-3} | play)
    assert stiff.winding_damping(dt) == 0.0
    assert own.winding_damping(dt) == pytest.approx(braking * np.tanh(dt * 2.0 / (2 * 2e-3)))
    assert parted.winding_damping(dt) == 0.0
    assert stiff.step_damping(dt) == pytest.approx(braking)
    assert own.step_damping(dt) == own.winding_damping(dt)
    assert parted.step_damping(dt) == 0.0
