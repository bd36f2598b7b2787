"""Derivatives of rotation vectors: compared with finite differences, and inverted."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.control.trajectories.transition_blend import (
    TransitionBlend,
    angular_velocities,
    rotation_and_derivatives,
    rotation_vector_derivatives,
)
from arm_dynamics.core.state import TaskReference

vectors = st.lists(st.floats(-1.5, 1.5), min_size=3, max_size=3).map(np.array)
sizes = st.sampled_from([0.0, 1e-6, 1e-3, 0.0099, 0.0101, 1.0])


def motion(phi, rate, second, t):
    return rotation_and_derivatives(phi + t * rate + t * t / 2 * second, rate + t * second, second)


@given(vectors, vectors, vectors, sizes)
def test_rates_are_the_derivatives(phi, rate, second, size):
    phi, h = size * phi, 1e-5
    (R0, w0, _), (_, w, alpha), (R1, w1, _) = (motion(phi, rate, second, t) for t in (-h, 0, h))
    np.testing.assert_allclose(pin.log3(R1 @ R0.T) / (2 * h), w, atol=1e-8)
    np.testing.assert_allclose((w1 - w0) / (2 * h), alpha, atol=1e-7)


@given(vectors, vectors, vectors, sizes)
def test_rates_are_inverted(phi, rate, second, size):
    _, omega, alpha = rotation_and_derivatives(size * phi, rate, second)
    back = rotation_vector_derivatives(size * phi, omega, alpha)
    np.testing.assert_allclose(back, [rate, second], atol=1e-9)


def test_about_one_axis_the_rate_is_the_derivative_of_the_angle():
    phi, rate, second = (np.array([0, 0, x]) for x in (0.7, -2.0, 3.0))
    R, omega, alpha = rotation_and_derivatives(phi, rate, second)
    assert R[0, 0] == pytest.approx(np.cos(0.7))
    np.testing.assert_allclose((omega, alpha), (rate, second), atol=1e-15)


@given(st.lists(st.tuples(vectors, vectors, sizes), min_size=1, max_size=4))
def test_batch_angular_velocities_equal_single_ones(given_):
    phi = np.array([size * x for x, _, size in given_])
    rate = np.array([x for _, x, _ in given_])
    each = [rotation_and_derivatives(p, r, np.zeros(3))[1] for p, r in zip(phi, rate, strict=True)]
    np.testing.assert_allclose(angular_velocities(phi, rate), each, rtol=1e-12, atol=1e-13)


@given(st.lists(vectors, min_size=12, max_size=12))
def test_a_transition_begins_at_the_current_reference_and_ends_at_the_plan(values):
    """With position, rotation, twist and acceleration: no jump, also while both turn."""

    def reference(v):
        zero = np.zeros(2)
        six = (np.concatenate(v[k : k + 2]) for k in (2, 4))
        return TaskReference(zero, zero, zero, v[0], pin.exp3(v[1]), *six, np.zeros(6))

    current, planned = reference(values[:6]), reference(values[6:])
    blend = TransitionBlend.between(planned, current, 1.0, 2.0)
    if blend is None:
        return
    for time, expected in ((1.0, current), (2.0, planned)):
        found = blend.added(planned, time)
        for name in ("position", "rotation", "twist", "acceleration"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
