"""Dynamic parameters from measured efforts: weighted least squares with physical consistency.

minimize  ½ Σ w ((τ - W π) / σ_i)² / c + γ (Σ_links d(P ‖ P₀) + Σ_terms d(x ‖ x₀))

over parameters π whose pseudo-inertias P, friction and rotor inertia x are positive. The log-det
divergence d to the arm's own description determines what the motion does not; it also keeps every
body consistent. The function is convex. σ_i is the residual of joint i, w a robust weight, c the
correlation time of the residuals in samples. Blocks of the motion that are held out decide on γ,
and for each joint on the presliding distance of its Coulomb friction, on Stribeck friction and on
the load-dependent loss of its gear.

References
----------
M. Gautier, P. Poignet, Extended Kalman filtering and weighted least squares dynamic identification
of robot, Control Engineering Practice 9 (2001), section 2. T. Lee, P. Wensing, F. Park, Geometric
robot dynamic identification, IEEE T-RO 36 (2020), section IV. P. Huber, Robust Statistics (1981),
section 7.3. P. Dahl, Solid friction damping of mechanical vibrations, AIAA Journal 14 (1976),
equation 4.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from arm_dynamics.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    Vector,
    as_readonly,
)
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.base_parameter_set import (
    BaseParameters,
    base_parameters,
    structural_rows,
)
from arm_dynamics.identification.consistent_least_squares import (
    HUBER,
    UNDETERMINED,
    DescriptionPrior,
    consistent_minimum,
    positive_inverse,
    rms,
    robust_scale,
)
from arm_dynamics.identification.dynamic_parameters import parameter_names
from arm_dynamics.identification.friction_terms import (
    LOSS,
    TYPICAL_LOSS,
    TYPICAL_STRIBECK,
    FrictionTerm,
    JointFriction,
    unrepresented_joints,
    with_gear_loss,
    without_gear_loss,
)
from arm_dynamics.model.arm_model import ArmModel

PRIOR_WEIGHTS = tuple(10.0**k for k in range(3, -4, -1))
"""Candidates of γ."""
FOLDS = 5
"""Number of sets of blocks, each of which is held out once."""
WORTHWHILE, WORTHWHILE_TERM = 0.98, 0.95
"""Ratio of held-out errors below which presliding, and a further term, are part of the friction."""
TURNS = 3
"""Estimates with renewed deviations and robust weights, before and after the choice of a model."""


@dataclass(frozen=True, slots=True, eq=False)
class EffortEquations:
    """τ[k, i] = W[k, i] π of samples k and joints i.

    ``regressor`` W (n, nv, p) has no entries for Coulomb friction. Those are in ``sliding``
    (m, n, nv), the states s of the Dahl model for the distances ``presliding`` (m,) [rad or m]; the
    first one is 0, with s = sign(v). ``effort`` (n, nv) [N·m], ``valid`` (n, nv): equations that
    count, ``moving`` (n, nv): those without a stop of the joint nearby, ``block`` (n,): index of
    the block of consecutive samples. ``shapes`` (m, k, n, nv) are the ``stribeck_shapes`` of the
    velocities ``velocity`` (k, nv) [rad/s or m/s]; None: Coulomb and viscous friction only.
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

    def part(self, used: BoolArray) -> EffortEquations:
        """Return the samples ``used`` (n,)."""
        return replace(
            self,
            regressor=self.regressor[used],
            sliding=self.sliding[:, used],
            effort=self.effort[used],
            valid=self.valid[used],
            moving=self.moving[used],
            block=self.block[used],
            shapes=None if self.shapes is None else self.shapes[:, :, used],
        )

    def counted(self, models: IntArray | None) -> BoolArray:
        """Return the equations (n, nv) that count with the friction models (nv,).

        While a joint sticks, its friction without presliding is unknown. None: all valid ones.
        """
        return self.valid if models is None else self.valid & (self.moving | (models > 0))

    def rows(self, models: IntArray | None) -> FloatArray:
        """Return W (n, nv, p) with the friction models (nv,), indices into ``presliding``.

        None: the regressor as it is, without entries for Coulomb friction.
        """
        found: FloatArray = self.regressor.copy()
        if models is None:
            return found
        nv = self.effort.shape[1]
        for i, model in enumerate(models.tolist()):
            found[:, i, 12 * nv + i] = self.sliding[model, :, i]
        return found

    def term_rows(
        self, models: IntArray, terms: Sequence[FrictionTerm], effort: Matrix
    ) -> FloatArray:
        """Return the columns (n, nv, e) of friction terms with the friction models (nv,).

        ``effort`` (n, nv) [N·m or N] is that of the motors, for the losses of their gears.
        """
        found = np.zeros((*self.effort.shape, len(terms)))
        for k, (i, index) in enumerate(terms):
            if index == LOSS:
                found[:, i, k] = self.sliding[models[i], :, i] * np.abs(effort[:, i])
            elif self.shapes is not None:
                found[:, i, k] = self.shapes[models[i], index, :, i]
        return found

    def predicted(self, parameters: Vector, friction: JointFriction) -> Matrix:
        """Return the efforts (n, nv) of parameters (14 nv,) and the friction of the joints."""
        found: Matrix = self.rows(friction.presliding) @ parameters + self.stribeck(friction)
        return with_gear_loss(found, self.states(friction), friction.loss)

    def states(self, friction: JointFriction) -> Matrix:
        """Return the states (n, nv) of the Dahl models of the joints."""
        own = [self.sliding[m, :, i] for i, m in enumerate(friction.presliding.tolist())]
        return np.stack(own, axis=1)

    def stribeck(self, friction: JointFriction) -> Matrix:
        """Return the Stribeck friction (n, nv) [N·m or N] of the joints."""
        found = np.zeros_like(self.effort)
        if self.shapes is not None and self.velocity is not None:
            for i in np.flatnonzero(friction.has_stribeck):
                nearest = np.argmin(np.abs(self.velocity[:, i] - friction.velocity[i]))
                shape = self.shapes[friction.presliding[i], nearest, :, i]
                found[:, i] = friction.stribeck[i] * shape
        return found


def joined_equations(parts: Sequence[EffortEquations]) -> EffortEquations:
    """Return the equations of several motions; their blocks are different."""
    first, blocks = 0, []
    for part in parts:
        blocks.append(part.block + first)
        first = int(blocks[-1].max()) + 1
    return EffortEquations(
        np.concatenate([part.regressor for part in parts]),
        np.concatenate([part.sliding for part in parts], axis=1),
        parts[0].presliding,
        np.concatenate([part.effort for part in parts]),
        np.concatenate([part.valid for part in parts]),
        np.concatenate([part.moving for part in parts]),
        np.concatenate(blocks),
        _joined_shapes(parts),
        parts[0].velocity,
    )


def _joined_shapes(parts: Sequence[EffortEquations]) -> FloatArray | None:
    found = [part.shapes for part in parts if part.shapes is not None]
    return np.concatenate(found, axis=2) if len(found) == len(parts) else None


@dataclass(frozen=True, slots=True, eq=False)
class TorqueFit:
    """Result of ``fit_torque``.

    ``parameters`` (p,) are physically consistent; ``deviation`` (p,) are their standard deviations.
    ``base`` names the combinations that efforts determine; ``base_values`` and ``base_deviation``
    (nb,) are their weighted least squares estimate without prior. ``presliding`` (nv,) [rad or m]
    is the distance over which Coulomb friction develops, ``friction`` the friction that held-out
    blocks chose. ``simulated`` (14 nv,) are the parameters of an arm in simulation: Stribeck
    friction and gear losses that its actuators do not represent count as Coulomb friction of the
    same mean. ``residual`` (nv,) [N·m] is the rms error,
    ``condition`` the condition number of the weighted base regressor with columns of length 1,
    ``prior_weight`` γ, ``undetermined`` the names of the parameters left to the prior.
    ``information`` (p, p) is Σ w WᵀW, ``prior_information`` (p, p) γ times the Hessian of d.
    """

    parameters: Vector
    deviation: Vector
    prior: Vector
    base: BaseParameters
    base_values: Vector
    base_deviation: Vector
    presliding: Vector
    friction: JointFriction
    simulated: Vector
    residual: Vector
    condition: float
    prior_weight: float
    undetermined: tuple[str, ...]
    information: Matrix
    prior_information: Matrix


@with_one_blas_thread
def fit_torque(arm: ArmModel, equations: EffortEquations) -> TorqueFit:
    """Return the dynamic parameters that explain measured efforts.

    Parameters
    ----------
    arm : ArmModel
        The arm of the description: geometry, gravity and prior.
    equations : EffortEquations
        Regressor and efforts of a prepared motion.

    Returns
    -------
    TorqueFit
        Consistent parameters with standard deviations, and the base parameters without prior.

    Raises
    ------
    InvalidValue
        For fewer valid equations than four times the base parameters, and for too few blocks.

    """
    names = parameter_names(arm)
    base = base_parameters(structural_rows(arm), names)
    count, blocks = int(equations.valid.sum()), np.unique(equations.block).size
    if count < 4 * base.size or blocks < 2 * FOLDS:
        raise InvalidValue(
            f"fit of arm '{arm.name}': equations = {count} in {blocks} blocks; expected at least"
            f" {4 * base.size} in {2 * FOLDS}; record a longer motion"
        )
    prior = _prior(arm, equations)
    comparable = replace(equations, moving=equations.valid)
    problem = TorqueProblem(comparable, prior, np.zeros(arm.nv, dtype=int))
    problem.estimate(1.0)
    models = problem.best_friction_models()
    problem = TorqueProblem(equations, prior, models)
    problem.estimate(1.0)
    terms = problem.best_terms(models, JointFriction.of(arm))
    if terms:
        problem.use_terms(terms)
        problem.estimate(1.0)
    gamma = problem.best_prior_weight()
    every = problem.estimate(gamma)
    every_spread = problem.deviations(max(gamma, 1.0), every)
    parameters, spread = every[: 14 * arm.nv], every_spread[: 14 * arm.nv]
    friction = _joint_friction(equations, models, terms, every, every_spread)
    free = np.sqrt(np.diag(positive_inverse(prior.slopes(prior.start)[1])))
    base_values, base_spread, condition = problem.base_estimate(base)
    return TorqueFit(
        as_readonly(parameters),
        as_readonly(spread),
        as_readonly(prior.start),
        base,
        as_readonly(base_values),
        as_readonly(base_spread),
        as_readonly(equations.presliding[models]),
        friction,
        as_readonly(_simulated(arm, equations, parameters, friction)),
        as_readonly(rms(equations.effort - problem.rows @ every, problem.counted)),
        condition,
        gamma,
        tuple(
            n for n, own, all_ in zip(names, spread, free, strict=True) if own > UNDETERMINED * all_
        ),
        as_readonly(problem.information[: 14 * arm.nv, : 14 * arm.nv]),
        as_readonly(gamma * prior.slopes(parameters)[1]),
    )


@with_one_blas_thread
def refit_torque(arm: ArmModel, equations: EffortEquations, fit: TorqueFit) -> TorqueFit:
    """Return ``fit`` with the parameters of other equations; prior weight and models are kept."""
    prior = _prior(arm, equations)
    problem = TorqueProblem(equations, prior, friction_models(equations, fit))
    parameters = problem.estimate(fit.prior_weight)
    return replace(
        fit,
        parameters=as_readonly(parameters),
        information=as_readonly(problem.information),
        prior_information=as_readonly(fit.prior_weight * prior.slopes(parameters)[1]),
    )


def friction_models(equations: EffortEquations, fit: TorqueFit) -> IntArray:
    """Return the indices (nv,) of the presliding distances of a fit."""
    return np.array([int(np.flatnonzero(equations.presliding == x)[0]) for x in fit.presliding])


def _prior(arm: ArmModel, equations: EffortEquations) -> DescriptionPrior:
    """Return the divergence from the description, with typical sizes from the equations."""
    own = np.arange(arm.nv)
    speed = rms(equations.regressor[:, own, 11 * arm.nv + own], equations.valid)
    return DescriptionPrior.of(arm, rms(equations.effort, equations.valid), speed)


def _joint_friction(
    equations: EffortEquations,
    models: IntArray,
    terms: Sequence[FrictionTerm],
    parameters: Vector,
    spread: Vector,
) -> JointFriction:
    """Return the friction of estimated terms, the last of the parameters."""
    nv = models.size
    velocity, stribeck, loss = np.zeros(nv), np.zeros(nv), np.zeros((2, nv))
    deviation, first = np.full((2, nv), np.nan), parameters.size - len(terms)
    for k, (i, index) in enumerate(terms, first):
        deviation[int(index == LOSS), i] = spread[k]
        if index == LOSS:
            loss[:, i] = parameters[k]
        elif equations.velocity is not None:
            velocity[i], stribeck[i] = equations.velocity[index, i], parameters[k]
    arrays = (as_readonly(x) for x in (velocity, stribeck, loss, deviation))
    return JointFriction(models, *arrays)


def _simulated(
    arm: ArmModel, equations: EffortEquations, parameters: Vector, friction: JointFriction
) -> Vector:
    """Return the parameters of an arm whose actuators represent some friction terms only."""
    states = np.abs(equations.states(friction))
    effort = equations.predicted(parameters, friction)
    lost = np.abs(effort - without_gear_loss(effort, equations.states(friction), friction.loss))
    more = np.abs(equations.stribeck(friction)) + lost
    counted, nv = equations.counted(friction.presliding), arm.nv
    found: Vector = parameters.copy()
    for i in unrepresented_joints(arm):
        mean = float((counted * more)[:, i].sum()) / max(float((counted * states)[:, i].sum()), 1)
        found[12 * nv + i] += mean
    return found


class TorqueProblem:
    """The weighted equations of one friction model, as moments of their blocks."""

    def __init__(
        self,
        equations: EffortEquations,
        prior: DescriptionPrior,
        models: IntArray | None = None,
    ) -> None:
        self._equations, self._description = equations, prior
        self._typical = np.maximum(rms(equations.effort, equations.valid), 1e-9)
        self._prior, self._parameters = prior, prior.start
        self._effort = equations.effort
        self._set_rows(models)
        self.counted = equations.counted(models)
        self._scale = np.maximum(rms(equations.effort, self.counted), 1e-9)
        self._weights = self.counted / self._scale**2
        first = np.flatnonzero(np.diff(equations.block, prepend=equations.block[0] - 1))
        ends = (*first[1:].tolist(), len(equations.block))
        self._blocks = [slice(*ends) for ends in zip(first.tolist(), ends, strict=True)]
        self._fold = np.arange(first.size) * FOLDS // first.size
        self._set_moments()

    def use_terms(self, terms: Sequence[FrictionTerm]) -> None:
        """Use further friction terms from now on; gear losses follow the estimated efforts."""
        self._set_rows(self._models, terms)
        self._set_moments()

    def estimate(self, gamma: float) -> Vector:
        """Return the parameters (p,); renew the deviations and robust weights."""
        for _ in range(TURNS):
            self._parameters = consistent_minimum(
                *self._total(), self._prior, gamma, self._parameters
            )
            self._effort = self.rows @ self._parameters
            residual = self._equations.effort - self._effort
            self._scale, self._weights = robust_weights(residual, self.counted)
            if self._terms:
                self._set_rows(self._models, self._terms)
            self._set_moments()
        self._parameters = consistent_minimum(*self._total(), self._prior, gamma, self._parameters)
        return self._parameters

    def held_out_error(self, gamma: float, starts: list[Vector]) -> Vector:
        """Return Σ w (τ - W π)² (nv,) of each fold with the parameters of the others.

        ``starts`` are the parameters (p,) of each fold at which the minimization starts; they are
        replaced by the minimizers.
        """
        error = np.zeros(self._scale.size)
        for k in range(FOLDS):
            x = consistent_minimum(*self._total(self._fold != k), self._prior, gamma, starts[k])
            starts[k] = x
            for block in (self._blocks[b] for b in np.flatnonzero(self._fold == k)):
                residual = self._equations.effort[block] - self.rows[block] @ x
                error += np.sum(self._weights[block] * residual**2, axis=0)
        return error

    def best_prior_weight(self) -> float:
        """Return γ of the least held-out error."""
        starts = [self._parameters] * FOLDS
        errors = [float(self.held_out_error(gamma, starts).sum()) for gamma in PRIOR_WEIGHTS]
        return PRIOR_WEIGHTS[int(np.argmin(errors))]

    def best_friction_models(self) -> IntArray:
        """Return, for each joint, the index of the presliding distance of least held-out error."""
        errors, nv, count = [], self._scale.size, self._equations.presliding.size
        if count == 1:
            return np.zeros(nv, dtype=int)
        starts = [self._parameters] * FOLDS
        for model in range(count):
            self._set_rows(np.full(nv, model))
            self._set_moments()
            errors.append(self.held_out_error(1.0, starts))
        found: IntArray = np.argmin(errors, axis=0)
        found[np.min(errors, axis=0) > WORTHWHILE * errors[0]] = 0
        return found

    def best_terms(self, models: IntArray, described: JointFriction) -> tuple[FrictionTerm, ...]:
        """Return the friction terms of least held-out error with the friction models (nv,).

        Those of the description are always used. A further term has to reduce the error of its
        joint to WORTHWHILE_TERM of that without it.
        """
        equations, joints = self._equations, range(models.size)
        if equations.shapes is None or equations.velocity is None:
            return ()
        stribeck = [FrictionTerm(i, 0) for i in joints if described.has_stribeck[i]]
        loss = [FrictionTerm(i, LOSS) for i in joints if described.has_loss[i]]
        slips = [i for i in joints if not described.has_stribeck[i]]
        loads = [FrictionTerm(i, LOSS) for i in joints if not described.has_loss[i]]

        def error(terms: Sequence[FrictionTerm]) -> Vector:
            self._set_rows(models, (*stribeck, *loss, *terms))
            self._set_moments()
            return self.held_out_error(1.0, [self._parameters] * FOLDS)

        without, count = error(()), len(equations.velocity)
        speeds = [error([FrictionTerm(i, k) for i in slips]) for k in range(count)]
        best = np.argmin(speeds, axis=0)
        slow = [FrictionTerm(i, int(best[i])) for i in slips]
        with_slow, with_load = np.min(speeds, axis=0), error(loads)
        with_both = error([*slow, *loads])
        one = np.minimum(with_slow, with_load)
        both = with_both < WORTHWHILE_TERM * np.minimum(one, without)
        use_slow = both | ((with_slow < WORTHWHILE_TERM * without) & (with_slow <= with_load))
        use_load = both | ((with_load < WORTHWHILE_TERM * without) & (with_load < with_slow))
        self._set_rows(models)
        self._set_moments()
        stribeck += [term for term in slow if use_slow[term.joint]]
        loss += [term for term in loads if use_load[term.joint]]
        return (*stribeck, *loss)

    def deviations(self, gamma: float, parameters: Vector) -> Vector:
        """Return the standard deviations (p,) of ``covariance``."""
        found: Vector = np.sqrt(np.diag(self.covariance(gamma, parameters)))
        return found

    def covariance(self, gamma: float, parameters: Vector) -> Matrix:
        """Return the covariance (p, p) of the estimate: (A + γ D)⁻¹ (B + γ D) (A + γ D)⁻¹.

        A = Σ w WᵀW, D the Hessian of the divergence, B the covariance of the scores of the blocks,
        which holds for residuals that are correlated within a block. The prior counts at least as
        a standard deviation of 100 %.
        """
        squares, _ = self._total()
        curvature = gamma * self._prior.slopes(parameters)[1]
        inverse = positive_inverse(squares + curvature)
        middle = self._score_covariance(parameters) + curvature
        found: Matrix = inverse @ middle @ inverse
        return found

    @property
    def information(self) -> Matrix:
        """Σ w WᵀW (p, p)."""
        return self._total()[0]

    def base_estimate(self, base: BaseParameters) -> tuple[Vector, Vector, float]:
        """Return base parameters by weighted least squares, their deviations, the condition."""
        size, p = base.size, self._parameters.size
        own = np.concatenate((base.independent, np.arange(base.combinations.shape[1], p)))
        squares, products = self._total()
        squares, products = squares[np.ix_(own, own)], products[own]
        root = 1 / np.sqrt(np.maximum(np.diag(squares), 1e-300))
        scaled = (squares * root * root[:, None])[:size, :size]
        condition = float(np.sqrt(np.linalg.cond(scaled)))
        inverse = positive_inverse(squares)
        full = np.zeros(self._parameters.size)
        full[own] = inverse @ products
        middle = self._score_covariance(full)[np.ix_(own, own)]
        spread = np.sqrt(np.diag(inverse @ middle @ inverse))
        return full[base.independent], spread[:size], condition

    def _total(self, blocks: BoolArray | slice = slice(None)) -> tuple[Matrix, Vector]:
        return self._squares[blocks].sum(axis=0), self._products[blocks].sum(axis=0)

    def _set_rows(self, models: IntArray | None, terms: Sequence[FrictionTerm] = ()) -> None:
        """Set the columns of a friction model, and the prior of its terms."""
        self._models, self._terms = models, tuple(terms)
        self.rows = self._equations.rows(models)
        start, old = self._description.start, self._parameters
        self._prior, self._parameters = self._description, old[: start.size]
        if models is not None and terms:
            more = self._equations.term_rows(models, terms, self._effort)
            self.rows = np.concatenate((self.rows, more), axis=2)
            typical = [
                TYPICAL_LOSS if index == LOSS else TYPICAL_STRIBECK * float(self._typical[i])
                for i, index in terms
            ]
            self._prior = self._description.with_further(np.array(typical))
            same = old.size == self._prior.start.size
            more_values = old[start.size :] if same else np.array(typical)
            self._parameters = np.concatenate((self._parameters, more_values))

    def _set_moments(self) -> None:
        """Set Σ w WᵀW and Σ w Wᵀτ of each block."""
        p = self.rows.shape[2]
        self._squares = np.empty((len(self._blocks), p, p))
        self._products = np.empty((len(self._blocks), p))
        root = np.sqrt(self._weights)
        weighted, effort = self.rows * root[..., None], self._equations.effort * root
        for k, block in enumerate(self._blocks):
            rows = weighted[block].reshape(-1, p)
            self._squares[k] = rows.T @ rows
            self._products[k] = rows.T @ effort[block].reshape(-1)

    def _score_covariance(self, parameters: Vector) -> Matrix:
        """Return Σ s sᵀ (p, p) of the scores s = Σ w Wᵀ (τ - W π) of the blocks."""
        scores = self._products - self._squares @ parameters
        scores = scores - scores.mean(axis=0)
        found: Matrix = scores.T @ scores * (len(scores) / (len(scores) - 1))
        return found


def robust_weights(residual: Matrix, counted: BoolArray) -> tuple[Vector, Matrix]:
    """Return deviations σ (nv,) and weights w / (c σ²) (n, nv) of residuals (n, nv)."""
    scale = robust_scale(residual, counted)
    relative = residual / scale
    robust = counted / np.maximum(1.0, np.abs(relative) / HUBER)
    weights: Matrix = robust / (correlation_time(relative * robust) * scale**2)
    return scale, weights


def correlation_time(relative: Matrix) -> float:
    """Return the integrated autocorrelation of residuals (n, nv) [samples], at least 1."""
    n = len(relative)
    spectrum = np.fft.rfft(relative - relative.mean(axis=0), 2 * n, axis=0)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:n].sum(axis=1)
    ratio = correlation / correlation[0]
    end = int(np.argmax(ratio < 0.05)) or n
    return float(max(1.0, 1 + 2 * ratio[1:end].sum()))
