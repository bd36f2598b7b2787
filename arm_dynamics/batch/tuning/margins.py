"""Arm and law about rest at a pose, over one control period, for either interface.

Gain and phase margins of a sampled loop that is broken at one joint's command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan, pi

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.linear_controller import (
    LinearController,
    closed_loop_map,
    is_stable,
    linear_controller,
)
from arm_dynamics.core.arrays import Vector
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.linearization import find_equilibrium, linearize, zero_order_hold

DIFFERENCE_STEP = 1e-3
"""Half width [N·m, rad/s] of differences through the motors' inverse, which is piecewise linear
but for brushes."""


def sampled_plant(arm: ArmModel, q: Vector, period: float, interface: str) -> tuple[Vector, Vector]:
    """Φ and Γ of δy⁺ = Φ δy + Γ δu, y = (q, v, z), with u held over ``period`` [s]; exact.

    Raises InvalidValue for a pose that cannot be held.
    """
    linear = linearize(arm, *find_equilibrium(arm, q, interface))
    return zero_order_hold(linear.A, linear.B, period)


def linear_controller_at(
    controller: Controller, q: Vector, period: float, interface: str
) -> LinearController:
    """``stability.law_of``; for "voltage" with V = V(τ, v) of the law's own motors behind it.

    δV = V_τ δτ + V_v δv about the effort that holds ``q``. Raises InvalidValue for a controller
    that is not linear.
    """
    law = linear_controller(controller, q, period)
    if interface == "effort":
        return law
    model, weight = controller.arm, gravity(controller.arm, q)
    pairs = list(zip(model.actuators, weight.tolist(), strict=True))
    by_effort = [
        (a.voltage_for(g + DIFFERENCE_STEP, 0.0) - a.voltage_for(g - DIFFERENCE_STEP, 0.0))
        for a, g in pairs
    ]
    by_speed = [
        (a.voltage_for(g, DIFFERENCE_STEP) - a.voltage_for(g, -DIFFERENCE_STEP)) for a, g in pairs
    ]
    turn, brake = (
        np.diag(by_effort) / (2 * DIFFERENCE_STEP),
        np.diag(by_speed) / (2 * DIFFERENCE_STEP),
    )
    ahead = turn @ law.K + np.hstack([np.zeros_like(brake), brake])
    return LinearController("voltage", law.F, law.G, turn @ law.H, turn @ law.J, ahead)


Response = Callable[[Vector], Vector]
"""z (k,), complex → open loop L(z) (k,), complex; the closed loop is 1 / (1 + L)."""
POINTS = 400
"""Frequencies of the scan, up to Nyquist's."""
LOWEST = 1e-5
"""Lowest angle [rad per period] of the scan."""
HALVINGS = 44


@dataclass(frozen=True)
class Margins:
    """How far a stable loop is from unstable; NaN throughout for one that is not stable.

    The loop stays stable while its gain is multiplied by a factor between ``gain_reduction``
    (0: any) and ``gain_margin`` (∞: any) or its phase falls by less than ``phase_margin``
    [degrees] (∞: |L| never passes 1), at ``crossover`` [Hz]; ``delay_margin`` [s] is the delay
    that takes it there.
    """

    gain_margin: float
    gain_reduction: float
    phase_margin: float
    crossover: float
    delay_margin: float


UNSTABLE = Margins(nan, nan, nan, nan, nan)


def margins(response: Response, period: float) -> Margins:
    """Margins of L(e^{iθ}), 0 < θ <= π, of a loop that is stable when closed.

    Gain: 1 / |L| where L crosses the negative real axis, nearest to 1 from either side. Phase:
    least |π + ∠L| where |L| = 1; delay: least (∠L mod 2π - π) T / θ there, reached by turning
    clockwise. Crossings lie between two of POINTS frequencies, and are bisected. Source: K. J.
    Åström and R. M. Murray, Feedback Systems (2008), section 9.3.
    """
    angles = np.append(np.geomspace(LOWEST, pi * (1 - 1e-6), POINTS), pi)
    values = response(np.exp(1j * angles))
    factors = [1 / abs(value) for value in _negative(response, angles, values)]
    above, below = [f for f in factors if f > 1], [f for f in factors if f <= 1]
    passes = _roots(lambda t: np.log(np.abs(response(np.exp(1j * t)))), angles, np.abs(values) > 1)
    if not len(passes):
        return Margins(min(above, default=inf), max(below, default=0.0), inf, nan, inf)
    lead = np.angle(-response(np.exp(1j * passes)))  # π + ∠L within ±π
    least = int(np.argmin(np.abs(lead)))
    delay = (np.mod(lead, 2 * pi) / passes).min() * period
    return Margins(
        min(above, default=inf),
        max(below, default=0.0),
        float(np.degrees(abs(lead[least]))),
        float(passes[least] / (2 * pi * period)),
        float(delay),
    )


def _negative(response: Response, angles: Vector, values: Vector) -> list[complex]:
    """L where it crosses the negative real axis, Nyquist's frequency included."""
    inner = _roots(lambda t: response(np.exp(1j * t)).imag, angles[:-1], values[:-1].imag > 0)
    found = [complex(value) for value in response(np.exp(1j * inner))] if len(inner) else []
    last = complex(values[-1])  # real, up to round-off
    return [value for value in (*found, last) if value.real < 0]


def _roots(f: Callable[[Vector], Vector], grid: Vector, flags: NDArray[np.bool_]) -> Vector:
    """Where ``f`` changes sign between neighbours of ``grid`` with differing ``flags``."""
    change = np.flatnonzero(flags[1:] != flags[:-1])
    low, high, up = grid[change], grid[change + 1], flags[change + 1]
    for _ in range(HALVINGS if len(change) else 0):
        middle = (low + high) / 2
        beyond = (f(middle) > 0) == up
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return (low + high) / 2


def joint_response(
    whole: Vector, pushed: Vector, law: LinearController, joint: int, delay: int = 0
) -> Response:
    """L(z) = -C (zI - A)⁻¹ B at the command of ``joint``, all other joints' loops closed.

    What the law answers to a change of this joint's command. y⁺ = whole y + pushed u over one
    period; law and delay as in ``closed_loop_map``.
    """
    others = np.eye(pushed.shape[1])
    others[joint, joint] = 0.0
    n, memory = whole.shape[0], law.F.shape[0]
    see = np.zeros((law.G.shape[1], n))
    see[:, : see.shape[0]] = np.eye(see.shape[0])
    answer = np.hstack([(law.J + law.K) @ see, law.H])  # u from (y, c)
    A = closed_loop_map(whole, pushed @ others, law, delay=delay)
    B = np.zeros(A.shape[0])
    B[:n] = pushed[:, joint]
    C = np.zeros(A.shape[0])
    if delay:
        C[n + memory + joint] = 1.0
    else:
        C[: n + memory] = answer[joint]

    def response(z: Vector) -> Vector:
        left = z[:, None, None] * np.eye(A.shape[0]) - A
        solved = np.linalg.solve(left, np.broadcast_to(B, (z.size, B.size))[..., None])
        value: Vector = -(C @ solved[..., 0].T)
        return value

    return response


def min_margins(every: Sequence[Margins]) -> Margins:
    """The smallest margins of several loops, each number by itself; NaN where one is unstable."""
    if any(isnan(m.gain_margin) for m in every):
        return UNSTABLE
    worst = min(every, key=lambda m: m.phase_margin)
    return Margins(
        min(m.gain_margin for m in every),
        max(m.gain_reduction for m in every),
        worst.phase_margin,
        worst.crossover,
        min(m.delay_margin for m in every),
    )


def joint_margins(
    arm: ArmModel,
    controller: Controller,
    q: Vector,
    period: float,
    delay: int = 0,
    interface: str = "effort",
) -> tuple[Margins, ...]:
    """Margins of every joint of ``arm`` held at ``q``, its command held over ``period`` [s].

    Raises InvalidValue for a pose that cannot be held and a controller that is not linear.
    """
    whole, pushed = sampled_plant(arm, q, period, interface)
    law = linear_controller_at(controller, q, period, interface)
    if not is_stable(closed_loop_map(whole, pushed, law, delay=delay)):
        return (UNSTABLE,) * arm.nv
    return tuple(
        margins(joint_response(whole, pushed, law, j, delay), period) for j in range(arm.nv)
    )
