"""Winding resistance, back-EMF constant and inductance of motors from voltages and currents.

V' = R i + K_e N v + o + L di/dt

V' is the voltage behind the brushes, N v the speed of the shaft. The equation is integrated over
each period between samples, and passes a zero-phase low-pass filter. The voltage is taken as held
over the period before its sample, or as linear between samples, whichever leaves less residual. The
torque constant follows from recorded efforts; else it changes by the same factor as K_e, since both
are equal in SI units.

References
----------
M. Gautier, A. Jubien, A. Janot, Iterative learning identification and computed torque control of
robots, IROS 2013, section II. B. Siciliano et al., Robotics (2009), section 5.2. W. Khalil,
E. Dombre, Modeling, Identification and Control of Robots (2002), section 12.2. P. Huber, Robust
Statistics (1981), section 7.3.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.interpolate
import scipy.ndimage

from arm_dynamics.core.arrays import BoolArray, FloatArray, IntArray, Matrix, Vector, as_readonly
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.efforts.drive_gain_fit import DriveGains
from arm_dynamics.identification.efforts.low_pass import low_pass, motion_cutoff
from arm_dynamics.identification.parameters.consistent_least_squares import HUBER, UNDETERMINED
from arm_dynamics.identification.results.fit_summary import ParameterFit
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_data import MotionData
from arm_dynamics.simulation.actuators.winding import brush_voltage

RESISTANCE, BACK_EMF, OFFSET, INDUCTANCE = range(4)
"""Columns of the equation of a joint."""
TIMING = 0.25
"""Standard deviation of the stamps of positions and voltages, relative to the period."""
MIN_CURRENT = 1e-6
"""RMS current [A] from which a motor is recorded."""
TURNS = 4
"""Estimates with renewed robust weights."""
UNITS = {"resistance": "Ω", "ke": "V·s/rad", "kt": "N·m/A", "inductance": "H"}
"""Constants of ``dc_motor`` that are identified, at the motor shaft."""
FAST_RATIO, SLOWEST, SAMPLES = 5.0, 10.0, 4.0
"""Cut-off frequency over that of the motion, its least value [Hz], samples per period of it."""
SATURATED = 0.98
"""Voltage over supply voltage from which a sample does not count."""
BLOCK_TIME, MIN_BLOCKS = 0.5, 10
"""Length of a block of consecutive samples [s], and their smallest number."""


@dataclass(frozen=True, slots=True, eq=False)
class MotorConstants:
    """Result of ``identify_motors``.

    ``values`` and ``deviation`` (4, nv) are resistance [Ω], back-EMF constant at the joint N K_e
    [V·s/rad], voltage offset [V] and inductance [H] with their standard deviations; NaN where
    voltages and currents do not determine them. ``gain`` and ``gain_deviation`` (nv,) are
    N K_t [N·m/A] from recorded efforts, NaN without them. ``error`` (nv,): rms of measured minus
    predicted voltages over the rms of the voltages, on motion that was not fitted.
    """

    arm: ArmModel
    values: Matrix
    deviation: Matrix
    gain: Vector
    gain_deviation: Vector
    error: Vector

    def constants(self, i: int) -> dict[str, tuple[float, float]]:
        """Return the constants of the motor of joint i and their deviations, at its shaft.

        Only those that are determined. Without a nominal gear ratio it is 1.
        """
        ratio = float(self.arm.actuators[i].constants.get("gear_ratio", 1.0))
        rows = {
            "resistance": (self.values[RESISTANCE, i], self.deviation[RESISTANCE, i]),
            "ke": (self.values[BACK_EMF, i] / ratio, self.deviation[BACK_EMF, i] / ratio),
            "kt": (self.gain[i] / ratio, self.gain_deviation[i] / ratio),
            "inductance": (self.values[INDUCTANCE, i], self.deviation[INDUCTANCE, i]),
        }
        constants = {name: (float(x), float(s)) for name, (x, s) in rows.items() if np.isfinite(x)}
        nominal = self.arm.actuators[i].constants
        if "ke" in constants and "kt" not in constants and nominal.get("ke", 0.0) > 0:
            factor = float(nominal["kt"] / nominal["ke"])
            constants["kt"] = constants["ke"][0] * factor, constants["ke"][1] * factor
        return constants

    def applied(self, arm: ArmModel) -> ArmModel:
        """Return ``arm`` with the identified constants in each joint with actuator dc_motor."""
        for i, name in enumerate(arm.joint_names):
            if self._is_dc_motor(i):
                changed = {key: value for key, (value, _) in self.constants(i).items()}
                arm = arm.with_motor(name, **changed) if changed else arm
        return arm

    def parameters(self) -> tuple[ParameterFit, ...]:
        """Return rows of the report."""
        rows = []
        for i, joint in enumerate(self.arm.joints):
            nominal = self.arm.actuators[i].constants
            for name, (value, spread) in self.constants(i).items():
                prior = float(nominal.get(name, np.nan))
                row = f"{joint.name}.{name}", UNITS[name], prior, value, 100 * spread / value
                rows.append(ParameterFit(*row))
        return tuple(rows)

    def notes(self) -> list[str]:
        """Return sentences for the user."""
        names, notes = self.arm.joint_names, []
        known = np.isfinite(self.values[RESISTANCE]) & np.isfinite(self.error)
        if known.any():
            errors = ", ".join(
                f"{names[i]} {100 * self.error[i]:.2g} %" for i in np.flatnonzero(known)
            )
            notes.append(f"error of voltages predicted from currents, held-out motion: {errors}")
        left = [n for n, row in zip(names, self.values[BACK_EMF], strict=True) if np.isnan(row)]
        if left:
            listed = ", ".join(left)
            notes.append(f"motor constants not identifiable from this trajectory: {listed}")
        other = [names[i] for i in np.flatnonzero(known).tolist() if not self._is_dc_motor(i)]
        if other:
            notes.append(
                f"actuators of joints {', '.join(other)} have no motor constants: they are reported"
                " at the joint, and not written; actuator dc_motor has them"
            )
        return notes

    def _is_dc_motor(self, i: int) -> bool:
        known = {parameter.name for parameter in self.arm.actuators[i].parameters}
        return {"resistance", "ke", "kt", "inductance"} <= known


def has_voltages(motions: Sequence[MotionData]) -> bool:
    """Return whether voltages and currents are recorded in all motions."""
    return all(motion.voltage is not None and motion.current is not None for motion in motions)


def recorded_motors(
    arm: ArmModel,
    motions: Sequence[MotionData],
    held_out: Sequence[MotionData],
    gains: DriveGains | None,
) -> tuple[MotorConstants | None, list[str]]:
    """Return ``identify_motors`` and its notes; None without voltages and currents.

    Torque constants are those of ``gains``, if given.
    """
    if not has_voltages(motions):
        return None, []
    try:
        found = identify_motors(arm, motions, held_out)
    except InvalidValue as error:
        return None, [f"no motor constants: {error}"]
    if gains is not None:
        found = replace(found, gain=gains.gain, gain_deviation=gains.gain * gains.deviation)
    return found, found.notes()


@with_one_blas_thread
def identify_motors(
    arm: ArmModel, motions: Sequence[MotionData], held_out: Sequence[MotionData] = ()
) -> MotorConstants:
    """Return motor constants that explain recorded voltages by currents and velocities.

    Parameters
    ----------
    arm : ArmModel
        Nominal model: supply voltages, brushes and gear ratios.
    motions : Sequence[MotionData]
        Motions with voltages and currents.
    held_out : Sequence[MotionData]
        Motions that check the result; those without voltages are ignored.

    Returns
    -------
    MotorConstants
        Constants with standard deviations.

    Raises
    ------
    InvalidValue
        For motions without voltages or currents.

    """
    equations = winding_equations(check_arm(arm), motions)
    checks = [motion for motion in held_out if has_voltages([motion])]
    tests = winding_equations(arm, checks) if checks else None
    delay = TIMING * max(motion.period for motion in motions)
    values, deviation = np.full((2, 4, arm.nv), np.nan)
    gain, gain_deviation, error = np.full((3, arm.nv), np.nan)
    for i in range(arm.nv):
        valid = equations.valid[:, i]
        rows, block = equations.rows[valid, i], equations.block[valid]
        if not len(rows) or np.sqrt(np.mean(rows[:, RESISTANCE] ** 2)) < MIN_CURRENT:
            continue
        late, voltages = delay * equations.acceleration[valid, i], equations.voltage[valid, i]
        values[:, i], deviation[:, i], held = _winding(rows, voltages, late, block, delay)
        if tests is not None and (valid := tests.valid[:, i]).any():
            measured = tests.voltage[valid, i, held]
            left = measured - tests.rows[valid, i] @ np.nan_to_num(values[:, i])
            error[i] = np.sqrt(np.mean(left**2) / np.mean(measured**2))
        efforts = equations.effort[equations.valid[:, i], i]
        if np.isfinite(efforts).all():
            x, spread, _ = block_regression(rows[:, [RESISTANCE, OFFSET]], efforts, block)
            if 0 < spread[0] < UNDETERMINED * x[0]:
                gain[i], gain_deviation[i] = x[0], spread[0]
    arrays = (as_readonly(x) for x in (values, deviation, gain, gain_deviation, error))
    return MotorConstants(arm, *arrays)


def _winding(
    rows: Matrix, voltages: Matrix, late: Vector, block: IntArray, delay: float
) -> tuple[Vector, Vector, int]:
    """Return values and deviations (4,), NaN where not determined, and the column of voltages.

    The inductance is part of the equation only if it is determined. Deviations contain those of the
    stamps: a delay d of the voltages acts as an inductance of R d, one of the positions as
    N K_e d dv/dt, with d = ``delay`` [s] and d dv/dt = ``late`` (n,).
    """
    for count in (INDUCTANCE + 1, INDUCTANCE):
        own = rows[:, :count]
        fits = [block_regression(own, voltages[:, k], block) for k in range(2)]
        held = int(np.argmin([rms for _, _, rms in fits]))
        x, spread, _ = fits[held]
        if count > INDUCTANCE:
            spread[INDUCTANCE] = np.hypot(spread[INDUCTANCE], x[RESISTANCE] * delay)
            if spread[INDUCTANCE] < UNDETERMINED * x[INDUCTANCE]:
                break
    spread = np.hypot(spread, block_regression(own, late * x[BACK_EMF], block)[0])
    known = spread < UNDETERMINED * x
    known[OFFSET] = np.isfinite(spread[OFFSET])
    found = np.full((2, 4), np.nan)
    found[:, :count] = np.where(known, (x, spread), np.nan)
    return found[0], found[1], held


def block_regression(rows: Matrix, target: Vector, block: IntArray) -> tuple[Vector, Vector, float]:
    """Return robust least squares of rows (n, p) x = target (n,), deviations (p,), and the rms.

    The deviations follow from the scores of the blocks (n,) of consecutive samples, so that they
    hold for residuals that are correlated within a block. Columns of zeros have the value 0 and an
    infinite deviation.
    """
    scale = np.sqrt(np.mean(rows**2, axis=0))
    used = scale > 1e-12 * max(float(scale.max(initial=0.0)), 1e-300)
    x, spread = np.zeros(scale.size), np.full(scale.size, np.inf)
    own, weight = rows[:, used] / scale[used], np.ones(len(rows))
    inverse, residual = np.eye(own.shape[1]), target
    for _ in range(TURNS):
        squares = own.T @ (own * weight[:, None])
        squares[np.diag_indices_from(squares)] *= 1 + 1e-12
        inverse = np.linalg.inv(squares)
        found = inverse @ (own.T @ (weight * target))
        residual = target - own @ found
        size = max(1.4826 * float(np.median(np.abs(residual))), 1e-12)
        weight = 1 / np.maximum(1.0, np.abs(residual) / (HUBER * size))
    names = np.unique(block)
    scores = np.array([(own * (weight * residual)[:, None])[block == b].sum(0) for b in names])
    scores = scores - scores.mean(axis=0)
    middle = scores.T @ scores * (len(names) / max(len(names) - 1, 1))
    x[used] = found / scale[used]
    spread[used] = np.sqrt(np.diag(inverse @ middle @ inverse)) / scale[used]
    return x, spread, float(np.sqrt(np.mean(weight * residual**2)))


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
        Nominal model: supply voltages and brushes.
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
                f"{data.source}: no {missing} in the recording; record columns"
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
        if count < MIN_BLOCKS:
            raise InvalidValue(
                f"{data.source}: {BLOCK_TIME * count:g} s between gaps of the stamps; expected at"
                f" least {BLOCK_TIME * MIN_BLOCKS:g} s; record a longer motion"
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
        return _resampled(data, values, time)

    def mean(values: Matrix) -> Matrix:
        return (values[1:] + values[:-1]) / 2

    current, voltage = resampled(data.current), resampled(data.voltage)
    window = 2 * int(rate / cutoff) + 1
    is_unusable = _is_unusable(arm, data, voltage, time)[1:].astype(int)
    near_unusable = scipy.ndimage.maximum_filter1d(is_unusable, window, axis=0)
    voltage = _behind_brushes(arm, voltage)
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
        (near_unusable == 0)[used],
        np.floor((time[1:][used] - time[0]) / BLOCK_TIME).astype(int),
    )


def _resampled(data: MotionData, values: Matrix, time: Vector) -> Matrix:
    """Return recorded values at other times (n,): linear interpolation."""
    finite = np.where(np.isfinite(values), values, 0.0)
    spline = scipy.interpolate.make_interp_spline(data.time, finite, 1)
    resampled: Matrix = spline(np.clip(time, data.time[0], data.time[-1]))
    return resampled


def _behind_brushes(arm: ArmModel, voltage: Matrix) -> Matrix:
    """Return voltages (n, nv) less those of the brushes."""
    voltage = voltage.copy()
    for i, motor in enumerate(arm.actuators):
        if (drop := float(motor.constants.get("brush_drop", 0.0))) > 0:
            half = float(motor.constants["brush_half_voltage"])
            voltage[:, i] = [brush_voltage(x, drop, half) for x in voltage[:, i].tolist()]
    return voltage


def _is_unusable(arm: ArmModel, data: MotionData, voltage: Matrix, time: Vector) -> BoolArray:
    """Return the samples (n, nv) of voltages (n, nv) at their limit or that were not recorded."""
    assert data.voltage is not None
    assert data.current is not None
    recorded = np.isfinite(data.voltage) & np.isfinite(data.current)
    supply = [motor.constants.get("supply_voltage", np.inf) for motor in arm.actuators]
    is_missing = _resampled(data, recorded.astype(float), time) <= 1 - 1e-9
    found: BoolArray = is_missing | (np.abs(voltage) >= SATURATED * np.array(supply))
    return found
