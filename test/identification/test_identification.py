"""Identification from recorded motion: regressor, bodies, fit, filter, whole pipeline."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from conftest import five_dof
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import make_interp_spline

from arm_dynamics import Plant, load_arm
from arm_dynamics.core import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rnea
from arm_dynamics.identification import (
    base_parameters,
    compare,
    fit_torque,
    identify,
    nominal_parameters,
    parameter_names,
    prepare_motion,
    regressor,
    with_parameters,
)
from arm_dynamics.identification.efforts.effort_equations import nominal_prior
from arm_dynamics.identification.efforts.motion_preparation import PRESLIDING, dahl_states
from arm_dynamics.identification.efforts.torque_fit import EffortEquations
from arm_dynamics.identification.efforts.torque_problem import TorqueProblem
from arm_dynamics.identification.parameters.base_parameter_set import structural_rows
from arm_dynamics.identification.parameters.consistent_least_squares import (
    NominalPrior,
    regularized_cholesky,
)
from arm_dynamics.identification.parameters.pseudo_inertia import (
    LogDetDivergence,
    consistent_prior,
    from_log_cholesky,
    inertial_parameters,
    is_consistent,
    log_cholesky_metric,
    log_cholesky_parameters,
    pseudo_inertia,
)
from arm_dynamics.recording import MotionData

ARMS = ("two_link", "five_dof", "puma560", "so101", "seven_dof_can")
THETA = st.lists(st.floats(-1.5, 1.5), min_size=10, max_size=10).map(np.array)


# Parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARMS)
def test_the_regressor_times_the_parameters_is_the_inverse_dynamics(name):
    arm = load_arm(name).with_payload(0.3, (0.01, 0.02, 0.03))
    q, v, a = np.random.default_rng(1).uniform(-1, 1, (3, 8, arm.nv))
    parameters = np.array(nominal_parameters(arm))
    viscous, coulomb = parameters[11 * arm.nv : 13 * arm.nv].reshape(2, arm.nv)
    efforts = regressor(arm, q, v, a) @ parameters
    bodies = np.array([rnea(arm, *row) for row in zip(q, v, a, strict=True)])
    np.testing.assert_allclose(efforts, bodies + viscous * v + coulomb * np.sign(v), atol=1e-12)


@pytest.mark.parametrize("name", ARMS)
def test_an_arm_with_its_nominal_parameters_is_the_same_arm(name):
    arm = load_arm(name)
    parameters = nominal_parameters(arm)
    np.testing.assert_allclose(nominal_parameters(with_parameters(arm, parameters)), parameters)


def test_friction_below_that_of_the_motor_replaces_it():
    arm = five_dof().with_motors(viscous_friction=1e-4, coulomb_friction=1e-3)
    values = np.array(nominal_parameters(arm))
    values[11 * arm.nv : 13 * arm.nv] *= 0.5
    np.testing.assert_allclose(nominal_parameters(with_parameters(arm, values)), values)


def test_a_motor_behind_backlash_has_the_parameters_of_a_rigid_gear():
    """Its identified friction replaces that of the rotor; it does not act twice."""
    rigid = five_dof().with_motors(viscous_friction=1e-4, coulomb_friction=1e-3, rotor_inertia=1e-3)
    arm = rigid.with_motor("R2", backlash=0.01, gear_stiffness=3e3, gear_damping=2.0)
    np.testing.assert_array_equal(nominal_parameters(arm), nominal_parameters(rigid))
    for factor in (0.5, 2.0):
        values = np.array(nominal_parameters(arm))
        values[10 * arm.nv : 13 * arm.nv] *= factor
        found, expected = with_parameters(arm, values), with_parameters(rigid, values)
        np.testing.assert_allclose(nominal_parameters(found), values)
        assert found.joints[1].friction == expected.joints[1].friction
        assert found.joints[1].damping == expected.joints[1].damping
        assert found.actuators[1].constants["backlash"] == 0.01
        assert "backlash" not in found.joints[0].constants


@pytest.mark.parametrize(("entry", "name"), [(0, "mass"), (50, "armature"), (60, "coulomb")])
def test_negative_parameters_are_rejected(entry, name):
    arm = five_dof()
    values = np.array(nominal_parameters(arm))
    values[entry] = -0.1
    with pytest.raises(InvalidValue, match=f"joint 'R1': {name}"):
        with_parameters(arm, values)


# Base parameters -------------------------------------------------------------------------------


def test_base_parameters_of_two_link_are_those_of_the_textbook():
    arm = load_arm("two_link")
    base = base_parameters(structural_rows(arm), parameter_names(arm))
    inertial = [base.describe(i) for i in range(base.size) if base.independent[i] < 20]
    length = arm.links.jointPlacements[2].translation[0]
    assert base.size == 13
    assert len(inertial) == 6
    assert f"J2.m + {1 / length:.4g} J1.mx".replace("1 J1", "J1") in inertial


def test_the_puma_has_36_base_parameters_of_bodies_and_rotors():
    arm = load_arm("puma560")
    rows = structural_rows(arm)[:, :60]
    assert base_parameters(rows, parameter_names(arm)[:60]).size == 36


@pytest.mark.parametrize("angle", ["1.5708", "1.571", "1.57"])
def test_rounded_angles_of_a_urdf_do_not_add_base_parameters(angle, tmp_path):
    file = tmp_path / "rounded.urdf"
    file.write_text(load_arm("puma560").urdf.replace("1.5707963267948966", angle))
    rows = structural_rows(load_arm(file))[:, :60]
    assert base_parameters(rows, parameter_names(load_arm("puma560"))[:60]).size == 36


@pytest.mark.parametrize("name", ARMS)
def test_base_parameters_determine_the_efforts(name):
    arm = load_arm(name)
    base = base_parameters(structural_rows(arm), parameter_names(arm))
    values = np.random.default_rng(0).normal(size=14 * arm.nv)
    rows = structural_rows(arm, seed=5)
    np.testing.assert_allclose(
        rows[:, base.independent] @ base.values(values), rows @ values, atol=1e-7
    )


# Bodies ----------------------------------------------------------------------------------------


@given(THETA)
def test_log_cholesky_parameters_are_invertible_and_consistent(theta):
    parameters = from_log_cholesky(theta)
    assert is_consistent(parameters)
    np.testing.assert_allclose(log_cholesky_parameters(parameters), theta, atol=1e-8)
    np.testing.assert_allclose(inertial_parameters(pseudo_inertia(parameters)), parameters)
    body = pin.Inertia.FromDynamicParameters(parameters)
    assert body.mass > 0
    moments = np.linalg.eigvalsh(body.inertia)
    assert moments[0] + moments[1] >= moments[2] * (1 - 1e-9)


def test_a_body_beyond_the_triangle_inequality_is_not_consistent():
    body = pin.Inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.1]))
    assert not is_consistent(body.toDynamicParameters())
    with pytest.raises(InvalidValue, match="positive definite pseudo-inertia"):
        log_cholesky_parameters(body.toDynamicParameters())


@given(THETA, THETA)
def test_the_divergence_is_zero_only_for_equal_bodies_and_has_its_derivatives(one, other):
    body, prior = from_log_cholesky(0.3 * one)[None], from_log_cholesky(0.3 * other)[None]
    divergence = LogDetDivergence(prior)
    assert divergence.value(prior) == pytest.approx(0.0, abs=1e-9)
    assert divergence.value(body) >= -1e-9
    gradient, hessian = divergence.derivatives(body)
    step = 1e-6
    for k in range(10):
        change = np.zeros((1, 10))
        change[0, k] = step
        ends = [divergence.value(body + s * change) for s in (1, -1)]
        gradients = [divergence.derivatives(body + s * change)[0] for s in (1, -1)]
        scale = 1 + np.abs(hessian).max()
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(gradient[0, k], abs=1e-5 * scale)
        np.testing.assert_allclose(
            (gradients[0] - gradients[1])[0] / (2 * step), hessian[0, k], atol=1e-5 * scale
        )


@given(THETA)
def test_the_metric_is_the_curvature_of_the_divergence(theta):
    theta = 0.3 * theta
    body = from_log_cholesky(theta)
    step = 1e-6 * np.eye(10)
    jacobian = (from_log_cholesky(theta + step) - from_log_cholesky(theta - step)).T / 2e-6
    curvature = LogDetDivergence(body[None]).derivatives(body[None])[1][0]
    expected = jacobian.T @ curvature @ jacobian
    found = log_cholesky_metric(theta)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_priors_of_points_rods_and_massless_bodies_are_consistent():
    point = pin.Inertia(2.0, np.array([0.1, 0.0, 0.0]), np.zeros((3, 3))).toDynamicParameters()
    rod = pin.Inertia(1.0, np.zeros(3), np.diag([0.0, 0.1, 0.1])).toDynamicParameters()
    solid = pin.Inertia.FromBox(3.0, 0.1, 0.2, 0.3).toDynamicParameters()
    found = consistent_prior(np.array([point, rod, np.zeros(10), solid]))
    assert all(map(is_consistent, found))
    np.testing.assert_array_equal(found[3], solid)
    np.testing.assert_allclose(found[0, :4], point[:4])


# Fit -------------------------------------------------------------------------------------------


def fourier(arm, seed, seconds, harmonics=5):
    """Return positions, velocities and accelerations (n, nv) as a function of times (n,)."""
    random, nv = np.random.default_rng(seed), arm.nv
    sine, cosine = random.normal(size=(2, nv, harmonics)) / np.arange(1, harmonics + 1)
    omega = 2 * np.pi * 0.1 * np.arange(1, harmonics + 1)
    lower, upper = np.maximum(arm.lower, -2.5), np.minimum(arm.upper, 2.5)

    def at(times):
        s, c = np.sin(np.multiply.outer(times, omega)), np.cos(np.multiply.outer(times, omega))
        waves = sine * s[..., None, :] + cosine * c[..., None, :]
        velocities = (sine * c[..., None, :] - cosine * s[..., None, :]) * omega
        return waves.sum(-1), velocities.sum(-1), -(waves * omega**2).sum(-1)

    q, v, _ = at(np.linspace(0, seconds, 2000))
    size = 0.3 * (upper - lower) / np.abs(q).max(axis=0)
    speed = np.where(arm.velocity_limit > 0, arm.velocity_limit, np.inf)
    size = np.minimum(size, 0.8 * speed / np.abs(v).max(axis=0))

    def scaled(times):
        q, v, a = at(times)
        return (lower + upper) / 2 + size * q, size * v, size * a

    return scaled


def hidden_arm(arm, seed):
    """Return the arm with random bodies, rotor inertia and friction near the description's."""
    random, nv = np.random.default_rng(seed), arm.nv
    values = np.array(nominal_parameters(arm))
    bodies = consistent_prior(values[: 10 * nv].reshape(nv, 10))
    spread = np.array([0.15, 0.1, 0.1, 0.1, *(0.01,) * 6])
    values[: 10 * nv] = np.concatenate(
        [
            from_log_cholesky(log_cholesky_parameters(b) + spread * random.normal(size=10))
            for b in bodies
        ]
    )
    values[10 * nv : 13 * nv] *= random.uniform(0.7, 1.3, 3 * nv)
    return with_parameters(arm, values)


def ideal_equations(arm, actual, seed, noise=0.01, seconds=40.0, rate=50.0):
    """Return equations of exact states with white noise on the efforts, and the true parameters."""
    times, nv = np.arange(0, seconds, 1 / rate), arm.nv
    q, v, a = fourier(arm, 0, seconds)(times)
    rows, own = regressor(arm, q, v, a), np.arange(nv)
    rows[:, own, 12 * nv + own] = 0.0
    values = np.array(nominal_parameters(actual))
    every = np.ones((times.size, nv), dtype=bool)
    block = (2 * times).astype(int)
    equations = EffortEquations(
        rows, np.sign(v)[None], np.zeros(1), np.zeros_like(q), every, every, block
    )
    exact = equations.rows(np.zeros(nv, dtype=int)) @ values
    scale = noise * np.sqrt(np.mean(exact**2, axis=0))
    measured = exact + scale * np.random.default_rng(seed).normal(size=exact.shape)
    return replace(equations, effort=measured), values, exact


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ARMS)
def test_a_fit_predicts_exact_efforts_with_consistent_bodies(name):
    arm = load_arm(name)
    equations, _, exact = ideal_equations(arm, hidden_arm(arm, 3), 0)
    fit = fit_torque(arm, equations)
    predicted = equations.rows(np.zeros(arm.nv, dtype=int)) @ fit.parameters
    error = np.sqrt(np.mean((predicted - exact) ** 2, axis=0) / np.mean(exact**2, axis=0))
    assert error.max() < 0.003
    assert all(map(is_consistent, fit.parameters[: 10 * arm.nv].reshape(-1, 10)))
    assert (fit.parameters[10 * arm.nv : 13 * arm.nv] > 0).all()
    assert not fit.presliding.any()


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ["so101", "puma560"])
@pytest.mark.parametrize("noise", [0.0, 1e-7])
def test_efforts_without_noise_are_fitted(name, noise):
    """Round-off of the information exceeds the prior."""
    arm = load_arm(name)
    equations, _, exact = ideal_equations(arm, hidden_arm(arm, 3), 0, noise=noise)
    fit = fit_torque(arm, equations)
    assert np.isfinite(fit.deviation).all()
    predicted = equations.rows(np.zeros(arm.nv, dtype=int)) @ fit.parameters
    error = np.sqrt(np.mean((predicted - exact) ** 2, axis=0) / np.mean(exact**2, axis=0))
    assert error.max() < 0.001
    assert all(map(is_consistent, fit.parameters[: 10 * arm.nv].reshape(-1, 10)))


def test_an_indefinite_matrix_is_factorized_with_a_larger_diagonal():
    matrix = np.array([[1.0, 1.0 + 1e-9], [1.0 + 1e-9, 1.0]])
    factor, _ = regularized_cholesky(matrix)
    upper = np.triu(factor)
    np.testing.assert_allclose(upper.T @ upper, matrix, atol=2e-7)
    with pytest.raises(np.linalg.LinAlgError):
        regularized_cholesky(-matrix)


def coverage(name, runs):
    """Return the part of the base parameters within 3 of their own standard deviations."""
    arm, inside = load_arm(name), []
    for run in range(runs):
        equations, values, _ = ideal_equations(arm, hidden_arm(arm, run), run, rate=10.0)
        fit = fit_torque(arm, equations)
        error = (fit.base_values - fit.base.values(values)) / fit.base_deviation
        inside.append(np.abs(error) < 3)
    return np.mean(inside)


@pytest.mark.slow
def test_the_stated_deviations_of_base_parameters_are_true():
    assert coverage("five_dof", 12) > 0.98


@pytest.mark.quick(2)
@pytest.mark.parametrize(("name", "payload"), [("so101", 0.1), ("puma560", 2.0)])
@pytest.mark.parametrize("noise", [1e-4, 1e-3, 1e-2])
def test_the_stated_deviations_of_single_parameters_are_true(name, payload, noise):
    """A payload is far from the nominal model; the weights of the prior are 1 to 100 here."""
    arm = load_arm(name)
    actual = arm.with_payload(payload)
    equations, values, _ = ideal_equations(arm, actual, 2, noise=noise, rate=20.0)
    fit = fit_torque(arm, equations)
    error = (fit.parameters - values) / fit.deviation
    assert np.sqrt(np.mean(error**2)) < 1.2
    assert np.abs(error).max() < 4


def test_a_motion_of_one_joint_leaves_the_others_to_the_description():
    arm = load_arm("two_link")
    equations, _, _ = ideal_equations(arm, hidden_arm(arm, 3), 0)
    nv, times = arm.nv, np.arange(0, 40, 0.02)
    q, v, a = fourier(arm, 0, 40.0)(times)
    still = np.array([1.0, 0.0])
    rows, own = regressor(arm, q * still, v * still, a * still), np.arange(nv)
    rows[:, own, 12 * nv + own] = 0.0
    parts = replace(equations, regressor=rows, sliding=(np.sign(v) * still)[None])
    effort = parts.rows(np.zeros(nv, dtype=int)) @ nominal_parameters(arm)
    noise = 1e-3 * np.random.default_rng(0).normal(size=effort.shape)
    fit = fit_torque(arm, replace(parts, effort=effort + noise))
    assert {"J2.viscous", "J2.coulomb", "J2.armature"} <= set(fit.undetermined)


def test_a_rotor_inertia_that_the_description_lacks_is_found_whatever_its_size():
    """Rotors of geared wrists have a multiple of the inertia of their links."""
    arm = load_arm("five_dof")
    values = np.array(nominal_parameters(hidden_arm(arm, 3)))
    values[10 * arm.nv : 11 * arm.nv] = [0.5, 0.5, 0.5, 0.3, 0.3]
    equations, _, _ = ideal_equations(arm, with_parameters(arm, values), 0)
    fit = fit_torque(arm, equations)
    found = dict(zip(parameter_names(arm), fit.parameters, strict=True))
    assert fit.prior_weight >= 0.1
    assert found["R5.armature"] == pytest.approx(0.3, rel=0.05)
    assert "R5.armature" not in fit.undetermined


@pytest.mark.parametrize(
    ("ratio", "least", "expected"),
    [(0.99, 1e-3, 1.0), (0.975, 1e-3, 1e-3), (0.9, 1e-2, 1e-2), (0.9, 10.0, 10.0)],
)
def test_a_weak_prior_has_to_reduce_the_held_out_error(ratio, least, expected, monkeypatch):
    """``ratio`` of the errors of two weights; they increase again below ``least``."""
    problem = object.__new__(TorqueProblem)
    problem._parameters, problem._blocks = np.zeros(1), [slice(None)] * 8

    def error(gamma, starts):
        decades = np.log10(gamma / least)
        return np.full((8, 2), ratio ** -np.abs(decades))

    monkeypatch.setattr(problem, "held_out_error", error)
    assert problem.best_prior_weight() == pytest.approx(expected)


def test_the_deviations_of_a_degenerate_body_are_those_of_the_description():
    """A hundredth of the described body has no deviations of a hundredth."""
    arm = load_arm("two_link")
    equations, _, _ = ideal_equations(arm, arm, 0)
    prior = nominal_prior(arm, equations)
    problem = TorqueProblem(equations, prior)
    small = prior.start.copy()
    small[:20] *= 0.01
    gamma = 1e12  # above the information of the equations
    relative = problem.deviations(gamma, small) / problem.deviations(gamma, prior.start)
    np.testing.assert_allclose(relative[[0, 10]], 0.505, rtol=1e-3)


def test_a_friction_far_above_that_of_the_description_is_determined():
    """The deviation of a relative prior grows with the estimate."""
    arm = load_arm("two_link")
    values = np.array(nominal_parameters(arm))
    values[11 * arm.nv : 12 * arm.nv] *= 1000.0
    equations, _, _ = ideal_equations(arm, with_parameters(arm, values), 0, noise=0.1)
    fit = fit_torque(arm, equations)
    assert not {"J1.viscous", "J2.viscous"} & set(fit.undetermined)
    np.testing.assert_allclose(fit.parameters[22:24], 100.0, rtol=0.05)


def test_too_few_equations_are_rejected():
    arm = load_arm("two_link")
    equations, _, _ = ideal_equations(arm, arm, 0, seconds=2.0)
    with pytest.raises(InvalidValue, match="4 blocks; expected at least 52 in 10"):
        fit_torque(arm, equations)


# Preparation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", PRESLIDING[1:])
def test_dahl_states_solve_their_differential_equation(distance):
    q = 0.5 * np.sin(np.linspace(0, 6, 600_001))
    sign = np.sign(np.gradient(q))
    state = dahl_states(q[:, None], sign[:, None], distance)[:, 0]
    path = np.abs(np.diff(q))
    middle = sign[1:] - (state[1:] + state[:-1]) / 2
    same = (sign[1:] == sign[:-1]) & (path > 0)
    slope = np.diff(state)[same] / path[same]
    np.testing.assert_allclose(slope, middle[same] / distance, atol=1e-4 / distance)
    assert np.abs(state).max() <= 1.0


def simulated(arm, actual, seed, seconds, *, noise=1e-4, delay=0.005):
    """Return a recording of the arm ``actual`` at 500 Hz, and the same without noise and delay.

    Positions have ``noise`` [rad] and 16 bits per turn, efforts 1 % noise and a ``delay`` [s].
    """
    period, motion, plant = 0.002, fourier(arm, seed, seconds), Plant(actual)
    time = period * (1 + np.arange(int(seconds / period)))
    q, v, _ = motion(np.array(0.0))
    state, positions, efforts = State.of(q, v), [], []
    for t in time - period:
        q, v, a = motion(t)
        a = a + 400.0 * (q - state.q) + 40.0 * (v - state.v)
        command = Command.checked("effort", rnea(actual, state.q, state.v, a), arm.nv)
        state = plant.step(state, command, period / 4, 4)
        positions.append(state.q)
        efforts.append(state.tau)
    q, effort = np.array(positions), np.array(efforts)
    random, bit = np.random.default_rng(seed), 2 * np.pi / 2**16
    measured = bit * np.round((q + noise * random.normal(size=q.shape)) / bit)
    late = make_interp_spline(time, effort, 1)(np.maximum(time - delay, time[0]))
    late += 0.01 * np.sqrt(np.mean(effort**2, axis=0)) * random.normal(size=q.shape)
    exact = MotionData(arm.joint_names, time, q, effort, "exact")
    return MotionData(arm.joint_names, time, measured, late, "simulated"), exact


@pytest.fixture(scope="module")
def five_dof_motions():
    arm = load_arm("five_dof")
    actual = hidden_arm(arm, 3)
    recorded, _ = simulated(arm, actual, 0, 40.0)
    held_out, exact = simulated(arm, actual, 1, 20.0)
    return arm, actual, recorded, held_out, exact


def test_the_delay_of_the_efforts_is_found(five_dof_motions):
    # A command is held for a period: its effort is on average half a period older than the state.
    arm, _, recorded, _, _ = five_dof_motions
    assert prepare_motion(arm, recorded).delay == pytest.approx(0.006, abs=5e-4)


def test_an_identified_arm_predicts_held_out_efforts(five_dof_motions):
    arm, _, recorded, held_out, exact = five_dof_motions
    result = identify(arm, [recorded], [held_out], simulate=False)
    assert result.before.relative_error.max() > 0.5
    assert result.after.relative_error.max() < 0.02
    assert compare(result.identified, exact).relative_error.max() < 0.02
    assert result.notes[1].startswith("efforts: delay")


def test_without_held_out_motion_the_end_of_each_recording_checks_the_result(five_dof_motions):
    arm, _, recorded, _, _ = five_dof_motions
    result = identify(arm, [recorded], simulate=False)
    assert result.sources == ("simulated (first 70 %)",)
    assert result.held_out == ("simulated (last 30 %)",)
    assert result.after.relative_error.max() < 0.02


def test_a_recording_does_not_check_its_own_fit_and_does_not_count_twice(five_dof_motions):
    arm, _, recorded, held_out, _ = five_dof_motions
    copy = replace(recorded, source="copy")
    for motions, checks in (([recorded], [copy]), ([recorded, copy], [held_out])):
        with pytest.raises(InvalidValue, match="simulated and copy: two recordings are identical"):
            identify(arm, motions, checks)


def test_a_held_out_part_that_is_too_short_is_named_with_its_samples_and_the_remedy(
    five_dof_motions,
):
    arm, _, recorded, _, _ = five_dof_motions
    short = recorded.part(slice(None, None, 80))
    with pytest.raises(
        InvalidValue,
        match=r"simulated \(last 30 %\): samples = 75 at 6.25 Hz, 0 after .*; record a longer motio"
        r"n, or pass another recording with --held-out",
    ):
        identify(arm, [short], simulate=False)


def test_stops_of_a_joint_do_not_count(five_dof_motions):
    arm, _, recorded, _, _ = five_dof_motions
    q = np.array(recorded.q)
    first, last = 5000, 7500
    q[first:last, 0] = q[first, 0]
    prepared = prepare_motion(arm, replace(recorded, q=q), 5.0, 0.0)
    during = (prepared.time > recorded.time[first] + 0.3) & (
        prepared.time < recorded.time[last] - 0.3
    )
    assert not prepared.equations.moving[during, 0].any()
    assert prepared.equations.moving[:, 1].mean() > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_link", "puma560", "so101"])
def test_identified_arms_predict_held_out_efforts(name):
    arm = load_arm(name)
    actual = hidden_arm(arm, 3)
    recorded, _ = simulated(arm, actual, 0, 40.0)
    _, exact = simulated(arm, actual, 1, 20.0)
    result = identify(arm, [recorded], [exact], simulate=name == "two_link")
    assert result.after.relative_error.max() < 0.02


def test_recordings_that_determine_nothing_are_rejected(five_dof_motions):
    arm, _, recorded, _, _ = five_dof_motions
    with pytest.raises(InvalidValue, match="no joint efforts in the recording"):
        prepare_motion(arm, replace(recorded, effort=None))
    still = replace(recorded, q=np.zeros_like(recorded.q))
    with pytest.raises(InvalidValue, match="motion = 0 rad; expected more than"):
        prepare_motion(arm, still)
    short = slice(0, 200)
    cut = replace(
        recorded, time=recorded.time[short], q=recorded.q[short], effort=recorded.effort[short]
    )
    with pytest.raises(InvalidValue, match="record a longer motion"):
        prepare_motion(arm, cut, 5.0)
    with pytest.raises(InvalidValue, match="motions = 0"):
        identify(arm, [])


def test_a_joint_at_rest_is_named_and_has_no_error():
    arm = load_arm("two_link")
    time = np.arange(0, 20, 0.004)
    q, v, a = np.array(fourier(arm, 0, 20.0)(time)) * [1.0, 0.0]
    effort = regressor(arm, q, v, a) @ np.array(nominal_parameters(arm))
    result = identify(arm, [MotionData(arm.joint_names, time, q, effort)], simulate=False)
    assert any("joints J2: at rest or saturated in all samples" in note for note in result.notes)
    assert np.isnan(result.after.relative_error).tolist() == [False, True]
    assert result.after.relative_error[0] < 0.02


# Prior of the nominal model --------------------------------------------------------------------


def test_the_divergence_from_a_description_has_its_derivatives():
    """Bodies, friction, offsets and further terms, each against finite differences."""
    body = pin.Inertia.FromBox(3.0, 0.1, 0.2, 0.3).toDynamicParameters()
    prior = NominalPrior(
        np.array([body, body]), np.array([0.1, 0.2, 0.5, 0.4, 2.0, 3.0]), np.array([0.5, 4.0]),
        np.array([0.05, 7.0]),
    )  # fmt: skip
    assert prior.divergence(prior.start) == pytest.approx(0.0, abs=1e-12)
    away = prior.start * np.linspace(1.01, 1.2, prior.start.size)
    away[26:28] = 0.3, -2.0
    gradient, hessian = prior.derivatives(away)
    steps = 1e-5 * np.diag(np.where(np.abs(away) > 1e-9, np.abs(away), 1e-3))
    for k, step in enumerate(steps):
        size = 2 * step[k]
        slope = (prior.divergence(away + step) - prior.divergence(away - step)) / size
        curvature = (prior.derivatives(away + step)[0] - prior.derivatives(away - step)[0]) / size
        assert gradient[k] == pytest.approx(slope, rel=1e-6, abs=1e-5)
        np.testing.assert_allclose(
            hessian[k], curvature, rtol=1e-6, atol=1e-6 * np.abs(hessian).max()
        )
