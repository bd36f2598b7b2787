"""Dynamic parameters from measured efforts: weighted least squares with physical consistency.

minimize  ½ Σ w ((τ - W π) / σ_i)² / c + γ (Σ_links d(P ‖ P₀) + Σ_terms d(x ‖ x₀))

over parameters π whose pseudo-inertias P, friction and rotor inertia x are positive. The log-det
divergence d to the nominal model determines what the motion does not; it also keeps every
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
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from arm_dynamics.core.arrays import (
    BoolArray,
    IntArray,
    Matrix,
    Vector,
    as_readonly,
)
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.efforts.coupled_motors import CoupledMotors
from arm_dynamics.identification.efforts.effort_equations import EffortEquations, nominal_prior
from arm_dynamics.identification.efforts.friction_terms import (
    LOSS,
    FrictionTerm,
    JointFriction,
    unrepresented_joints,
    without_gear_loss,
)
from arm_dynamics.identification.efforts.torque_problem import FOLDS, TorqueProblem
from arm_dynamics.identification.parameters.base_parameter_set import (
    BaseParameters,
    base_parameters,
    structural_rows,
)
from arm_dynamics.identification.parameters.consistent_least_squares import (
    UNDETERMINED,
    NominalPrior,
    positive_inverse,
    rms,
)
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    parameter_names,
)
from arm_dynamics.model.arm_model import ArmModel


@dataclass(frozen=True, slots=True, eq=False)
class TorqueFit:
    """Result of ``fit_torque``.

    ``parameters`` (p,) are physically consistent; ``deviation`` (p,) are their standard deviations.
    ``base`` names the combinations that efforts determine; ``base_values`` and ``base_deviation``
    (nb,) are their weighted least squares estimate without prior. ``presliding`` (nv,) [rad or m]
    is the distance over which Coulomb friction develops, ``friction`` the friction that held-out
    blocks chose. ``simulated`` (14 nv,) are the parameters of an arm in simulation: Stribeck
    friction and gear losses that its actuators do not represent count as Coulomb friction of the
    same mean, and coupled motors as motors of each of their joints. ``residual`` (nv,) [N·m] is the
    rms error, ``condition`` the condition number of the weighted base regressor with columns of
    length 1, ``prior_weight`` γ, ``undetermined`` the names of the parameters left to the prior.
    ``information`` (p, p) is Σ w WᵀW, ``prior_information`` (p, p) γ times the Hessian of d.
    ``free`` (14 nv,): parameters that are fitted; bodies and offsets that are not have the values
    of the nominal model, and the deviations of a fit of all parameters. ``simpler_error`` is the
    least ``validation_error`` of simpler fits.
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
    free: BoolArray
    simpler_error: float = np.inf

    @property
    def has_nominal_bodies(self) -> bool:
        """Whether the bodies are those of the nominal model."""
        return not self.free[0]


@with_one_blas_thread
def fit_torque(
    arm: ArmModel,
    equations: EffortEquations,
    factors: Matrix | None = None,
    validation: EffortEquations | None = None,
) -> TorqueFit:
    """Return the dynamic parameters that explain measured efforts.

    Held-out blocks decide on the friction, the prior weight, effort offsets, and whether bodies
    change at all. Unmodeled effects that repeat in all blocks deceive this choice: with
    ``validation``, a simpler fit (nominal bodies, no offsets, Coulomb and viscous friction only)
    is the result if it predicts that motion better.

    Parameters
    ----------
    arm : ArmModel
        Nominal model: geometry, gravity and prior.
    equations : EffortEquations
        Regressor and efforts of a prepared motion.
    factors : Matrix, optional
        Factors (nc, nv) of its coupled motors.
    validation : EffortEquations, optional
        Equations of another motion.

    Returns
    -------
    TorqueFit
        Consistent parameters with standard deviations, and the base parameters without prior.

    Raises
    ------
    InvalidValue
        For fewer valid equations than four times the base parameters, and for too few blocks.

    """
    base = base_parameters(structural_rows(arm), parameter_names(arm))
    _require_information(arm, equations, 4 * base.size)
    prior = nominal_prior(arm, equations)
    problem = _chosen_friction(arm, equations, prior)
    gamma = problem.best_prior_weight()
    weight, free = problem.best_free(gamma)
    problems, masks = [problem], [free]
    if validation is not None:
        masks = _simpler_masks(free)
        if problem.terms or problem.models.any():
            ideal = np.zeros(arm.nv, dtype=int)
            problems.append(_problem_of(arm, equations, prior, ideal, ()))
    fits: list[_Candidate] = []
    for (number, problem), mask in product(enumerate(problems), masks):
        problem.free = mask
        values, error = problem.estimate(weight), 0.0
        if validation is not None:
            friction = _joint_friction(problem, values, np.nan * values, factors)
            error = validation_error(validation, problem.dynamic_part(values), friction)
        fits.append(_Candidate(number, copy(problem), values, error))
    best = min(fits, key=lambda fit: fit.error)
    simpler = [fit.error for fit in fits if fit is not best and fit.is_simpler_than(best)]
    result = _result(arm, best, base, gamma=gamma, weight=weight, factors=factors)
    return replace(result, simpler_error=min(simpler, default=np.inf))


def _require_information(arm: ArmModel, equations: EffortEquations, needed: int) -> None:
    """Raise InvalidValue for fewer valid equations than ``needed``, and for too few blocks."""
    count, blocks = int(equations.valid.sum()), np.unique(equations.block).size
    if count < needed or blocks < 2 * FOLDS:
        raise InvalidValue(
            f"fit of arm '{arm.name}': equations = {count} in {blocks} blocks; expected at least"
            f" {needed} in {2 * FOLDS}; record a longer motion"
        )


class _Candidate(NamedTuple):
    """Fit of one friction model, ``number``, with some free parameters; its values (p,).

    ``error`` is that on the validation data.
    """

    number: int
    problem: TorqueProblem
    values: Vector
    error: float

    def is_simpler_than(self, other: _Candidate) -> bool:
        """Return whether the friction is as simple, and no other parameters are free."""
        return self.number >= other.number and not (self.problem.free & ~other.problem.free).any()


def _problem_of(
    arm: ArmModel,
    equations: EffortEquations,
    prior: NominalPrior,
    models: IntArray,
    terms: Sequence[FrictionTerm],
) -> TorqueProblem:
    """Return the equations with a friction model, with their robust weights."""
    used = equations.with_constant_friction(_has_stribeck(arm, terms))
    problem = TorqueProblem(used, prior, models)
    problem.use_terms(terms)
    problem.estimate(1.0)
    return problem


def _chosen_friction(
    arm: ArmModel, equations: EffortEquations, prior: NominalPrior
) -> TorqueProblem:
    """Return the equations with the friction of least error on held-out blocks."""
    comparable, ideal = replace(equations, moving=equations.valid), np.zeros(arm.nv, dtype=int)
    problem = TorqueProblem(comparable, prior, ideal)
    problem.estimate(1.0)
    models = problem.best_friction_models()
    problem = TorqueProblem(equations, prior, models)
    problem.estimate(1.0)
    terms = problem.best_terms(models, JointFriction.of(arm))
    return _problem_of(arm, equations, prior, models, terms)


def _simpler_masks(free: BoolArray) -> list[BoolArray]:
    """Return ``free`` (14 nv,), and without offsets, bodies or both."""
    layout = ParameterLayout(free.size // 14)
    bodies, offsets = layout.mask(layout.inertial), layout.mask(layout.offset)
    masks = [free]
    for mask in (free & ~offsets, ~bodies, ~bodies & free, ~bodies & ~offsets):
        if not any((mask == other).all() for other in masks):
            masks.append(mask)
    return masks


def _result(
    arm: ArmModel,
    fit: _Candidate,
    base: BaseParameters,
    *,
    gamma: float,
    weight: float,
    factors: Matrix | None,
) -> TorqueFit:
    """Return the result of a fit with prior weights γ of all parameters and of the free ones."""
    problem, prior, equations = fit.problem, fit.problem.nominal_prior, fit.problem.equations
    deviations = problem.deviations(gamma, fit.values)
    parameters, deviation = map(problem.dynamic_part, (fit.values, deviations))
    friction = _joint_friction(problem, fit.values, deviations, factors)
    # A prior of a positive parameter is relative: its deviation grows with the estimate.
    at = [prior.derivatives(x)[1] for x in (prior.start, parameters)]
    alone = np.sqrt(np.max([np.diag(positive_inverse(x)) for x in at], axis=0))
    base_values, base_deviation, condition = problem.base_estimate(base)
    residual, size = equations.effort - problem.rows @ fit.values, parameters.size
    return TorqueFit(
        parameters=as_readonly(parameters),
        deviation=as_readonly(deviation),
        prior=as_readonly(prior.start),
        base=base,
        base_values=as_readonly(base_values),
        base_deviation=as_readonly(base_deviation),
        presliding=as_readonly(equations.presliding[problem.models]),
        friction=friction,
        simulated=as_readonly(_simulated(arm, equations, parameters, friction)),
        residual=as_readonly(rms(residual, problem.counted)),
        condition=condition,
        prior_weight=weight,
        undetermined=tuple(np.array(base.names)[deviation > UNDETERMINED * alone].tolist()),
        information=as_readonly(problem.information[:size, :size]),
        prior_information=as_readonly(weight * prior.derivatives(parameters)[1]),
        free=problem.free,
    )


def validation_error(
    equations: EffortEquations, parameters: Vector, friction: JointFriction
) -> float:
    """Return the mean over the joints of log rms of measured minus predicted efforts.

    Equations count as for Coulomb friction without presliding.
    """
    counted = equations.counted(np.zeros_like(friction.presliding))
    error = rms(equations.effort - equations.predicted(parameters, friction), counted)
    return float(np.mean(np.log(np.maximum(error[counted.any(axis=0)], 1e-12))))


@with_one_blas_thread
def refit_torque(arm: ArmModel, equations: EffortEquations, fit: TorqueFit) -> TorqueFit:
    """Return ``fit`` with the parameters of other equations; prior weight and models are kept."""
    prior = nominal_prior(arm, equations)
    used = equations.with_constant_friction(fit.friction.has_stribeck)
    problem = TorqueProblem(used, prior, friction_models(equations, fit))
    problem.free = fit.free
    parameters = problem.estimate(fit.prior_weight)
    return replace(
        fit,
        parameters=as_readonly(parameters),
        information=as_readonly(problem.information),
        prior_information=as_readonly(fit.prior_weight * prior.derivatives(parameters)[1]),
    )


def _has_stribeck(arm: ArmModel, terms: Sequence[FrictionTerm]) -> BoolArray:
    """Return the joints (nv,) with Stribeck friction among their terms."""
    return np.isin(np.arange(arm.nv), [i for i, number in terms if number != LOSS])


def friction_models(equations: EffortEquations, fit: TorqueFit) -> IntArray:
    """Return the indices (nv,) of the presliding distances of a fit."""
    return np.array([int(np.flatnonzero(equations.presliding == x)[0]) for x in fit.presliding])


def _joint_friction(
    problem: TorqueProblem, values: Vector, deviations: Vector, factors: Matrix | None
) -> JointFriction:
    """Return the friction of estimated terms, the last of the ``values`` (p,)."""
    equations, nv = problem.equations, problem.models.size
    velocity, stribeck, loss = np.zeros(nv), np.zeros(nv), np.zeros((2, nv))
    deviation, first = np.full((2, nv), np.nan), values.size - len(problem.terms)
    for k, (i, index) in enumerate(problem.terms, first):
        deviation[int(index == LOSS), i] = deviations[k]
        if index == LOSS:
            loss[:, i] = values[k]
        elif equations.velocity is not None:
            velocity[i], stribeck[i] = equations.velocity[index, i], values[k]
    motors = CoupledMotors.none(nv)
    if factors is not None:
        rows = (x[ParameterLayout(nv).size : first].reshape(-1, 3) for x in (values, deviations))
        motors = CoupledMotors(factors, *rows)
    return JointFriction(
        problem.models,
        as_readonly(velocity),
        as_readonly(stribeck),
        as_readonly(loss),
        as_readonly(deviation),
        motors,
    )


def _simulated(
    arm: ArmModel, equations: EffortEquations, parameters: Vector, friction: JointFriction
) -> Vector:
    """Return the parameters of an arm whose actuators represent some friction terms only."""
    states = np.abs(equations.states(friction))
    effort = equations.predicted(parameters, friction)
    lost = np.abs(effort - without_gear_loss(effort, equations.states(friction), friction.loss))
    more = np.abs(equations.stribeck(friction)) + lost
    counted, layout = equations.counted(friction.presliding), ParameterLayout(arm.nv)
    simulated: Vector = parameters.copy()
    simulated[layout.terms] += friction.coupled.own_terms
    for i in unrepresented_joints(arm):
        mean = float((counted * more)[:, i].sum()) / max(float((counted * states)[:, i].sum()), 1)
        simulated[layout.coulomb][i] += mean
    return simulated
