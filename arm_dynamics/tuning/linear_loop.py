"""Arm and law about rest at a pose, over one control period, for either interface."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.controllers.base import Controller
from arm_dynamics.dynamics import gravity
from arm_dynamics.equilibrium import holding
from arm_dynamics.linearization import held_step, linearize
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.stability import Law, law_of

NEAR = 1e-3
"""Half width [N·m, rad/s] of differences through the motors' inverse, which is piecewise linear
but for brushes."""


def held_loop(arm: ArmModel, q: Vector, period: float, interface: str) -> tuple[Vector, Vector]:
    """Φ and Γ of δy⁺ = Φ δy + Γ δu, y = (q, v, z), with u held over ``period`` [s]; exact.

    Raises InvalidValue for a pose that cannot be held.
    """
    linear = linearize(arm, *holding(arm, q, interface))
    return held_step(linear.A, linear.B, period)


def law_about(controller: Controller, q: Vector, period: float, interface: str) -> Law:
    """``stability.law_of``; for "voltage" with V = V(τ, v) of the law's own motors behind it.

    δV = V_τ δτ + V_v δv about the effort that holds ``q``. Raises InvalidValue for a controller
    that is not linear.
    """
    law = law_of(controller, q, period)
    if interface == "effort":
        return law
    model, weight = controller.arm, gravity(controller.arm, q)
    pairs = list(zip(model.actuators, weight.tolist(), strict=True))
    by_effort = [(a.voltage_for(g + NEAR, 0.0) - a.voltage_for(g - NEAR, 0.0)) for a, g in pairs]
    by_speed = [(a.voltage_for(g, NEAR) - a.voltage_for(g, -NEAR)) for a, g in pairs]
    turn, brake = np.diag(by_effort) / (2 * NEAR), np.diag(by_speed) / (2 * NEAR)
    ahead = turn @ law.K + np.hstack([np.zeros_like(brake), brake])
    return Law("voltage", law.F, law.G, turn @ law.H, turn @ law.J, ahead)
