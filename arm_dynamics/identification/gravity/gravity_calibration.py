"""Gravity calibration: parameters of an arm from efforts at static poses.

τ = Y(q, 0, 0) π + o + f s

π are the inertial parameters of the links as far as gravity shows them, o effort offsets and f
Coulomb friction. s = -1, 0 or 1 is the direction in which a joint moved before it stopped. A joint
that approaches a pose slowly is assumed to stop with sliding friction against its direction: static
friction at rest is only bounded by ±f. If the joint relaxes when it stops, f is underestimated.
Without a direction, s = 0 and friction is a random effort within ±f, of variance f² / 3.

minimize  ½ Σ w (τ - Y π - o - f s)² / (σ² + (1 - |s|) f² / 3) + d(π)

Two poses a, b at the same configuration from both sides are replaced by their sum and difference
(τ_a ± τ_b) / √2. The sum contains no friction, however far the joint relaxed, and has a separate
variance: a joint's differences vary with its relaxation, its sums with the noise of the efforts.
Next to pairs, the direction of a single pose does not count: a pause may have any friction.

The divergence d to the nominal model keeps every body consistent and determines what gravity does
not show; it is one measurement with a deviation of 100 %. The variances σ² of each joint and the
robust weights w are those of least squares without d.

References
----------
W. Khalil, E. Dombre, Modeling, Identification and Control of Robots (2002), section 12.5. J.
Swevers, W. Verdonck, J. De Schutter, Dynamic model identification for industrial robots, IEEE
Control Systems 27 (2007). T. Lee, P. Wensing, F. Park, Geometric robot dynamic identification, IEEE
T-RO 36 (2020), section IV.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    Vector,
    as_readonly,
    check_vector,
)
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.parameters.base_parameter_set import (
    BaseParameters,
    base_parameters,
)
from arm_dynamics.identification.parameters.consistent_least_squares import (
    HUBER,
    UNDETERMINED,
    NominalPrior,
    consistent_minimum,
    positive_inverse,
    rms,
    robust_scale,
)
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    nominal_parameters,
    parameter_names,
    regressor,
    with_parameters,
)
from arm_dynamics.identification.results.fit_report import FitTable
from arm_dynamics.identification.results.identification_result import IdentificationResult, Report
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_checks import saturation_limit

MAX_CONDITION = 300.0
"""Condition number of the poses' regressor above which they are too similar."""
LIMIT_MARGIN = 0.1
"""Distance [rad or m] beyond a position limit above which a position is implausible."""
MIN_SCALE = 1e-5
"""Smallest standard deviation of the residuals, relative to the rms effort."""
TURNS = 6
"""Least squares estimates with renewed variances and robust weights."""
PRIOR_FREEDOM = 2.0
"""Degrees of freedom with which an expected variance of sums of pairs counts in the deviations:
that of differences, or of hidden friction that is uniformly distributed."""
ASYMMETRY = 0.1
"""Least asymmetry of two approaches, relative to the friction that their difference hides."""
PAIR_DISTANCE = 0.05
"""Largest difference of two poses, relative to the range of a joint, that count as one."""
CONFIGURATIONS = 200
"""Random configurations at which gravity torques are compared."""


@dataclass(frozen=True, slots=True, eq=False)
class StaticPose:
    """Efforts of an arm at rest.

    Parameters
    ----------
    q : Vector
        Positions (nv,) [rad or m].
    effort : Vector
        Efforts of the motors at the joints (nv,) [N·m or N]; for currents multiply them by torque
        constant and mechanical reduction.
    approached : Vector, optional
        Direction (nv,) of the last motion of each joint before rest: -1, 1, or 0 if unknown;
        default: all unknown.

    Raises
    ------
    InvalidValue
        For sizes that differ, values that are not finite, and directions other than -1, 0 and 1.

    """

    q: Vector
    effort: Vector
    approached: Vector | None = None

    def __post_init__(self) -> None:
        q = check_vector("q", self.q)
        effort = check_vector("effort", self.effort, q.size)
        object.__setattr__(self, "q", as_readonly(q))
        object.__setattr__(self, "effort", as_readonly(effort))
        if self.approached is not None:
            approached = check_vector("approached", self.approached, q.size)
            if not np.isin(approached, (-1, 0, 1)).all():
                raise InvalidValue(f"approached = {approached}; expected -1, 0 or 1 for each joint")
            object.__setattr__(self, "approached", as_readonly(approached))

    @classmethod
    def of_servo(
        cls,
        q: ArrayLike,
        command: ArrayLike,
        stiffness: ArrayLike,
        approached: Vector | None = None,
    ) -> StaticPose:
        """Return the pose of a position servo: effort = stiffness (command - q).

        Parameters
        ----------
        q, command : ArrayLike
            Measured and commanded positions (nv,) [rad or m].
        stiffness : ArrayLike
            Stiffness (nv,) of the servos, without an integral term [N·m/rad or N/m], above 0.
        approached : Vector, optional
            Directions (nv,) of the last motion.

        """
        q = check_vector("q", q)
        command = check_vector("command", command, q.size)
        return cls(q, joint_stiffness(stiffness, q.size) * (command - q), approached)

    @property
    def direction(self) -> Vector:
        """Direction s (nv,) of the last motion; 0 if unknown."""
        return np.zeros(self.q.size) if self.approached is None else self.approached


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GravityFit(IdentificationResult):
    """Result of ``calibrate_gravity``.

    ``parameters`` (14 nv,) are physically consistent; ``deviation`` (14 nv,) is infinite for those
    that the poses do not determine, which ``undetermined`` names.
    ``base`` contains the combinations that static efforts determine, ``base_deviation`` (nb,) their
    standard deviations. ``residual`` (nv,) [N·m] is the rms error at the poses. ``effort_error``
    (nv,) [N·m] is the largest standard deviation of the gravity torques within the position limits,
    ``effort_error_before`` (nv,) [N·m] the largest difference between the gravity torques of the
    nominal model and of the fit. ``condition`` is the condition number of the poses, ``equations``
    the number of efforts. ``saturated`` are the indices of the poses that are not used because a
    motor was at its effort limit. Effort offsets are not part of the arm ``identified``.
    """

    base: BaseParameters
    base_deviation: Vector
    residual: Vector
    effort_error: Vector
    effort_error_before: Vector
    condition: float
    equations: int
    undetermined: tuple[str, ...]
    saturated: tuple[int, ...] = ()

    def report(self, stiffness: ArrayLike | None = None) -> Report:
        """Return gravity torques, friction, and the combinations that the poses determine.

        ``stiffness`` (nv,) [N·m/rad] of position servos adds the largest sag.
        """
        lines = [
            f"not determined by gravity; the nominal model determines them: {self._undetermined()}",
            f"condition number of the poses: {self.condition:.1f}",
        ]
        if self.saturated:
            listed = ", ".join(str(k + 1) for k in self.saturated)
            lines.append(f"poses with an effort at its limit, not used: {listed}")
        if stiffness is not None:
            before, after = (
                1e3 * float(x.max()) for x in (self.sag_before(stiffness), self.sag(stiffness))
            )
            lines.append(f"largest sag: {before:.1f} mrad before, {after:.1f} mrad expected after")
        return Report((self._joint_table(), self._base_table()), tuple(lines))

    def _joint_table(self) -> FitTable:
        values = (self.effort_error_before, self.effort_error, self.coulomb, self.offset)
        return FitTable(
            "Gravity torques within the position limits",
            ("joint", "error before", "error after", "Coulomb friction", "effort offset"),
            tuple(
                (x.name, *(f"{float(value[i]):.3g} {x.effort_unit}" for value in values))
                for i, x in enumerate(self.arm.joints)
            ),
        )

    def _base_table(self) -> FitTable:
        base, rows = self.base, []
        prior, fitted = (base.values(x) for x in (nominal_parameters(self.arm), self.parameters))
        for k, column in enumerate(base.independent.tolist()):
            if column < ParameterLayout(self.arm.nv).inertial.stop:
                unit = "kg" if base.names[column].endswith(".m") else "kg·m"
                cells = f"{prior[k]:.4g}", f"{fitted[k]:.4g}", f"{self.base_deviation[k]:.2g}"
                rows.append((base.describe(k), unit, *cells))
        heads = ("combination", "unit", "prior", "value", "standard deviation")
        return FitTable("Mass m and mass times center of mass mx, my, mz", heads, tuple(rows))

    def _undetermined(self) -> str:
        """Return the undetermined parameters, "viscous of all joints; m, mx of J1, J2"."""
        joints: dict[str, list[str]] = {}
        for name in self.undetermined:
            joint, _, term = name.rpartition(".")
            joints.setdefault(term, []).append(joint)
        terms: dict[str, list[str]] = {}
        for term, names in joints.items():
            where = "all joints" if len(names) == self.arm.nv else ", ".join(names)
            terms.setdefault(where, []).append(term)
        return "; ".join(f"{', '.join(names)} of {where}" for where, names in terms.items())

    @property
    def offset(self) -> Vector:
        """Effort offsets o (nv,) [N·m or N]."""
        return self.parameters[ParameterLayout(self.arm.nv).offset]

    @property
    def coulomb(self) -> Vector:
        """Coulomb friction f (nv,) [N·m or N]."""
        return self.parameters[ParameterLayout(self.arm.nv).coulomb]

    def sag(self, stiffness: ArrayLike) -> Vector:
        """Return the expected sag under gravity compensation with the fit: effort_error / k.

        Parameters
        ----------
        stiffness : ArrayLike
            Position stiffness k (nv,) in addition to gravity compensation [N·m/rad], above 0.

        Returns
        -------
        Vector
            Largest standard deviation of the position error (nv,) [rad or m].

        """
        return self.effort_error / joint_stiffness(stiffness, self.arm.nv)

    def sag_before(self, stiffness: ArrayLike) -> Vector:
        """Return the largest sag (nv,) [rad or m] of the nominal model: effort_error_before / k."""
        return self.effort_error_before / joint_stiffness(stiffness, self.arm.nv)


@requires_arm
@with_one_blas_thread
def calibrate_gravity(
    arm: ArmModel, poses: Sequence[StaticPose], sources: Sequence[str] = ()
) -> GravityFit:
    """Return the parameters of an arm from efforts at static poses.

    Approach each pose slowly from both sides: the mean of both efforts has no friction, and their
    difference is twice the Coulomb friction. ``choose_poses`` selects suitable poses. Poses with an
    effort at its limit are not used: the motor may not hold the joint.

    Parameters
    ----------
    arm : ArmModel
        Nominal model: geometry, gravity and prior.
    poses : Sequence[StaticPose]
        Measurements, 10 to 20 configurations.
    sources : Sequence[str]
        Names of the measurements.

    Returns
    -------
    GravityFit
        Consistent parameters, standard deviations, and errors before and after.

    Raises
    ------
    InvalidValue
        For poses of another number of joints or beyond the position limits, for fewer efforts than
        twice the unknown combinations, for poses too similar, and for an arm without gravity
        torques.

    """
    _require_match(arm, poses)
    poses, saturated = _without_saturation(arm, poses)
    q, effort = (np.array([getattr(p, name) for p in poses]) for name in ("q", "effort"))
    direction = np.array([p.direction for p in poses])
    pairs = _pairs(arm, q, direction)
    direction = _used_directions(direction, pairs)
    rows, valid = static_rows(arm, q, direction), np.ones(effort.shape, dtype=bool)
    base = _unknowns(arm, direction)
    condition = _require_information(arm, rows, base, len(saturated))
    at_rest = np.zeros(arm.nv)
    prior = NominalPrior.of(arm, rms(effort, valid), at_rest, at_rest)
    fitted, covariance = _estimate(arm, rows, effort, direction, prior, base, pairs)
    deviation = np.sqrt(np.diag(covariance))
    prior_deviation = np.sqrt(np.diag(positive_inverse(prior.derivatives(prior.start)[1])))
    parameters, layout = np.array(fitted), ParameterLayout(arm.nv)
    fixed = layout.mask(layout.armature, layout.viscous)  # no effort at rest
    fixed[layout.coulomb] = ~direction.any(axis=0)
    parameters[fixed] = nominal_parameters(arm)[fixed]
    is_vague = fixed | (deviation > UNDETERMINED * prior_deviation)
    before, after = _gravity_errors(arm, parameters, covariance)
    base_covariance = base.combinations @ covariance @ base.combinations.T
    return GravityFit(
        arm=arm,
        identified=with_parameters(arm, parameters),
        parameters=as_readonly(parameters),
        deviation=as_readonly(np.where(is_vague, np.inf, deviation)),
        sources=tuple(sources),
        base=base,
        base_deviation=as_readonly(np.sqrt(np.diag(base_covariance))),
        residual=as_readonly(rms(effort - rows @ parameters, valid)),
        effort_error=as_readonly(after),
        effort_error_before=as_readonly(before),
        condition=condition,
        equations=effort.size,
        undetermined=tuple(np.array(parameter_names(arm))[is_vague].tolist()),
        saturated=saturated,
    )


def _require_information(
    arm: ArmModel, rows: FloatArray, base: BaseParameters, saturated: int
) -> float:
    """Return the condition number of poses; raises InvalidValue for too few or similar ones."""
    poses, count = len(rows), len(rows) * arm.nv
    if count < 2 * base.size:
        raise InvalidValue(
            f"gravity calibration: efforts = {count} of {poses} poses"
            f"{f' without the {saturated} saturated ones' if saturated else ''}; expected at"
            f" least {2 * base.size} of {-(-2 * base.size // arm.nv)} poses; measure more poses"
        )
    condition = pose_condition(rows, base)
    if not condition <= MAX_CONDITION:
        raise InvalidValue(
            f"gravity calibration: condition number of the poses = {condition:.3g}; expected at"
            f" most {MAX_CONDITION:g}; measure poses that differ more in all joints"
        )
    return condition


@requires_arm
def least_pose_count(arm: ArmModel) -> int:
    """Return the least number of poses, each approached from both sides, that determine the arm.

    Raises
    ------
    InvalidValue
        For an arm without gravity torques.

    """
    sides = np.outer((1.0, -1.0), np.ones(arm.nv))
    return -(-_unknowns(arm, sides).size // arm.nv)  # two efforts for each unknown


def _without_saturation(
    arm: ArmModel, poses: Sequence[StaticPose]
) -> tuple[list[StaticPose], tuple[int, ...]]:
    """Return the poses with efforts below their limits, and the indices of the others."""
    effort = np.array([pose.effort for pose in poses])
    over = np.abs(effort) > saturation_limit(arm, effort)
    saturated = np.flatnonzero(over.any(axis=1)).tolist()
    if len(saturated) == len(poses):
        joints = ", ".join(n for n, x in zip(arm.joint_names, over.any(axis=0), strict=True) if x)
        raise InvalidValue(
            f"gravity calibration: poses with an effort at its limit = all {len(poses)} (joints"
            f" {joints}); expected efforts below their limits; measure with less load"
        )
    return [pose for k, pose in enumerate(poses) if k not in saturated], tuple(saturated)


def static_rows(arm: ArmModel, q: Matrix, direction: Matrix) -> FloatArray:
    """Return W (n, nv, 14 nv) at rest, with the directions s (n, nv) of the last motion."""
    zero = np.zeros_like(q)
    rows: FloatArray = regressor(arm, q, zero, zero)
    joints = np.arange(arm.nv)
    rows[..., ParameterLayout(arm.nv).coulomb][:, joints, joints] = direction
    return rows


def random_configurations(arm: ArmModel, count: int, seed: int) -> Matrix:
    """Return random configurations (count, nv) within the position limits, at most ±π."""
    lower, upper = usable_range(arm)
    q: Matrix = np.random.default_rng(seed).uniform(lower, upper, (count, arm.nv))
    return q


def usable_range(arm: ArmModel) -> tuple[Vector, Vector]:
    """Return lower and upper positions (nv,) [rad or m]; π in each direction without a limit."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, -np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, np.pi)
    middle = np.clip(0.0, lower, upper)
    return np.maximum(lower, middle - np.pi), np.minimum(upper, middle + np.pi)


def pose_condition(rows: FloatArray, base: BaseParameters) -> float:
    """Return the condition number of the base columns of W (n, nv, p), scaled to length 1.

    Rows of each joint are divided by their largest entry.
    """
    own = rows[:, :, base.independent]
    largest = np.maximum(np.abs(own).max(axis=(0, 2), keepdims=True), 1e-12)
    own = (own / largest).reshape(-1, base.size)
    norms = np.linalg.norm(own, axis=0)
    if not (norms > 1e-9 * norms.max()).all():
        return float("inf")
    values = np.linalg.svd(own / norms, compute_uv=False)
    if len(values) < base.size or values[-1] <= 1e-12 * values[0]:
        return float("inf")
    return float(values[0] / values[-1])


def _unknowns(arm: ArmModel, direction: Matrix) -> BaseParameters:
    """Return the combinations of inertial parameters, offsets and friction that some poses show.

    Friction of joints that move in one direction only cannot be distinguished from an offset.
    """
    both = (direction.max(axis=0) > 0) & (direction.min(axis=0) < 0)
    q = random_configurations(arm, CONFIGURATIONS, 0)
    signs = np.random.default_rng(1).choice((-1.0, 1.0), q.shape) * both
    rows = static_rows(arm, q, signs)
    # Raises for an arm without gravity torques, whose friction alone would be determined.
    rows = rows.reshape(-1, rows.shape[-1])
    base_parameters(rows[:, ParameterLayout(arm.nv).inertial], parameter_names(arm))
    return base_parameters(rows, parameter_names(arm))


def _estimate(
    arm: ArmModel,
    rows: FloatArray,
    effort: Matrix,
    direction: Matrix,
    prior: NominalPrior,
    base: BaseParameters,
    pairs: IntArray,
) -> tuple[Vector, Matrix]:
    """Return the parameters (p,) and their covariance (p, p).

    Variances and robust weights are those of least squares of the base parameters without prior.
    Sums of pairs have a separate variance in the last turn only: few of them would be fitted by
    ever larger weights. The covariance contains the uncertainty of this variance.
    """
    rows, effort, mean = _with_means(rows, effort, direction, pairs)
    own = rows[:, :, base.independent]
    valid, x = np.ones(effort.shape, dtype=bool), prior.start.copy()
    size = rms(effort, valid)
    floor = MIN_SCALE * np.maximum(size, 1e-3 * size.max(initial=1e-9))
    hidden = _hidden_effort(arm, effort, pairs, mean)
    floor = np.maximum(floor, ASYMMETRY * hidden)
    known = direction != 0
    weights = np.broadcast_to(1 / np.maximum(size, floor) ** 2, effort.shape)
    for turn in range(TURNS):
        root = np.sqrt(weights)
        matrix = (own * root[..., None]).reshape(-1, base.size)
        x[base.independent] = np.linalg.lstsq(matrix, (effort * root).ravel(), rcond=None)[0]
        residual = effort - own @ x[base.independent]
        leverage = np.sum(np.linalg.qr(matrix)[0] ** 2, axis=1).reshape(effort.shape)
        friction = np.broadcast_to(x[ParameterLayout(arm.nv).coulomb] ** 2 / 3, effort.shape)
        every, _ = _variance(residual, leverage, valid)
        split = mean & (turn == TURNS - 1)
        slipped, _ = _variance(residual, leverage, known & ~split)
        noise = np.where(known.any(axis=0), slipped, np.maximum(every - friction[0], 0.0))
        exact, freedom = _variance(residual, leverage, split)
        part = freedom / (freedom + PRIOR_FREEDOM)
        expected = np.maximum(exact, np.maximum(noise, hidden**2 / 3))
        uncertain = (1 + 2 / freedom) * (expected / np.maximum(exact, floor**2)) ** (1 - part)
        variance = np.where(known, noise, noise + friction)
        variance = np.maximum(np.where(split, exact, variance), floor**2)
        robust = 1 / np.maximum(1.0, np.abs(residual) / np.sqrt(variance) / HUBER)
        weights = robust / variance
    products = np.tensordot(rows * weights[..., None], effort, ((0, 1), (0, 1)))
    squares = np.tensordot(rows * weights[..., None], rows, ((0, 1), (0, 1)))
    found = consistent_minimum(squares, products, prior, 1.0, prior.start)
    weights = np.where(split, weights / np.maximum(uncertain, 1.0), weights)
    squares = np.tensordot(rows * weights[..., None], rows, ((0, 1), (0, 1)))
    return found, positive_inverse(squares + prior.derivatives(found)[1])


def _hidden_effort(arm: ArmModel, effort: Matrix, pairs: IntArray, mean: BoolArray) -> Vector:
    """Return the part (nv,) of the gravity torque that dry friction may hide in sums of pairs.

    At rest friction balances any torque up to f. A joint that shows d in its differences hides up
    to f - d in its sums; approaches from both sides hide nearly the same with opposite signs.
    """
    nominal = np.sqrt(2) * nominal_parameters(arm)[ParameterLayout(arm.nv).coulomb]
    hidden = np.zeros(arm.nv)
    for i in np.flatnonzero(mean.any(axis=0)):
        shown = np.abs(effort[pairs[mean[pairs[:, 0], i], 1], i])
        hidden[i] = max(nominal[i], shown.max()) - np.median(shown)
    return hidden


def _variance(residual: Matrix, leverage: Matrix, own: BoolArray) -> tuple[Vector, Vector]:
    """Return the variance (nv,) of the errors of some residuals (n, nv), and its freedom (nv,)."""
    freedom = np.maximum(own.sum(axis=0) - np.sum(own * leverage, axis=0), 1.0)
    return robust_scale(residual, own) ** 2 * own.sum(axis=0) / freedom, freedom


def _pairs(arm: ArmModel, q: Matrix, direction: Matrix) -> IntArray:
    """Return the indices (k, 2) of poses (n, nv) that are one configuration from both sides."""
    left, found = list(range(len(q))), []
    near = PAIR_DISTANCE * np.subtract(*usable_range(arm)[::-1])
    while left:
        k = left.pop(0)
        distance = np.max(np.abs(q[left] - q[k]) / near, axis=1, initial=0.0)
        opposite = (direction[left] * direction[k] < 0).any(axis=1)
        distance = np.where(opposite, distance, np.inf)
        if left and distance.min() <= 1:
            found.append((k, left.pop(int(distance.argmin()))))
    return np.array(found, dtype=int).reshape(-1, 2)


def _used_directions(direction: Matrix, pairs: IntArray) -> Matrix:
    """Return the directions (n, nv), 0 for single poses of joints that have pairs.

    A pause between pairs, or a start, may have any friction.
    """
    paired = np.zeros(direction.shape, dtype=bool)
    for a, b in pairs.tolist():
        paired[[a, b]] = direction[a] * direction[b] < 0
    used: Matrix = np.where(paired | ~paired.any(axis=0), direction, 0.0)
    return used


def _with_means(
    rows: FloatArray, effort: Matrix, direction: Matrix, pairs: IntArray
) -> tuple[FloatArray, Matrix, BoolArray]:
    """Return rows and efforts with those of each pair a, b replaced by (a + b, a - b) / √2.

    The last value (n, nv) marks the sums, which contain no friction. Joints of a pair that moved in
    the same direction keep their rows.
    """
    rows, effort, mean = rows.copy(), effort.copy(), np.zeros(effort.shape, dtype=bool)
    for a, b in pairs.tolist():
        own = direction[a] * direction[b] < 0
        for values in (rows, effort):
            first, second = values[a, own].copy(), values[b, own].copy()
            values[a, own], values[b, own] = first + second, first - second
            values[[[a], [b]], own] /= np.sqrt(2)
        mean[a, own] = True
    return rows, effort, mean


def _gravity_errors(arm: ArmModel, found: Vector, covariance: Matrix) -> tuple[Vector, Vector]:
    """Return the largest changes and the largest standard deviations of gravity torques (nv,)."""
    bodies = ParameterLayout(arm.nv).inertial
    q = random_configurations(arm, CONFIGURATIONS, 2)
    rows = static_rows(arm, q, np.zeros_like(q))[..., bodies]
    change = rows @ (found - nominal_parameters(arm))[bodies]
    variance = np.einsum("kip,pr,kir->ki", rows, covariance[bodies, bodies], rows, optimize=True)
    return np.abs(change).max(axis=0), np.sqrt(np.maximum(variance, 0.0)).max(axis=0)


def _require_match(arm: ArmModel, poses: Sequence[StaticPose]) -> None:
    """Raise InvalidValue for poses that do not belong to the arm."""
    if not poses:
        raise InvalidValue("gravity calibration: poses = 0; expected at least 10")
    for k, pose in enumerate(poses):
        if pose.q.size != arm.nv:
            raise InvalidValue(
                f"pose {k}: joints = {pose.q.size}; expected {arm.nv} of arm '{arm.name}':"
                f" {', '.join(arm.joint_names)}"
            )
        for joint, value in zip(arm.joints, pose.q.tolist(), strict=True):
            if not joint.lower - LIMIT_MARGIN <= value <= joint.upper + LIMIT_MARGIN:
                raise InvalidValue(
                    f"pose {k}: joint '{joint.name}' = {value:.4g} {joint.unit}; expected"
                    f" {joint.lower:.4g} to {joint.upper:.4g} {joint.unit}; check the order of"
                    " the joints and the units"
                )


def joint_stiffness(value: ArrayLike, size: int) -> Vector:
    """Return the stiffness (size,) of a number or vector, above 0."""
    stiffness = check_vector("stiffness", np.broadcast_to(np.asarray(value, dtype=float), (size,)))
    if not (stiffness > 0).all():
        raise InvalidValue(f"stiffness = {stiffness.min():.4g} N·m/rad; expected above 0")
    return stiffness
