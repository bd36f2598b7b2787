"""From a recorded motion to the equations of its efforts: filter, derivatives, delay, friction.

Positions and efforts pass the same zero-phase low-pass filter, and so do the states of dry
friction, which jump where the filtered efforts do not (parallel filtering). The cut-off frequency
follows from the spectrum of the positions; samples are then decimated to a few per period of it.
Dry friction without presliding is unknown near a reversal, which the filter spreads over two of its
periods: noise hides its time, and a joint sticks for a while. A friction that changes its sign too
late makes the efforts seem early, and the delay makes all other parameters wrong.

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
import scipy.ndimage

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
from arm_dynamics.identification.efforts.effort_delay import DELAY_RANGE, DELAY_STEP, effort_delay
from arm_dynamics.identification.efforts.effort_equations import EffortEquations, joined_equations
from arm_dynamics.identification.efforts.friction_terms import stribeck_shapes, stribeck_velocities
from arm_dynamics.identification.efforts.low_pass import low_pass, motion_cutoff
from arm_dynamics.identification.parameters.coupled_motors import coupled_rows, with_motor_rest
from arm_dynamics.identification.parameters.dynamic_parameters import ParameterLayout, regressor
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_checks import LEAST_MOTION, saturation_limit
from arm_dynamics.recording.motions.motion_data import MotionData

SAMPLES_PER_PERIOD = 5.0
"""Decimated rate over cut-off frequency."""
PRESLIDING = (0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
"""Distances [rad or m] of the Dahl model that are compared."""
NOT_MEASURED = -1.0
"""Effort of saturation of a joint of which no sample counts."""
LEAST_PERIODS, LEAST_SAMPLES = 3.2, 100
"""Shortest segment: periods of the cut-off frequency, and samples."""
EDGE = 1.5
"""Time at each end on which a filter settles, in periods of its cut-off frequency."""
BLOCK_PERIODS = 2.0
"""Length of a block of samples in periods of the cut-off frequency."""
FAST_RATIO = 5.0
"""Bandwidth of the direction of motion over the cut-off frequency."""
LONGEST_STOP = 0.003
"""Time [s] of saturation or long rest within two periods of the filter up to which a sample counts.
"""
SLOW = 0.1
"""Speed over the largest speed of a joint below which friction may differ from Coulomb friction."""
LONGEST_TURN = 0.2
"""Time [s] without motion from which on a joint rests: its dry friction is then unknown."""


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
    arm: ArmModel,
    data: MotionData,
    cutoff: float | None = None,
    delay: float | None = None,
    coupled: Matrix | None = None,
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
    coupled : Matrix, optional
        Factors (nc, nv) of coupled motors (``coupling_factors``).

    Returns
    -------
    PreparedMotion
        Uniform samples, without the ends on which the filter settles.

    Raises
    ------
    InvalidValue
        For a motion without efforts, without motion, or too short for its cut-off frequency.

    """
    motion, efforts = np.ptp(data.q, axis=0), _efforts(arm, data)
    constant = (np.ptp(efforts, axis=0) == 0) & (motion >= LEAST_MOTION)
    limit = np.where(constant, NOT_MEASURED, saturation_limit(arm, efforts))
    if motion.max() < LEAST_MOTION:
        raise InvalidValue(
            f"{data.source}: motion = {motion.max():.2g} rad; expected more than {LEAST_MOTION:g}"
            " rad in at least one joint"
        )
    rate = 1 / data.period
    parts = [_resampled(part, _efforts(arm, part), limit, rate) for part in data.segments()]
    if cutoff is None:
        longest = max(len(part.time) for part in parts)
        frequency = max(motion_cutoff(x.q, rate) for x in parts if 4 * len(x.time) >= longest)
    else:
        frequency = check_float("cutoff [Hz]", cutoff, above=0)
    # First with FAST_RATIO times the bandwidth: the regressor contains the stops of joints.
    fast = min(FAST_RATIO * frequency, 0.25 * rate)
    frequency = min(frequency, fast)
    least = max(LEAST_PERIODS * rate / frequency, LEAST_SAMPLES)
    pieces = [
        _filtered(arm, part, rate, fast, frequency, coupled)
        for part in parts
        if len(part.time) > least
    ]
    count = sum(len(piece.time) for piece in pieces)
    if count < 6 * arm.nv:
        raise InvalidValue(
            f"{data.source}: samples = {len(data.time)} at {rate:.4g} Hz, {count} after a low-pass"
            f" of {frequency:.2g} Hz; expected more than {least:.0f} without a gap, and at least"
            f" {6 * arm.nv} after it; record a longer motion, or pass another recording with"
            " --held-out (held_out=...)"
        )
    time = np.concatenate([piece.time for piece in pieces])
    v = np.concatenate([piece.v for piece in pieces])
    equations = joined_equations([piece.equations for piece in pieces])
    if not equations.valid.any():
        cause = (
            "efforts are constant while the joints move"
            if constant.any()
            else "joints are saturated or change their direction in every sample; a file of two"
            " publishers or runs also looks like this"
        )
        raise InvalidValue(
            f"{data.source}: samples that show the dynamics = 0 of {count}; expected motion with"
            f" measured efforts; {cause}"
        )
    span = sum(float(part.time[-1] - part.time[0]) for part in parts)
    notes = [
        *data.notes,
        f"{data.source}: {span:.1f} s at {rate:.4g} Hz; low-pass at {frequency:.2g} Hz,"
        f" {count} samples",
    ]
    if constant.any():
        notes.append(
            f"{data.source}: efforts of joints {', '.join(np.array(arm.joint_names)[constant])} ="
            " constant while they move; expected measured efforts; these do not count"
        )
    if len(parts) > 1 or len(pieces) < len(parts):
        gaps = f"{data.source}: {len(parts)} segments between gaps of the stamps"
        steps = np.diff(data.time)
        k = int(np.argmax(steps))
        notes.append(
            f"{gaps}, the longest of {steps[k]:.3g} s, {data.time[k] - data.time[0]:.1f} s after"
            f" the first sample; segments too short for the filter = {len(parts) - len(pieces)}"
        )
    deviation = 0.0
    if delay is None:
        shifts = np.arange(-DELAY_RANGE, DELAY_RANGE + DELAY_STEP / 2, DELAY_STEP)
        efforts = np.concatenate([piece.efforts(shifts) for piece in pieces], axis=1)
        delay, deviation, note = effort_delay(arm, equations, efforts)
        notes.append(note)
    near = delay + np.array([0.0, -DELAY_STEP, DELAY_STEP])
    effort, early, late = np.concatenate([piece.efforts(near) for piece in pieces], axis=1)
    error = deviation * (late - early) / (2 * DELAY_STEP)
    equations = replace(equations, effort=as_readonly(effort), errors=as_readonly(error[None]))
    return PreparedMotion(time, v, equations, frequency, delay, tuple(notes))


def _efforts(arm: ArmModel, data: MotionData) -> Matrix:
    """Return the efforts (n, nv) of a motion; raises InvalidValue without efforts."""
    if data.effort is None and data.current is not None:
        raise missing_torque_constants(arm, data.source)
    if data.effort is None:
        raise InvalidValue(
            f"{data.source}: efforts = none; expected one per joint; positions alone determine"
            " friction and inertia only by simulating the motors; record efforts, or the target"
            " positions of position servos (arm-dynamics identify --servo)"
        )
    return data.effort


def missing_torque_constants(arm: ArmModel, source: str) -> InvalidValue:
    """Return the error of currents whose joints have no torque constant in the description."""
    actuators = zip(arm.joint_names, arm.actuators, strict=True)
    lacking = [name for name, motor in actuators if "kt" not in motor.constants]
    return InvalidValue(
        f"{source}: efforts = none, only motor currents, and torque constants of joints"
        f" {', '.join(lacking)} = none in the description; expected one per joint; add kt and"
        " gear_ratio of actuator dc_motor to the URDF (the drive gains that arm-dynamics"
        " identify estimates from currents are kt times gear_ratio), or record efforts"
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Samples:
    """Uniform samples of a segment; ``limit`` (nv,) [N·m or N] is the effort of saturation."""

    time: Vector
    q: Matrix
    effort: Matrix
    limit: Vector


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Filtered and decimated segment; ``effort`` is a spline of the time [s]."""

    time: Vector
    v: Matrix
    equations: EffortEquations
    effort: Any
    ends: tuple[float, float]

    def efforts(self, delays: Vector) -> FloatArray:
        """Return the efforts (nd, n, nv) that arrive ``delays`` (nd,) [s] after the samples."""
        found: FloatArray = self.effort(np.clip(self.time + delays[:, None], *self.ends))
        return found


def _resampled(data: MotionData, effort: Matrix, limit: Vector, rate: float) -> _Samples:
    """Return positions and efforts at a uniform rate [Hz]: cubic and linear interpolation."""
    time = np.arange(data.time[0], data.time[-1], 1 / rate)
    order = min(3, len(data.time) - 1)
    return _Samples(
        time,
        scipy.interpolate.make_interp_spline(data.time, data.q, order)(time),
        scipy.interpolate.make_interp_spline(data.time, effort, 1)(time),
        limit,
    )


def _filtered(
    arm: ArmModel,
    part: _Samples,
    rate: float,
    fast: float,
    frequency: float,
    coupled: Matrix | None,
) -> _Piece:
    """Return the equations of a segment, without the ends on which the filter settles."""
    time, q, effort = part.time, part.q, part.effort
    keep = max(1, int(rate / (4 * fast)))
    saturated = np.abs(effort) > part.limit
    smooth, effort = low_pass(q, fast, rate), low_pass(effort, fast, rate)
    v = np.gradient(smooth, 1 / rate, axis=0, edge_order=2)
    a = np.gradient(v, 1 / rate, axis=0, edge_order=2)
    factors = np.zeros((0, arm.nv)) if coupled is None else coupled
    turns = np.vstack((np.eye(arm.nv), factors)).T  # velocities of joints, then of coupled motors
    signs, certain = direction((q - smooth) @ turns, v @ turns, fast, rate)
    steady = certain & (np.diff(signs, axis=0, prepend=signs[:1]) == 0)
    certain, steady = (with_motor_rest(x, factors) for x in (certain, steady))
    sign, motor_sign = np.split(signs, [arm.nv], axis=1)
    sliding = np.stack([dahl_states(smooth, sign, x) for x in PRESLIDING], axis=1)
    window, rest = 2 * int(rate / frequency) + 1, np.ones((max(2, int(LONGEST_TURN * rate)), 1))
    resting = scipy.ndimage.binary_opening(~certain, rest)
    stopped = (saturated | resting).astype(float)
    stopped = scipy.ndimage.uniform_filter1d(stopped, window, axis=0) * window / rate
    turning = scipy.ndimage.maximum_filter1d(~steady, window, axis=0)
    slow = np.abs(v) < SLOW * np.abs(v).max(axis=0)
    slow = scipy.ndimage.maximum_filter1d(slow, window, axis=0)
    rate /= keep
    settled = int(EDGE * rate / fast)
    inside = slice(settled * keep, len(time) - settled * keep, keep)
    valid, moving, quick = (stopped <= LONGEST_STOP)[inside], ~turning[inside], ~slow[inside]
    time, smooth, v, a, effort, sliding, motor_sign = (
        x[inside] for x in (time, smooth, v, a, effort, sliding, motor_sign)
    )
    # Then regressor and efforts pass the same filter: both sides of the equation stay equal.
    rows = regressor(arm, smooth, v, a)
    rows[..., ParameterLayout(arm.nv).coulomb] = 0.0  # in the equations' sliding states
    rows = low_pass(rows, frequency, rate)
    motors = low_pass(coupled_rows(factors, v, a, motor_sign), frequency, rate)
    velocity = stribeck_velocities(arm)
    shapes = low_pass(stribeck_shapes(sliding, v, velocity), frequency, rate)
    effort, sliding, v = (low_pass(x, frequency, rate) for x in (effort, sliding, v))
    edge = max(1, int(EDGE * rate / frequency) - settled)
    step = max(1, int(rate / (SAMPLES_PER_PERIOD * frequency)))
    used = slice(edge, -edge, step)
    equations = EffortEquations(
        rows[used],
        np.moveaxis(sliding[used], 1, 0),
        np.array(PRESLIDING),
        effort[used],
        valid[used],
        moving[used],
        np.floor((time[used] - time[0]) * frequency / BLOCK_PERIODS).astype(int),
        np.moveaxis(shapes[used], 0, 2),
        velocity,
        coupled=None if coupled is None else motors[used],
        fast=quick[used],
    )
    moved = scipy.interpolate.make_interp_spline(time, effort, 3)
    return _Piece(time[used], v[used], equations, moved, (time[0], time[-1]))


def direction(noise: Matrix, v: Matrix, cutoff: float, rate: float) -> tuple[Matrix, BoolArray]:
    """Return the direction of motion (n, nv), -1, 0 or 1, and where it is certain.

    It is certain where the speed v (n, nv) exceeds the noise that positions with ``noise`` (n, nv)
    leave in it. Between certain samples of opposite directions it changes where the line between
    their velocities is zero: later, the friction would make the efforts seem early. A joint that
    rests keeps the direction in which it stopped.
    """
    deviation = 1.4826 * np.median(np.abs(noise), axis=0)
    deviation = deviation * 2 * np.pi * cutoff * np.sqrt(2 * cutoff / (3 * rate))
    certain = np.abs(v) > np.maximum(4 * deviation, 1e-3 * np.abs(v).max(axis=0))
    index, last = np.arange(len(v))[:, None], len(v) - 1
    before = np.maximum.accumulate(np.where(certain, index, 0), axis=0)
    after = np.minimum.accumulate(np.where(certain, index, last)[::-1], axis=0)[::-1]
    after = np.where(np.take_along_axis(certain, after, axis=0), after, before)
    first, second = (np.take_along_axis(v, x, axis=0) for x in (before, after))
    passed = (index - before) * np.abs(second) > (after - index) * np.abs(first)
    passed &= after - before <= LONGEST_TURN * rate
    return np.sign(np.where(passed, second, first)), certain


def dahl_states(q: Matrix, sign: Matrix, distance: float) -> Matrix:
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
