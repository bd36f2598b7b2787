"""Stated deviations of identified parameters are those of simulated recordings with noise."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_identification import hidden_arm, ideal_equations

from arm_dynamics import load_arm
from arm_dynamics.identification import fit_torque
from arm_dynamics.identification.efforts.effort_equations import joined_equations
from arm_dynamics.identification.efforts.motion_preparation import direction

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from identified_deviations import runs


def check(found, inside):
    """Check the fraction of base parameters within 3 deviations, held-out efforts and bodies."""
    relative = np.concatenate([run.error / run.deviation for run in found])
    assert np.mean(np.abs(relative) < 3) >= inside
    assert 0.35 < np.sqrt(np.mean(relative**2)) < 1.2
    assert max(run.held_out for run in found) < 0.02
    assert min(run.eigenvalue for run in found) > 0


def test_the_stated_deviations_of_a_simulated_arm_are_true():
    check(list(runs(load_arm("two_link"), 4, 15.0)), 0.98)


@pytest.mark.slow
def test_the_stated_deviations_of_a_larger_arm_are_true():
    check(list(runs(load_arm("five_dof"), 3, 12.0)), 0.98)


def test_the_direction_of_a_noisy_motion_changes_when_the_velocity_is_zero():
    # The direction is certain from 52 ms on before and after: 4 deviations of the velocity.
    rate, cutoff, noise = 500.0, 20.0, 1e-4
    time, random = np.arange(0, 200, 1 / rate), np.random.default_rng(0)
    deviation = noise * 2 * np.pi * cutoff * np.sqrt(2 * cutoff / (3 * rate))
    v = 0.1 * np.cos(np.pi / 2 * time + 0.3)
    noisy = v + deviation * random.normal(size=v.shape)
    sign, certain = direction(
        noise * random.normal(size=(time.size, 1)), noisy[:, None], 20.0, rate
    )
    found = time[1:][np.diff(sign[:, 0]) != 0]
    true = time[1:][np.diff(np.sign(v)) != 0]
    assert found.size == true.size
    assert np.mean(~certain) > 0.05
    assert abs(np.mean(found - true)) < 5e-4
    assert np.abs(found - true).max() < 0.03


def test_errors_common_to_all_samples_are_part_of_the_deviations():
    arm = load_arm("five_dof")
    equations, _, exact = ideal_equations(arm, hidden_arm(arm, 3), 0, rate=20.0)
    error = 0.002 * np.gradient(exact, 0.05, axis=0)  # a delay of 2 ms
    own = fit_torque(arm, equations)
    moved = fit_torque(arm, replace(equations, effort=equations.effort + error))
    stated = fit_torque(arm, replace(equations, errors=error[None]))
    change = moved.base_values - own.base_values
    assert np.abs(change / own.base_deviation).max() > 1
    expected = np.hypot(own.base_deviation, change)
    np.testing.assert_allclose(stated.base_deviation, expected, rtol=0.1)


def test_errors_of_two_motions_are_independent():
    arm = load_arm("two_link")
    first, second = (
        replace(equations, errors=np.full((1, *equations.effort.shape), size))
        for size, (equations, _, _) in (
            (1.0, ideal_equations(arm, arm, 0, seconds=10.0)),
            (2.0, ideal_equations(arm, arm, 1, seconds=10.0)),
        )
    )
    found = joined_equations([first, second]).errors
    count = len(first.effort)
    assert found.shape == (2, 2 * count, arm.nv)
    assert (found[0, :count] == 1).all()
    assert (found[1, count:] == 2).all()
    assert not found[0, count:].any()
    assert not found[1, :count].any()
