"""Friction: closed forms of one joint, breakaway of many, conditions of the friction impulse."""

import numpy as np
import pytest
from conftest import chain, examples, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.simulation.friction import velocity_after_dry_friction, viscous_effort
from arm_dynamics.simulation.integrators import INTEGRATORS
from arm_dynamics.simulation.plant import Plant

MASS = 0.02 + 0.25**2
"""Inertia of the joint of ``chain({})`` [kg·m²]."""


def run(arm, state, effort, dt=1e-3, steps=1000):
    return Plant(arm).step(state, Command.checked("effort", effort, arm.nv), dt, steps)


def turntable(friction):
    return chain({"axis": "0 0 1", "friction": friction, "kind": "continuous"})


def test_a_sliding_joint_decelerates_at_f_over_m_until_rest():
    state = run(turntable(0.1), State.of([0.0], [1.0]), [0.0], dt=1e-4, steps=5000)
    assert state.v[0] == pytest.approx(1 - 0.1 / MASS * 0.5, rel=1e-10)
    stopped = run(turntable(0.1), state, [0.0], dt=1e-4, steps=5000)
    assert stopped.v[0] == 0.0
    assert stopped.q[0] == pytest.approx(MASS / (2 * 0.1), rel=1e-3)
    assert run(turntable(0.1), stopped, [0.0]).q[0] == stopped.q[0]


@pytest.mark.parametrize("push", [0.0999, -0.0999, 0.05, 0.0])
def test_a_joint_below_its_breakaway_effort_stays_exactly_at_rest(push):
    state = run(turntable(0.1), State.of([0.3]), [push])
    assert (state.q[0], state.v[0]) == (0.3, 0.0)


@pytest.mark.parametrize("push", [0.1001, -0.1001, 3.0])
def test_above_breakaway_the_excess_effort_accelerates(push):
    state = run(turntable(0.1), State.of([0.3]), [push])
    assert state.v[0] == pytest.approx((push - np.sign(push) * 0.1) / MASS, rel=1e-9)


def test_velocity_decays_exponentially_under_viscous_friction():
    arm = chain({"axis": "0 0 1", "damping": 0.4, "kind": "continuous"})
    state = run(arm, State.of([0.0], [2.0]), [0.0], dt=1e-5, steps=20000)
    assert state.v[0] == pytest.approx(2 * np.exp(-0.4 * 0.2 / MASS), rel=1e-4)
    assert viscous_effort(2.0, 0.4) == -0.8


def is_holding(arm, q, ratio):
    """Return whether the arm rests if friction is ``ratio`` times the gravity torque."""
    weight = np.abs(rigid_body.gravity(arm, q))
    for name, f in zip(arm.joint_names, ratio * weight + 1e-6, strict=True):
        arm = arm.with_joint(name, friction=f)
    state = run(arm, State.of(q), [0.0] * arm.nv, steps=200)
    return (state.q == q).all() and (state.v == 0).all(), state


def test_gravity_is_held_exactly_up_to_the_breakaway_effort():
    q = np.array([0.0, -1.1, 0.3, 0.2, 0.4])
    free = five_dof().with_actuator("ideal")
    assert is_holding(free, q, 1.001)[0]
    held, state = is_holding(free, q, 0.999)
    assert not held
    # The motion is downward: potential energy decreases.
    assert rigid_body.potential_energy(free, state.q) < rigid_body.potential_energy(free, q)


def test_stiction_balances_the_inertial_coupling():
    """A torque on joint 2 acts on joint 1 with M12/M22 of it, balanced by stiction."""
    arm = chain({"axis": "0 0 1"}, {"axis": "0 0 1"}).with_gravity([0, 0, 0])
    M = rigid_body.mass_matrix(arm, [0.0, 0.0])
    push = 0.4
    reaction = push * M[0, 1] / M[1, 1]
    for ratio, stays in ((1.01, True), (0.99, False)):
        rough = arm.with_joint("J1", friction=ratio * reaction)
        state = run(rough, State.of([0.0, 0.0]), [0.0, push], dt=1e-4, steps=1)
        assert (state.v[0] == 0.0) == stays
        assert state.v[1] > 0


def test_viscous_friction_of_the_motor_adds_to_that_of_the_joint():
    arm = five_dof().with_gravity([0, 0, 0]).with_joint("R1", damping=0.3)
    arm = arm.with_motors(gear_ratio=2.0, viscous_friction=0.05)
    q, v = [0.0, -1.1, 0.3, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0, 0.0]
    after = run(arm, State.of(q, v), [0.0] * 5, dt=1e-6, steps=1)
    pull = np.array([-(0.3 + 4 * 0.05) * 0.1, 0, 0, 0, 0])
    expected = rigid_body.aba(arm, q, v, pull)
    np.testing.assert_allclose((after.v - v) / 1e-6, expected, rtol=1e-6, atol=1e-8)


def test_motor_friction_is_scaled_to_the_joint():
    arm = five_dof().with_gravity([0, 0, 0])
    arm = arm.with_motors(gear_ratio=10.0, coulomb_friction=0.02)
    below, above = (run(arm, State.of([0.0] * 5), [u, 0, 0, 0, 0]) for u in (0.199, 0.201))
    assert (below.q == 0).all()
    assert above.v[0] > 0
    # Geared constants: kt N = 100 N·m/A at the joint; the current loop maintains the effort.
    assert below.tau[0] == pytest.approx(0.199, rel=1e-12)


@st.composite
def impulses(draw):
    size = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    root = rng.normal(size=(size, size))
    M = root @ root.T + 0.3 * np.eye(size)
    bound = np.where(rng.random(size) < 0.2, 0.0, rng.exponential(1.0, size))
    return M, rng.normal(size=size), bound


@settings(max_examples=examples(300))
@given(impulses())
def test_the_impulse_satisfies_coulomb_friction(case):
    M, v, bound = case
    after = velocity_after_dry_friction(v, np.linalg.inv(M), bound, bound)
    impulse = M @ (after - v)
    assert (np.abs(impulse) <= bound + 1e-8).all()
    moving = after != 0
    np.testing.assert_allclose(impulse[moving], -(bound * np.sign(after))[moving], atol=1e-8)
    # Friction dissipates the maximum possible energy.
    assert after @ M @ after <= v @ M @ v + 1e-9
    assert impulse @ after <= 1e-9


@given(st.floats(-10, 10), st.floats(0.1, 10), st.floats(0, 5))
def test_the_impulse_of_one_joint_is_a_dead_band(v, m, bound):
    after = velocity_after_dry_friction(
        np.array([v]), np.array([[1 / m]]), np.array([bound]), np.array([bound])
    )[0]
    expected = np.sign(v) * max(0.0, abs(v) - bound / m)
    assert after == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("method", INTEGRATORS)
def test_a_stuck_joint_does_not_creep(method):
    """For every integrator and step: under gravity q is constant to the last bit."""
    weight = rigid_body.gravity(chain({}), [0.2])[0]
    start = State.of([0.2])
    arm = chain({"friction": 1.01 * abs(weight)})
    end = Plant(arm, method).step(start, Command.checked("effort", [0.0], 1), 0.02, 20)
    assert (end.q[0], end.v[0]) == (0.2, 0.0)


@pytest.mark.parametrize("method", INTEGRATORS)
def test_friction_changes_positions_according_to_the_integrator(method):
    """One step of a sliding joint by hand: v changes by -f dt / m, q follows the integrator's v."""
    dt, v = 1e-3, 2.0
    end = Plant(turntable(0.5), method).step(
        State.of([0.0], [v]), Command.checked("effort", [0.0], 1), dt
    )
    slower = v - 0.5 * dt / MASS
    moved = {"explicit_euler": v, "semi_implicit_euler": slower}.get(method, (v + slower) / 2)
    assert end.v[0] == pytest.approx(slower, rel=1e-12)
    assert end.q[0] == pytest.approx(dt * moved, rel=1e-12)


@pytest.mark.parametrize("method", INTEGRATORS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("push", "stays"), [(1.5, True), (1.99, True), (2.2, False)])
def test_a_reversing_joint_moves_only_above_its_breakaway_effort(method, sign, push, stays):
    """m v' = -u - f sign(v) brings v to 0 early in the step; then u moves it iff u > fs.

    The initial velocity is ten times the Stribeck velocity: kinetic friction is fc = 1, fs = 2.
    """
    motor = {"kt": 1.0, "ke": 1.0, "resistance": 1.0, "coulomb_friction": 1.0, "stiction": 2.0}
    arm = turntable(0.0).with_actuator("dc_motor", **motor, stribeck_velocity=1e-4)
    pushing = Command.checked("effort", [-sign * push], 1)
    end = Plant(arm, method).step(State.of([0.3], [sign * 1e-3]), pushing, 1e-3)
    assert (end.v[0] == 0.0) == stays
    after = Plant(arm, method).step(end, pushing, 1e-3, 5)
    assert (after.v[0] == 0.0) == stays
    assert stays or sign * after.v[0] < 0


@pytest.mark.parametrize("method", INTEGRATORS)
@pytest.mark.parametrize("dt", [1e-4, 1e-3])
def test_braking_terms_do_not_change_the_breakaway_effort(method, dt):
    """Back-EMF and viscous friction act only in motion: N Kt V / R = N fc at any step."""
    arm = five_dof().with_gravity([0, 0, 0]).with_motors(rotor_inertia=0.01)
    arm = arm.with_motor("R1", coulomb_friction=1.0).with_joint("R1", damping=20.0)
    plant = Plant(arm, method)
    for ratio, moves in ((1 - 1e-9, False), (1 + 1e-6, True)):
        volts = Command.checked("voltage", [0.1 * ratio, 0, 0, 0, 0], 5)
        end = plant.step(State.of([0.0] * 5), volts, dt, 3)
        assert (end.v[0] != 0) == moves
        assert (end.q[0] != 0) == moves
