"""From a recorded motion to the equations of its efforts: filter, derivatives, delay, friction.

Positions and efforts pass the same zero-phase low-pass filter, and so do the states of dry
friction, which jump where the filtered efforts do not (parallel filtering). The cut-off frequency
follows from the spectrum of the positions; samples are then decimated to a few per period of it.

References
----------
M. Gautier, Dynamic identification of robots with power model, ICRA 1997, section 4. A. Janot,
P. Vandanjon, M. Gautier, A generic instrumental variable approach for industrial robot
identification, IEEE T-CST 22 (2014), section II. P. Dahl, Solid friction damping of mechanical
vibrations, AIAA Journal 14 (1976), eq. 4.

"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal

from arm_dynamics.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
)
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.base_parameters import base_parameters, structural_rows
from arm_dynamics.identification.dynamic_parameters import parameter_names, regressor
from arm_dynamics.identification.motion_data import MotionData
from arm_dynamics.identification.torque_fit import EffortEquations
from arm_dynamics.model.arm_model import ArmModel

FILTER_ORDER = 4
SAMPLES_PER_PERIOD = 5.0
"""Decimated rate over cut-off frequency."""
CUTOFF_RATIO = 10.0
"""Cut-off over the highest frequency of the motion, as by Gautier 1997."""
ABOVE_NOISE = 30.0
"""Power over that of the noise above which a frequency belongs to the motion."""
LOWEST_CUTOFF = 2.0
"""[Hz]."""
MOTION_POWER = 0.995
"""Part of the power of the velocities that counts as motion; the rest is noise."""
PRESLIDING = (0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
"""Distances [rad or m] of the Dahl model that are compared."""
DELAY_RANGE, DELAY_STEP = 0.05, 0.0025
"""Delays of the effort that are compared [s]."""
BLOCK_PERIODS = 2.0
"""Length of a block of samples in periods of the cut-off frequency."""
SATURATED = 0.98
"""Effort over effort limit at which a motor counts as saturated."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedMotion:
    """Filtered and decimated motion.

    ``time`` (n,) [s]; ``q``, ``v``, ``a`` and ``effort`` (n, nv); ``sliding`` (m, n, nv): states of
    dry friction for the distances PRESLIDING; ``block`` (n,): index of the block; ``cutoff`` [Hz];
    ``delay`` [s] of the efforts, taken out; ``notes``: sentences for the user.
    """

    time: Vector
    q: Matrix
    v: Matrix
    a: Matrix
    effort: Matrix
    sliding: FloatArray
    valid: BoolArray
    block: IntArray
    cutoff: float
    delay: float
    notes: tuple[str, ...]

    def equations(self, arm: ArmModel) -> EffortEquations:
        """Return the equations of the efforts."""
        nv = arm.nv
        rows = regressor(arm, self.q, self.v, self.a)
        own = np.arange(nv)
        rows[:, own, 12 * nv + own] = 0.0
        distances = np.array(PRESLIDING)
        return EffortEquations(rows, self.sliding, distances, self.effort, self.valid, self.block)


def prepare_motion(
    arm: ArmModel, data: MotionData, cutoff: float | None = None, delay: float | None = None
) -> PreparedMotion:
    """Return the filtered motion with its derivatives.

    Parameters
    ----------
    arm : ArmModel
        The arm; its geometry determines the delay between positions and efforts.
    data : MotionData
        Recorded positions and efforts.
    cutoff : float, optional
        Cut-off frequency [Hz] (default: from the spectrum of the positions).
    delay : float, optional
        Time [s] by which the efforts are late (default: estimated).

    Returns
    -------
    PreparedMotion
        Uniform samples, without the ends on which the filter settles.

    Raises
    ------
    InvalidValue
        For a motion without efforts, without motion, or too short for its cut-off frequency.

    """
    if data.effort is None:
        raise InvalidValue(
            f"{data.source}: efforts = none; expected one per joint; positions alone determine"
            " friction and inertia only by simulating the motors"
        )
    rate = 1 / float(np.median(np.diff(data.time)))
    time = np.arange(data.time[0], data.time[-1], 1 / rate)
    q = scipy.interpolate.make_interp_spline(data.time, data.q, 3)(time)
    raw = scipy.interpolate.make_interp_spline(data.time, data.effort, 1)(time)
    frequency = _cutoff(q, rate) if cutoff is None else check_float("cutoff [Hz]", cutoff, above=0)
    frequency = min(frequency, 0.4 * rate)
    low_pass = scipy.signal.butter(FILTER_ORDER, frequency, fs=rate, output="sos")

    def filtered(values: Matrix) -> Matrix:
        found: Matrix = scipy.signal.sosfiltfilt(low_pass, values, axis=0)
        return found

    edge, step = int(1.5 * rate / frequency), max(1, int(rate / (SAMPLES_PER_PERIOD * frequency)))
    keep = slice(edge, -edge, step)
    if len(time[keep]) < 6 * arm.nv:
        raise InvalidValue(
            f"{data.source}: duration = {time[-1] - time[0]:.1f} s with a cut-off of"
            f" {frequency:.2g} Hz; expected {6 * arm.nv} samples after the filter; record a longer"
            " motion"
        )
    q = filtered(q)
    v = np.gradient(q, 1 / rate, axis=0, edge_order=2)
    a = np.gradient(v, 1 / rate, axis=0, edge_order=2)
    still = np.ptp(q[keep], axis=0) < 1e-3
    if still.all():
        raise InvalidValue(f"{data.source}: motion < 0.001 rad in all joints; expected a motion")
    limit = arm.effort_limit
    saturated = (np.abs(raw) > SATURATED * limit) & (limit > 0)
    sign, resting = _direction(v, rate, frequency)
    valid = ~(resting | (filtered(saturated.astype(float)) > 0.05))[keep]
    sliding = np.array([filtered(_dahl_states(q, sign, d))[keep] for d in PRESLIDING])
    effort = filtered(raw)
    motion = PreparedMotion(
        as_readonly(time[keep]),
        as_readonly(q[keep]),
        as_readonly(v[keep]),
        as_readonly(a[keep]),
        as_readonly(effort[keep]),
        sliding,
        valid,
        np.floor((time[keep] - time[0]) * frequency / BLOCK_PERIODS).astype(int),
        frequency,
        0.0,
        (
            f"{data.source}: {data.time[-1] - data.time[0]:.1f} s at {rate:.4g} Hz; low-pass at"
            f" {frequency:.2g} Hz, {len(time[keep])} samples used",
        ),
    )
    late = _delay(arm, motion, time, effort) if delay is None else (float(delay), 0.0)
    return _without_delay(motion, time, effort, *late, given=delay is not None)


def _cutoff(q: Matrix, rate: float) -> float:
    """Return CUTOFF_RATIO times the highest frequency [Hz] of the motion (n, nv).

    The motion reaches from 0 to where the spectrum falls to the noise of the positions; within,
    its highest frequency has MOTION_POWER of the power of the velocities below it.
    """
    window = np.hanning(len(q))[:, None]
    power = np.abs(np.fft.rfft((q - q.mean(axis=0)) * window, axis=0)) ** 2
    frequency = np.fft.rfftfreq(len(q), 1 / rate)
    smooth = scipy.ndimage.uniform_filter1d(power, max(3, int(0.5 * len(q) / rate)), axis=0)
    noise = np.median(smooth[2 * len(smooth) // 3 :], axis=0)
    is_motion = np.logical_and.accumulate(smooth > ABOVE_NOISE * noise, axis=0)
    velocity = np.where(is_motion, power, 0.0) * frequency[:, None] ** 2
    total = velocity.sum(axis=0)
    share = np.cumsum(velocity, axis=0) / np.where(total > 0, total, np.inf)
    highest = np.where(total > 0, frequency[np.argmax(share >= MOTION_POWER, axis=0)], 0.0)
    return float(max(CUTOFF_RATIO * highest.max(), LOWEST_CUTOFF))


def _direction(v: Matrix, rate: float, cutoff: float) -> tuple[Matrix, BoolArray]:
    """Return the direction of motion (n, nv), -1, 0 or 1, and a mask of the joints at rest.

    The direction changes only where the speed exceeds the noise of the velocity.
    """
    quiet = 1e-3 * np.abs(v).max(axis=0)
    certain = np.abs(v) > np.maximum(quiet, 1e-6)
    latest = np.maximum.accumulate(np.where(certain, np.arange(len(v))[:, None], 0), axis=0)
    sign = np.sign(np.take_along_axis(v, latest, axis=0))
    width = max(3, int(rate / cutoff))
    resting = scipy.ndimage.uniform_filter1d(certain.astype(float), width, axis=0) < 0.5
    return sign, resting


def _dahl_states(q: Matrix, sign: Matrix, distance: float) -> Matrix:
    """Return s (n, nv) of ds/dx = (sign - s) / distance along the path x of each joint."""
    if distance == 0.0:
        return sign.astype(float)
    found = np.empty_like(q)
    path = np.vstack((np.zeros(q.shape[1]), np.cumsum(np.abs(np.diff(q, axis=0)), axis=0)))
    for i in range(q.shape[1]):
        starts = [0, *(np.flatnonzero(np.diff(sign[:, i])) + 1).tolist(), len(q)]
        state = 0.0
        for first, last in pairwise(starts):
            part, target = path[first:last, i], sign[first, i]
            found[first:last, i] = target + (state - target) * np.exp(-(part - part[0]) / distance)
            state = found[last - 1, i]
    return found


def _delay(
    arm: ArmModel, motion: PreparedMotion, time: Vector, effort: Matrix
) -> tuple[float, float]:
    """Return the time [s] by which the efforts are late, and its standard deviation.

    The residual of weighted least squares over the base parameters is least at the delay, with the
    friction model that explains the efforts best.
    """
    equations, nv = motion.equations(arm), arm.nv
    base = base_parameters(structural_rows(arm), parameter_names(arm))
    shifts = np.arange(-DELAY_RANGE, DELAY_RANGE + DELAY_STEP / 2, DELAY_STEP)
    efforts = np.array([_moved(motion.time, time, effort, late) for late in shifts])
    fits = []
    for model in range(len(PRESLIDING)):
        rows = equations.rows(np.full(nv, model))[:, :, base.independent]
        scale, k = np.ones(nv), len(shifts) // 2
        for _ in range(3):
            weights = motion.valid / scale
            weighted = (rows * weights[..., None]).reshape(-1, base.size)
            targets = (efforts * weights).reshape(len(shifts), -1)
            factor = scipy.linalg.cho_factor(
                weighted.T @ weighted + np.diag(1e-12 * np.sum(weighted**2, axis=0) + 1e-300)
            )
            values = scipy.linalg.cho_solve(factor, weighted.T @ targets.T)
            cost = np.sum((targets.T - weighted @ values) ** 2, axis=0)
            k = int(np.argmin(cost))
            residual = np.where(motion.valid, efforts[k] - rows @ values[:, k], 0.0)
            scale = np.maximum(np.sqrt(np.mean(residual**2, axis=0)), 1e-9)
        fits.append((float(np.log(scale).sum()), cost))
    cost = min(fits, key=lambda fit: fit[0])[1]
    k = int(np.clip(np.argmin(cost), 1, len(shifts) - 2))
    slope = (cost[k + 1] - cost[k - 1]) / (2 * DELAY_STEP)
    curvature = (cost[k - 1] - 2 * cost[k] + cost[k + 1]) / DELAY_STEP**2
    if curvature <= 0:
        return 0.0, DELAY_RANGE
    variance = cost[k] / max(int(motion.valid.sum()) - base.size, 1)
    return float(shifts[k] - slope / curvature), float(np.sqrt(2 * variance / curvature))


def _moved(at: Vector, time: Vector, values: Matrix, late: float) -> Matrix:
    """Return ``values`` (n, nv) at ``time``, which are ``late`` [s], at the times ``at``."""
    spline = scipy.interpolate.make_interp_spline(time, values, 1)
    found: Matrix = spline(np.clip(at + late, time[0], time[-1]))
    return found


def _without_delay(
    motion: PreparedMotion, time: Vector, effort: Matrix, late: float, spread: float, given: bool
) -> PreparedMotion:
    """Return the motion with efforts that are ``late`` [s] moved to their positions."""
    if given:
        note = f"efforts: delay = {1e3 * late:.1f} ms, as given"
    elif abs(late) < 3 * spread or abs(late) > DELAY_RANGE:
        note = f"efforts: no delay found ({1e3 * late:.1f} ± {1e3 * spread:.1f} ms)"
        late = 0.0
    else:
        note = f"efforts: delay = {1e3 * late:.1f} ± {1e3 * spread:.1f} ms, taken out"
    if late:
        motion = replace(motion, effort=as_readonly(_moved(motion.time, time, effort, late)))
    return replace(motion, delay=late, notes=(*motion.notes, note))
