"""The adaptive integrator: exact times of stopping, sticking, breakaway and end-stop impacts."""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from conftest import chain, five_dof
from scipy.integrate import quad
from scipy.optimize import brentq

from arm_dynamics import load_arm
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.simulation.integrators import adaptive
from arm_dynamics.simulation.plant import Plant

DATA = Path(__file__).parents[1] / "data"
MASS = 0.02 + 0.25**2
"""Inertia of the joint of ``chain({})`` [kg·m²]."""
WEIGHT = 9.81 * 0.25
"""Largest gravity torque of the joint [N·m]."""


def run(arm, q, v, effort, dt, steps=1, interface="effort", act=()):
    start = State.of(q, v, act=act)
    return Plant(arm, "adaptive").step(start, Command.checked(interface, effort, arm.nv), dt, steps)


def turntable(**changes):
    numbers = {"axis": "0 0 1", "kind": "continuous"} | changes
    return chain(numbers)


def motorized(arm, **constants):
    return arm.with_actuator("dc_motor", **({"kt": 0.5, "ke": 0.0, "resistance": 2.0} | constants))


# --- smooth motion against independent solutions ---


@pytest.mark.parametrize(
    ("file", "arm", "interface", "rows", "bound"),
    [
        ("three_link/freefall_g9p81.csv", "three_link", "effort", 1001, 1e-9),
        ("two_link/unactuated_unit.csv", "two_link", "effort", 1001, 1e-9),
        ("five_dof/ideal_zero_voltage_dop853.csv", "five_dof", "voltage", 301, 1e-8),
        # The freely falling arm is chaotic: after 1 s errors grow by a factor of 1e15 per second.
        ("five_dof/passive_no_motor_dop853.csv", "motorless", "effort", 91, 1e-8),
    ],
)
def test_published_motion(file, arm, interface, rows, bound):
    data = np.genfromtxt(DATA / file, delimiter=",", skip_header=1)[:rows]
    if arm == "motorless":
        arm = five_dof().with_actuator("ideal")
        for name in arm.joint_names:
            arm = arm.with_joint(name, stop_stiffness=0, stop_damping=0)
    else:
        arm = load_arm(arm)
    n, plant = arm.nv, Plant(arm, "adaptive")
    command = Command.checked(interface, np.zeros(n), n)
    state, errors = State.of(data[0, 1 : n + 1], data[0, n + 1 : 2 * n + 1]), []
    for row in data[1:]:
        state = plant.step(state, command, row[0] - state.time)
        errors.append(np.abs(np.concatenate([state.q, state.v]) - row[1 : 2 * n + 1]).max())
    assert max(errors) < bound


def test_a_winding_of_a_microsecond_is_solved_implicitly():
    """λ dt = 1e3: the motion is that of a settled current."""
    start, volts = five_dof().configuration("initial"), [2.0, 6.0, -3.0, 0.5, 0.3]
    fast = run(five_dof().with_motors(inductance=1e-6), start, None, volts, 1e-3, 20, "voltage")
    settled = run(five_dof(), start, None, volts, 1e-3, 20, "voltage")
    np.testing.assert_allclose(fast.q, settled.q, atol=2e-6)


# --- dry friction ---


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("steps", [1, 7])
def test_a_sliding_joint_stops_at_the_exact_time(sign, steps):
    """t = v J / f and q = v² J / (2 f); then the joint stays at rest."""
    f, v = 0.1, 1.3
    time, arm = v * MASS / f, turntable(friction=f)
    before, after = time * (1 - 1e-9), time * (1 + 1e-9)
    assert sign * run(arm, [0.0], [sign * v], [0.0], before / steps, steps).v[0] > 0
    stopped = run(arm, [0.0], [sign * v], [0.0], after / steps, steps)
    assert stopped.v[0] == 0.0
    assert stopped.q[0] == pytest.approx(sign * v**2 * MASS / (2 * f), rel=1e-10)
    later = run(arm, stopped.q, stopped.v, [0.0999 * sign], 0.1, 5)
    assert (later.q[0], later.v[0]) == (stopped.q[0], 0.0)


def test_a_pendulum_with_dry_friction_sticks_at_the_right_angle():
    """W (sin q₁ - sin q₀) = -f abs(q₁ - q₀) for each swing of the pendulum, until W cos q < f."""
    f, q, turns = 0.2, 0.3, 0
    arm = chain({"axis": "0 -1 0", "friction": f, "kind": "continuous"})
    angle = q
    while abs(WEIGHT * np.cos(angle)) > f:
        direction = -np.sign(np.cos(angle))

        def excess(x, start=angle, direction=direction):
            return WEIGHT * (np.sin(x) - np.sin(start)) + f * direction * (x - start)

        bottom = -np.pi / 2
        angle = brentq(excess, bottom, bottom + direction * (np.pi - 1e-3), xtol=1e-14)
        turns += 1
    assert turns > 4
    state = run(arm, [q], [0.0], [0.0], 0.05, 200)
    assert state.v[0] == 0.0
    assert state.q[0] == pytest.approx(angle, abs=1e-9)


def test_a_ramped_torque_breaks_away_at_the_exact_time():
    """i = V/R (1 - e^(-t R/L)): at rest up to kt i = f, then J v̇ = kt i - f."""
    kt, R, L, V, f = 0.5, 2.0, 0.3, 6.0, 0.4
    arm = motorized(turntable(), inductance=L, coulomb_friction=f)
    rate, most = R / L, kt * V / R
    away = -np.log(1 - f / most) / rate
    held = run(arm, [0.2], [0.0], [V], away * (1 - 1e-9), 1, "voltage")
    assert (held.q[0], held.v[0]) == (0.2, 0.0)
    t = 0.5

    def speed(t):
        return ((most - f) * t + most / rate * np.exp(-rate * t)) / MASS

    def angle(t):
        return ((most - f) * t**2 / 2 - most / rate**2 * np.exp(-rate * t)) / MASS

    for steps in (1, 50):
        state = run(arm, [0.2], [0.0], [V], t / steps, steps, "voltage")
        assert state.v[0] == pytest.approx(speed(t) - speed(away), rel=1e-9)
        moved = angle(t) - angle(away) - speed(away) * (t - away)
        assert state.q[0] - 0.2 == pytest.approx(moved, rel=1e-9)


def test_gear_losses_oppose_the_motion():
    """Back-driven it decelerates at τ / (η_b J), driven it accelerates at η τ / J; the reversal is
    an event.
    """
    driven, back, tau, v = 0.6, 0.7, 0.5, -2.0
    arm = motorized(turntable(), efficiency=driven, back_efficiency=back)
    turn = -v * MASS * back / tau
    state = run(arm, [0.0], [v], [tau], turn + 0.3)
    assert state.v[0] == pytest.approx(driven * tau / MASS * 0.3, rel=1e-9)
    expected = v * turn / 2 + driven * tau / MASS * 0.3**2 / 2
    assert state.q[0] == pytest.approx(expected, rel=1e-9)


def test_stiction_above_coulomb_fades_with_speed():
    """At rest up to fs; then t = ∫ J dv / (τ - f(v)), f = fc + (fs - fc) e^(-(v / vs)²)."""
    fc, fs, vs, tau = 0.2, 0.5, 0.3, 0.55
    arm = motorized(turntable(), coulomb_friction=fc, stiction=fs, stribeck_velocity=vs)
    assert run(arm, [0.0], [0.0], [fs - 1e-9], 0.1).v[0] == 0.0

    def slowness(v):
        return MASS / (tau - fc - (fs - fc) * np.exp(-((v / vs) ** 2)))

    time, _ = quad(slowness, 0, 2.0, epsabs=1e-13, epsrel=1e-13)
    assert run(arm, [0.0], [0.0], [tau], time).v[0] == pytest.approx(2.0, rel=1e-9)
    # The effort that keeps a joint sliding is below its breakaway effort.
    assert run(arm, [0.0], [1.0], [0.3], 1.0).v[0] > 1.0
    assert run(arm, [0.0], [0.0], [0.3], 1.0).v[0] == 0.0


@pytest.mark.parametrize("ratio", [1 + 1e-6, 1 - 1e-6])
def test_gravity_is_held_up_to_the_breakaway_effort(ratio):
    q = np.array([0.0, -1.1, 0.3, 0.2, 0.4])
    arm = five_dof().with_actuator("ideal")
    weight = np.abs(rigid_body.gravity(arm, q))
    for name, f in zip(arm.joint_names, ratio * weight + 1e-9, strict=True):
        arm = arm.with_joint(name, friction=f)
    state = run(arm, q, None, np.zeros(5), 1e-2)
    assert ((state.q == q).all() and (state.v == 0).all()) == (ratio > 1)


def test_stiction_balances_the_inertial_coupling_of_other_joints():
    arm = chain({"axis": "0 0 1"}, {"axis": "0 0 1"}).with_gravity([0, 0, 0])
    M = rigid_body.mass_matrix(arm, [0.0, 0.0])
    reaction = 0.4 * M[0, 1] / M[1, 1]
    for ratio, stays in ((1 + 1e-9, True), (1 - 1e-9, False)):
        rough = arm.with_joint("J1", friction=ratio * reaction)
        assert (run(rough, [0, 0], [0, 0], [0.0, 0.4], 1e-3).v[0] == 0.0) == stays


def test_two_joints_with_dry_friction_are_the_limit_of_small_steps():
    """Sliding, sticking and coupled motion; a quarter of dt gives a quarter of the error."""
    arm = chain({"axis": "0 1 0", "friction": 0.5}, {"axis": "0 1 0", "friction": 0.25})
    start, push = State.of([0.4, 0.6], [-1.0, 2.0]), Command.checked("effort", [0.3, -0.2], 2)
    exact = Plant(arm, "adaptive").step(start, push, 0.01, 150)
    errors = []
    for steps in (3000, 6000, 12000):
        coarse = Plant(arm).step(start, push, 1.5 / steps, steps)
        errors.append(np.abs(coarse.q - exact.q).max())
    assert errors[-1] < 1e-3
    assert 3 < errors[0] / errors[-1] < 6


# --- stops ---


def test_an_impact_on_an_end_stop_is_that_of_a_damped_spring():
    """x = v/w_d e^(-δt) sin(w_d t) beyond the limit; rebound at π/w_d with v e^(-δ π/w_d)."""
    k, b, v = 300.0, 0.8, 1.7
    arm = chain({"axis": "0 0 1", "lower": -0.5, "upper": 0.5})
    arm = arm.with_joint("J1", stop_stiffness=k, stop_damping=b)
    delta = b / (2 * MASS)
    wd = np.sqrt(k / MASS - delta**2)
    touch, out = 0.5 / v, 0.5 / v + np.pi / wd
    back = v * np.exp(-delta * np.pi / wd)
    deep = run(arm, [0.0], [v], [0.0], touch + 0.3 * np.pi / wd)
    x = v / wd * np.exp(-delta * 0.3 * np.pi / wd) * np.sin(0.3 * np.pi)
    assert deep.q[0] == pytest.approx(0.5 + x, abs=1e-10)
    for steps in (1, 30):
        state = run(arm, [0.0], [v], [0.0], (out + 0.2) / steps, steps)
        assert state.v[0] == pytest.approx(-back, rel=1e-9)
        assert state.q[0] == pytest.approx(0.5 - 0.2 * back, abs=1e-9)


def test_a_joint_comes_to_rest_in_its_end_stop():
    """Pushed against the damped spring it settles at limit + τ / k, on either side."""
    arm = chain({"axis": "0 0 1", "lower": -0.5, "upper": 0.5})
    arm = arm.with_joint("J1", stop_stiffness=50.0, stop_damping=5.0)
    for direction in (1, -1):
        state = run(arm, [0.0], [direction * 3.0], [direction * 2.0], 0.05, 60)
        assert state.q[0] == pytest.approx(direction * (0.5 + 2 / 50), abs=1e-9)


def test_the_solution_does_not_depend_on_the_step_size():
    arm = five_dof().with_motors(coulomb_friction=0.5)
    start, volts = arm.configuration("initial"), [3.0, -9.0, 4.0, 0.2, 2.0]
    coarse = run(arm, start, None, volts, 0.05, 4, "voltage")
    fine = run(arm, start, None, volts, 0.002, 100, "voltage")
    np.testing.assert_allclose(coarse.q, fine.q, atol=1e-8)
    np.testing.assert_allclose(coarse.v, fine.v, atol=1e-7)


def test_the_next_state_depends_only_on_the_arguments():
    arm = five_dof().with_motors(coulomb_friction=0.5)
    plant, zero = Plant(arm, "adaptive"), Command.checked("voltage", np.zeros(5), 5)
    start = State.of(arm.configuration("initial"), [0.1, 0.0, 0.3, 0.0, 0.0])
    first = plant.step(start, zero, 0.01)
    plant.step(State.of(arm.configuration("zero"), np.ones(5)), zero, 0.03)
    again = plant.step(start, zero, 0.01)
    np.testing.assert_array_equal(first.q, again.q)
    np.testing.assert_array_equal(first.v, again.v)


def test_prescribed_motion_of_one_joint_and_free_motion_of_the_other():
    """Within a step the servo has constant velocity; the free joint moves as with small steps."""
    arm = chain({"axis": "0 1 0"}, {"axis": "0 1 0", "friction": 0.1})
    servo = replace(
        arm.joints[0],
        actuator="rate_limited",
        constants=MappingProxyType({"max_velocity": 0.5}),
    )
    arm = replace(arm, joints=(servo, arm.joints[1]))
    start, command = State.of([0.0, 0.3]), Command.checked("mixed", [0.1, 0.0], 2)
    exact = Plant(arm, "adaptive").step(start, command, 1e-3, 250)
    coarse = Plant(arm, "rk4").step(start, command, 1e-4, 2500)
    assert exact.q[0] == coarse.q[0] == pytest.approx(0.1)
    assert exact.q[1] == pytest.approx(coarse.q[1], abs=2e-4)


def test_chatter_raises_an_error_that_names_dt_and_joint(monkeypatch):
    monkeypatch.setattr(adaptive, "MAX_EVENTS", 3)
    arm = chain({"axis": "0 0 1", "lower": -0.1, "upper": 0.1})
    arm = arm.with_joint("J1", stop_stiffness=1e3, stop_damping=0)
    with pytest.raises(InvalidValue, match=r"joint 'J1' chatters: more than 3 .*dt = 2 s"):
        run(arm, [0.0], [5.0], [0.0], 2.0)


# --- rejected inputs ---


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("speed", [1e150, 1e200])
@pytest.mark.parametrize("name", ["five_dof", "puma560", "two_link"])
def test_velocities_that_overflow_are_rejected_by_joint(name, speed):
    arm = load_arm(name)
    v = speed * (np.arange(arm.nv) == 0)
    with pytest.raises(InvalidValue, match=f"'{arm.joint_names[0]}' at 1e") as no:
        run(arm, arm.configuration("initial"), v, np.zeros(arm.nv), 1e-4)
    assert "dt = 0.0001 s" in str(no.value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("speed", "dt"), [(1e8, 1e-4), (0.0, 1e300)])
def test_the_number_of_evaluations_is_bounded(speed, dt, monkeypatch):
    monkeypatch.setattr(adaptive, "MAX_EVALUATIONS", 2000)
    arm = load_arm("two_link")
    with pytest.raises(
        InvalidValue, match=r"'J\d' at .* rad/s .* dt = .*more than 2000 evaluations"
    ):
        run(arm, [0.0, 0.0], [speed, 0.0], [0.0, 0.0], dt)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_coordinate_without_influence_does_not_overflow_the_implicit_solver():
    """R1's angle occurs in no equation; its difference step stays finite in each iteration."""
    start, arm, volts = five_dof().configuration("initial"), five_dof(), np.full(5, 12.0)
    whole = run(arm, start, None, volts, 5.0, 1, "voltage")
    parts = run(arm, start, None, volts, 1.0, 5, "voltage")
    np.testing.assert_allclose(whole.q, parts.q, atol=1e-6)
