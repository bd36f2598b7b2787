"""Control laws as linear systems in discrete time: what they do for small errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, frozen, vector
from arm_dynamics.controllers.base import Controller
from arm_dynamics.controllers.gravity_compensation import GravityCompensation
from arm_dynamics.controllers.pid import Pid
from arm_dynamics.controllers.pid_gravity import PidGravity
from arm_dynamics.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel


@dataclass(frozen=True, eq=False)
class Law:
    """c⁺ = F c + G x,  u = H c + J x + K x at every call, x = (q, v); matrices.

    c (nc,) is the law's memory, u (nv,) the change of the command on ``interface``. K is the
    feedforward's slope, which no gain scales.
    """

    interface: str
    F: Vector
    G: Vector
    H: Vector
    J: Vector
    K: Vector

    def scaled(self, factor: float) -> Law:
        """The same law with every gain ``factor`` times as large."""
        return Law(self.interface, self.F, self.G, factor * self.H, factor * self.J, self.K)


def voltage_law(arm: ArmModel, p: ArrayLike, i: ArrayLike = ()) -> Law:
    """u = -P q - I Σ q, the plain sum over the calls with the present one in it; as published.

    p, i (nv,) [V/rad]; i defaults to none. Raises InvalidValue for a wrong size.
    """
    nv = arm.nv
    gain, summed = vector("p", p, nv), vector("i", i if np.size(i) else np.zeros(nv), nv)
    return _memorized("voltage", gain, summed, np.eye(nv), np.eye(nv), np.zeros((nv, 2 * nv)))


def _memorized(
    interface: str, p: Vector, i: Vector, keep: Vector, take: Vector, feedforward: Vector
) -> Law:
    nv = p.size
    nothing = np.zeros((nv, nv))
    G = np.hstack([take, nothing])
    H, J = -np.diag(i) @ keep, np.hstack([-np.diag(p) - np.diag(i) @ take, nothing])
    used = np.flatnonzero(i)  # a sum that nothing uses would be a mode that only drifts
    return Law(
        interface, *map(frozen, (keep[np.ix_(used, used)], G[used], H[:, used], J, feedforward))
    )


def law_of(controller: Controller, q: ArrayLike, period: float) -> Law:
    """The linear law of a controller about rest at ``q``, called every ``period`` [s].

    As ``pid_efforts`` does it: v_f⁺ = v_f + α (v - v_f) with α = T / (T + d_filter),
    u = -p q + I - d v_f⁺ + (∂g/∂q) q, then I⁺ = I - T i q. Clamps and limits do not act.
    Raises InvalidValue for a controller whose law is not known here.
    """
    model, position = controller.arm, vector("pose", q, controller.arm.nv)
    nv, g = model.nv, controller.gains
    slope = np.zeros((nv, 2 * nv))
    if isinstance(controller, PidGravity | GravityCompensation):
        data = model.model.createData()
        slope[:, :nv] = pin.computeGeneralizedGravityDerivatives(model.model, data, position)
    if isinstance(controller, GravityCompensation):
        J = np.hstack([np.zeros((nv, nv)), -np.diag(g["d"])])
        none = np.zeros((0, 0))
        return Law("effort", none, np.zeros((0, 2 * nv)), np.zeros((nv, 0)), frozen(J), slope)
    if not isinstance(controller, Pid):
        raise InvalidValue(
            f"controller {type(controller).__name__}: only pid, pid_gravity and"
            " gravity_compensation are linear laws known here"
        )
    return _pid(g["p"], g["i"], g["d"], g["d_filter"], period, slope)


def _pid(p: Vector, i: Vector, d: Vector, d_filter: Vector, period: float, slope: Vector) -> Law:
    """Memory (I, v_f), less what nothing uses: integrals without gain, filters without delay."""
    nv = p.size
    alpha, zero = np.diag(period / (period + d_filter)), np.zeros((nv, nv))
    keep = np.eye(nv) - alpha
    F = np.block([[np.eye(nv), zero], [zero, keep]])
    G = np.block([[-period * np.diag(i), zero], [zero, alpha]])
    H = np.hstack([np.eye(nv), -np.diag(d) @ keep])
    J = np.hstack([-np.diag(p), -np.diag(d) @ alpha])
    used = np.flatnonzero(np.concatenate([i, d * d_filter]))
    return Law("effort", *map(frozen, (F[np.ix_(used, used)], G[used], H[:, used], J, slope)))
