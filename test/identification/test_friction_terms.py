"""Stribeck friction and gear losses of joints, chosen by held-out error."""

from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_identification import fourier, hidden_arm

from arm_dynamics import load_arm
from arm_dynamics.identification import (
    compare,
    fit_torque,
    identify,
    nominal_parameters,
    prepare_motion,
    regressor,
    with_parameters,
)
from arm_dynamics.identification.efforts.coupled_motors import CoupledMotors
from arm_dynamics.identification.efforts.friction_terms import (
    JointFriction,
    with_friction_terms,
    with_gear_loss,
    without_gear_loss,
)
from arm_dynamics.identification.efforts.torque_problem import TorqueProblem, is_less
from arm_dynamics.identification.parameters.identified_urdf import identified_urdf
from arm_dynamics.model.load import parse_arm
from arm_dynamics.recording import MotionData
from arm_dynamics.simulation.actuators.gearing import gear_loss

EFFORT = st.floats(-50, 50).filter(lambda x: abs(x) > 1e-3)


@given(EFFORT, st.sampled_from([-1.0, 1.0]), st.floats(0, 0.8), st.floats(0, 2))
def test_gear_losses_are_those_of_the_simulated_motor(without, direction, driving, driven):
    loss = np.array([[driving], [driven]])
    state = np.array([[direction]])
    effort = with_gear_loss(np.array([[without]]), state, loss)
    lost = gear_loss(direction * effort.item(), 1 - driving, 1 / (1 + driven))
    assert effort.item() == pytest.approx(without + direction * lost)
    assert without_gear_loss(effort, state, loss).item() == pytest.approx(without)


def recorded(arm, actual, seed, seconds, friction, noise=1e-4):
    """Return a motion whose efforts have the friction of ``friction``, with noise and without."""
    time = np.arange(0, seconds, 0.002)
    q, v, a = fourier(arm, seed, seconds)(time)
    sign = np.sign(v)
    effort = regressor(arm, q, v, a) @ nominal_parameters(actual)
    speed = np.where(friction.velocity > 0, friction.velocity, 1.0)
    effort = effort + sign * friction.stribeck * np.exp(-((v / speed) ** 2))
    effort = with_gear_loss(effort, sign, friction.loss)
    random = np.random.default_rng(seed)
    scale = 0.01 * np.sqrt(np.mean(effort**2, axis=0))
    measured = effort + scale * random.normal(size=q.shape)
    noisy = q + noise * random.normal(size=q.shape)
    return (
        MotionData(arm.joint_names, time, noisy, measured, "noisy"),
        MotionData(arm.joint_names, time, q, effort, "exact"),
    )


def friction_of(nv, velocity, stribeck, loss):
    """Return friction without presliding, with equal losses in both directions."""
    none = np.full((2, nv), np.nan)
    return JointFriction(
        np.zeros(nv, dtype=int), velocity, stribeck, np.array([loss, loss]), none,
        CoupledMotors.none(nv),
    )  # fmt: skip


@pytest.fixture(scope="module")
def five_dof_case():
    arm = load_arm("five_dof")
    nv, values = arm.nv, np.array(nominal_parameters(hidden_arm(arm, 3)))
    plain, _ = recorded(arm, hidden_arm(arm, 3), 0, 40.0, friction_of(nv, *np.zeros((3, nv))))
    scale = np.sqrt(np.mean(plain.effort**2, axis=0))
    values[11 * nv : 13 * nv] = np.concatenate((0.03 * scale, 0.05 * scale))
    actual = with_parameters(arm, values)
    velocity, stribeck, loss = np.zeros((3, nv))
    loss[[1, 3]] = 0.15, 0.1
    velocity[[2, 3]], stribeck[[2, 3]] = 0.1, 0.08 * scale[[2, 3]]
    friction = friction_of(nv, velocity, stribeck, loss)
    noisy, _ = recorded(arm, actual, 0, 40.0, friction)
    _, exact = recorded(arm, actual, 1, 20.0, friction)
    return arm, actual, friction, noisy, exact


def test_held_out_error_chooses_the_friction_of_each_joint(five_dof_case):
    arm, actual, friction, noisy, _ = five_dof_case
    fit = fit_torque(arm, prepare_motion(arm, noisy).equations)
    np.testing.assert_array_equal(fit.friction.has_loss, friction.has_loss)
    np.testing.assert_array_equal(fit.friction.velocity, friction.velocity)
    np.testing.assert_allclose(fit.friction.loss, friction.loss, atol=0.005)
    np.testing.assert_allclose(fit.friction.stribeck, friction.stribeck, rtol=0.1)
    coulomb = np.array(nominal_parameters(actual)[60:65])
    np.testing.assert_allclose(fit.parameters[60:65], coulomb, rtol=0.06)
    assert np.isfinite(fit.friction.deviation).sum() == 4


@pytest.mark.slow
def test_the_urdf_of_an_arm_with_motors_contains_stribeck_friction_and_losses(five_dof_case):
    arm, _, friction, noisy, exact = five_dof_case
    result = identify(arm, [noisy], [exact])
    assert result.after.relative_error.max() < 0.01
    text = identified_urdf(
        result.identified, result.fit.simulated, date="2025-01-01", sources=["run1"]
    )
    written = parse_arm(text)
    found = JointFriction.of(written)
    np.testing.assert_allclose(found.loss, result.fit.friction.loss, atol=1e-9)
    np.testing.assert_allclose(found.stribeck, result.fit.friction.stribeck, rtol=1e-6)
    np.testing.assert_allclose(compare(written, exact).relative_error, 0, atol=0.015)
    assert any("R3 Stribeck (0.1 rad/s)" in note for note in result.notes)
    names = {row.name for row in result.summary(date(2025, 1, 1)).parameters}
    assert {"R2.gear_loss", "R4.stribeck"} <= names
    assert friction.has_loss.sum() == 2


def test_ideal_actuators_receive_coulomb_friction_of_the_same_mean():
    arm = load_arm("two_link")
    values = np.array(nominal_parameters(hidden_arm(arm, 3)))
    values[22:26] = 0.1, 0.1, 0.2, 0.2
    friction = friction_of(2, np.zeros(2), np.zeros(2), np.array([0.15, 0.0]))
    noisy, exact = recorded(arm, with_parameters(arm, values), 0, 40.0, friction)
    result = identify(arm, [noisy], [exact])
    fit = result.fit
    np.testing.assert_array_equal(fit.friction.has_loss, [True, False])
    assert fit.simulated[24] > fit.parameters[24] + 0.1
    np.testing.assert_array_equal(np.delete(fit.simulated, 24), np.delete(fit.parameters, 24))
    assert any("joints J1 have no such friction" in note for note in result.notes)
    assert JointFriction.of(result.identified).loss.max() == 0


def test_plain_friction_needs_no_further_terms():
    arm = load_arm("two_link")
    none = friction_of(2, *np.zeros((3, 2)))
    noisy, _ = recorded(arm, hidden_arm(arm, 3), 0, 30.0, none)
    fit = fit_torque(arm, prepare_motion(arm, noisy).equations)
    assert not (fit.friction.has_loss | fit.friction.has_stribeck).any()
    np.testing.assert_array_equal(fit.simulated, fit.parameters)


def test_an_error_is_less_beyond_its_standard_error():
    other = np.ones((16, 3))
    error = other - 0.1
    error[:, 1] += np.tile([1.0, -1.0], 8)  # the same sum, 0.4 times its standard error
    error[:, 2] = 0.99  # certain, but small
    np.testing.assert_array_equal(is_less(error, other, 0.95), [True, False, False])


@pytest.mark.parametrize(("certain", "expected"), [(2, [1, 1, 0, 0]), (3, [1, 1, 1, 1])])
def test_joints_follow_most_joints_of_the_arm_in_presliding(certain, expected, monkeypatch):
    """A small decrease counts if more than half of the joints have a large one."""
    errors = np.ones((2, 16, 4))
    errors[1, :, :certain] = 0.5
    errors[1, :, certain:] = 0.995
    problem = object.__new__(TorqueProblem)
    problem._scale, problem._parameters = np.ones(4), np.zeros(1)
    problem.equations = SimpleNamespace(presliding=np.array([0.0, 1e-3]))
    held_out = iter(errors)
    monkeypatch.setattr(problem, "_set_rows", lambda models: None)
    monkeypatch.setattr(problem, "_set_moments", lambda: None)
    monkeypatch.setattr(problem, "held_out_error", lambda gamma, starts: next(held_out))
    np.testing.assert_array_equal(problem.best_friction_models(), expected)


def test_the_friction_of_a_description_is_that_of_its_motors():
    arm = load_arm("five_dof").with_motor(
        "R2", stiction=0.3, coulomb_friction=0.1, stribeck_velocity=2.0, gear_ratio=4.0,
        efficiency=0.8, back_efficiency=0.75,
    )  # fmt: skip
    found = JointFriction.of(arm)
    assert found.stribeck[1] == pytest.approx(0.8)
    assert found.velocity[1] == pytest.approx(0.5)
    np.testing.assert_allclose(found.loss[:, 1], [0.2, 1 / 3])
    again = JointFriction.of(with_friction_terms(arm, found))
    for name in ("velocity", "stribeck", "loss"):
        np.testing.assert_allclose(getattr(again, name), getattr(found, name))
