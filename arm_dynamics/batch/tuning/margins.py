"""Gain and phase margins of a sampled loop that is opened at one joint's command."""

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
"""Half width [N·m, rad/s] of differences of the motors' inverse, piecewise linear except for the
brush voltage."""


def sampled_plant(arm: ArmModel, q: Vector, period: float, interface: str) -> tuple[Vector, Vector]:
    """Return exact Φ and Γ of δy⁺ = Φ δy + Γ δu, y = (q, v, act), u held over ``period`` [s].

    Raises InvalidValue for a configuration that cannot be held.
    """
    linear = linearize(arm, *find_equilibrium(arm, q, interface))
    return zero_order_hold(linear.A, linear.B, period)


def linear_controller_at(
    controller: Controller, q: Vector, period: float, interface: str
) -> LinearController:
    """Return ``linear_controller``; for "voltage" followed by V = V(τ, v) of the model's motors.

    δV = V_τ δτ + V_v δv about the effort that holds ``q``. Raises InvalidValue for a controller
    without linear form.
    """
    effort = linear_controller(controller, q, period)
    if interface == "effort":
        return effort
    model, h = controller.arm, DIFFERENCE_STEP
    pairs = list(zip(model.actuators, gravity(model, q).tolist(), strict=True))
    by_effort = [
        (a.voltage_for(g + h, 0.0) - a.voltage_for(g - h, 0.0)) / (2 * h) for a, g in pairs
    ]
    by_velocity = [(a.voltage_for(g, h) - a.voltage_for(g, -h)) / (2 * h) for a, g in pairs]
    V_tau, V_v = np.diag(by_effort), np.diag(by_velocity)
    feedforward = V_tau @ effort.K + np.hstack([np.zeros_like(V_v), V_v])
    return LinearController(
        "voltage", effort.F, effort.G, V_tau @ effort.H, V_tau @ effort.J, feedforward
    )


Response = Callable[[Vector], Vector]
"""z (k,), complex -> open loop L(z) (k,), complex; the closed loop is 1 / (1 + L)."""
SCAN_POINTS = 400
"""Frequencies of the scan, up to the Nyquist frequency."""
MIN_ANGLE = 1e-5
"""Lowest angle of the scan [rad per period]."""
BISECTIONS = 44


@dataclass(frozen=True)
class Margins:
    """Stability margins; NaN for an unstable loop.

    Attributes
    ----------
    gain_margin, gain_reduction : float
        The loop is stable with gain factors between these (∞, 0: any).
    phase_margin : float
        Phase lag up to which it is stable [degrees]; ∞ if |L| never reaches 1.
    crossover : float
        Frequency of the phase margin [Hz].
    delay_margin : float
        Delay up to which it is stable [s].

    """

    gain_margin: float
    gain_reduction: float
    phase_margin: float
    crossover: float
    delay_margin: float


UNSTABLE = Margins(nan, nan, nan, nan, nan)
MarginRows = tuple[tuple[Margins, ...], tuple[Margins, ...]]
"""Margins of every joint, at the initial configuration and the smallest over all cases."""


def margins(response: Response, period: float) -> Margins:
    """Return the margins of L(e^{iθ}), 0 < θ <= π, of a loop that is stable when closed.

    Gain: 1 / |L| where L crosses the negative real axis, nearest to 1 on both sides. Phase:
    smallest |π + ∠L| where |L| = 1. Delay: smallest (∠L mod 2π - π) T / θ there. Crossings between
    two of SCAN_POINTS frequencies are bisected.

    References
    ----------
    K. J. Åström, R. M. Murray, Feedback Systems (2008), section 9.3.

    """
    angles = np.append(np.geomspace(MIN_ANGLE, pi * (1 - 1e-6), SCAN_POINTS), pi)
    values = response(np.exp(1j * angles))
    factors = [1 / abs(value) for value in _real_crossings(response, angles, values)]
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


def _real_crossings(response: Response, angles: Vector, values: Vector) -> list[complex]:
    """Return L where it crosses the negative real axis, and at the Nyquist frequency."""
    inner = _roots(lambda t: response(np.exp(1j * t)).imag, angles[:-1], values[:-1].imag > 0)
    values_there = [complex(x) for x in response(np.exp(1j * inner))] if len(inner) else []
    last = complex(values[-1])  # real, up to round-off
    return [value for value in (*values_there, last) if value.real < 0]


def _roots(f: Callable[[Vector], Vector], grid: Vector, flags: NDArray[np.bool_]) -> Vector:
    """Return the zeros of ``f`` between grid points with different ``flags``, by bisection."""
    change = np.flatnonzero(flags[1:] != flags[:-1])
    low, high, up = grid[change], grid[change + 1], flags[change + 1]
    for _ in range(BISECTIONS if len(change) else 0):
        middle = (low + high) / 2
        beyond = (f(middle) > 0) == up
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return (low + high) / 2


def joint_response(
    phi: Vector, gamma: Vector, controller: LinearController, joint: int, delay: int = 0
) -> Response:
    """Return L(z) = -C (zI - A)⁻¹ B at the command of ``joint``, the other joints' loops closed.

    Parameters
    ----------
    phi, gamma : Matrix
        Φ, Γ of δy⁺ = Φ δy + Γ δu over one period.
    controller : LinearController
        Controller.
    joint : int
        Joint.
    delay : int
        Delay of the commands [periods], see ``closed_loop_map``.

    """
    others = np.eye(gamma.shape[1])
    others[joint, joint] = 0.0
    n, memory = phi.shape[0], controller.F.shape[0]
    measured = np.eye(controller.G.shape[1], n)  # x = (q, v) of y
    feedback = np.hstack([(controller.J + controller.K) @ measured, controller.H])  # u of (y, c)
    A = closed_loop_map(phi, gamma @ others, controller, delay=delay)
    B = np.zeros(A.shape[0])
    B[:n] = gamma[:, joint]
    C = np.zeros(A.shape[0])
    if delay:
        C[n + memory + joint] = 1.0
    else:
        C[: n + memory] = feedback[joint]

    def response(z: Vector) -> Vector:
        left = z[:, None, None] * np.eye(A.shape[0]) - A
        solved = np.linalg.solve(left, np.broadcast_to(B, (z.size, B.size))[..., None])
        value: Vector = -(C @ solved[..., 0].T)
        return value

    return response


def min_margins(every: Sequence[Margins]) -> Margins:
    """Return the smallest of each margin of several loops; NaN if one is unstable."""
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
    """Return the margins of every joint of an arm held at ``q``.

    Parameters
    ----------
    arm : ArmModel
        Actual arm.
    controller : Controller
        Controller.
    q : Vector
        Configuration [rad or m], shape (nv,).
    period : float
        Control period [s].
    delay : int
        Delay of the commands [periods].
    interface : str
        "effort" or "voltage".

    Raises
    ------
    InvalidValue
        If the configuration cannot be held, or the controller has no linear form.

    """
    phi, gamma = sampled_plant(arm, q, period, interface)
    linear = linear_controller_at(controller, q, period, interface)
    if not is_stable(closed_loop_map(phi, gamma, linear, delay=delay)):
        return (UNSTABLE,) * arm.nv
    return tuple(
        margins(joint_response(phi, gamma, linear, j, delay), period) for j in range(arm.nv)
    )
