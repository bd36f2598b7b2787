"""Equations of motor windings from recorded positions, currents and voltages.

V' = R i + K_e N v + o + L di/dt

V' is the voltage behind the brushes, N v the speed of the shaft. The equation is integrated over
each period between samples, and passes a zero-phase low-pass filter.

References
----------
M. Gautier, A. Jubien, A. Janot, Iterative learning identification and computed torque control of
robots, IROS 2013, section II. B. Siciliano et al., Robotics (2009), section 5.2.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.interpolate
import scipy.ndimage

from arm_dynamics.core.arrays import BoolArray, FloatArray, IntArray, Matrix
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.low_pass import low_pass, motion_cutoff
from arm_dynamics.identification.motion_data import MotionData
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.actuators.winding import brush_voltage

FAST_RATIO, SLOWEST, SAMPLES = 5.0, 10.0, 4.0
"""Cut-off frequency over that of the motion, its least value [Hz], samples per period of it."""
SATURATED = 0.98
"""Voltage over supply voltage from which a sample does not count."""
BLOCK_TIME, LEAST_BLOCKS = 0.5, 10
"""Length of a block of consecutive samples [s], and their smallest number."""


@dataclass(frozen=True, slots=True, eq=False)
class WindingEquations:
    """V'[k, i] = W[k, i] (R, K_e N, o, L) of samples k and joints i.

    ``rows`` W (n, nv, 4): current [A], velocity [rad/s or m/s], 1 and di/dt [A/s].
    ``acceleration`` (n, nv) [rad/s² or m/s²]. ``voltage`` (n, nv, 2) [V]: V' held over the period
    before its sample, and linear between samples. ``effort`` (n, nv) [N·m or N], NaN if not
    recorded. ``valid`` (n, nv): equations that count. ``block`` (n,): index of the block of
    consecutive samples.
    """

    rows: FloatArray
    acceleration: Matrix
    voltage: FloatArray
    effort: Matrix
    valid: BoolArray
    block: IntArray


def winding_equations(arm: ArmModel, motions: Sequence[MotionData]) -> WindingEquations:
    """Return the filtered and decimated equations of recorded motions.

    Parameters
    ----------
    arm : ArmModel
        The arm of the description: supply voltages and brushes.
    motions : Sequence[MotionData]
        Motions with voltages and currents, at least one.

    Returns
    -------
    WindingEquations
        Equations of all segments, without the ends on which the filter settles.

    Raises
    ------
    InvalidValue
        For motions without voltages or currents, and too short ones.

    """
    pieces, first = [], 0
    for data in motions:
        if data.voltage is None or data.current is None:
            missing = "voltages" if data.voltage is None else "currents"
            raise InvalidValue(
                f"{data.source}: {missing} = none; expected those of the motors; record columns"
                " voltage.JOINT [V] and current.JOINT [A]"
            )
        rate, segments, count = 1 / data.period, data.segments(), 0
        longest = max(segments, key=lambda segment: len(segment.time))
        cutoff = min(max(FAST_RATIO * motion_cutoff(longest.q, rate), SLOWEST), 0.25 * rate)
        for segment in segments:
            if len(segment.time) > max(4 * rate / cutoff, 30):
                piece = _filtered(arm, segment, rate, cutoff)
                pieces.append(replace(piece, block=piece.block + first + count))
                count += int(piece.block[-1]) + 1
        if count < LEAST_BLOCKS:
            raise InvalidValue(
                f"{data.source}: {BLOCK_TIME * count:g} s between gaps of the stamps; expected at"
                f" least {BLOCK_TIME * LEAST_BLOCKS:g} s; record a longer motion"
            )
        first += count
    names = WindingEquations.__dataclass_fields__
    return WindingEquations(*(np.concatenate([getattr(x, name) for x in pieces]) for name in names))


def _filtered(arm: ArmModel, data: MotionData, rate: float, cutoff: float) -> WindingEquations:
    """Return the equations of a segment: integrated over periods, filtered and decimated."""
    assert data.voltage is not None
    assert data.current is not None
    time = np.arange(data.time[0], data.time[-1] + 0.5 / rate, 1 / rate)

    def resampled(values: Matrix) -> Matrix:
        finite = np.where(np.isfinite(values), values, 0.0)
        spline = scipy.interpolate.make_interp_spline(data.time, finite, 1)
        found: Matrix = spline(np.clip(time, data.time[0], data.time[-1]))
        return found

    def mean(values: Matrix) -> Matrix:
        return (values[1:] + values[:-1]) / 2

    current, voltage = resampled(data.current), resampled(data.voltage)
    known = resampled((np.isfinite(data.voltage) & np.isfinite(data.current)).astype(float))
    supply = [motor.constants.get("supply_voltage", np.inf) for motor in arm.actuators]
    unusable = (known <= 1 - 1e-9) | (np.abs(voltage) >= SATURATED * np.array(supply))
    window = 2 * int(rate / cutoff) + 1
    spoiled = scipy.ndimage.maximum_filter1d(unusable[1:].astype(int), window, axis=0)
    for i, motor in enumerate(arm.actuators):
        if (drop := float(motor.constants.get("brush_drop", 0.0))) > 0:
            half = float(motor.constants["brush_half_voltage"])
            voltage[:, i] = [brush_voltage(x, drop, half) for x in voltage[:, i].tolist()]
    v = low_pass(np.diff(resampled(data.q), axis=0) * rate, cutoff, rate)
    slope = low_pass(np.diff(current, axis=0) * rate, cutoff, rate)
    rows = np.stack((low_pass(mean(current), cutoff, rate), v, np.ones_like(v), slope), axis=2)
    voltages = low_pass(np.stack((voltage[1:], mean(voltage)), axis=2), cutoff, rate)
    effort = np.full_like(v, np.nan)
    if data.effort is not None:
        effort = low_pass(mean(resampled(data.effort)), cutoff, rate)
    edge, step = int(1.5 * rate / cutoff), max(1, int(rate / (SAMPLES * cutoff)))
    used = slice(edge, -edge, step)
    return WindingEquations(
        rows[used],
        (np.gradient(v, axis=0) * rate)[used],
        voltages[used],
        effort[used],
        (spoiled == 0)[used],
        np.floor((time[1:][used] - time[0]) / BLOCK_TIME).astype(int),
    )
