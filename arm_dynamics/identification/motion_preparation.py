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
from typing import Any

import numpy as np
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal

from arm_dynamics.core.arrays import (
    BoolArray,
    FloatArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
)
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.base_parameter_set import base_parameters, structural_rows
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
MOTION_POWER = 0.95
"""Part of the power of the velocities that counts as motion; the rest is noise."""
PRESLIDING = (0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
"""Distances [rad or m] of the Dahl model that are compared."""
LEAST_MOTION = 1e-3
"""Range of a position [rad or m] below which a joint counts as at rest."""
DELAY_RANGE, DELAY_STEP = 0.05, 0.0025
"""Delays of the effort that are compared [s]."""
BLOCK_PERIODS = 2.0
"""Length of a block of samples in periods of the cut-off frequency."""
FAST_RATIO = 5.0
"""Bandwidth of the direction of motion over the cut-off frequency."""
SATURATED = 0.98
"""Effort over effort limit at which a motor counts as saturated."""
LONGEST_STOP = 0.003
"""Time [s] of saturation or rest within two periods of the filter up to which a sample counts."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedMotion:
    """Filtered and decimated motion.

    ``time`` (n,) [s]; ``v`` (n, nv) [rad/s or m/s]; ``equations`` of the efforts; ``cutoff`` [Hz];
    ``delay`` [s] of the efforts, taken out; ``notes``: sentences for the user.
    """

    time: Vector
    v: Matrix
    equations: EffortEquations
    cutoff: float
    delay: float
    notes: tuple[str, ...]


@with_one_blas_thread
def prepare_motion(
    arm: ArmModel, data: MotionData, cutoff: float | None = None, delay: float | None = None
) -> PreparedMotion:
    """Return the equations of the efforts of a recorded motion.

    Parameters
    ----------
    arm : ArmModel
        The arm; only its geometry, gravity and effort limits are used.
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
    effort = scipy.interpolate.make_interp_spline(data.time, data.effort, 1)(time)
    if (np.ptp(q, axis=0) < LEAST_MOTION).all():
        raise InvalidValue(
            f"{data.source}: motion = {np.ptp(q, axis=0).max():.2g} rad; expected more than"
            f" {LEAST_MOTION:g} rad in at least one joint"
        )
    frequency = _cutoff(q, rate) if cutoff is None else check_float("cutoff [Hz]", cutoff, above=0)
    # First with FAST_RATIO times the bandwidth: the regressor contains the stops of joints.
    fast = min(FAST_RATIO * frequency, 0.25 * rate)
    frequency = min(frequency, fast)
    keep = max(1, int(rate / (4 * fast)))
    saturated = (np.abs(effort) > SATURATED * arm.effort_limit) & (arm.effort_limit > 0)
    smooth, effort = _low_pass(q, fast, rate), _low_pass(effort, fast, rate)
    v = np.gradient(smooth, 1 / rate, axis=0, edge_order=2)
    a = np.gradient(v, 1 / rate, axis=0, edge_order=2)
    sign, certain = _direction(q - smooth, v, fast, rate)
    sliding = np.stack([_dahl_states(smooth, sign, x) for x in PRESLIDING], axis=1)
    window = 2 * int(rate / frequency) + 1
    unusable, stopped = (
        scipy.ndimage.uniform_filter1d(x.astype(float), window, axis=0) * window / rate
        for x in (saturated, ~certain)
    )
    time, smooth, v, a, effort, sliding, unusable, stopped = (
        x[::keep] for x in (time, smooth, v, a, effort, sliding, unusable, stopped)
    )
    rate /= keep
    # Then regressor and efforts pass the same filter: both sides of the equation stay equal.
    rows = _low_pass(_without_coulomb(regressor(arm, smooth, v, a)), frequency, rate)
    effort, sliding, v = (_low_pass(x, frequency, rate) for x in (effort, sliding, v))
    edge, step = int(1.5 * rate / frequency), max(1, int(rate / (SAMPLES_PER_PERIOD * frequency)))
    used = slice(edge, -edge, step)
    count = len(time[used])
    if count < 6 * arm.nv:
        raise InvalidValue(
            f"{data.source}: {count} samples after a low-pass of {frequency:.2g} Hz; expected at"
            f" least {6 * arm.nv}; record a longer motion"
        )
    equations = EffortEquations(
        rows[used],
        np.moveaxis(sliding[used], 1, 0),
        np.array(PRESLIDING),
        effort[used],
        (unusable <= LONGEST_STOP)[used],
        (stopped <= LONGEST_STOP)[used],
        np.floor((time[used] - time[0]) * frequency / BLOCK_PERIODS).astype(int),
    )
    notes = [
        f"{data.source}: {data.time[-1] - data.time[0]:.1f} s at {rate * keep:.4g} Hz; low-pass at"
        f" {frequency:.2g} Hz, {count} samples"
    ]
    moved = scipy.interpolate.make_interp_spline(time, effort, 3)
    if delay is None:
        delay, note = _delay(arm, equations, time[used], moved)
        notes.append(note)
    inside = np.clip(time[used] + delay, time[0], time[-1])
    equations = replace(equations, effort=as_readonly(moved(inside)))
    return PreparedMotion(time[used], v[used], equations, frequency, delay, tuple(notes))


def _low_pass(values: FloatArray, cutoff: float, rate: float) -> FloatArray:
    """Return ``values`` (n, ...) after a zero-phase low-pass filter; itself near the rate."""
    if cutoff > 0.4 * rate:
        return values
    sections = scipy.signal.butter(FILTER_ORDER, cutoff, fs=rate, output="sos")
    found: FloatArray = scipy.signal.sosfiltfilt(sections, values, axis=0)
    return found


def _without_coulomb(rows: FloatArray) -> FloatArray:
    """Return regressor rows (n, nv, 14 nv) without the columns of Coulomb friction."""
    nv = rows.shape[1]
    rows[:, :, 12 * nv : 13 * nv] = 0.0
    return rows


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


def _direction(noise: Matrix, v: Matrix, cutoff: float, rate: float) -> tuple[Matrix, BoolArray]:
    """Return the direction of motion (n, nv), -1, 0 or 1, and where it is certain.

    The direction changes only where the speed v (n, nv) exceeds the noise that positions with
    ``noise`` (n, nv) leave in it.
    """
    deviation = 1.4826 * np.median(np.abs(noise), axis=0)
    deviation = deviation * 2 * np.pi * cutoff * np.sqrt(2 * cutoff / (3 * rate))
    certain = np.abs(v) > np.maximum(4 * deviation, 1e-3 * np.abs(v).max(axis=0))
    latest = np.maximum.accumulate(np.where(certain, np.arange(len(v))[:, None], 0), axis=0)
    return np.sign(np.take_along_axis(v, latest, axis=0)), certain


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
    arm: ArmModel, equations: EffortEquations, time: Vector, effort: Any
) -> tuple[float, str]:
    """Return the time [s] by which the efforts are late, 0 if it is not certain, and a note.

    The residual of weighted least squares over the base parameters is least at the delay, with the
    friction model that explains the efforts best. ``effort`` is a function of time.
    """
    nv = arm.nv
    base = base_parameters(structural_rows(arm), parameter_names(arm))
    shifts = np.arange(-DELAY_RANGE, DELAY_RANGE + DELAY_STEP / 2, DELAY_STEP)
    efforts = effort(np.clip(time + shifts[:, None], effort.t[0], effort.t[-1]))

    def cost_of(model: int, valid: BoolArray) -> tuple[float, Vector, int]:
        """Return the logarithm of the residual, the cost of each delay, and degrees of freedom."""
        rows = equations.rows(np.full(nv, model))[:, :, base.independent]
        scale = np.ones(nv)
        for _ in range(3):
            weights = valid / scale
            weighted = (rows * weights[..., None]).reshape(-1, base.size)
            targets = (efforts * weights).reshape(len(shifts), -1).T
            squares = weighted.T @ weighted
            squares[np.diag_indices_from(squares)] *= 1 + 1e-12
            values = scipy.linalg.lstsq(squares, weighted.T @ targets)[0]
            cost = np.sum((targets - weighted @ values) ** 2, axis=0)
            k = int(np.argmin(cost))
            residual = np.where(valid, efforts[k] - rows @ values[:, k], 0.0)
            scale = np.maximum(np.sqrt(np.mean(residual**2, axis=0)), 1e-9)
        return float(np.log(scale).sum()), cost, max(int(valid.sum()) - base.size, 1)

    fits = [cost_of(model, equations.valid) for model in range(len(PRESLIDING))]
    model = int(np.argmin([fit[0] for fit in fits]))
    _, cost, freedom = cost_of(model, equations.counted(np.full(nv, model)))
    k = int(np.clip(np.argmin(cost), 1, len(shifts) - 2))
    slope = (cost[k + 1] - cost[k - 1]) / (2 * DELAY_STEP)
    curvature = (cost[k - 1] - 2 * cost[k] + cost[k + 1]) / DELAY_STEP**2
    if curvature <= 0:
        return 0.0, "efforts: no delay found"
    late = float(shifts[k] - slope / curvature)
    variance = cost[k] / freedom
    text = f"{1e3 * late:.1f} ± {1e3 * np.sqrt(2 * variance / curvature):.1f} ms"
    if abs(late) < 3 * np.sqrt(2 * variance / curvature) or abs(late) > DELAY_RANGE:
        return 0.0, f"efforts: no delay found ({text})"
    return late, f"efforts: delay = {text}, taken out"
