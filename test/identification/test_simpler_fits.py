"""Fits of arms with a correct nominal model: simpler fits, friction that is less at low speed."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from test_identification import fourier, hidden_arm, ideal_equations

from arm_dynamics import load_arm
from arm_dynamics.identification import fit_torque, nominal_parameters, prepare_motion, regressor
from arm_dynamics.identification.efforts import motion_preparation
from arm_dynamics.identification.efforts.effort_equations import nominal_prior
from arm_dynamics.identification.efforts.torque_fit import validation_error
from arm_dynamics.identification.efforts.torque_problem import TorqueProblem
from arm_dynamics.recording import MotionData


def with_spring(equations, size, column):
    """Return the equations with an unmodeled effort that repeats with the motion."""
    effort = np.array(equations.effort)
    scale = size * np.sqrt(np.mean(effort[:, 1] ** 2))
    motion = equations.regressor[:, 1, column]
    effort[:, 1] += scale * np.abs(motion / np.abs(motion).max())
    return replace(equations, effort=effort)


def test_correct_nominal_bodies_are_kept_and_a_fit_is_not_worse_than_simpler_ones():
    arm = load_arm("five_dof")
    equations, _, _ = ideal_equations(arm, arm, 0, noise=0.05, rate=20.0)
    begin = with_spring(equations.part(equations.block < 30), 0.5, 11)
    end = equations.part(equations.block >= 30)  # without the unmodeled effort
    alone = fit_torque(arm, begin)
    fit = fit_torque(arm, begin, validation=end)
    error = validation_error(end, fit.parameters, fit.friction)
    assert not alone.has_nominal_bodies
    assert fit.has_nominal_bodies
    np.testing.assert_allclose(
        fit.parameters[: 10 * arm.nv], nominal_parameters(arm)[: 10 * arm.nv]
    )
    assert error < validation_error(end, alone.parameters, alone.friction)
    assert error <= fit.simpler_error
    assert np.isfinite(fit.deviation).all()


@pytest.mark.quick(2)
@pytest.mark.parametrize("is_nominal", [True, False])
@pytest.mark.parametrize("name", ["two_link", "five_dof", "so101"])
def test_no_contained_fit_has_a_smaller_mean_error_on_the_validation_motion(name, is_nominal):
    """Contained fits: nominal bodies, or no offsets, or both, where the fit changes them."""
    arm = load_arm(name)
    actual = arm if is_nominal else hidden_arm(arm, 1)
    equations, _, _ = ideal_equations(arm, actual, 0, noise=0.05, rate=10.0)
    begin = with_spring(equations.part(equations.block < 50), 0.3, 11)
    end = equations.part(equations.block >= 50)
    fit = fit_torque(arm, begin, validation=end)
    error = validation_error(end, fit.parameters, fit.friction)
    numbers, ideal = np.arange(14 * arm.nv), np.zeros(arm.nv, dtype=int)
    has_no_offset, has_nominal_bodies = numbers < 13 * arm.nv, numbers >= 10 * arm.nv
    for kept in (has_no_offset, has_nominal_bodies, has_no_offset & has_nominal_bodies):
        problem = TorqueProblem(begin, nominal_prior(arm, begin), ideal)
        problem.estimate(1.0)
        problem.free = fit.free & kept
        simpler = problem.estimate(fit.prior_weight)[: 14 * arm.nv]
        assert error <= validation_error(end, simpler, fit.friction) + 1e-3


def test_held_out_blocks_keep_correct_bodies_and_omit_offsets_but_change_wrong_bodies():
    arm = load_arm("five_dof")
    for actual, is_nominal in ((arm, True), (hidden_arm(arm, 3), False)):
        equations, _, _ = ideal_equations(arm, actual, 0, noise=0.05, rate=20.0)
        fit = fit_torque(arm, equations)
        assert fit.has_nominal_bodies == is_nominal
        assert not fit.free[13 * arm.nv :].all()


def test_an_offset_only_of_the_fitted_part_is_omitted_with_fitted_bodies():
    arm = load_arm("two_link")
    equations, _, _ = ideal_equations(arm, hidden_arm(arm, 3), 0, noise=0.05, rate=20.0)
    begin, end = (equations.part(part) for part in (equations.block < 30, equations.block >= 30))
    offset = 0.3 * np.sqrt(np.mean(begin.effort[:, 0] ** 2))
    begin = replace(begin, effort=begin.effort + np.array([offset, 0.0]))
    assert fit_torque(arm, begin).free[13 * arm.nv]
    fit = fit_torque(arm, begin, validation=end)
    assert not fit.free[13 * arm.nv :].any()
    assert not fit.has_nominal_bodies


def test_an_offset_that_efforts_have_is_fitted():
    arm = load_arm("two_link")
    equations, _, _ = ideal_equations(arm, arm, 0, rate=20.0)
    effort = equations.effort + np.array([0.5, 0.0])
    fit = fit_torque(arm, replace(equations, effort=effort))
    assert abs(fit.parameters[13 * arm.nv] - 0.5) < 4 * fit.deviation[13 * arm.nv]
    assert fit.free[13 * arm.nv]


@pytest.mark.parametrize(("slow", "is_unbiased"), [(motion_preparation.SLOW, True), (0.0, False)])
def test_friction_proportional_to_small_velocities_does_not_bias_a_fit(
    slow, is_unbiased, monkeypatch
):
    """A simulator regularizes Coulomb friction: below 8 % of the largest speed it is less."""
    monkeypatch.setattr(motion_preparation, "SLOW", slow)
    arm = load_arm("two_link")
    times, nv = np.arange(0, 30, 0.005), arm.nv
    q, v, a = fourier(arm, 0, 30.0)(times)
    values = np.array(nominal_parameters(arm))
    values[11 * nv : 12 * nv], values[12 * nv : 13 * nv] = 0.5, 5.0
    rows, own = regressor(arm, q, v, a), np.arange(nv)
    rows[:, own, 12 * nv + own] = np.clip(v / (0.08 * np.abs(v).max(axis=0)), -1, 1)
    exact = rows @ values
    noise = 0.002 * np.sqrt(np.mean(exact**2, axis=0))
    effort = exact + noise * np.random.default_rng(0).normal(size=exact.shape)
    motion = MotionData(arm.joint_names, times, q, effort, "simulated")
    fit = fit_torque(arm, prepare_motion(arm, motion, delay=0.0).equations)
    viscous = 11 * nv  # of the first joint
    error = abs(fit.parameters[viscous] / values[viscous] - 1)
    assert error < 0.003 if is_unbiased else error > 0.01


def test_the_covariance_is_unbiased_for_few_blocks():
    """E[C] = H⁻¹ for efforts with independent errors of unit weight, H = Σ A_b."""
    arm, random = load_arm("two_link"), np.random.default_rng(1)
    equations, _, _ = ideal_equations(arm, arm, 0, noise=0.05, rate=20.0)
    equations = equations.part(equations.block < 10)
    problem = TorqueProblem(equations, nominal_prior(arm, equations), np.zeros(arm.nv, int))
    weighted = problem._squares.sum(axis=0)[: 10 * arm.nv, : 10 * arm.nv]
    own = scipy.linalg.qr(weighted, pivoting=True)[2][: np.linalg.matrix_rank(weighted)]
    squares = problem._squares[:, own[:, None], own]
    H = squares.sum(axis=0)
    assert len(squares) == 10
    ratios = []
    for _ in range(300):
        scores = np.array([random.multivariate_normal(np.zeros(own.size), A) for A in squares])
        found = np.zeros(problem._products.shape[1])
        found[own] = np.linalg.solve(H, scores.sum(axis=0))
        problem._products[:, own] = scores
        covariance = problem._block_covariance(found, H, own)
        ratios.append(np.diag(covariance) / np.diag(np.linalg.inv(H)))
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1.0, atol=0.1)
