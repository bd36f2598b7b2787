"""A, B from the traced step: compared with Pinocchio, the plant's differences and linearize."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import chain, five_dof
from scipy.linalg import expm

from arm_dynamics import load_arm
from arm_dynamics.batch import StepDerivative
from arm_dynamics.batch.kernels.derivative import linearize_by_trace
from arm_dynamics.batch.kernels.kernel_cache import KernelRejected
from arm_dynamics.batch.kernels.step_trace import INTEGRATORS
from arm_dynamics.batch.stability.discrete_map import discrete_map
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.state import Command, State
from arm_dynamics.simulation.linearization import find_equilibrium, linearize
from arm_dynamics.simulation.plant import Plant


def full(arm):
    """Add actuator states: current and temperature."""
    return arm.with_motors(
        inductance=5e-3, thermal_resistance=3.0, viscous_friction=0.2, rotor_inertia=0.01
    )


def sliding():
    """Return an arm with a prismatic and a continuous joint."""
    return chain(
        {"axis": "0.6 0 0.8", "kind": "revolute"},
        {"axis": "0 1 0", "kind": "prismatic"},
        {"axis": "-1 0 0", "kind": "continuous"},
    )


ARMS = {
    "five_dof": (five_dof, "voltage"),
    "five_dof, actuator states": (lambda: full(five_dof()), "voltage"),
    "five_dof, effort": (lambda: full(five_dof()), "effort"),
    "puma560": (lambda: load_arm("puma560"), "voltage"),
    "puma560, actuator states": (
        lambda: load_arm("puma560").with_motors(inductance=5e-3),
        "voltage",
    ),
    "four_joint": (lambda: load_arm("four_joint"), "effort"),
    "slider": (sliding, "effort"),
}


def scattered(arm, interface, seed):
    """Return a random state in motion within the limits, and a command."""
    random = np.random.default_rng(seed)
    q = random.uniform(np.maximum(arm.lower, -3), np.minimum(arm.upper, 3))
    v, u = random.normal(size=(2, arm.nv))
    state = State.of(q, v, act=arm.initial_act + 0.1 * random.uniform(size=arm.na))
    return state, Command.checked(interface, u, arm.nv)


def differences(arm, method, state, command, dt, h=1e-5):
    """Return y⁺ of ``Plant.step`` and its central differences in (q, v, z, u)."""
    plant, nv = Plant(arm, method), arm.nv

    def step(x):
        q, v, z, u = np.split(x, [nv, 2 * nv, 2 * nv + arm.na])
        after = plant.step(State.of(q, v, act=z), Command(command.interface, u), dt)
        return np.concatenate([after.q, after.v, after.act])

    x = np.concatenate([state.q, state.v, state.act, command.value])
    return step(x), np.array(
        [(step(x + h * e) - step(x - h * e)) / (2 * h) for e in np.eye(x.size)]
    ).T


def close(found, expected, tolerance):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize(("make", "interface"), ARMS.values(), ids=ARMS)
def test_the_derivative_of_the_traced_rate_equals_pinocchios(make, interface):
    arm = make()
    for seed in range(5):
        state, command = scattered(arm, interface, seed)
        found = linearize_by_trace(arm, state, command)
        expected = linearize(arm, state, command)
        assert found.dt is None
        close(found.A, expected.A, 1e-10)
        close(found.B, expected.B, 1e-10)
        np.testing.assert_allclose(found.decay, expected.decay, rtol=1e-14)


def test_end_stops_are_separate_from_the_traced_rate():
    arm = five_dof()
    command = Command.checked("voltage", np.ones(5), 5)
    beyond = State.of(np.minimum(arm.upper, 3) + 0.1, np.full(5, 0.3))
    close(linearize_by_trace(arm, beyond, command).A, linearize(arm, beyond, command).A, 1e-10)


@pytest.mark.quick(3)
@pytest.mark.parametrize("method", INTEGRATORS)
@pytest.mark.parametrize("own", [False, True])
def test_the_derivative_of_the_traced_step_equals_the_plants_differences(method, own):
    arm = full(five_dof()) if own else five_dof()
    for seed in range(2):
        state, command = scattered(arm, "voltage", seed)
        _, jacobian = differences(arm, method, state, command, 1e-3)
        found = linearize_by_trace(arm, state, command, 1e-3, method)
        assert found.dt == 1e-3
        np.testing.assert_allclose(np.hstack([found.A, found.B]), jacobian, rtol=1e-6, atol=1e-6)


def test_the_derivative_beyond_an_end_stop_equals_the_plants_differences():
    arm = five_dof()
    upper, command = np.minimum(arm.upper, 3), Command("voltage", np.ones(5))
    state = State.of(upper + 0.1, np.full(5, 0.3))
    _, jacobian = differences(arm, "semi_implicit_euler", state, command, 1e-4)
    found = linearize_by_trace(arm, state, command, 1e-4)
    np.testing.assert_allclose(np.hstack([found.A, found.B]), jacobian, rtol=1e-6, atol=1e-6)
    inside = linearize_by_trace(arm, State.of(upper - 0.1, state.v), command, 1e-4)
    assert np.abs(found.A - inside.A).max() > 1e-3


@pytest.mark.parametrize("make", [five_dof, lambda: full(five_dof())])
def test_at_rest_the_derivative_equals_the_map_of_the_stability_analysis(make):
    arm = make()
    state, command = find_equilibrium(arm, [0.3, -0.8, 0.2, 0.4, 0.5], "voltage")
    found = linearize_by_trace(arm, state, command, 1e-4)
    phi, gamma = discrete_map(linearize(arm, state, command), "semi_implicit_euler", 1e-4)
    close(found.A, phi, 1e-9)
    close(found.B, gamma, 1e-9)


@pytest.mark.quick(1)
@pytest.mark.parametrize("make", [five_dof, lambda: full(five_dof())])
def test_the_step_derivative_converges_to_the_rate_derivative(make):
    """(A_d - I) / dt = A + O(dt), for every integrator."""
    arm = make()
    state, command = scattered(arm, "voltage", 3)
    rate = linearize_by_trace(arm, state, command)
    for method in INTEGRATORS:
        step = linearize_by_trace(arm, state, command, 1e-7, method)
        close((step.A - np.eye(len(step.A))) / 1e-7, rate.A, 1e-3)
        close(step.B / 1e-7, rate.B, 1e-3)


def test_rk4_with_actuator_states_is_the_continuous_map_to_its_order():
    """A_d = e^(A dt) + O(dt^5) at rest, where A is complete; half the step, 1/32 of the error."""
    arm = full(five_dof())
    state, command = find_equilibrium(arm, [0.3, -0.8, 0.2, 0.4, 0.5], "voltage")
    rate = linearize(arm, state, command).A
    misses = [
        np.abs(linearize_by_trace(arm, state, command, dt, "rk4").A - expm(dt * rate)).max()
        for dt in (1e-4, 5e-5)
    ]
    assert misses[0] > 24 * misses[1]
    assert misses[1] < 1e-9


# Generated code -------------------------------------------------------------------------------


def two_motors():
    """Return an arm of two joints with motors."""
    motor = {"kt": 2.0, "ke": 1.0, "resistance": 1.0, "supply_voltage": 24.0}
    return load_arm("two_link").with_actuator("dc_motor", **motor)


GENERATED = {
    "four_joint": (lambda: load_arm("four_joint"), "effort", "semi_implicit_euler"),
    "driven": (two_motors, "voltage", "semi_implicit_euler"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "interface", "method"), GENERATED.values(), ids=GENERATED)
def test_the_generated_step_and_derivative_equal_the_plants(make, interface, method):
    arm = make()
    own = StepDerivative(arm, method, interface)
    for seed in range(3):
        state, command = scattered(arm, interface, seed)
        expected, jacobian = differences(arm, method, state, command, 1e-4)
        y = np.concatenate([state.q, state.v, state.act])
        after, A, B = own.step(y, command.value, 1e-4)
        np.testing.assert_allclose(after, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.hstack([A, B]), jacobian, rtol=1e-6, atol=1e-6)
        traced = linearize_by_trace(arm, state, command, 1e-4, method)
        close(A, traced.A, 1e-12)
        close(B, traced.B, 1e-12)
        assert not any(array.flags.writeable for array in (after, A, B))


def test_a_generated_function_that_differs_is_rejected():
    own = StepDerivative(load_arm("four_joint"), "semi_implicit_euler")

    sizes = {
        "q": 4,
        "v": 4,
        "act": 0,
        "command": 4,
        "dt": 1,
        "effort": 4,
        "A": 64,
        "B": 32,
        "constants": 0,
    }

    def step(x):
        after, A, B = own.step(x[:8].copy(), x[8:12].copy(), float(x[12]))
        x[:8], x[17:81], x[81:] = after, A.ravel(), factor * B.ravel()
        return answer

    factor, answer = 1.0, 0
    own._check(SimpleNamespace(LAYOUT=sizes, CONSTANTS=np.empty(0), step=step))
    factor = 1.001
    with pytest.raises(KernelRejected, match="A and B: difference from the plant"):
        own._check(SimpleNamespace(LAYOUT=sizes, CONSTANTS=np.empty(0), step=step))
    factor, answer = 1.0, 1
    with pytest.raises(KernelRejected, match="divergence of a step: difference from the plant"):
        own._check(SimpleNamespace(LAYOUT=sizes, CONSTANTS=np.empty(0), step=step))


def test_rejections_state_the_expected_value():
    own = StepDerivative(load_arm("four_joint"), "semi_implicit_euler")
    y, u = np.zeros(8), np.zeros(4)
    with pytest.raises(InvalidValue, match=r"command = \(7,\), .*expected \(8,\), \(4,\)"):
        own.step(y[:7], u, 1e-4)
    with pytest.raises(InvalidValue, match=r"command = \(8,\), \(1, 4\)"):
        own.step(y, u[None], 1e-4)
    with pytest.raises(InvalidValue, match=r"dt = -1.0 s; .* above 0"):
        own.step(y, u, -1.0)
    with pytest.raises(InvalidValue, match="inf or NaN"):
        own.step(y, np.full(4, np.nan), 1e-4)
    after, _, _ = own.step(y, u, 1e-4)
    assert np.isfinite(after).all()
    with pytest.raises(InvalidValue, match=r"joint '\w+': dry friction"):
        StepDerivative(load_arm("puma560"))
    with pytest.raises(UnknownName, match="voltage"):
        StepDerivative(load_arm("four_joint"), interface="voltage")
    arm = five_dof()
    state, command = scattered(arm, "voltage", 0)
    with pytest.raises(InvalidValue, match="integrator = 'implicit_midpoint'; expected one of"):
        linearize_by_trace(arm, state, command, 1e-3, "implicit_midpoint")
    with pytest.raises(InvalidValue, match="dt"):
        linearize_by_trace(arm, state, command, 0.0)
