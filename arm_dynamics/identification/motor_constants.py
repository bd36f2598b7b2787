"""Winding resistance, back-EMF constant and inductance of motors from voltages and currents.

V' = R i + L di/dt + K_e N v + o

V' is the voltage behind the brushes, N v the speed of the shaft. The equation is integrated over
each period between samples, and passes a zero-phase low-pass filter. The voltage is taken as held
over the period before its sample, or as linear between samples, whichever leaves less residual.
The torque constant follows from recorded efforts; else it changes by the same factor as K_e, since
both are equal in SI units.

References
----------
M. Gautier, A. Jubien, A. Janot, Iterative learning identification and computed torque control of
robots, IROS 2013, section II. W. Khalil, E. Dombre, Modeling, Identification and Control of Robots
(2002), section 12.2. B. Siciliano et al., Robotics (2009), section 5.2.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.interpolate
import scipy.ndimage

from arm_dynamics.core.arrays import BoolArray, IntArray, Matrix, Vector, as_readonly
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.consistent_least_squares import HUBER, UNDETERMINED
from arm_dynamics.identification.drive_gain_fit import DriveGains
from arm_dynamics.identification.fit_report import ParameterFit
from arm_dynamics.identification.low_pass import low_pass, motion_cutoff
from arm_dynamics.identification.motion_data import MotionData
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.actuators.winding import brush_voltage

RESISTANCE, BACK_EMF, OFFSET, INDUCTANCE, ACCELERATION = range(5)
"""Columns of the equation of a joint; the last one serves the deviations only."""
TIMING = 0.25
"""Standard deviation of the stamps of positions and voltages, relative to the period."""
FAST_RATIO, SLOWEST, SAMPLES = 5.0, 10.0, 4.0
"""Cut-off frequency over that of the motion, its least value [Hz], samples per period of it."""
SATURATED = 0.98
"""Voltage over supply voltage from which a sample does not count."""
BLOCK_TIME, LEAST_BLOCKS = 0.5, 10
"""Length of a block of consecutive samples [s], and their smallest number."""
LEAST_CURRENT = 1e-6
"""RMS current [A] from which a motor counts as recorded."""
TURNS = 4
UNITS = {"resistance": "Ω", "ke": "V·s/rad", "kt": "N·m/A", "inductance": "H"}
"""Constants of ``dc_motor`` that are identified, at the motor shaft."""


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

        Only those that are determined. Without a gear ratio in the description it counts as 1.
        """
        ratio = float(self.arm.actuators[i].constants.get("gear_ratio", 1.0))
        rows = {
            "resistance": (self.values[RESISTANCE, i], self.deviation[RESISTANCE, i]),
            "ke": (self.values[BACK_EMF, i] / ratio, self.deviation[BACK_EMF, i] / ratio),
            "kt": (self.gain[i] / ratio, self.gain_deviation[i] / ratio),
            "inductance": (self.values[INDUCTANCE, i], self.deviation[INDUCTANCE, i]),
        }
        found = {name: (float(x), float(s)) for name, (x, s) in rows.items() if np.isfinite(x)}
        described = self.arm.actuators[i].constants
        if "ke" in found and "kt" not in found and described.get("ke", 0.0) > 0:
            factor = float(described["kt"] / described["ke"])
            found["kt"] = found["ke"][0] * factor, found["ke"][1] * factor
        return found

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
            described = self.arm.actuators[i].constants
            for name, (value, spread) in self.constants(i).items():
                prior = float(described.get(name, np.nan))
                row = f"{joint.name}.{name}", UNITS[name], prior, value, 100 * spread / value
                rows.append(ParameterFit(*row))
        return tuple(rows)

    def notes(self) -> list[str]:
        """Return sentences for the user."""
        names, found = self.arm.joint_names, []
        known = np.isfinite(self.values[RESISTANCE]) & np.isfinite(self.error)
        if known.any():
            errors = ", ".join(
                f"{names[i]} {100 * self.error[i]:.2g} %" for i in np.flatnonzero(known)
            )
            found.append(f"error of voltages predicted from currents, held-out motion: {errors}")
        left = [n for n, row in zip(names, self.values[BACK_EMF], strict=True) if np.isnan(row)]
        if left:
            found.append(f"motor constants not revealed by this motion: {', '.join(left)}")
        other = [names[i] for i in np.flatnonzero(known).tolist() if not self._is_dc_motor(i)]
        if other:
            found.append(
                f"actuators of joints {', '.join(other)} have no motor constants: they are reported"
                " at the joint, and not written; actuator dc_motor has them"
            )
        return found

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
        The arm of the description: supply voltages, brushes and gear ratios.
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
    check_arm(arm)
    parts = [_prepared(arm, motion) for motion in motions]
    checks = [_prepared(arm, motion) for motion in held_out if has_voltages([motion])]
    nv = arm.nv
    values, spread = np.full((4, nv), np.nan), np.full((4, nv), np.nan)
    gain, gain_spread, error = np.full(nv, np.nan), np.full(nv, np.nan), np.full(nv, np.nan)
    period = max(motion.period for motion in motions)
    for i in range(nv):
        rows, voltages = (_joined(parts, i, key) for key in ("rows", "voltages"))
        block = _joined(parts, i, "block").astype(np.int64)
        if not len(rows) or np.sqrt(np.mean(rows[:, RESISTANCE] ** 2)) < LEAST_CURRENT:
            continue
        values[:, i], spread[:, i], held = _constants(rows, voltages, block, period)
        tests, measured = (_joined(checks, i, key) for key in ("rows", "voltages"))
        if len(tests):
            left = measured[:, held] - tests[:, :ACCELERATION] @ np.nan_to_num(values[:, i])
            error[i] = np.sqrt(np.mean(left**2) / np.mean(measured[:, held] ** 2))
        efforts = _joined(parts, i, "effort")
        if len(efforts) == len(rows):
            x, s, _ = block_regression(rows[:, [RESISTANCE, OFFSET]], efforts, block)
            if 0 < s[0] < UNDETERMINED * x[0]:
                gain[i], gain_spread[i] = x[0], s[0]
    arrays = (as_readonly(x) for x in (values, spread, gain, gain_spread, error))
    return MotorConstants(arm, *arrays)


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


def _constants(
    rows: Matrix, voltages: Matrix, block: IntArray, period: float
) -> tuple[Vector, Vector, int]:
    """Return values and deviations (4,), NaN where not determined, and the column of voltages.

    The inductance is part of the equation only if it is determined. Deviations contain those of the
    stamps: a delay d of the voltages acts as an inductance of R d, one of the positions as
    N K_e d dv/dt.
    """
    late, rows = TIMING * period * rows[:, ACCELERATION], rows[:, :ACCELERATION]
    fits = [block_regression(rows, voltages[:, k], block) for k in range(2)]
    held = int(np.argmin([rms for _, _, rms in fits]))
    x, spread, _ = fits[held]
    spread = spread.copy()
    spread[INDUCTANCE] = np.hypot(spread[INDUCTANCE], x[RESISTANCE] * TIMING * period)
    if not spread[INDUCTANCE] < UNDETERMINED * x[INDUCTANCE]:
        short = rows[:, :INDUCTANCE]
        fits = [block_regression(short, voltages[:, k], block) for k in range(2)]
        held = int(np.argmin([rms for _, _, rms in fits]))
        x, spread = (np.append(values, np.nan) for values in fits[held][:2])
    else:
        short = rows
    shift = block_regression(short, late * x[BACK_EMF], block)[0]
    spread[: shift.size] = np.hypot(spread[: shift.size], shift)
    known = spread < UNDETERMINED * x
    known[OFFSET] = np.isfinite(spread[OFFSET])
    return np.where(known, x, np.nan), np.where(known, spread, np.nan), held


@dataclass(frozen=True, slots=True, eq=False)
class _Equations:
    """Filtered rows (n, nv, 5), voltages (n, nv, 2) held and linear, efforts, and block (n,)."""

    rows: Matrix
    voltages: Matrix
    effort: Matrix | None
    valid: BoolArray
    block: IntArray


def _joined(parts: Sequence[_Equations], i: int, name: str) -> Matrix:
    """Return the valid entries of joint i in all parts; blocks are renumbered."""
    found, first = [], 0
    for part in parts:
        valid = part.valid[:, i]
        if name == "block":
            found.append(part.block[valid] + first)
            first += int(part.block[-1]) + 1
        elif (values := getattr(part, name)) is not None:
            found.append(values[valid, i])
    return np.concatenate(found) if found else np.zeros(0)


def _prepared(arm: ArmModel, data: MotionData) -> _Equations:
    """Return the filtered equations of all segments of a motion."""
    if data.voltage is None or data.current is None:
        missing = "voltages" if data.voltage is None else "currents"
        raise InvalidValue(
            f"{data.source}: {missing} = none; expected those of the motors; record columns"
            " voltage.JOINT [V] and current.JOINT [A]"
        )
    rate = 1 / data.period
    longest = max(data.segments(), key=lambda part: len(part.time))
    cutoff = min(max(FAST_RATIO * motion_cutoff(longest.q, rate), SLOWEST), 0.25 * rate)
    pieces = [
        _filtered(arm, part, rate, cutoff)
        for part in data.segments()
        if len(part.time) > max(4 * rate / cutoff, 30)
    ]
    count = sum(int(piece.block[-1]) + 1 for piece in pieces)
    if count < LEAST_BLOCKS:
        raise InvalidValue(
            f"{data.source}: {BLOCK_TIME * count:g} s between gaps of the stamps; expected at least"
            f" {BLOCK_TIME * LEAST_BLOCKS:g} s; record a longer motion"
        )
    first, blocks = 0, []
    for piece in pieces:
        blocks.append(piece.block + first)
        first = int(blocks[-1][-1]) + 1
    efforts = [piece.effort for piece in pieces if piece.effort is not None]
    return _Equations(
        np.concatenate([piece.rows for piece in pieces]),
        np.concatenate([piece.voltages for piece in pieces]),
        np.concatenate(efforts) if efforts else None,
        np.concatenate([piece.valid for piece in pieces]),
        np.concatenate(blocks),
    )


def _filtered(arm: ArmModel, data: MotionData, rate: float, cutoff: float) -> _Equations:
    """Return the integrated, filtered and decimated equations of a segment."""
    time = np.arange(data.time[0], data.time[-1] + 0.5 / rate, 1 / rate)
    at = np.clip(time, data.time[0], data.time[-1])
    assert data.voltage is not None
    assert data.current is not None
    known = np.isfinite(data.voltage) & np.isfinite(data.current)

    def resampled(values: Matrix) -> Matrix:
        finite = np.where(np.isfinite(values), values, 0.0)
        found: Matrix = scipy.interpolate.make_interp_spline(data.time, finite, 1)(at)
        return found

    q, current = resampled(data.q), resampled(data.current)
    voltage = _behind_brushes(arm, resampled(data.voltage))
    supply = [float(m.constants.get("supply_voltage", np.inf)) for m in arm.actuators]
    usable = (resampled(known.astype(float)) > 1 - 1e-9) & (
        np.abs(resampled(data.voltage)) < SATURATED * np.array(supply)
    )
    mean = (current[1:] + current[:-1]) / 2
    v = low_pass(np.diff(q, axis=0) * rate, cutoff, rate)
    rows = np.stack(
        (
            mean,
            v,
            np.ones_like(mean),
            np.diff(current, axis=0) * rate,
            np.gradient(v, axis=0) * rate,
        ),
        axis=2,
    )
    for column in (RESISTANCE, INDUCTANCE):
        rows[:, :, column] = low_pass(rows[:, :, column], cutoff, rate)
    voltages = np.stack((voltage[1:], (voltage[1:] + voltage[:-1]) / 2), axis=2)
    keep, edge = max(1, int(rate / (SAMPLES * cutoff))), int(1.5 * rate / cutoff)
    window = 2 * int(rate / cutoff) + 1
    spoiled = scipy.ndimage.maximum_filter1d((~usable[1:]).astype(int), window, axis=0)
    used = slice(edge, -edge, keep)
    effort = None
    if data.effort is not None:
        measured = resampled(data.effort)
        effort = low_pass((measured[1:] + measured[:-1]) / 2, cutoff, rate)[used]
    middle = time[1:][used] - time[0]
    return _Equations(
        rows[used],
        low_pass(voltages, cutoff, rate)[used],
        effort,
        (spoiled == 0)[used],
        np.floor(middle / BLOCK_TIME).astype(int),
    )


def _behind_brushes(arm: ArmModel, voltage: Matrix) -> Matrix:
    """Return the voltages (n, nv) [V] behind the brushes of motors that have a brush drop."""
    found: Matrix = voltage.copy()
    for i, motor in enumerate(arm.actuators):
        drop = float(motor.constants.get("brush_drop", 0.0))
        if drop > 0:
            half = float(motor.constants["brush_half_voltage"])
            own = [brush_voltage(float(x), drop, half) for x in voltage[:, i]]
            found[:, i] = own
    return found
