"""Stability of the published loop of five_dof."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.stability.stability_report import LinearLoop
from arm_dynamics.control.linear_controller import voltage_pi_controller
from arm_dynamics.published.published_gains import PUBLISHED_DT, PUBLISHED_DURATION, PUBLISHED_P
from arm_dynamics.simulation.dynamechs import objective, published_arm
from arm_dynamics.simulation.linearization import find_equilibrium, linearize

DIVERGED_RATIO = 10.0
"""Objective over that of the published gains from which on the motion counts as diverged."""
FACTOR_TOLERANCE = 1e-4
"""Accuracy of the stability limit."""


def published_loop(
    q: ArrayLike | None = None, dt: float = PUBLISHED_DT, factor: float = 1.0
) -> LinearLoop:
    """Return five_dof under V = P e on R2, R3, R5, as in the published search.

    A voltage computed from the state of call k acts from the next call on: with explicit Euler one
    step late. End stops, and the rule that stops a joint at each reversal, are omitted.

    Parameters
    ----------
    q : ArrayLike, optional
        Configuration [rad], default: initial.
    dt : float
        Time step [s].
    factor : float
        Factor on P.

    """
    arm = published_arm()
    configuration = arm.configuration("initial") if q is None else q
    state, command = find_equilibrium(arm, configuration, "voltage")
    gains = np.array([factor * PUBLISHED_P.get(name, 0.0) for name in arm.joint_names])
    controller = voltage_pi_controller(arm, gains)
    return LinearLoop(linearize(arm, state, command), lambda _: controller, dt, None, 1)


def published_stability_limit(stable: float = 1.0, unstable: float = 1.1) -> float:
    """Return the smallest factor on the published gains at which the published step diverges.

    The motion is simulated by ``dynamechs.objective`` for 3 s, with the rule that stops a joint at
    each reversal. The factor is bisected to FACTOR_TOLERANCE.

    Parameters
    ----------
    stable, unstable : float
        Bounds; returned if the first diverges, or the second does not.

    """
    arm, p = published_arm(), np.array(list(PUBLISHED_P.values()))

    def cost(factor: float) -> float:
        return objective(
            arm, factor * p, joints=tuple(PUBLISHED_P), duration=PUBLISHED_DURATION,
            dt=PUBLISHED_DT,
        )  # fmt: skip

    limit = DIVERGED_RATIO * cost(1.0)
    if cost(stable) > limit:
        return stable
    if cost(unstable) <= limit:
        return unstable
    while unstable - stable > FACTOR_TOLERANCE:
        middle = (stable + unstable) / 2
        if cost(middle) > limit:
            unstable = middle
        else:
            stable = middle
    return unstable
