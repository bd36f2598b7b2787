"""Integrators: the order they claim, and what a symplectic one conserves."""

import numpy as np
import pytest

from arm_dynamics.errors import UnknownName
from arm_dynamics.integrators import INTEGRATORS, integrator

OMEGA = 3.0
NONE = np.zeros(0)


class Law:
    """A motion without own states: v̇ = a(q, v)."""

    groups = ()

    def __init__(self, a):
        self.a = a

    def acceleration(self, q, v, z):
        return self.a(q, v)


def oscillate(method, dt, end=1.0):
    q, v = np.array([1.0]), np.array([0.5])
    for _ in range(round(end / dt)):
        method.advance(Law(lambda q, v: -(OMEGA**2) * q - 0.2 * v), q, v, NONE, dt)
    return np.concatenate([q, v])


@pytest.mark.parametrize("name", INTEGRATORS)
def test_error_falls_with_the_claimed_order(name):
    method = integrator(name)
    root = np.sqrt(OMEGA**2 - 0.01)
    b = (0.5 + 0.1) / root
    q = np.exp(-0.1) * (np.cos(root) + b * np.sin(root))
    v = -0.1 * q + np.exp(-0.1) * root * (b * np.cos(root) - np.sin(root))
    errors = [np.abs(oscillate(method, dt) - [q, v]).max() for dt in (1e-3, 5e-4, 2.5e-4)]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(orders, method.order, atol=0.05)


def test_semi_implicit_euler_by_hand():
    q, v = np.array([1.0]), np.array([2.0])
    integrator("semi_implicit_euler").advance(Law(lambda q, v: 10 * q + v), q, v, NONE, 0.1)
    assert v[0] == pytest.approx(2 + 0.1 * 12, rel=1e-15)
    assert q[0] == pytest.approx(1 + 0.1 * 3.2, rel=1e-15)


def test_semi_implicit_euler_conserves_the_shadow_energy():
    """The map conserves v² + w² q² - dt w² q v exactly, so that energy does not drift."""
    method, dt = integrator("semi_implicit_euler"), 0.01
    q, v = np.array([1.0]), np.array([0.0])
    shadow = []
    for _ in range(20000):
        method.advance(Law(lambda q, v: -(OMEGA**2) * q), q, v, NONE, dt)
        shadow.append((v**2 + OMEGA**2 * q**2 - dt * OMEGA**2 * q * v)[0])
    assert np.ptp(shadow) < 1e-9


def test_unknown_name_lists_the_known():
    with pytest.raises(
        UnknownName, match=r"unknown integrator 'rk9'; known: .*semi_implicit_euler"
    ):
        integrator("rk9")
