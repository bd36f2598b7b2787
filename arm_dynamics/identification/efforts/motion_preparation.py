"""From a recorded motion to the equations of its efforts: filter, derivatives, delay, friction.

Positions and efforts pass the same zero-phase low-pass filter, and so do the states of dry
friction, which jump where the filtered efforts do not (parallel filtering). The cut-off frequency
follows from the spectrum of the positions; samples are then decimated to a few per period of it.
Dry friction without presliding is unknown near a reversal, which the filter spreads over two of its
periods: noise hides its time, and a joint sticks for a while. A friction that changes its sign too
late makes the efforts seem early, and the delay makes all other parameters wrong.

The filtered motion does not depend on the efforts. ``PreparedMotion.with_efforts`` replaces these,
for example those of other drive gains, without filtering the motion again.

References
----------
M. Gautier, Dynamic identification of robots with power model, ICRA 1997, section 4. A. Janot,
P. Vandanjon, M. Gautier, A generic instrumental variable approach for industrial robot
identification, IEEE T-CST 22 (2014), section II. P. Dahl, Solid friction damping of mechanical
vibrations, AIAA Journal 14 (1976), eq. 4.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

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
from arm_dynamics.identification.efforts.coupled_motors import coupled_rows, with_motor_rest
from arm_dynamics.identification.efforts.effort_delay import DELAY_RANGE, DELAY_STEP, effort_delay
from arm_dynamics.identification.efforts.effort_equations import EffortEquations, joined_equations
from arm_dynamics.identification.efforts.friction_terms import stribeck_shapes, stribeck_velocities
from arm_dynamics.identification.efforts.low_pass import low_pass, motion_cutoff
from arm_dynamics.identification.parameters.dynamic_parameters import ParameterLayout, regressor
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_checks import MIN_MOTION, saturation_limit
from arm_dynamics.recording.motions.motion_data import MotionData

SAMPLES_PER_PERIOD = 5.0
"""Decimated rate over cut-off frequency."""
PRESLIDING = (0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
"""Distances [rad or m] of the Dahl model that are compared."""
NOT_MEASURED = -1.0
"""Effort of saturation of a joint of which no sample counts."""
MIN_PERIODS, MIN_SAMPLES = 3.2, 100
"""Shortest segment: periods of the cut-off frequency, and samples."""
MIN_EQUATIONS = 6
"""Smallest number of samples after decimation, per joint."""
EDGE = 1.5
"""Time at each end on which a filter settles, in periods of its cut-off frequency."""
BLOCK_PERIODS = 2.0
"""Length of a block of samples in periods of the cut-off frequency."""
FAST_RATIO = 5.0
"""Bandwidth of the direction of motion over the cut-off frequency."""
MAX_STOP = 0.003
"""Time [s] of saturation or long rest within two periods of the filter up to which a sample counts.
"""
SLOW = 0.1
"""Speed over the largest speed of a joint below which friction may differ from Coulomb friction."""
MAX_TURN = 0.2
"""Time [s] without motion from which on a joint rests: its dry friction is then unknown."""
Terms = Callable[[Matrix, Matrix, Matrix], FloatArray]
"""Positions, velocities and accelerations (n, nv) -> terms (n, ...) of an equation."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedMotion:
    """Filtered and decimated motion.

    ``data``: the motion with its efforts; ``segments``: its filtered segments. ``time`` (n,) [s];
    ``v`` (n, nv) [rad/s or m/s]; ``equations`` of the efforts; ``cutoff`` [Hz]; ``delay`` [s] of
    the efforts, which is removed; ``notes``: sentences for the user.
    """

    arm: ArmModel
    data: MotionData
    segments: tuple[FilteredSegment, ...]
    equations: EffortEquations
    cutoff: float
    delay: float
    motion_notes: tuple[str, ...]
    effort_notes: tuple[str, ...] = ()

    @property
    def time(self) -> Vector:
        """Times of the samples (n,) [s]."""
        return np.concatenate([segment.time for segment in self.segments])

    @property
    def v(self) -> Matrix:
        """Velocities (n, nv) [rad/s or m/s]."""
        return np.concatenate([segment.v for segment in self.segments])

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user."""
        return (*self.motion_notes, *self.effort_notes)

    def terms(self, function: Terms) -> FloatArray:
        """Return terms (n, ...) of positions, velocities and accelerations after the filter."""
        return np.concatenate([segment.terms(function) for segment in self.segments])

    @with_one_blas_thread
    def with_efforts(self, efforts: Matrix, delay: float | None = None) -> PreparedMotion:
        """Return the motion with other efforts of its recorded samples.

        Parameters
        ----------
        efforts : Matrix
            Efforts (n, nv) [N·m or N] at the stamps of ``data``.
        delay : float, optional
            Time [s] by which they are late (default: estimated).

        Raises
        ------
        InvalidValue
            For efforts that are constant or saturated in all samples.

        """
        arm, data = self.arm, replace(self.data, effort=as_readonly(efforts))
        constant = (np.ptp(efforts, axis=0) == 0) & (np.ptp(data.q, axis=0) >= MIN_MOTION)
        limit = np.where(constant, NOT_MEASURED, saturation_limit(arm, efforts))
        measured = []
        for segment in self.segments:
            first = int(np.searchsorted(data.time, segment.stamps[0]))
            rows = efforts[first : first + len(segment.stamps)]
            measured.append(segment.measured(rows, limit))
        valid = np.concatenate([each.valid for each in measured])
        if not valid.any():
            raise _invalid_efforts(data.source, len(valid), constant)
        equations = replace(self.equations, valid=valid)
        notes = []
        if constant.any():
            notes.append(
                f"{data.source}: efforts of joints {_listed(arm, constant)} ="
                " constant while they move; expected measured efforts; these do not count"
            )
        deviation = 0.0
        if delay is None:
            shifts = np.arange(-DELAY_RANGE, DELAY_RANGE + DELAY_STEP / 2, DELAY_STEP)
            delay, deviation, note = effort_delay(arm, equations, _delayed(measured, shifts))
            notes.append(note)
        shifts = delay + np.array([0.0, -DELAY_STEP, DELAY_STEP])
        effort, early, late = _delayed(measured, shifts)
        error = deviation * (late - early) / (2 * DELAY_STEP)
        equations = replace(equations, effort=as_readonly(effort), errors=as_readonly(error[None]))
        return replace(self, data=data, equations=equations, delay=delay, effort_notes=tuple(notes))


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
    efforts, size = recorded_efforts(arm, data), np.ptp(data.q, axis=0).max()
    if size < MIN_MOTION:
        raise InvalidValue(
            f"{data.source}: motion = {size:.2g} rad; expected more than {MIN_MOTION:g}"
            " rad in at least one joint"
        )
    samples = [_Samples.of(part, 1 / data.period) for part in data.segments()]
    filters = _filters(samples, 1 / data.period, cutoff)
    segments = tuple(
        FilteredSegment(arm, part, filters, coupled)
        for part in samples
        if len(part.time) > filters.min_samples
    )
    count = sum(len(segment.time) for segment in segments)
    if count < MIN_EQUATIONS * arm.nv:
        raise _too_short(data, filters, count)
    equations = joined_equations([segment.equations for segment in segments])
    notes = _motion_notes(data, samples, filters, count, len(segments))
    motion = PreparedMotion(arm, data, segments, equations, filters.cutoff, 0.0, notes)
    return motion.with_efforts(efforts, delay)


def prepare_validation(
    arm: ArmModel,
    motions: Sequence[MotionData],
    training: Sequence[PreparedMotion],
    coupled: Matrix | None = None,
) -> list[PreparedMotion]:
    """Return motions, prepared with the filter and the median delay of the training data."""
    cutoff = max(motion.cutoff for motion in training)
    delay = float(np.median([motion.delay for motion in training]))
    return [prepare_motion(arm, motion, cutoff, delay, coupled) for motion in motions]


def recorded_efforts(arm: ArmModel, data: MotionData) -> Matrix:
    """Return the efforts (n, nv) of a motion; raises InvalidValue without efforts."""
    if data.effort is None and data.current is not None:
        raise missing_torque_constants(arm, data.source)
    if data.effort is None:
        raise InvalidValue(
            f"{data.source}: no joint efforts in the recording; positions alone determine"
            " friction and inertia only by simulating the motors; record efforts, or the target"
            " positions of position servos (arm-dynamics identify servos)"
        )
    return data.effort


def missing_torque_constants(arm: ArmModel, source: str) -> InvalidValue:
    """Return the error of currents whose joints have no torque constant in the nominal model."""
    actuators = zip(arm.joint_names, arm.actuators, strict=True)
    lacking = [name for name, motor in actuators if "kt" not in motor.constants]
    return InvalidValue(
        f"{source}: no joint efforts in the recording, only motor currents, and no torque constants"
        f" of joints {', '.join(lacking)} in the nominal model; add kt and"
        " gear_ratio of actuator dc_motor to the URDF (the drive gains that arm-dynamics"
        " identify estimates from currents are kt times gear_ratio), or record efforts"
    )


def _too_short(data: MotionData, filters: _Filters, count: int) -> InvalidValue:
    """Return the error of a motion of which the filter leaves ``count`` samples."""
    needed = MIN_EQUATIONS * data.q.shape[1]
    return InvalidValue(
        f"{data.source}: samples = {len(data.time)} at {filters.rate:.4g} Hz, {count} after a"
        f" low-pass of {filters.cutoff:.2g} Hz; expected more than {filters.min_samples:.0f}"
        f" without a gap, and at least {needed} after it; record a longer"
        " motion, or pass another recording with --held-out (held_out=...)"
    )


def _invalid_efforts(source: str, count: int, constant: BoolArray) -> InvalidValue:
    """Return the error of efforts of which no sample counts."""
    cause = (
        "efforts are constant while the joints move"
        if constant.any()
        else "joints are saturated or change their direction in every sample; a file of two"
        " publishers or runs also looks like this"
    )
    return InvalidValue(
        f"{source}: samples that show the dynamics = 0 of {count}; expected motion with"
        f" measured efforts; {cause}"
    )


def _listed(arm: ArmModel, joints: BoolArray) -> str:
    return ", ".join(np.array(arm.joint_names)[joints])


class _Filters(NamedTuple):
    """Rate of the samples, bandwidth of the direction of motion, and cut-off frequency [Hz]."""

    rate: float
    fast: float
    cutoff: float

    @property
    def keep(self) -> int:
        """Samples per sample that remains after the first filter."""
        return max(1, int(self.rate / (4 * self.fast)))

    @property
    def min_samples(self) -> float:
        """Samples of the shortest segment."""
        return max(MIN_PERIODS * self.rate / self.cutoff, MIN_SAMPLES)

    @property
    def window(self) -> int:
        """Samples in two periods of the cut-off frequency."""
        return 2 * int(self.rate / self.cutoff) + 1

    def first(self, values: FloatArray) -> FloatArray:
        """Return values (n, ...) after the filter of the bandwidth ``fast``."""
        return low_pass(values, self.fast, self.rate)

    def second(self, values: FloatArray) -> FloatArray:
        """Return decimated values (n, ...) after the filter of the cut-off frequency."""
        return low_pass(values, self.cutoff, self.rate / self.keep)

    def slices(self, count: int) -> tuple[slice, slice]:
        """Return the samples after the first filter, and those of them after the second one."""
        rate, keep = self.rate / self.keep, self.keep
        settled = int(EDGE * rate / self.fast)
        edge = max(1, int(EDGE * rate / self.cutoff) - settled)
        step = max(1, int(rate / (SAMPLES_PER_PERIOD * self.cutoff)))
        return slice(settled * keep, count - settled * keep, keep), slice(edge, -edge, step)


class _Samples(NamedTuple):
    """Stamps of a recorded segment, and its positions at uniform times: cubic interpolation."""

    stamps: Vector
    time: Vector
    q: Matrix

    @classmethod
    def of(cls, data: MotionData, rate: float) -> _Samples:
        time = np.arange(data.time[0], data.time[-1], 1 / rate)
        order = min(3, len(data.time) - 1)
        q = scipy.interpolate.make_interp_spline(data.time, data.q, order)(time)
        return cls(data.time, time, q)


def _filters(samples: Sequence[_Samples], rate: float, cutoff: float | None) -> _Filters:
    """Return the filters for all segments of a motion."""
    if cutoff is None:
        longest = max(len(part.time) for part in samples)
        frequency = max(motion_cutoff(x.q, rate) for x in samples if 4 * len(x.time) >= longest)
    else:
        frequency = check_float("cutoff [Hz]", cutoff, above=0)
    # First with FAST_RATIO times the bandwidth: the regressor contains the stops of joints.
    fast = min(FAST_RATIO * frequency, 0.25 * rate)
    return _Filters(rate, fast, min(frequency, fast))


def _motion_notes(
    data: MotionData, samples: Sequence[_Samples], filters: _Filters, count: int, used: int
) -> tuple[str, ...]:
    """Return sentences about the filter and the gaps of a motion."""
    span = sum(float(part.time[-1] - part.time[0]) for part in samples)
    notes = [
        *data.notes,
        f"{data.source}: {span:.1f} s at {filters.rate:.4g} Hz; low-pass at"
        f" {filters.cutoff:.2g} Hz, {count} samples",
    ]
    if len(samples) > 1 or used < len(samples):
        steps = np.diff(data.time)
        k = int(np.argmax(steps))
        notes.append(
            f"{data.source}: {len(samples)} segments between gaps of the stamps,"
            f" the longest of {steps[k]:.3g} s, {data.time[k] - data.time[0]:.1f} s after"
            f" the first sample; segments too short for the filter = {len(samples) - used}"
        )
    return tuple(notes)


class _MeasuredEfforts(NamedTuple):
    """Samples (n, nv) that count, and the filtered efforts as a spline of the time [s]."""

    valid: BoolArray
    effort: Any
    time: Vector
    ends: tuple[float, float]


def _delayed(measured: Sequence[_MeasuredEfforts], delays: Vector) -> FloatArray:
    """Return the efforts (nd, n, nv) that arrive ``delays`` (nd,) [s] after the samples."""
    parts = [x.effort(np.clip(x.time + delays[:, None], *x.ends)) for x in measured]
    return np.concatenate(parts, axis=1)


class FilteredSegment:
    """Segment of a motion after the filters, without the ends on which these settle.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    samples : _Samples
        Uniform samples.
    filters : _Filters
        Filters of the motion.
    coupled : Matrix or None
        Factors (nc, nv) of coupled motors.

    """

    def __init__(
        self, arm: ArmModel, samples: _Samples, filters: _Filters, coupled: Matrix | None
    ) -> None:
        self.stamps, self._grid, self._filters = samples.stamps, samples.time, filters
        smooth, rate = filters.first(samples.q), filters.rate
        v = np.gradient(smooth, 1 / rate, axis=0, edge_order=2)
        a = np.gradient(v, 1 / rate, axis=0, edge_order=2)
        factors = np.zeros((0, arm.nv)) if coupled is None else coupled
        states = _motion_states(samples.q - smooth, v, filters, factors)
        sliding = np.stack([dahl_states(smooth, states.sign, x) for x in PRESLIDING], axis=1)
        self._resting = states.resting
        self._inside, self._used = inside, used = filters.slices(len(samples.time))
        self._time, sliding = samples.time[inside], sliding[inside]
        self._motion = smooth[inside], v[inside], a[inside]
        self.time, self.v = self._time[used], filters.second(self._motion[1])[used]
        velocity = stribeck_velocities(arm)
        shapes = filters.second(stribeck_shapes(sliding, self._motion[1], velocity))
        motors = coupled_rows(factors, *self._motion[1:], states.motor_sign[inside])
        blocks = (self.time - self._time[0]) * filters.cutoff / BLOCK_PERIODS
        self.equations = EffortEquations(
            regressor=self.terms(lambda q, v, a: _frictionless_regressor(arm, q, v, a)),
            sliding=np.moveaxis(filters.second(sliding)[used], 1, 0),
            presliding=np.array(PRESLIDING),
            effort=np.zeros_like(self.v),
            valid=np.ones(self.v.shape, dtype=bool),
            moving=~states.turning[inside][used],
            block=np.floor(blocks).astype(int),
            shapes=np.moveaxis(shapes[used], 0, 2),
            velocity=velocity,
            coupled=None if coupled is None else filters.second(motors)[used],
            fast=~states.slow[inside][used],
        )

    def terms(self, function: Terms) -> FloatArray:
        """Return terms (n, ...) of q, v and a that pass the same filter as the efforts."""
        return self._filters.second(function(*self._motion))[self._used]

    def measured(self, efforts: Matrix, limit: Vector) -> _MeasuredEfforts:
        """Return efforts at the stamps (m, nv), above ``limit`` (nv,) saturated, after the filter.

        A sample counts without saturation and rest nearby.
        """
        filters = self._filters
        effort = scipy.interpolate.make_interp_spline(self.stamps, efforts, 1)(self._grid)
        stopped = ((np.abs(effort) > limit) | self._resting).astype(float)
        stopped = scipy.ndimage.uniform_filter1d(stopped, filters.window, axis=0)
        stopped = stopped * filters.window / filters.rate
        effort = filters.second(filters.first(effort)[self._inside])
        spline = scipy.interpolate.make_interp_spline(self._time, effort, 3)
        valid = (stopped <= MAX_STOP)[self._inside][self._used]
        return _MeasuredEfforts(valid, spline, self.time, (self._time[0], self._time[-1]))


class _MotionStates(NamedTuple):
    """Signs (n, nv) of the velocities of joints and (n, nc) of coupled motors; joints at rest.

    ``turning``, ``slow`` (n, nv): samples within two periods of the cut-off frequency of an
    uncertain direction, and of a speed at which friction may differ from Coulomb friction.
    """

    sign: Matrix
    motor_sign: Matrix
    resting: BoolArray
    turning: BoolArray
    slow: BoolArray


def _motion_states(noise: Matrix, v: Matrix, filters: _Filters, factors: Matrix) -> _MotionStates:
    """Return the states of joints, and of coupled motors with factors (nc, nv)."""
    nv = v.shape[1]
    turns = np.vstack((np.eye(nv), factors)).T  # velocities of joints, then of coupled motors
    signs, certain = direction(noise @ turns, v @ turns, filters.fast, filters.rate)
    steady = certain & (np.diff(signs, axis=0, prepend=signs[:1]) == 0)
    certain, steady = (with_motor_rest(x, factors) for x in (certain, steady))
    rest = np.ones((max(2, int(MAX_TURN * filters.rate)), 1))
    slow = np.abs(v) < SLOW * np.abs(v).max(axis=0)
    turning, slow = (
        scipy.ndimage.maximum_filter1d(x, filters.window, axis=0) for x in (~steady, slow)
    )
    resting = scipy.ndimage.binary_opening(~certain, rest)
    return _MotionStates(signs[:, :nv], signs[:, nv:], resting, turning, slow)


def _frictionless_regressor(arm: ArmModel, q: Matrix, v: Matrix, a: Matrix) -> FloatArray:
    """Return the regressor without Coulomb friction, whose states are ``sliding``."""
    rows = regressor(arm, q, v, a)
    rows[..., ParameterLayout(arm.nv).coulomb] = 0.0
    return rows


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
    passed &= after - before <= MAX_TURN * rate
    return np.sign(np.where(passed, second, first)), certain


def dahl_states(q: Matrix, sign: Matrix, distance: float) -> Matrix:
    """Return s (n, nv) of ds/dx = (sign - s) / distance along the path x of each joint."""
    if distance == 0.0:
        return sign.astype(float)
    states = np.empty_like(q)
    path = np.vstack((np.zeros(q.shape[1]), np.cumsum(np.abs(np.diff(q, axis=0)), axis=0)))
    for i in range(q.shape[1]):
        starts = [0, *(np.flatnonzero(np.diff(sign[:, i])) + 1).tolist(), len(q)]
        state = 0.0
        for first, last in pairwise(starts):
            part, target = path[first:last, i], sign[first, i]
            states[first:last, i] = target + (state - target) * np.exp(-(part - part[0]) / distance)
            state = states[last - 1, i]
    return states
