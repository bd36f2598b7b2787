"""How fast a law may be that damps joints by themselves."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.dynamics import mass_matrix
from arm_dynamics.model.arm_model import ArmModel

DAMPING = 1.6
"""Damping ratio times 2."""


def equal_bandwidth(arm: ArmModel, wanted: float, fastest: float) -> tuple[float, Vector]:
    """w [rad/s] and m = M_ii (nv,) at the initial pose, for kp = w² m and kd = 1.6 w m.

    w is the ``wanted`` one, or less where coupled joints would make the fastest rate, the largest
    eigenvalue of M⁻¹ diag(kd), exceed ``fastest`` [1/s].
    """
    mass = mass_matrix(arm, arm.pose("initial"))
    inertia = np.diag(mass)
    rates = np.linalg.eigvals(np.linalg.solve(mass, np.diag(DAMPING * wanted * inertia)))
    return wanted * min(1.0, fastest / float(rates.real.max())), inertia
