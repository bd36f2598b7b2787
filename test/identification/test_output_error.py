"""Output error: minimization, simulation under measured efforts, refinement of a torque fit."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
import scipy.signal
from scipy.interpolate import make_interp_spline

from arm_dynamics import Plant, load_arm
from arm_dynamics.core import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.identification import (
    fit_torque,
    nominal_parameters,
    prepare_motion,
    with_parameters,
)
from arm_dynamics.identification.efforts.effort_simulation import EffortSimulation
from arm_dynamics.identification.efforts.motion_preparation import FAST_RATIO
from arm_dynamics.identification.efforts.output_error import OutputError, differences
from arm_dynamics.identification.efforts.output_error_refinement import ParameterChart, refine
from arm_dynamics.identification.efforts.tracking_controller import tracking_controller
from arm_dynamics.identification.parameters.pseudo_inertia import is_consistent
from arm_dynamics.recording import MotionData

TIMES = np.linspace(0.01, 3.0, 200)
ACTUAL = np.array([1.2, -0.3])


def oscillator(points):
    """Return positions (k, 200, 1) of ẍ = -exp(2 w) x - exp(c) ẋ from x = 1 at rest."""
    frequency, decay = np.exp(points[:, :1]), np.exp(points[:, 1:]) / 2
    omega = np.sqrt(frequency**2 - decay**2)
    wave = np.cos(omega * TIMES) + decay / omega * np.sin(omega * TIMES)
    return (np.exp(-decay * TIMES) * wave)[..., None]


def problem(seed=None, noise=1e-3, precision=0.0):
    measured = oscillator(ACTUAL[None])[0]
    if seed is not None:
        measured = measured + noise * np.random.default_rng(seed).normal(size=measured.shape)
    weights = np.full(measured.shape, noise**-2)
    prior = precision * np.eye(2)

    def residuals(points):
        return oscillator(points) - measured

    return OutputError(residuals, differences(residuals, 1e-5), weights, prior, np.zeros(2))


def test_parameters_of_least_output_error_are_the_true_ones():
    fit = problem().minimum(np.array([1.0, 0.0]), 20, 1e-12)
    np.testing.assert_allclose(fit.parameters, ACTUAL, atol=1e-6)
    assert (np.diff(fit.costs) < 0).all()
    assert np.abs(fit.residual).max() < 1e-6


def test_the_inverse_hessian_is_the_covariance_of_repeated_measurements():
    found = [problem(k).minimum(ACTUAL, 10, 1e-6).parameters for k in range(100)]
    stated = np.linalg.inv(problem(0).hessian(ACTUAL))
    np.testing.assert_allclose(np.cov(np.array(found).T), stated, rtol=0.4, atol=0.2 * stated.max())


def test_a_strong_prior_keeps_its_center():
    fit = problem(precision=1e12).minimum(np.zeros(2), 10, 1e-6)
    np.testing.assert_allclose(fit.parameters, 0, atol=1e-4)


def test_a_simulation_that_diverges_at_the_start_is_rejected_and_elsewhere_avoided():
    measured, weights = oscillator(ACTUAL[None])[0], np.ones((200, 1))

    def fragile(points):
        outputs = oscillator(points) - measured
        outputs[points[:, 0] < 1.0] = np.nan
        return outputs

    jacobian = differences(fragile, 1e-5)
    error = OutputError(fragile, jacobian, weights, np.zeros((2, 2)), np.zeros(2))
    with pytest.raises(InvalidValue, match="output error at the start = NaN"):
        error.minimum(np.array([0.9, 0.0]), 10, 1e-6)
    fit = error.minimum(np.array([1.4, 0.5]), 30, 1e-12)
    np.testing.assert_allclose(fit.parameters, ACTUAL, atol=1e-5)


# Simulation under measured efforts --------------------------------------------------------------


def moved(actual, seconds, seed=0, period=0.002):
    """Return times, positions and mean efforts of a simulated arm that follows sines."""
    random = np.random.default_rng(seed)
    size, phase = random.uniform(0.3, 0.6, (2, actual.nv, 3))
    omega, center = 2 * np.pi * np.array([0.2, 0.5, 0.9]), actual.configurations["zero"]
    plant, q0 = Plant(actual), np.sum(size * np.sin(2 * np.pi * phase), axis=1)
    state, rows = State.of(center + q0, np.zeros(actual.nv)), []
    inertia = tracking_controller(actual, state.q[None], 20.0)
    for t in period * np.arange(round(seconds / period)):
        angle = omega * t + 2 * np.pi * phase
        q = center + np.sum(size * np.sin(angle), axis=1)
        v = np.sum(size * omega * np.cos(angle), axis=1)
        effort = inertia.p * (q - state.q) + inertia.d * (v - state.v)
        state = plant.step(state, Command.checked("effort", effort, actual.nv), period / 4, 4)
        rows.append((t + period, state.q, state.tau))
    time, q, effort = (np.array(x) for x in zip(*rows, strict=True))
    return time, q, effort


@pytest.fixture(scope="module")
def motion():
    """The arm, the one that moved, its motion, and the same at 125 Hz with coarse encoders."""
    arm = load_arm("two_link")
    values = np.array(nominal_parameters(arm))
    values[[0, 1, 2, 3, 10, 11, 12, 13]] *= 1.2
    values[20:22], values[22:24], values[24:26] = 0.02, 0.3, 0.4
    actual = with_parameters(arm, values)
    time, q, effort = moved(actual, 24.0)
    # An effort is that of the time before its sample.
    exact = MotionData(arm.joint_names, time, q, np.roll(effort, -1, axis=0), "exact")
    bit, random = 2 * np.pi / 2**11, np.random.default_rng(1)
    noisy = effort + 0.01 * effort.std(axis=0) * random.normal(size=effort.shape)
    late = make_interp_spline(time, noisy, 1)(np.maximum(time - 0.004, time[0]))
    coarse = bit * np.round(q / bit)
    return arm, actual, exact, MotionData(arm.joint_names, time[::4], coarse[::4], late[::4], "run")


def test_a_simulation_with_the_true_parameters_follows_the_motion_without_feedback(motion):
    _, actual, exact, _ = motion
    values = np.array(nominal_parameters(actual))
    simulation = EffortSimulation(actual, values, exact, 5.0, -0.001, np.zeros(2))
    wrong = values.copy()
    wrong[[22, 24]] *= 1.1  # viscous and Coulomb friction of the first joint
    # The motion begins with a step of the velocity: the first second does not count.
    own, other = simulation.outputs(np.array([values, wrong]), np.zeros(2))[:, 25:]
    size = np.sqrt(np.mean(exact.effort**2, axis=0))
    assert (np.sqrt(np.mean(own**2, axis=0)) < 0.002 * size).all()
    friction = 0.1 * 0.4  # at least the change of the Coulomb friction
    assert friction < np.sqrt(np.mean(other[:, 0] ** 2)) < 3 * friction
    print("own", np.sqrt(np.mean(own**2, axis=0)) / size)


def test_measured_velocities_are_filtered_at_a_multiple_of_the_cutoff():
    """A Butterworth filter of order 4, forward and backward: 1 / (1 + (f / f_c)^8)."""
    arm, cutoff, ratio = load_arm("two_link"), 5.0, 0.8
    time, omega = np.arange(0, 6, 0.002), 2 * np.pi * ratio * FAST_RATIO * cutoff
    q = np.sin(omega * time)[:, None] * [0.01, 0.02]
    motion = MotionData(arm.joint_names, time, q, np.zeros_like(q))
    values = np.array(nominal_parameters(arm))
    inner = EffortSimulation(arm, values, motion, cutoff, 0.0, np.zeros(2))._v[200:-200]
    amplitude = np.sqrt(2 * np.mean(inner**2, axis=0)) / omega
    np.testing.assert_allclose(amplitude, np.array([0.01, 0.02]) / (1 + ratio**8), rtol=0.02)


def test_the_response_of_the_controller_is_that_of_the_linear_arm():
    arm, random = load_arm("five_dof"), np.random.default_rng(0)
    q = random.uniform(-0.5, 0.5, (1, arm.nv))
    controller = tracking_controller(arm, q, 2.0)
    upper = np.triu(pin.crba(arm.model, arm.model.createData(), q[0]))
    inverse = np.linalg.inv(upper + np.triu(upper, 1).T)
    # The damping of the modes is an approximation: here it is 0.
    controller = replace(controller, damping=np.zeros(arm.nv))
    p, d, eye = np.diag(controller.p), np.diag(controller.d), np.eye(arm.nv)
    a = np.block([[0 * eye, eye], [-inverse @ p, -inverse @ d]])
    b, c = np.vstack((0 * eye, -inverse)), -np.hstack((p, d))
    times = np.arange(0, 6, 0.001)
    w = np.sin(np.outer(times, random.uniform(1, 9, arm.nv)))
    _, expected, _ = scipy.signal.lsim((a, b, c, 0 * eye), w, times)
    found = controller.response(w[..., None], 0.001)[..., 0]
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())


def test_derivatives_are_those_of_simulations_with_changed_parameters(motion):
    _, actual, exact, _ = motion
    values = np.array(nominal_parameters(actual))
    simulation = EffortSimulation(actual, values, exact, 5.0, -0.001, np.zeros(2))
    changed = [11, 9, 19, 20, 22, 24, 26]  # of the bodies, and terms of the first joint
    directions = np.zeros((28, len(changed)))
    for k, i in enumerate(changed):
        directions[i, k] = 0.02 * values[i] or 0.01
    late = np.append(np.zeros(len(changed) + 1), 2e-4)
    points = np.vstack((values, values + directions.T, values))
    q, v = simulation.states(points, late)
    efforts = simulation.tracking_efforts(q, v)
    found = simulation.jacobian(q[0], v[0], directions)
    found[..., -1] *= 2e-4
    expected = np.moveaxis(efforts[1:] - efforts[0], 0, -1)
    error, size = (np.sqrt(np.sum(x**2, axis=(0, 1))) for x in (found - expected, expected))
    print("slopes", error / size)
    assert (error < 0.35 * size).all()


def test_the_controller_is_slow_enough_for_its_period():
    for name in ("two_link", "five_dof", "seven_dof_can"):
        arm = load_arm(name)
        gains = tracking_controller(arm, np.random.default_rng(0).uniform(-1, 1, (20, arm.nv)), 5.0)
        assert gains.period in (4e-3, 2e-3, 1e-3)
        np.testing.assert_allclose(gains.d**2 / gains.p, gains.d / gains.p * gains.d)
        bandwidth = 2 * gains.p / gains.d
        assert np.ptp(bandwidth) < 1e-9
        assert bandwidth[0] <= 0.5 * 2 * np.pi * 5.0 + 1e-9


def test_unknowns_are_the_determined_directions_and_bodies_stay_consistent(motion):
    arm, _, _, recorded = motion
    fit = fit_torque(arm, prepare_motion(arm, recorded).equations)
    chart = ParameterChart(fit)
    assert chart.size <= fit.base.size
    np.testing.assert_allclose(chart.parameters(np.zeros((1, chart.size)))[0], fit.parameters)
    far = chart.parameters(5 * np.random.default_rng(0).normal(size=(20, chart.size)))
    assert all(is_consistent(body) for row in far for body in row[:20].reshape(2, 10))
    assert (far[:, 20:26] > 0).all()


def test_a_refined_fit_of_coarse_positions_is_nearer_to_the_actual_values(motion):
    arm, actual, exact, recorded = motion
    prepared = prepare_motion(arm, recorded)
    fit = fit_torque(arm, prepared.equations)
    refined, sentence = refine(arm, [prepared], fit)
    assert "not used" not in sentence
    rows = prepare_motion(arm, exact, 20.0, -0.001).equations.rows(np.zeros(2, dtype=int))
    true = rows @ np.array(nominal_parameters(actual))
    before, after = (
        np.sqrt(np.mean((rows @ each.parameters - true) ** 2, axis=0)) for each in (fit, refined)
    )
    assert np.mean((after / before) ** 2) < 0.8
    assert refined.presliding is fit.presliding
    base, values = fit.base, np.array(nominal_parameters(actual))
    error = base.values(refined.parameters) - base.values(values)
    assert (np.abs(error) < 3 * refined.base_deviation).all()
    assert (refined.deviation >= fit.deviation).all()
    change = base.values(refined.parameters - fit.parameters)
    # Of two independent errors each has half of the square of the difference.
    assert (refined.base_deviation**2 >= fit.base_deviation**2 + change**2 / 2).all()


def test_a_motion_that_the_simulation_cannot_follow_leaves_the_fit(motion):
    arm, _, _, recorded = motion
    prepared = prepare_motion(arm, recorded)
    fit = fit_torque(arm, prepared.equations)
    # Efforts of the last part come from another arm.
    effort = np.array(recorded.effort)
    effort[int(0.7 * len(effort)) :] *= 1.5
    other = replace(recorded, effort=effort)
    after, sentence = refine(arm, [prepare_motion(arm, other, prepared.cutoff)], fit)
    assert "not used" in sentence or not np.array_equal(after.parameters, fit.parameters)
    short = replace(prepared, data=recorded.part(slice(0, 150)))
    same, sentence = refine(arm, [short], fit)
    assert same is fit
    assert "record a longer motion" in sentence
