"""Demonstrations of predictive control: what each of them claims."""

from functools import cache

import numpy as np

from arm_dynamics.demos import swing_up
from arm_dynamics.dynamics import rigid_body


@cache
def swings():
    return swing_up.simulate()


def test_ilqr_swings_up_with_half_of_the_gravity_torque():
    planned = swings()["iLQR"]
    level = rigid_body.gravity(planned.arm, np.zeros(2))
    np.testing.assert_allclose(planned.arm.effort_limit, level / 2, rtol=2e-3)
    assert (np.abs(planned.tau) <= planned.arm.effort_limit).all()
    assert planned.tool[0, 2] == -2.0
    assert swing_up.upright_since(planned) < 4
    np.testing.assert_allclose(planned.q[-1] % (2 * np.pi), swing_up.UP, atol=1e-2)


def test_lqr_alone_stays_below_the_base():
    regulated = swings()["LQR"]
    assert swing_up.upright_since(regulated) == np.inf
    assert regulated.tool[:, 2].max() < -0.5
