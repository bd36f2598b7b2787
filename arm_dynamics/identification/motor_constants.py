"""Winding resistance, back-EMF constant and inductance of motors from voltages and currents.

V' = R i + K_e N v + o + L di/dt

The equations are those of ``winding_equations``. The voltage is taken as held over the period
before its sample, or as linear between samples, whichever leaves less residual. The torque
constant follows from recorded efforts; else it changes by the same factor as K_e, since both are
equal in SI units.

References
----------
M. Gautier, A. Jubien, A. Janot, Iterative learning identification and computed torque control of
robots, IROS 2013, section II. W. Khalil, E. Dombre, Modeling, Identification and Control of Robots
(2002), section 12.2. P. Huber, Robust Statistics (1981), section 7.3.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from arm_dynamics.core.arrays import IntArray, Matrix, Vector, as_readonly
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.consistent_least_squares import HUBER, UNDETERMINED
from arm_dynamics.identification.drive_gain_fit import DriveGains
from arm_dynamics.identification.fit_report import ParameterFit
from arm_dynamics.identification.motion_data import MotionData
from arm_dynamics.identification.winding_equations import winding_equations
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel

RESISTANCE, BACK_EMF, OFFSET, INDUCTANCE = range(4)
"""Columns of the equation of a joint."""
TIMING = 0.25
"""Standard deviation of the stamps of positions and voltages, relative to the period."""
LEAST_CURRENT = 1e-6
"""RMS current [A] from which a motor counts as recorded."""
TURNS = 4
"""Estimates with renewed robust weights."""
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
    equations = winding_equations(check_arm(arm), motions)
    checks = [motion for motion in held_out if has_voltages([motion])]
    tests = winding_equations(arm, checks) if checks else None
    delay = TIMING * max(motion.period for motion in motions)
    values, deviation = np.full((2, 4, arm.nv), np.nan)
    gain, gain_deviation, error = np.full((3, arm.nv), np.nan)
    for i in range(arm.nv):
        valid = equations.valid[:, i]
        rows, block = equations.rows[valid, i], equations.block[valid]
        if not len(rows) or np.sqrt(np.mean(rows[:, RESISTANCE] ** 2)) < LEAST_CURRENT:
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
