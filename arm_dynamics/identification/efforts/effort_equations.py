"""Linear equations of measured efforts, and the prior of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    Vector,
)
from arm_dynamics.identification.efforts.friction_terms import (
    LOSS,
    FrictionTerm,
    JointFriction,
    with_gear_loss,
)
from arm_dynamics.identification.parameters.consistent_least_squares import (
    NominalPrior,
    rms,
)
from arm_dynamics.identification.parameters.dynamic_parameters import ParameterLayout
from arm_dynamics.model.arm_model import ArmModel

SAMPLE_AXIS = {
    "regressor": 0, "sliding": 1, "effort": 0, "valid": 0, "moving": 0, "block": 0, "shapes": 2,
    "errors": 1, "coupled": 0, "fast": 0,
}  # fmt: skip
"""Arrays of ``EffortEquations`` and their axis of samples."""


@dataclass(frozen=True, slots=True, eq=False)
class EffortEquations:
    """τ[k, i] = W[k, i] π of samples k and joints i.

    ``regressor`` W (n, nv, p) has no entries for Coulomb friction. Those are in ``sliding``
    (m, n, nv), the states s of the Dahl model for the distances ``presliding`` (m,) [rad or m]; the
    first one is 0, with s = sign(v). ``effort`` (n, nv) [N·m], ``valid`` (n, nv): equations that
    count, ``moving`` (n, nv): those without a stop or reversal of the joint nearby, ``block`` (n,):
    index of the block of consecutive samples. ``shapes`` (m, k, n, nv) are the ``stribeck_shapes``
    of the velocities ``velocity`` (k, nv) [rad/s or m/s]; None: Coulomb and viscous friction only.
    ``errors`` (e, n, nv) [N·m or N] are further errors of the efforts, common to all samples, each
    of the size of one standard deviation.
    ``fast`` (n, nv): equations without a speed near zero of the joint; None: all.
    ``coupled`` (n, nv, 3 nc) are the ``coupled_rows`` of coupled motors; None: no such motors.
    """

    regressor: FloatArray
    sliding: FloatArray
    presliding: Vector
    effort: Matrix
    valid: BoolArray
    moving: BoolArray
    block: IntArray
    shapes: FloatArray | None = None
    velocity: Matrix | None = None
    errors: FloatArray | None = None
    coupled: FloatArray | None = None
    fast: BoolArray | None = None

    def part(self, used: BoolArray) -> EffortEquations:
        """Return the samples ``used`` (n,)."""
        arrays = {name: getattr(self, name) for name in SAMPLE_AXIS}
        return replace(
            self,
            **{
                name: np.compress(used, values, SAMPLE_AXIS[name])
                for name, values in arrays.items()
                if values is not None
            },
        )

    def with_constant_friction(self, has_stribeck: BoolArray) -> EffortEquations:
        """Return the equations in which dry friction is constant, except between its signs.

        At low speed real and simulated friction is less (regularized) or more (Stribeck) than
        Coulomb friction. That error is the same in all blocks: the deviations do not contain it.
        Slow equations of joints (nv,) whose Stribeck friction is fitted count.
        """
        if self.fast is None:
            return self
        return replace(self, moving=self.moving & (self.fast | has_stribeck))

    def counted(self, models: IntArray | None) -> BoolArray:
        """Return the equations (n, nv) that count with the friction models (nv,).

        While a joint sticks or reverses, its friction without presliding is unknown. None: all
        valid ones, as for a joint that has no others.
        """
        if models is None:
            return self.valid
        counted = self.valid & (self.moving | (models > 0))
        found: BoolArray = np.where(counted.any(axis=0), counted, self.valid)
        return found

    def rows(self, models: IntArray | None) -> FloatArray:
        """Return W (n, nv, p) with the friction models (nv,), indices into ``presliding``.

        None: the regressor as it is, without entries for Coulomb friction.
        """
        rows: FloatArray = self.regressor.copy()
        if models is None:
            return rows
        coulomb = rows[..., ParameterLayout(self.effort.shape[1]).coulomb]
        for i, model in enumerate(models.tolist()):
            coulomb[:, i, i] = self.sliding[model, :, i]
        return rows

    def term_rows(
        self, models: IntArray, terms: Sequence[FrictionTerm], effort: Matrix
    ) -> FloatArray:
        """Return the columns (n, nv, e) of friction terms with the friction models (nv,).

        ``effort`` (n, nv) [N·m or N] is that of the motors, for the losses of their gears.
        """
        columns = np.zeros((*self.effort.shape, len(terms)))
        for k, (i, index) in enumerate(terms):
            if index == LOSS:
                columns[:, i, k] = self.sliding[models[i], :, i] * np.abs(effort[:, i])
            elif self.shapes is not None:
                columns[:, i, k] = self.shapes[models[i], index, :, i]
        return columns

    def predicted(self, parameters: Vector, friction: JointFriction) -> Matrix:
        """Return the efforts (n, nv) of parameters (14 nv,) and the friction of the joints."""
        found: Matrix = self.rows(friction.presliding) @ parameters + self.stribeck(friction)
        found += self.coupled_efforts(friction)
        return with_gear_loss(found, self.states(friction), friction.loss)

    def states(self, friction: JointFriction) -> Matrix:
        """Return the states (n, nv) of the Dahl models of the joints."""
        own = [self.sliding[m, :, i] for i, m in enumerate(friction.presliding.tolist())]
        return np.stack(own, axis=1)

    def coupled_efforts(self, friction: JointFriction) -> Matrix:
        """Return the efforts (n, nv) [N·m or N] of coupled motors."""
        if self.coupled is None or not friction.coupled.terms.size:
            return np.zeros_like(self.effort)
        efforts: Matrix = self.coupled @ friction.coupled.terms.ravel()
        return efforts

    def stribeck(self, friction: JointFriction) -> Matrix:
        """Return the Stribeck friction (n, nv) [N·m or N] of the joints."""
        stribeck = np.zeros_like(self.effort)
        if self.shapes is not None and self.velocity is not None:
            for i in np.flatnonzero(friction.has_stribeck):
                nearest = np.argmin(np.abs(self.velocity[:, i] - friction.velocity[i]))
                shape = self.shapes[friction.presliding[i], nearest, :, i]
                stribeck[:, i] = friction.stribeck[i] * shape
        return stribeck


def joined_equations(parts: Sequence[EffortEquations]) -> EffortEquations:
    """Return the equations of several motions; their blocks are different."""
    first, blocks = 0, []
    for part in parts:
        blocks.append(part.block + first)
        first = int(blocks[-1].max()) + 1
    joined: dict[str, Any] = {}
    for name, axis in SAMPLE_AXIS.items():
        arrays = [getattr(part, name) for part in parts]
        has_all = all(values is not None for values in arrays)
        joined[name] = np.concatenate(arrays, axis=axis) if has_all else None
    joined |= {"block": np.concatenate(blocks), "errors": _joined_errors(parts)}
    return replace(parts[0], **joined)


def _joined_errors(parts: Sequence[EffortEquations]) -> FloatArray | None:
    """Return the errors of all parts; those of different parts are independent."""
    found = []
    for part in parts:
        if part.errors is not None:
            found.append(
                np.concatenate(
                    [
                        part.errors if x is part else np.zeros((len(part.errors), *x.effort.shape))
                        for x in parts
                    ],
                    axis=1,
                )
            )
    return np.concatenate(found) if found else None


def nominal_prior(arm: ArmModel, equations: EffortEquations) -> NominalPrior:
    """Return the divergence from the nominal model, with typical sizes from the equations."""
    layout, joints = ParameterLayout(arm.nv), np.arange(arm.nv)
    acceleration, speed = (
        rms(equations.regressor[..., term][:, joints, joints], equations.valid)
        for term in (layout.armature, layout.viscous)
    )
    return NominalPrior.of(arm, rms(equations.effort, equations.valid), speed, acceleration)
