"""The complementarity problem of contacts: conditions of its solution, and closed forms."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics.simulation.contact.contact_solver import solve_contact_problem
from arm_dynamics.simulation.friction import velocity_after_dry_friction

NONE = np.zeros(0)


def solved(G, w0, mu, lower=NONE, upper=NONE):
    impulse = np.zeros(len(w0))
    residual = solve_contact_problem(G, w0, lower, upper, np.asarray(mu, float), impulse)
    return impulse, G @ impulse + w0, residual


@settings(max_examples=examples(100))
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(0, 3), st.booleans())
def test_a_solution_satisfies_signorini_coulomb_and_the_bounds(seed, contacts, rows, redundant):
    random = np.random.default_rng(seed)
    freedoms = 6 if redundant else 3 * contacts + rows + 2
    J = random.normal(size=(rows + 3 * contacts, freedoms))
    G, w0 = J @ J.T, J @ random.normal(size=freedoms)
    mu, size = random.uniform(0, 1, contacts), random.uniform(0, 0.5, rows)
    impulse, w, residual = solved(G, w0, mu, -size, size)
    scale = np.abs(w0).max()
    assert residual <= 1e-9 * scale
    bounded = impulse[:rows]
    assert (np.abs(bounded) <= size).all()
    inside = np.abs(bounded) < size * (1 - 1e-9)
    assert np.abs(w[:rows][inside]).max(initial=0) < 1e-8 * scale
    assert (w[:rows][~inside] * bounded[~inside]).max(initial=0) < 1e-8 * scale
    for k in range(contacts):
        (n, *t), (vn, *vt) = impulse[rows + 3 * k :][:3], w[rows + 3 * k :][:3]
        t, vt = np.array(t), np.array(vt)
        assert n >= 0
        assert vn > -1e-8 * scale
        assert abs(n * vn) < 1e-8 * scale
        assert np.linalg.norm(t) <= mu[k] * n * (1 + 1e-9) + 1e-12
        if n > 1e-6 and np.linalg.norm(vt) > 1e-6 * scale:  # it slides: against its velocity
            np.testing.assert_allclose(t, -mu[k] * n * vt / np.linalg.norm(vt), atol=1e-5)


def test_the_friction_limit_is_round():
    """A pyramid has a limit that is larger by 41 % along its diagonal."""
    for angle in np.linspace(0, 2 * np.pi, 9):
        pull = 3.0 * np.array([0, np.cos(angle), np.sin(angle)])
        impulse, w, _ = solved(np.eye(3), np.array([-1.0, 0, 0]) - pull, [0.5])
        np.testing.assert_allclose(np.linalg.norm(impulse[1:]), 0.5, rtol=1e-13)
        np.testing.assert_allclose(np.linalg.norm(w[1:]), 2.5, rtol=1e-13)


def test_bounded_rows_alone_are_the_dry_friction_of_joints():
    random = np.random.default_rng(3)
    for _ in range(20):
        A = random.normal(size=(4, 4))
        W, v, limit = A @ A.T + np.eye(4), random.normal(size=4), random.uniform(0, 0.3, 4)
        _, w, _ = solved(W, v, NONE, -limit, limit)
        np.testing.assert_allclose(w, velocity_after_dry_friction(v, W, limit, limit), atol=1e-12)


def test_redundant_contacts_have_equal_forces():
    """Four legs of a table: the forces of rigid legs are not unique, equal ones are returned."""
    legs = np.array([[x, y] for x in (-1, 1) for y in (-1, 1)])
    normals = np.column_stack([np.ones(4), legs[:, 1], -legs[:, 0]])  # of v_z, ω_x, ω_y
    J = np.zeros((12, 5))
    J[::3, :3], J[1::3, 3], J[2::3, 4] = normals, 1, 1
    impulse, _, residual = solved(J @ J.T, J @ np.array([-1.0, 0, 0, 0, 0]), [0.5] * 4)
    np.testing.assert_allclose(impulse[::3], 0.25, rtol=1e-6)
    assert residual < 1e-13


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_not_finite_ends_with_a_residual(value):
    impulse = np.zeros(3)
    residual = solve_contact_problem(
        np.eye(3), np.array([-1.0, value, 0]), NONE, NONE, np.array([0.5]), impulse
    )
    assert not residual <= 1e-6
