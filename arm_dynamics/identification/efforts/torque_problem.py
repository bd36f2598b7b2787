"""Weighted least squares of effort equations: robust weights, prior weight, choice of friction.

Blocks of the motion that are held out decide on γ, the weight of the prior, and for each joint on
the presliding distance of its Coulomb friction, on Stribeck friction and on the load-dependent loss
of its gear.

References
----------
P. Huber, Robust Statistics (1981), section 7.3. P. Dahl, Solid friction damping of mechanical
vibrations, AIAA Journal 14 (1976), equation 4. R. Bell, D. McCaffrey, Bias reduction in standard
errors for linear regression with multi-stage samples, Survey Methodology 28 (2002), section 3.

"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arm_dynamics.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    Vector,
)
from arm_dynamics.identification.efforts.coupled_motors import typical_terms
from arm_dynamics.identification.efforts.effort_equations import EffortEquations
from arm_dynamics.identification.efforts.friction_terms import (
    LOSS,
    TYPICAL_LOSS,
    TYPICAL_STRIBECK,
    FrictionTerm,
    JointFriction,
)
from arm_dynamics.identification.parameters.base_parameter_set import (
    BaseParameters,
)
from arm_dynamics.identification.parameters.consistent_least_squares import (
    HUBER,
    NominalPrior,
    consistent_minimum,
    inverse_root,
    positive_inverse,
    rms,
    robust_scale,
)
from arm_dynamics.identification.parameters.dynamic_parameters import ParameterLayout

PRIOR_WEIGHTS = tuple(10.0**k for k in range(3, -4, -1))
"""Candidates of γ."""
NOMINAL_WEIGHT = 1.0
"""γ of a nominal model with a standard deviation of 100 %."""
FOLDS = 5
"""Number of sets of blocks, each of which is held out once."""
WORTHWHILE, WORTHWHILE_TERM = 0.98, 0.95
"""Ratio of held-out errors below which presliding, and a further term, are part of the friction."""
STANDARD_ERRORS = 1.0
"""Standard errors by which the held-out error of the blocks has to decrease in addition."""
MIN_NOISE = 1e-4
"""Least noise of efforts, relative to their rms: with less, round-off exceeds the prior."""
MIN_REST = 1e-6
"""Least part of the information on a parameter that is not in one block."""
TURNS = 3
"""Estimates with renewed deviations and robust weights, before and after the choice of a model."""


class TorqueProblem:
    """The weighted equations of one friction model, as moments of their blocks."""

    def __init__(
        self,
        equations: EffortEquations,
        prior: NominalPrior,
        models: IntArray | None = None,
    ) -> None:
        self.equations, self.nominal_prior = equations, prior
        self._typical = np.maximum(rms(equations.effort, equations.valid), 1e-9)
        self._prior, self._parameters = prior, prior.start
        self._effort = equations.effort
        self.free = np.ones(prior.start.size, dtype=bool)
        self._set_rows(models)
        self.counted = equations.counted(models)
        self._scale = np.maximum(rms(equations.effort, self.counted), 1e-9)
        self._weights = self.counted / self._scale**2
        first = np.flatnonzero(np.diff(equations.block, prepend=equations.block[0] - 1))
        ends = (*first[1:].tolist(), len(equations.block))
        self._blocks = [slice(*ends) for ends in zip(first.tolist(), ends, strict=True)]
        self._fold = np.arange(first.size) * FOLDS // first.size
        self._set_moments()

    @property
    def models(self) -> IntArray:
        """Friction models (nv,): indices of the presliding distances."""
        return np.zeros(self._scale.size, dtype=int) if self._models is None else self._models

    def dynamic_part(self, values: Vector) -> Vector:
        """Return the dynamic parameters (14 nv,) of all parameters (p,)."""
        return values[: self.nominal_prior.start.size]

    def use_terms(self, terms: Sequence[FrictionTerm]) -> None:
        """Use further friction terms from now on; gear losses follow the estimated efforts."""
        self._set_rows(self._models, terms)
        self._set_moments()

    def estimate(self, gamma: float) -> Vector:
        """Return the parameters (p,); renew the deviations and robust weights."""
        for _ in range(TURNS):
            self._parameters = self._minimum(gamma, self._parameters)
            self._effort = self.rows @ self._parameters
            residual = self.equations.effort - self._effort
            self._scale, self._weights = robust_weights(residual, self.counted, self._typical)
            if self.terms:
                self._set_rows(self._models, self.terms)
            self._set_moments()
        self._parameters = self._minimum(gamma, self._parameters)
        return self._parameters

    def held_out_error(self, gamma: float, starts: list[Vector]) -> Matrix:
        """Return Σ w (τ - W π)² (nb, nv) of each block with the parameters of the other folds.

        ``starts`` are the parameters (p,) of each fold at which the minimization starts; they are
        replaced by the minimizers.
        """
        error = np.zeros((len(self._blocks), self._scale.size))
        for k in range(FOLDS):
            starts[k] = x = self._minimum(gamma, starts[k], without=k)
            for b in np.flatnonzero(self._fold == k):
                block = self._blocks[b]
                residual = self.equations.effort[block] - self.rows[block] @ x
                error[b] = np.sum(self._weights[block] * residual**2, axis=0)
        return error

    def best_prior_weight(self) -> float:
        """Return γ of the least held-out error.

        Below NOMINAL_WEIGHT the prior is weaker than the deviations state (``covariance``), and
        bodies degenerate: a smaller γ has to reduce the error as a further friction term does.
        """
        starts, best = [self._parameters] * FOLDS, PRIOR_WEIGHTS[0]
        least = np.full((len(self._blocks), 1), np.inf)
        for gamma in PRIOR_WEIGHTS:
            error = self.held_out_error(gamma, starts).sum(axis=1, keepdims=True)
            if gamma >= NOMINAL_WEIGHT:
                is_better = error.sum() < least.sum()
            else:
                is_better = is_less(error, least, WORTHWHILE_TERM).all()
            if is_better:
                best, least = gamma, error
        return best

    def best_free(self, gamma: float) -> tuple[float, BoolArray]:
        """Return γ and the parameters (14 nv,) that are free, by least held-out error.

        Bodies change, and a joint has an effort offset, if that reduces the error of the blocks by
        more than its standard error. Without it the bodies are those of the prior: γ = ∞ for them.
        ``gamma`` is the weight with all parameters free.
        """
        nv, starts = self._scale.size, [self._parameters] * FOLDS

        def error(weight: float, free: BoolArray) -> Matrix:
            self.free = free
            return self.held_out_error(weight, starts)

        layout = ParameterLayout(nv)
        every = np.ones(layout.size, dtype=bool)
        without = ~layout.mask(layout.offset)
        free = without.copy()
        free[layout.offset] = is_less(error(gamma, every), error(gamma, without), 1.0)
        changed = error(gamma, free)
        self.free = kept = free & ~layout.mask(layout.inertial)
        weight = self.best_prior_weight()
        less, other = (x.sum(axis=1, keepdims=True) for x in (changed, error(weight, kept)))
        return (gamma, free) if is_less(less, other, 1.0).all() else (weight, kept)

    def best_friction_models(self) -> IntArray:
        """Return, for each joint, the index of the presliding distance of least held-out error.

        Presliding has to reduce the error (``is_less``). The joints of an arm have similar gears:
        if it does for more than half of them, any decrease is enough for the others.
        """
        errors, nv, count = [], self._scale.size, self.equations.presliding.size
        if count == 1:
            return np.zeros(nv, dtype=int)
        starts = [self._parameters] * FOLDS
        for model in range(count):
            self._set_rows(np.full(nv, model))
            self._set_moments()
            errors.append(self.held_out_error(1.0, starts))
        found, joints = np.argmin(np.sum(errors, axis=1), axis=0), np.arange(nv)
        best = np.array(errors)[found, :, joints].T
        has_presliding = is_less(best, errors[0], WORTHWHILE)
        models: IntArray = np.where(has_presliding | (has_presliding.mean() > 0.5), found, 0)
        return models

    def best_terms(self, models: IntArray, nominal: JointFriction) -> tuple[FrictionTerm, ...]:
        """Return the friction terms of least held-out error with the friction models (nv,).

        Those of the nominal model are always used. A further term has to reduce the error of its
        joint to WORTHWHILE_TERM of that without it.
        """
        equations, joints = self.equations, range(models.size)
        if equations.shapes is None or equations.velocity is None:
            return ()
        stribeck = [FrictionTerm(i, 0) for i in joints if nominal.has_stribeck[i]]
        loss = [FrictionTerm(i, LOSS) for i in joints if nominal.has_loss[i]]
        slips = [i for i in joints if not nominal.has_stribeck[i]]
        loads = [FrictionTerm(i, LOSS) for i in joints if not nominal.has_loss[i]]

        def error(terms: Sequence[FrictionTerm]) -> Matrix:
            self._set_rows(models, (*stribeck, *loss, *terms))
            self._set_moments()
            return self.held_out_error(1.0, [self._parameters] * FOLDS)

        without, count = error(()), len(equations.velocity)
        speeds = [error([FrictionTerm(i, k) for i in slips]) for k in range(count)]
        best = np.argmin(np.sum(speeds, axis=1), axis=0)
        slow = [FrictionTerm(i, int(best[i])) for i in slips]
        with_slow = np.array(speeds)[best, :, np.arange(models.size)].T
        with_load, with_both = error(loads), error([*slow, *loads])
        is_slow = with_slow.sum(axis=0) <= with_load.sum(axis=0)
        one = np.where(is_slow, with_slow, with_load)
        needed = is_less(one, without, WORTHWHILE_TERM)
        both = is_less(with_both, one, WORTHWHILE_TERM) & is_less(
            with_both, without, WORTHWHILE_TERM
        )
        use_slow, use_load = both | (needed & is_slow), both | (needed & ~is_slow)
        self._set_rows(models)
        self._set_moments()
        stribeck += [term for term in slow if use_slow[term.joint]]
        loss += [term for term in loads if use_load[term.joint]]
        return (*stribeck, *loss)

    def deviations(self, gamma: float, parameters: Vector) -> Vector:
        """Return the standard deviations (p,) of ``covariance``."""
        deviations: Vector = np.sqrt(np.diag(self.covariance(gamma, parameters)))
        return deviations

    def covariance(self, gamma: float, parameters: Vector) -> Matrix:
        """Return the covariance (p, p) of the errors: H⁻¹ (B + γ² D) H⁻¹, H = A + γ D.

        A = Σ w WᵀW, D the Hessian of the divergence, B the covariance of the scores of the blocks,
        which holds for residuals that are correlated within a block. The nominal model has errors
        of covariance D⁻¹, about 100 %, with any weight γ: where nothing is identifiable, the
        covariance is D⁻¹. D is that of the mean of estimate and nominal model: at a body
        that is nearly degenerate, 100 % of itself would state almost no error.
        """
        squares, _ = self._total()
        prior = self._prior.derivatives(0.5 * (parameters + self._prior.start))[1]
        curvature, every = squares + gamma * prior, np.arange(parameters.size)
        inverse = positive_inverse(curvature)
        found: Matrix = self._block_covariance(parameters, curvature, every)
        return found + inverse @ (gamma**2 * prior) @ inverse

    def changes(self, gamma: float, parameters: Vector, efforts: FloatArray) -> Matrix:
        """Return the changes (p, k) of the estimate by small changes of the efforts (k, n, nv).

        δπ = (A + γ D)⁻¹ Σ w Wᵀ δτ, with A and D as in ``covariance``.
        """
        curvature = gamma * self._prior.derivatives(parameters)[1]
        changes: Matrix = positive_inverse(self.information + curvature) @ self._scores(efforts).T
        return changes

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
        spread = np.sqrt(np.diag(self._block_covariance(full, squares, own)))
        spread = np.where(np.diag(squares) > 0, spread, np.inf)
        return full[base.independent], spread[:size], condition

    def _minimum(self, gamma: float, start: Vector, without: int | None = None) -> Vector:
        free = np.append(self.free, np.ones(start.size - self.free.size, dtype=bool))
        return consistent_minimum(*self._total(without), self._prior, gamma, start, free)

    def _total(self, without: int | None = None) -> tuple[Matrix, Vector]:
        """Return Σ w WᵀW (p, p) and Σ w Wᵀτ (p,) of all folds but ``without``."""
        used = np.arange(FOLDS) != without
        return self._fold_squares[used].sum(axis=0), self._fold_products[used].sum(axis=0)

    def _set_rows(self, models: IntArray | None, terms: Sequence[FrictionTerm] = ()) -> None:
        """Set the columns of a friction model, and the prior of its terms."""
        self._models, self.terms = models, tuple(terms)
        self.rows = self.equations.rows(models)
        start, old = self.nominal_prior.start, self._parameters
        self._prior, self._parameters = self.nominal_prior, old[: start.size]
        coupled = self.equations.coupled
        if models is not None and (terms or coupled is not None):
            more = self.equations.term_rows(models, terms, self._effort)
            sizes = np.array(
                [
                    TYPICAL_LOSS if index == LOSS else TYPICAL_STRIBECK * float(self._typical[i])
                    for i, index in terms
                ]
            )
            if coupled is not None:
                more = np.concatenate((coupled, more), axis=2)
                nv = self._effort.shape[1]
                own = typical_terms(coupled, start[ParameterLayout(nv).terms])
                sizes = np.concatenate((own, sizes))
            self.rows = np.concatenate((self.rows, more), axis=2)
            self._prior = self.nominal_prior.with_further(sizes)
            same = old.size == self._prior.start.size
            values = old[start.size :] if same else sizes
            self._parameters = np.concatenate((self._parameters, values))

    def _set_moments(self) -> None:
        """Set Σ w WᵀW and Σ w Wᵀτ of each block."""
        p = self.rows.shape[2]
        self._squares = np.empty((len(self._blocks), p, p))
        self._products = np.empty((len(self._blocks), p))
        root = np.sqrt(self._weights)
        weighted, effort = self.rows * root[..., None], self.equations.effort * root
        for k, block in enumerate(self._blocks):
            rows = weighted[block].reshape(-1, p)
            self._squares[k] = rows.T @ rows
            self._products[k] = rows.T @ effort[block].reshape(-1)
        folds = [self._fold == k for k in range(FOLDS)]
        self._fold_squares = np.array([self._squares[fold].sum(axis=0) for fold in folds])
        self._fold_products = np.array([self._products[fold].sum(axis=0) for fold in folds])

    def _block_covariance(self, parameters: Vector, curvature: Matrix, own: IntArray) -> Matrix:
        """Return H⁻¹ Σ t tᵀ H⁻¹ (k, k) for the parameters ``own`` (k,), H (k, k) = ``curvature``.

        s = Σ w Wᵀ (τ - W π) are the scores of the blocks, A_b = Σ w WᵀW their information. A fit
        makes the residuals of a block smaller, the more of the information is in the block;
        t = (1 - A_b H⁻¹)^-½ s corrects this: Σ t tᵀ is unbiased for independent residuals.
        Errors ε of the efforts, common to all samples, add the scores Σ w Wᵀ ε.
        """
        root, at = inverse_root(curvature), np.ix_(own, own)
        scores = (self._products - self._squares @ parameters)[:, own] @ root
        for k, squares in enumerate(self._squares):
            part, axes = np.linalg.eigh(root.T @ squares[at] @ root)
            rest = np.maximum(1 - part, MIN_REST)
            scores[k] = axes @ ((axes.T @ scores[k]) / np.sqrt(rest))
        scores -= scores.mean(axis=0)
        if self.equations.errors is not None:
            scores = np.vstack((scores, self._scores(self.equations.errors)[:, own] @ root))
        covariance: Matrix = root @ (scores.T @ scores) @ root.T
        return covariance

    def _scores(self, efforts: FloatArray) -> Matrix:
        """Return Σ w Wᵀ τ (k, p) of efforts τ (k, n, nv)."""
        rows = self.rows.reshape(-1, self.rows.shape[2])
        scores: Matrix = (self._weights * efforts).reshape(len(efforts), len(rows)) @ rows
        return scores


def is_less(error: Matrix, other: Matrix, ratio: float) -> BoolArray:
    """Return whether held-out errors of blocks (nb, nv) are less than others, by joint (nv,).

    Their sum is below ``ratio`` of the other, and the difference is above its standard error.
    """
    difference = other - error
    spread = np.sqrt(len(difference)) * difference.std(axis=0)
    total = difference.sum(axis=0)
    found: BoolArray = (total > (1 - ratio) * other.sum(axis=0)) & (
        total > STANDARD_ERRORS * spread
    )
    return found


def robust_weights(residual: Matrix, counted: BoolArray, size: Vector) -> tuple[Vector, Matrix]:
    """Return deviations σ (nv,) and weights w / (c σ²) (n, nv) of residuals (n, nv).

    ``size`` is the rms (nv,) of the efforts; σ is at least MIN_NOISE of it.
    """
    scale = np.maximum(robust_scale(residual, counted), MIN_NOISE * size)
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
