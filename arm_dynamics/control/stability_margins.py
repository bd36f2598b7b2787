"""Gain and delay margins of a controller in a sampled loop."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.linear_controller import closed_loop_map, linearized_controller
from arm_dynamics.control.lqr_design.lqr_gain import linear_dynamics
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.timing import LATEST, LoopTiming
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.linearization import zero_order_hold

MARGIN = 1.5
"""Required gain margin: factor on all gains up to which the loop is stable."""
MIN_DELAY_MARGIN = 2.0
"""Delay margin below which a controller gives a warning [control periods]."""
RANDOM_CONFIGURATIONS = 12
"""Random configurations in addition to the initial and the present one."""
STEPS = 8
"""Time steps per control period; delays are rounded to them."""
GROWTH, FREQUENCY = 0.1, 0.3
"""Growth [1/s] and frequency [Hz] beyond which a mode is an oscillation; slower ones sag."""


class TimedArm:
    """An arm at several configurations, sampled exactly from its linearization.

    Configurations whose gravity torque exceeds an effort limit are omitted: no gains hold the arm
    there.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    timing : LoopTiming
        Control period and delay.
    configurations : Sequence of (nv,) arrays
        Configurations [rad or m].

    """

    def __init__(self, arm: ArmModel, timing: LoopTiming, configurations: Sequence[Vector]) -> None:
        self.arm, self.timing = arm, timing
        limit = arm.effort_limit
        self.configurations = [
            q for q in configurations if (np.abs(gravity(arm, q)) <= limit).all()
        ]
        step = timing.period / STEPS
        self._maps = [zero_order_hold(*linear_dynamics(arm, q), step) for q in self.configurations]

    def oscillation(self, controller: Controller, margin: float) -> str:
        """Return the oscillation with all gains 1 to ``margin`` times as large; "" for none."""
        trial = copied(controller)
        for q, (phi, gamma) in zip(self.configurations, self._maps, strict=True):
            try:
                linear = linearized_controller(trial, q, self.timing.period)
            except ArmDynamicsError:
                continue  # no command at this configuration, which the loop reports
            for factor in (1.0, margin):
                scaled = linear.scaled(factor)
                closed = closed_loop_map(phi, gamma, scaled, STEPS, self.timing.delay)
                growing = self._fastest_oscillation(closed)
                if growing:
                    at = np.round(q, 2).tolist()
                    return f"{growing} with gains x {factor:g} at configuration {at}"
        return ""

    def _fastest_oscillation(self, closed: Matrix) -> str:
        """Return the fastest growing oscillation of a closed loop with its joint; "" for none."""
        if not np.isfinite(closed).all():
            return "oscillation that overflows"
        z, T = np.linalg.eigvals(closed), self.timing.period
        growth = np.log(np.maximum(np.abs(z), 1e-300)) / T
        frequency = np.abs(np.angle(z)) / (2 * np.pi * T)
        bad = np.where((growth > GROWTH) & (frequency > FREQUENCY), growth, -np.inf)
        k = int(np.argmax(bad))
        if bad[k] == -np.inf:
            return ""
        values, vectors = np.linalg.eig(closed)
        participation = np.abs(vectors[: self.arm.nv, np.argmin(np.abs(values - z[k]))])
        return (
            f"oscillation of joint '{self.arm.joint_names[int(np.argmax(participation))]}' at"
            f" {frequency[k]:.3g} Hz grows by {growth[k]:.3g} 1/s"
        )


def delay_margin(
    controller: Controller, arm: ArmModel, period: float, q: Vector | None = None
) -> tuple[float, str]:
    """Return the largest delay without an oscillation, and the oscillation beyond it.

    Parameters
    ----------
    controller : Controller
        Controller that commands effort.
    arm : ArmModel
        Controlled arm.
    period : float
        Control period [s].
    q : (nv,) array, optional
        Present configuration [rad or m], in addition to those of ``check_configurations``.

    Returns
    -------
    delay : float
        Delay margin [control periods], in steps of 0.5; negative if the loop oscillates without
        delay.
    text : str
        Oscillation; "" beyond the largest delay tested.

    """
    sampled = TimedArm(arm, LoopTiming(period), check_configurations(arm, q))
    trial, margin = copied(controller), -0.5
    while margin < LATEST:
        sampled.timing = LoopTiming(period, margin + 0.5)
        oscillation = sampled.oscillation(trial, 1.0)
        if oscillation:
            return margin, oscillation
        margin += 0.5
    return margin, ""


MAX_GAIN_MARGIN = 8.0
"""Largest gain margin that is searched for."""
GAIN_STEPS = 5
"""Bisections of the gain margin, on a logarithmic scale."""


def gain_margin(
    controller: Controller, arm: ArmModel, period: float, q: Vector | None = None
) -> tuple[float, str]:
    """Return the largest common factor on all gains without an oscillation, and that oscillation.

    Parameters are those of ``delay_margin``. The factor is from 1 to MAX_GAIN_MARGIN, found by
    bisection; 0 if the loop oscillates with the present gains.
    """
    sampled = TimedArm(arm, LoopTiming(period), check_configurations(arm, q))
    trial = copied(controller)
    found = sampled.oscillation(trial, 1.0)
    if found:
        return 0.0, found
    found = sampled.oscillation(trial, MAX_GAIN_MARGIN)
    if not found:
        return MAX_GAIN_MARGIN, ""
    low, high = 1.0, MAX_GAIN_MARGIN
    for _ in range(GAIN_STEPS):
        middle = float(np.sqrt(low * high))
        oscillation = sampled.oscillation(trial, middle)
        low, high = (low, middle) if oscillation else (middle, high)
        found = oscillation or found
    return low, found


def margin_text(controller: Controller, arm: ArmModel, period: float) -> str:
    """Return the stability margins of a controller in words; "" if it commands no effort."""
    if controller.interface != "effort":
        return ""
    try:
        gain, found = gain_margin(controller, arm, period)
        if gain == 0.0:
            return f"UNSTABLE: {found}"
        delay, _ = delay_margin(controller, arm, period)
    except ArmDynamicsError as error:
        return f"stability margins not computed: {error}"
    factor = f"at least {gain:g}" if gain == MAX_GAIN_MARGIN else f"{gain:.2g}"
    limit = f"; above, {found}" if found else ""
    return (
        f"stability margins: gain {factor} (required {MARGIN:g}), delay {delay:g} control periods"
        f" of {1e3 * period:g} ms (required {MIN_DELAY_MARGIN:g}){limit}"
    )


def thin_margin(controller: Controller, arm: ArmModel, period: float) -> str:
    """Return a warning if the gain or delay margin of a controller is too small; else "".

    No mode may oscillate with all gains 1 to MARGIN times as large, nor with a delay of
    MIN_DELAY_MARGIN control periods, at the configurations of ``check_configurations``.

    Parameters
    ----------
    controller : Controller
        Controller; "" if it does not command effort.
    arm : ArmModel
        Controlled arm with its payload.
    period : float
        Control period [s].

    """
    if controller.interface != "effort":
        return ""
    where = f"{type(controller).__name__} of arm '{arm.name}'"
    try:
        sampled = TimedArm(arm, LoopTiming(period), check_configurations(arm, None))
        trial = copied(controller)
        thin, oscillation = f"gain margin < {MARGIN:g}", sampled.oscillation(trial, MARGIN)
        if not oscillation:
            sampled.timing = LoopTiming(period, MIN_DELAY_MARGIN)
            thin = f"delay margin < {MIN_DELAY_MARGIN:g} control periods"
            oscillation = sampled.oscillation(trial, 1.0)
    except Exception as error:
        return f"{where}: stability margins not computed: {type(error).__name__}: {error}"
    if not oscillation:
        return ""
    return (
        f"{where}: {thin} with a control period of {period:g} s: {oscillation}; expected no"
        " oscillation; lower the gains or the period (see `arm-dynamics stability`)"
    )


def check_configurations(arm: ArmModel, q: Vector | None) -> Sequence[Vector]:
    """Return the initial configuration, ``q`` and random ones within the limits or one turn."""
    rng = np.random.default_rng(0)
    lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    lower, upper = np.minimum(lower, arm.upper), np.maximum(upper, arm.lower)
    random = list(rng.uniform(lower, upper, (RANDOM_CONFIGURATIONS, arm.nv)))
    present = [] if q is None or not np.isfinite(q).all() else [q]
    return [arm.configuration("initial"), *present, *random]


def copied(controller: Controller) -> Controller:
    """Return a copy on the same model, whose gains and memory may be changed."""
    return deepcopy(controller, {id(controller.arm): controller.arm})
