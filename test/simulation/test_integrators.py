"""Integrators: their order, stiff actuator states, conserved quantities of symplectic ones."""

from functools import cache

import numpy as np
import pytest
from conftest import chain, five_dof
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.state import Command, State
from arm_dynamics.simulation.equations_of_motion import EquationsOfMotion
from arm_dynamics.simulation.integrators import INTEGRATORS, find_integrator
from arm_dynamics.simulation.integrators.exponential_step import exponential_step, phi_functions
from arm_dynamics.simulation.plant import Plant

OMEGA = 3.0
NONE = np.zeros(0)
FIXED = [name for name in INTEGRATORS if name != "adaptive"]


class SecondOrderSystem:
    """A system without actuator states: v̇ = a(q, v)."""

    groups = ()
    joint_names = ("J1",)
    lower, upper = np.array([-np.inf]), np.array([np.inf])

    def __init__(self, a):
        self.a = a

    def acceleration(self, q, v, z):
        return self.a(q, v)


class Linear:
    """ẏ = A y with y = (q, v, z): the first nv rows are q̇ = v, λ is on the diagonal of z."""

    joint_names = ("J1", "J2")
    lower, upper = np.full(2, -np.inf), np.full(2, np.inf)

    def __init__(self, A, nv=2, groups=None):
        self.A, self.nv, self.decay = A, nv, -np.diag(A)[2 * nv :]
        self.groups = groups or (np.arange(self.decay.size),)

    def acceleration(self, q, v, z):
        return self.A[self.nv : 2 * self.nv] @ np.concatenate([q, v, z])

    def implicit_acceleration(self, q, v, z, dt):
        """Return the acceleration at the new velocity, to first order.

        a(q, v, z + dt φ₁ ∂ż/∂v (v⁺ - v))
        """
        n, A = self.nv, self.A
        back = A[n : 2 * n, 2 * n :] @ (
            dt * phi_functions(self.decay * dt)[0][:, None] * A[2 * n :, n : 2 * n]
        )
        return np.linalg.solve(np.eye(n) - dt * back, self.acceleration(q, v, z))

    def act_dot_terms(self, q, v, z):
        rate = self.A[2 * self.nv :] @ np.concatenate([q, v, z])
        return self.decay.copy(), rate + self.decay * z


def oscillate(method, dt, end=1.0):
    q, v = np.array([1.0]), np.array([0.5])
    for _ in range(round(end / dt)):
        method.advance(SecondOrderSystem(lambda q, v: -(OMEGA**2) * q - 0.2 * v), q, v, NONE, dt)
    return np.concatenate([q, v])


def observed_orders(errors):
    """Return the observed orders for halved time steps."""
    return np.log2(np.divide(errors[:-1], errors[1:]))


@pytest.mark.parametrize("name", FIXED)
def test_the_error_decreases_with_the_order_of_the_integrator(name):
    method = find_integrator(name)
    root = np.sqrt(OMEGA**2 - 0.01)
    b = (0.5 + 0.1) / root
    q = np.exp(-0.1) * (np.cos(root) + b * np.sin(root))
    v = -0.1 * q + np.exp(-0.1) * root * (b * np.cos(root) - np.sin(root))
    errors = [np.abs(oscillate(method, dt) - [q, v]).max() for dt in (2e-3, 1e-3, 5e-4)]
    np.testing.assert_allclose(observed_orders(errors), method.order, atol=0.05)


def coupled():
    """Return a random system of two joints and three actuator states."""
    rng = np.random.default_rng(3)
    A = np.zeros((7, 7))
    A[:2, 2:4] = np.eye(2)
    A[2:4] = rng.normal(size=(2, 7)) - 4 * np.eye(2, 7) - np.eye(2, 7, 2)
    A[4:] = rng.normal(size=(3, 7))
    A[4:, 4:] -= np.diag([1.0, 4.0, 9.0]) + np.diag(np.diag(A[4:, 4:]))
    return A


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("groups", [None, (np.array([2, 0]), np.array([1]))])
def test_order_with_actuator_states_against_the_matrix_exponential(name, groups):
    A, start = coupled(), np.array([1.0, -0.5, 0.3, 0.2, 1.0, -1.0, 0.5])
    method, exact, errors = find_integrator(name), expm(A) @ start, []
    for dt in (1 / 64, 1 / 128, 1 / 256, 1 / 512):
        q, v, z = start[:2].copy(), start[2:4].copy(), start[4:].copy()
        for _ in range(round(1 / dt)):
            method.advance(Linear(A, groups=groups), q, v, z, dt)
        errors.append(np.abs(np.concatenate([q, v, z]) - exact).max())
    np.testing.assert_allclose(observed_orders(errors)[-1], method.order, atol=0.1)


@cache
def slow_windings():
    """Return five_dof with inductance and heat, and its state after 0.1 s to round-off."""
    arm = five_dof().with_motors(
        inductance=0.05, thermal_resistance=3.0, thermal_time_constant=0.2, rotor_inertia=0.05
    )
    motion, start = EquationsOfMotion(arm), arm_start(arm)
    motion.set_command(Command.checked("voltage", VOLTS, 5))

    def rate(t, y):
        q, v, z = y[:5], y[5:10], y[10:]
        decay, source = motion.act_dot_terms(q, v, z)
        return np.concatenate([v, motion.acceleration(q, v, z), source - decay * z])

    ode = solve_ivp(rate, (0, 0.1), start, "DOP853", rtol=3e-14, atol=1e-15)
    return arm, ode.y[:, -1]


VOLTS = [2.0, 6.0, -4.0, 1.0, 0.5]


def arm_start(arm):
    return np.concatenate([[0.2, -0.8, 0.1, 0.3, 0.2], [0.0] * 5, arm.initial_act])


@pytest.mark.parametrize("name", FIXED)
def test_order_for_an_arm_with_inductance_and_heat(name):
    arm, exact = slow_windings()
    start, plant, errors = arm_start(arm), Plant(arm, name), []
    steps = (25, 50, 100) if plant.integrator.order == 4 else (200, 400, 800)
    for n in steps:
        state = State.of(start[:5], start[5:10], act=start[10:])
        after = plant.step(state, Command.checked("voltage", VOLTS, 5), 0.1 / n, n)
        errors.append(np.abs(np.concatenate([after.q, after.v, after.act]) - exact).max())
    np.testing.assert_allclose(observed_orders(errors)[-1], plant.integrator.order, atol=0.1)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_winding_ten_times_faster_than_the_step_is_stable_and_accurate(name):
    """L/R = 0.1 ms, dt = 1 ms: the current follows the voltage minus the back-EMF."""
    arm = five_dof().with_motors(inductance=1e-4, rotor_inertia=0.1)
    settled = five_dof().with_motors(rotor_inertia=0.1)
    start = State.of(arm.configuration("initial"), np.zeros(5), np.zeros(5))
    volts = Command.checked("voltage", [2.0, 6.0, -3.0, 0.5, 0.3], 5)
    after = Plant(arm, name).step(start, volts, 1e-3, 300)
    exact = Plant(settled, "rk4").step(start, volts, 1e-4, 3000)
    np.testing.assert_allclose(after.q, exact.q, atol=3e-3)
    ke = np.array([10, 10, 10, 1, 1])
    np.testing.assert_allclose(after.act, volts.value - ke * after.v, atol=0.02)


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("decay", [1e3, 1e6, 1e12])
def test_actuator_states_decay_at_any_rate(name, decay):
    """ż = λ (v - z) with v̇ = -z: v = e^-t for λ → ∞; dt λ up to 1e10."""
    A = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [0.0, decay, -decay]])
    q, v, z = np.zeros(1), np.ones(1), np.ones(1)
    for _ in range(100):
        find_integrator(name).advance(Linear(A, nv=1), q, v, z, 0.01)
    slow = (decay - np.sqrt(decay**2 - 4 * decay)) / 2
    assert v[0] == pytest.approx(np.exp(-slow), rel=0.02)


@given(st.floats(0, 60))
def test_phi_equals_its_definition(x):
    """φ_k(-x) = ∫ e^(-x (1 - s)) s^(k-1) / (k-1)! ds over [0, 1], by Gauss-Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    s, w = (nodes + 1) / 2, weights / 2
    exact = [w @ (np.exp(-x * (1 - s)) * s**k / f) for k, f in ((0, 1), (1, 1), (2, 2))]
    np.testing.assert_allclose(phi_functions(np.array([x]))[:, 0], exact, rtol=2e-13)


def test_phi_at_zero_and_infinity():
    np.testing.assert_array_equal(phi_functions(np.array([0.0, 1e300]))[:, 0], [1, 1 / 2, 1 / 6])
    assert (phi_functions(np.array([1e300, np.inf]))[:, 1] == 0).all()


@given(st.floats(0, 1e9), st.floats(-5, 5), st.floats(-5, 5), st.floats(1e-6, 1.0))
def test_two_half_steps_of_relaxation_equal_one(decay, z, goal, dt):
    decays, source = np.array([decay]), np.array([decay * goal])
    once = exponential_step(np.array([z]), decays, source, dt)
    twice = exponential_step(
        exponential_step(np.array([z]), decays, source, dt / 2), decays, source, dt / 2
    )
    np.testing.assert_allclose(once, twice, atol=1e-13)
    np.testing.assert_allclose(once, goal + (z - goal) * np.exp(-decay * dt), atol=1e-13)


def test_semi_implicit_euler_by_hand():
    q, v = np.array([1.0]), np.array([2.0])
    find_integrator("semi_implicit_euler").advance(
        SecondOrderSystem(lambda q, v: 10 * q + v), q, v, NONE, 0.1
    )
    assert v[0] == pytest.approx(2 + 0.1 * 12, rel=1e-15)
    assert q[0] == pytest.approx(1 + 0.1 * 3.2, rel=1e-15)


def test_explicit_euler_by_hand():
    q, v = np.array([1.0]), np.array([2.0])
    find_integrator("explicit_euler").advance(
        SecondOrderSystem(lambda q, v: 10 * q + v), q, v, NONE, 0.1
    )
    assert v[0] == pytest.approx(2 + 0.1 * 12, rel=1e-15)
    assert q[0] == pytest.approx(1 + 0.1 * 2, rel=1e-15)


def test_semi_implicit_euler_conserves_the_shadow_energy():
    """The map conserves v² + w² q² - dt w² q v exactly, so that energy does not drift."""
    method, dt = find_integrator("semi_implicit_euler"), 0.01
    q, v = np.array([1.0]), np.array([0.0])
    shadow = []
    for _ in range(20000):
        method.advance(SecondOrderSystem(lambda q, v: -(OMEGA**2) * q), q, v, NONE, dt)
        shadow.append((v**2 + OMEGA**2 * q**2 - dt * OMEGA**2 * q * v)[0])
    assert np.ptp(shadow) < 1e-9


@pytest.mark.parametrize("stiffness", [9.0, 1e8])
def test_midpoint_conserves_a_quadratic_energy(stiffness):
    """Also where dt w = 100 and only Newton's iteration converges."""
    q, v = np.array([1.0]), np.array([0.0])
    for _ in range(1000):
        system = SecondOrderSystem(lambda q, v: -stiffness * q)
        find_integrator("implicit_midpoint").advance(system, q, v, NONE, 0.01)
    assert v[0] ** 2 + stiffness * q[0] ** 2 == pytest.approx(stiffness, rel=1e-9)


@pytest.mark.slow
def test_midpoint_solves_end_stops_with_discontinuous_damping():
    """Repeated impacts of a light joint on its end stop; every step has a solution."""
    arm = chain({"axis": "0 0 1", "lower": -0.1, "upper": 0.1, "mass": 0.01, "ixx": 1e-4})
    arm = arm.with_joint("J1", stop_stiffness=50.0, stop_damping=5.0)
    speeds = []
    for v in np.linspace(0.5, 40.0, 20):
        state = State.of([0.0], [v])
        push = Command.checked("effort", [0.1], 1)
        state = Plant(arm, "implicit_midpoint").step(state, push, 1e-3, 1200)
        speeds.append(state.v[0])
        assert state.q[0] == pytest.approx(0.1 + 0.1 / 50, abs=1e-6)
    assert np.abs(speeds).max() < 1e-5


def test_midpoint_without_a_solution_names_step_and_joint():
    system = SecondOrderSystem(lambda q, v: np.where(v > 0, -1e3, 1e3) * 1.0)
    q, v = np.array([0.0]), np.array([0.5])
    with pytest.raises(InvalidValue, match=r"at joint 'J1' with dt = 0.01 s"):
        find_integrator("implicit_midpoint").advance(system, q, v, NONE, 0.01)


@pytest.mark.parametrize("name", FIXED)
def test_systems_without_actuator_states_need_no_act_dot_terms(name):
    """This system has no method ``act_dot_terms``."""
    q, v = np.array([1.0]), np.array([0.0])
    find_integrator(name).advance(SecondOrderSystem(lambda q, v: -q), q, v, NONE, 0.1)
    assert q[0] != 1.0 or v[0] != 0.0


def test_an_unknown_name_lists_the_integrators():
    with pytest.raises(
        UnknownName, match=r"unknown integrator 'rk9'; known: .*semi_implicit_euler"
    ):
        find_integrator("rk9")
