"""Gains of a controller against the control period and the delay of the loop that it runs in."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.linear_controller import (
    LinearController,
    closed_loop_map,
    linear_controller,
)
from arm_dynamics.control.lqr_design.lqr_gain import linear_dynamics
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.core.state import Reference, State
from arm_dynamics.core.timing import LATEST, LoopTiming
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.linearization import zero_order_hold

MARGIN = 1.5
"""Gain margin: all gains together may be this many times as large, and the loop is stable."""
DESIGN = 2.0
"""Gain margin that defaults are slowed down to."""
MIN_DELAY_MARGIN = 2.0
"""Delay margin [periods] below which a controller is warned of."""
POSES = 12
"""Random poses that are tried in addition to the initial and the present one."""
STEPS = 8
"""Time steps in a period that a delay is rounded to."""
MIN_BANDWIDTH_FACTOR = 1e-3
"""Smallest factor on the usual bandwidth of defaults."""
COARSE, TRIALS = 0.6, 4
"""Steps in which that factor is lowered, and bisections of the last one."""
GROWTH, FREQUENCY = 0.1, 0.3
"""Modes that grow faster [1/s], at a higher frequency [Hz], are oscillations; slower ones sag."""
STEP = 1e-6
"""Step of the central differences through a controller [rad, rad/s]."""


class TimedArm:
    """An arm at several poses, sampled with a ``timing``: exact steps of its linearization.

    Poses whose gravity torque exceeds an effort limit are omitted: no gains hold the arm there.
    """

    def __init__(self, arm: ArmModel, timing: LoopTiming, poses: Sequence[Vector]) -> None:
        self.arm, self.timing = arm, timing
        self.poses = [p for p in poses if (np.abs(gravity(arm, p)) <= arm.effort_limit).all()]
        step = timing.period / STEPS
        self._maps = [zero_order_hold(*linear_dynamics(arm, pose), step) for pose in self.poses]

    def oscillation(self, controller: Controller, margin: float) -> str:
        """Oscillation of the loop with all gains 1 to ``margin`` times as large; "" for none."""
        trial = _copy(controller)
        for pose, (phi, gamma) in zip(self.poses, self._maps, strict=True):
            try:
                law = linear_law(trial, pose, self.timing.period)
            except ArmDynamicsError:
                continue  # no command at this pose, which the loop reports
            for factor in (1.0, margin):
                scaled = law.scaled(factor)
                closed = closed_loop_map(phi, gamma, scaled, STEPS, self.timing.delay)
                found = self._growing(closed)
                if found:
                    return f"{found} with gains x {factor:g} at pose {np.round(pose, 2).tolist()}"
        return ""

    def _growing(self, closed: Vector) -> str:
        """The fastest growing oscillation of a closed loop, and its joint, in words."""
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
        part = np.abs(vectors[: self.arm.nv, np.argmin(np.abs(values - z[k]))])
        return (
            f"oscillation of joint '{self.arm.joint_names[int(np.argmax(part))]}' at"
            f" {frequency[k]:.3g} Hz grows by {growth[k]:.3g} 1/s"
        )


def fit_gains(
    controller: Controller, arm: ArmModel, timing: LoopTiming, q: Vector | None = None
) -> str:
    """Slow the controller's default gains down as far as ``timing`` requires; in words, if so.

    Gains that were given are left as they are. Every default is of the largest bandwidth, at most
    the usual one, at which no mode oscillates with all gains 1 to DESIGN times as large, or MARGIN
    times where some were given: linear about the initial pose, ``q`` and POSES random ones,
    motors without dynamics, the command held over a period. Raises InvalidValue where no such
    bandwidth exists; the controller is as before then.
    """
    if controller.interface != "effort" or timing.period <= 0:
        return ""
    sampled, trial = TimedArm(arm, timing, _poses(arm, q)), _copy(controller)

    def oscillation(scale: float, margin: float) -> str:
        trial.slow_down(scale)
        return sampled.oscillation(trial, margin)

    scalable = any(p.order for group in controller.parameter_groups.values() for p in group)
    margin = DESIGN if scalable and not any(controller.given.values()) else MARGIN
    found = oscillation(1.0, margin)
    if not found:
        controller.slow_down(1.0)
        return ""
    low = high = 1.0
    while oscillation(low := low * COARSE, margin):
        high = low
        if low < MIN_BANDWIDTH_FACTOR:
            raise InvalidValue(
                f"{type(controller).__name__}: gains unstable with {timing}: {found}; expected no"
                f" oscillation at up to {margin:g} times the gains; lower the gains or the period"
                f" (`arm-dynamics advise ARM --period {timing.period:.4g} --delay"
                f" {timing.delay:.3g}`)"
            )
    for _ in range(TRIALS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if oscillation(middle, margin) else (middle, high)
    controller.slow_down(low)
    return (
        f"{type(controller).__name__}: default gains of {low:.3g} times the usual bandwidth, for"
        f" {timing}: with the usual ones an {found}"
    )


def delay_margin(
    controller: Controller, arm: ArmModel, period: float, q: Vector | None = None
) -> tuple[float, str]:
    """Largest delay [periods] without an oscillation, and the one that a longer delay starts.

    The configurations are those of ``fit_gains``; delays are tried in steps of half a period, up
    to LATEST, beyond which the text is empty. Negative where the loop oscillates without a delay.
    """
    sampled, trial, held = (
        TimedArm(arm, LoopTiming(period), _poses(arm, q)),
        _copy(controller),
        -0.5,
    )
    while held < LATEST:
        sampled.timing = LoopTiming(period, held + 0.5)
        found = sampled.oscillation(trial, 1.0)
        if found:
            return held, found
        held += 0.5
    return held, ""


def thin_margin(controller: Controller, arm: ArmModel, period: float) -> str:
    """Return what is thin of the gain and delay margins of a controller of ``arm``, "" if nothing.

    No mode oscillates with all gains 1 to MARGIN times as large, nor with a delay of LEAST_DELAY
    control periods, about the configurations of ``fit_gains``. ``arm`` has the payload. "" also
    for a controller that does not command efforts; what a controller raises is in the text.
    """
    if controller.interface != "effort":
        return ""
    where = f"{type(controller).__name__} of arm '{arm.name}'"
    try:
        sampled, trial = TimedArm(arm, LoopTiming(period), _poses(arm, None)), _copy(controller)
        thin, found = f"gain margin < {MARGIN:g}", sampled.oscillation(trial, MARGIN)
        if not found:
            sampled.timing = LoopTiming(period, MIN_DELAY_MARGIN)
            thin = f"delay margin < {MIN_DELAY_MARGIN:g} control periods"
            found = sampled.oscillation(trial, 1.0)
    except Exception as error:
        return f"{where}: stability margins not computed: {type(error).__name__}: {error}"
    if not found:
        return ""
    return (
        f"{where}: {thin} with a control period of {period:g} s: {found}; expected no oscillation;"
        " lower the gains or the period (see `arm-dynamics advise`)"
    )


def linear_law(controller: Controller, q: Vector, period: float) -> LinearController:
    """``linear_controller`` where it is known; else slopes of ``update`` at rest on the reference.

    The slope ∂g/∂q of the model's gravity is no gain: it is the feedforward's K. Joints' integrals
    of gains "ki" are accelerations: u = M c, c⁺ = c - T ki q;
    M with what computed torque adds for viscous friction.
    Changes the controller's memory. Raises CommandRefused where it has no command.
    """
    try:
        return linear_controller(controller, q, period)
    except InvalidValue:
        pass
    nv, x = controller.arm.nv, np.concatenate([q, np.zeros_like(q)])
    rest = Reference.hold(q)
    controller.reset(State.of(q))
    J = np.empty((nv, 2 * nv))
    for k in range(2 * nv):
        ends = []
        for shift in (STEP, -STEP):
            near = x.copy()
            near[k] += shift
            ends.append(controller.update(State.of(near[:nv], near[nv:]), rest, 0.0).value)
        J[:, k] = (ends[0] - ends[1]) / (2 * STEP)
    mass, weight = mass_matrix(controller.arm, q), np.zeros((nv, 2 * nv))
    inertia = controller.inertia(q) if isinstance(controller, ComputedTorque) else mass
    weight[:, :nv] = -mass @ linear_dynamics(controller.arm, q)[0][nv:, :nv]
    ki = controller.gains.get("ki", np.zeros(nv))
    G = np.hstack([-period * np.diag(ki), np.zeros((nv, nv))])
    return LinearController("effort", np.eye(nv), G, inertia, J - weight, weight)


def _copy(controller: Controller) -> Controller:
    """Another one on the same model, whose gains and memory may be changed."""
    return deepcopy(controller, {id(controller.arm): controller.arm})


def _poses(arm: ArmModel, q: Vector | None) -> Sequence[Vector]:
    """The initial pose, ``q`` and POSES random ones between the limits, or in one turn."""
    rng = np.random.default_rng(0)
    lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    lower, upper = np.minimum(lower, arm.upper), np.maximum(upper, arm.lower)
    drawn = list(rng.uniform(lower, upper, (POSES, arm.nv)))
    return [
        arm.configuration("initial"),
        *([] if q is None or not np.isfinite(q).all() else [q]),
        *drawn,
    ]
