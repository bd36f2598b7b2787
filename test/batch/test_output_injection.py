"""Output injection: poles of the observer, corrected states of rollouts, rotors behind backlash."""

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics.batch import rollout_closed_loop
from arm_dynamics.batch.rollouts.output_injection import OutputInjection
from arm_dynamics.control.controllers.pid import Pid

PERIOD, EVERY, COUNT = 2e-3, 5, 4


def test_both_poles_of_a_free_mass_follow_the_time_constant():
    interval, time = 0.02, 0.1
    one = OutputInjection.of(np.zeros((1, 1)), 1, interval, time, {})
    motion, gain = np.array([[1, interval], [0, 1]]), np.array([[one.k1], [one.k2]])
    error = (np.eye(2) - gain @ [[1.0, 0.0]]) @ motion
    poles = np.linalg.eigvals(error)
    np.testing.assert_allclose(poles, np.exp(-interval / time), rtol=1e-6)


def test_a_rotor_receives_the_velocity_of_its_joint():
    one = OutputInjection.of(np.full((1, 2), 0.3), 1, 0.02, 0.1, {1: 1})
    q, v, act = np.array([[0.1, 0.2]]), np.zeros((1, 2)), np.array([[7.0, 5.0, 0.01]])
    _, after, states = one.corrected(0, q, v, act)
    assert after[0, 1] > 0
    np.testing.assert_allclose(states - act, [[0.0, after[0, 1], 0.0]], rtol=1e-12)


@pytest.mark.parametrize("backend", ["generated", "plant"])
def test_a_corrected_rollout_is_a_chain_of_rollouts(backend):
    """With a proportional controller, whose state is that of the arm."""
    arm, rng = five_dof(), np.random.default_rng(2)
    controller = Pid(arm, {joint: {"p": 20.0, "i": 0.0, "d": 0.0} for joint in arm.joint_names})
    q = np.array(arm.configuration("initial")) + 0.2 * rng.normal(size=(3, 5))
    v, goal = rng.normal(size=q.shape), np.array(arm.configuration("initial"))
    measured = goal + 0.1 * rng.normal(size=(COUNT, 5))
    injection = OutputInjection.of(measured, EVERY, EVERY * PERIOD, 0.05, {})

    def records(states, periods, injection=None):
        return rollout_closed_loop(
            arm, states, controller, goal, 2e-4, PERIOD, periods * PERIOD, outputs=("q", "v"),
            backend=backend, injection=injection,
        )  # fmt: skip

    whole = records(np.hstack((q, v)), EVERY * COUNT, injection)
    for k in range(COUNT):
        part, at = records(np.hstack((q, v)), EVERY), slice(EVERY * k, EVERY * (k + 1))
        np.testing.assert_allclose(whole["q"][:, at], part["q"], rtol=1e-9, atol=1e-12)
        q, v, _ = injection.corrected(k, part["q"][:, -1], part["v"][:, -1], np.zeros((3, 0)))
