"""A wrench on a link: the response of the joints, its end, and its replay."""

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics.kinematics.frames import jacobian, pose
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import MAX_PULL_ACCELERATION, PULL_TIME, Simulation

WRENCH = np.array([0.3, -0.2, 0.4, 0.01, 0.02, -0.01])


@pytest.fixture
def simulation():
    return Simulation(five_dof())


def test_a_wrench_accelerates_the_joints_by_its_jacobian(simulation):
    """Δv = T M⁻¹ Jᵀ w, with w turned from the axes of the link to those of the base."""
    arm, state = simulation.arm, simulation.state
    link = arm.tool_frame
    _, rotation = pose(arm, state.q, link)
    in_base = np.concatenate([rotation @ WRENCH[:3], rotation @ WRENCH[3:]])
    generalized = jacobian(arm, state.q, link).T @ in_base
    expected = 1e-3 * np.linalg.solve(mass_matrix(arm, state.q), generalized)
    after = Plant(arm).apply_wrench(state, link, WRENCH, 1e-3)
    np.testing.assert_allclose(after.v - state.v, expected, rtol=1e-9, atol=1e-12)
    assert after.q is state.q


def test_a_pull_lasts_until_its_end_and_is_renewed(simulation):
    free = Simulation(five_dof())

    def deviation():
        simulation.advance()
        free.advance()
        return np.abs(simulation.state.v - free.state.v).max()

    simulation.pull("tool", 1e-3 * WRENCH)
    assert deviation() > 0
    simulation.pull("tool", np.zeros(6))
    free.state = simulation.state
    assert deviation() == 0
    simulation.pull("tool", 1e-3 * WRENCH)
    for _ in range(round(PULL_TIME / simulation.period)):
        simulation.advance()
    free.state = simulation.state
    assert deviation() == 0, "the pull did not end"
    simulation.pull("tool", 1e-3 * WRENCH)
    simulation.reset()
    free.state = simulation.state
    assert deviation() == 0, "the reset did not end it"


def test_a_strong_pull_is_reduced_to_the_largest_acceleration(simulation):
    before = simulation.state
    simulation.pull("tool", 1e9 * WRENCH)
    link, wrench, _ = simulation._pull
    after = simulation.plant.apply_wrench(before, link, wrench, simulation.period)
    change = np.abs(after.v - before.v).max()
    assert change == pytest.approx(MAX_PULL_ACCELERATION * simulation.period)
    for _ in range(50):
        simulation.advance()
    assert np.isfinite(simulation.state.v).all()


def test_a_pull_of_the_base_has_no_effect_and_bad_ones_are_rejected(simulation):
    simulation.pull(simulation.arm.base_frame, WRENCH)
    assert simulation._pull is None
    with pytest.raises(UnknownName, match="'hand'"):
        simulation.pull("hand", WRENCH)
    for bad in (WRENCH[:3], [np.nan] * 6):
        with pytest.raises(InvalidValue, match="wrench"):
            simulation.pull("tool", bad)


def test_prescribed_joints_are_not_pulled():
    arm = five_dof().with_actuator("rate_limited")
    state = Simulation(arm).state
    after = Plant(arm).apply_wrench(state, arm.tool_frame, WRENCH, 1e-3)
    np.testing.assert_array_equal(after.v, state.v)
