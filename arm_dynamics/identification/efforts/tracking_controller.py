"""Tracking controller of a simulated motion, and the response of its efforts to disturbances.

M a = u + e,   e = K_p (q_m - q) + K_d (v_m - v),   K_p = ω² m,   K_d = 2 ω m

With the mean inertia M̄ of the motion, mean viscous friction b and the modes of
M̄ V = diag(m) V Λ, Vᵀ diag(m) V = I, an effort w that is missing in the simulation appears as

    e = diag(m) V y,   y_k = (2 ω s + ω²) / (λ_k s² + (2 ω + β_k) s + ω²) V_kᵀ w,   β = diag(Vᵀ b V)

References
----------
M. Gautier, A. Janot, P. Vandanjon, A new closed-loop output error method for parameter
identification of robot dynamics, IEEE T-CST 21 (2013), section III.

"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import scipy
import scipy.linalg

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    nominal_parameters,
)
from arm_dynamics.model.arm_model import ArmModel

PERIODS = (4e-3, 2e-3, 1e-3)
"""Periods of the controller [s], which are the time steps of the simulation."""
BANDWIDTH = 0.5
"""Bandwidth of the controller over the cut-off frequency."""
FASTEST = 1.0
"""Largest rate of the closed loop times the period."""
CONFIGURATIONS = 50
"""Configurations of a motion whose inertia determines the gains."""


@dataclass(frozen=True, slots=True, eq=False)
class TrackingController:
    """Gains K_p and K_d (nv,), period [s], bandwidth ω [rad/s]; V (nv, nv), λ and β (nv,)."""

    p: Vector
    d: Vector
    period: float
    bandwidth: float
    modes: Matrix
    inertia: Vector
    damping: Vector

    def response(self, efforts: FloatArray, period: float) -> FloatArray:
        """Return the efforts e (n, nv, r) by missing efforts w (n, nv, r) of this period [s]."""
        w = self.bandwidth
        found = np.einsum("ik,nir->nkr", self.modes, efforts)
        for k in range(self.p.size):
            denominator = [self.inertia[k], 2 * w + self.damping[k], w * w]
            filter_ = scipy.signal.bilinear([2 * w, w * w], denominator, fs=1 / period)
            found[:, k] = scipy.signal.lfilter(*filter_, found[:, k], axis=0)
        m = self.p / w**2
        response: FloatArray = np.einsum("ik,nkr->nir", m[:, None] * self.modes, found)
        return response


def tracking_controller(arm: ArmModel, q: Matrix, cutoff: float) -> TrackingController:
    """Return the controller for an arm at some configurations q (n, nv).

    m_i² = M_ii / (M⁻¹)_ii lies between the inertia with the other joints at rest and with them free
    to move. ω is BANDWIDTH times the cut-off frequency [Hz], or less where the fastest closed
    loop, 2 ω λ with the largest eigenvalue λ of M⁻¹ diag(m), is too fast for the shortest period.
    """
    data = arm.model.createData()
    inertias = []
    for row in q[:: max(1, len(q) // CONFIGURATIONS)]:
        upper = np.triu(pin.crba(arm.model, data, row))
        inertias.append(upper + np.triu(upper, 1).T)
    inertia = np.array(inertias)
    inverse = np.linalg.inv(inertia)
    held, free = (np.diagonal(x, axis1=1, axis2=2) for x in (inertia, inverse))
    m = np.sqrt(held.mean(axis=0) / free.max(axis=0))
    rate = 2 * np.linalg.eigvals(inverse * m).real.max()
    bandwidth = BANDWIDTH * 2 * np.pi * cutoff
    period = next((x for x in PERIODS if bandwidth * rate * x <= FASTEST), PERIODS[-1])
    bandwidth = min(bandwidth, FASTEST / (rate * period))
    values, modes = scipy.linalg.eigh(inertia.mean(axis=0), np.diag(m))
    viscous = nominal_parameters(arm)[ParameterLayout(arm.nv).viscous]
    damping = np.einsum("ik,i,ik->k", modes, viscous, modes)
    return TrackingController(
        bandwidth**2 * m, 2 * bandwidth * m, period, bandwidth, modes, values, damping
    )
