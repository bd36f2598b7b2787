"""Efforts that parameters predict along prepared motions, with their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.core.arrays import BoolArray, IntArray, Matrix, Vector, as_readonly
from arm_dynamics.identification.efforts.effort_equations import joined_equations
from arm_dynamics.identification.efforts.friction_terms import JointFriction
from arm_dynamics.identification.efforts.motion_preparation import PreparedMotion
from arm_dynamics.identification.results.fit_summary import JointFit
from arm_dynamics.model.arm_model import ArmModel


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Efforts of a model along a recorded motion.

    ``time`` (n,) [s]; ``measured`` and ``predicted`` (n, nv) [N·m or N]; ``counted`` (n, nv): the
    samples without saturation and without stops of the joint.
    """

    time: Vector
    measured: Matrix
    predicted: Matrix
    counted: BoolArray

    @property
    def rms(self) -> Vector:
        """RMS of measured minus predicted efforts (nv,) [N·m or N]; NaN without samples."""
        return self._rms(self.measured - self.predicted)

    @property
    def relative_error(self) -> Vector:
        """``rms`` over the RMS of the measured efforts (nv,); NaN if these are 0."""
        return self._relative(self.rms)

    @property
    def relative_error_without_offset(self) -> Vector:
        """``relative_error`` without ``offset`` (nv,)."""
        return self._relative(np.sqrt(np.maximum(self.rms**2 - self.offset**2, 0.0)))

    @property
    def measured_rms(self) -> Vector:
        """RMS of the measured efforts (nv,) [N·m or N]; NaN without samples."""
        return self._rms(self.measured)

    @property
    def offset(self) -> Vector:
        """Mean of measured minus predicted efforts (nv,) [N·m or N]; NaN without samples."""
        count = self.counted.sum(axis=0)
        total = np.sum(self.counted * (self.measured - self.predicted), axis=0)
        mean: Vector = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        return mean

    def _relative(self, errors: Vector) -> Vector:
        size = self.measured_rms
        return errors / np.where(size > 0, size, np.nan)

    def _rms(self, values: Matrix) -> Vector:
        count = self.counted.sum(axis=0)
        squares = np.sum(self.counted * values**2, axis=0) / np.maximum(count, 1)
        rms: Vector = np.sqrt(np.where(count > 0, squares, np.nan))
        return rms


def predicted_efforts(
    motions: Sequence[PreparedMotion],
    parameters: Vector,
    friction: JointFriction,
    counted: IntArray,
) -> Prediction:
    """Return the efforts of ``parameters`` (14 nv,) and ``friction``.

    ``counted`` (nv,) are the presliding models that decide which samples count.
    """
    times, first = [], 0.0
    for motion in motions:  # one after the other
        times.append(motion.time - motion.time[0] + first)
        first = float(times[-1][-1]) + float(motion.time[1] - motion.time[0])
    equations = joined_equations([motion.equations for motion in motions])
    return Prediction(
        as_readonly(np.concatenate(times)),
        as_readonly(equations.effort),
        as_readonly(equations.predicted(parameters, friction)),
        equations.counted(counted),
    )


def joint_fits(
    arm: ArmModel, before: Prediction, after: Prediction, urdf: Prediction
) -> tuple[JointFit, ...]:
    """Return rows of the report from predictions of the nominal model, the fit and the URDF."""
    return tuple(
        JointFit(
            name=joint.name,
            unit=joint.effort_unit,
            rms_before=float(before.rms[i]),
            rms_after=float(after.rms[i]),
            error_before=float(before.relative_error[i]),
            error_after=float(after.relative_error[i]),
            time=after.time,
            measured=after.measured[:, i],
            before=before.predicted[:, i],
            after=after.predicted[:, i],
            error_urdf=float(urdf.relative_error[i]),
        )
        for i, joint in enumerate(arm.joints)
    )
