"""Search of an excitation trajectory: random motions, then an evolution strategy from the best one.

J = -log det(Wᵀ W / T) / nb + penalties of effort and self-collision

W is the base regressor with rows divided by the effort limits. Position, velocity and acceleration
limits hold in every evaluation, because each candidate is scaled to them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_float, check_int
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.rigid_body import rnea_batch
from arm_dynamics.identification.excitation.evolution_strategy import minimize, population
from arm_dynamics.identification.excitation.excitation import (
    MAX_DURATION,
    MAX_HARMONICS,
    Excitation,
)
from arm_dynamics.identification.excitation.excitation_information import effort_weights
from arm_dynamics.identification.excitation.excitation_limits import (
    MotionLimits,
    extreme_values,
    largest_scale,
    scale_to_limits,
)
from arm_dynamics.identification.parameters.base_parameter_set import (
    base_parameters,
    structural_rows,
)
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    nominal_parameters,
    parameter_names,
    regressor,
)
from arm_dynamics.model.arm_argument import requires_masses
from arm_dynamics.model.arm_model import ArmModel

HARMONICS = 5
CLEARANCE = 0.01
"""Distance [m] kept between the links."""
BASE_PERIOD = 10.0
"""Approximate period [s] of the first harmonic."""
END_FRACTION, MAX_END_TIME = 0.2, 3.0
"""Duration of a quintic end: fraction of the whole motion, at most [s]."""
MIN_DURATION = 2.0
VELOCITY_FRACTION, EFFORT_FRACTION = 0.8, 0.8
"""Fractions of the velocity and effort limits that the motion uses at most."""
POSITION_MARGIN, RANGE_FRACTION = 0.1, 0.05
"""Distance from the position limits [rad or m]; at most this fraction of the range."""
MAX_VELOCITY = 2.0
"""Velocity limit [rad/s or m/s] of a joint without one."""
END_SAMPLES, CYCLE_SAMPLES, MAX_SAMPLES = 12, 20, 160
"""Samples of an evaluation: of each end, and of a cycle of the highest harmonic; at most this
number in a period."""
RANDOM_STARTS, EVALUATIONS, STEP = 200, 4000, 0.1
"""Random motions, all evaluated motions, and the first step relative to the usable range."""
RIDGE = 1e-12
"""Part of the mean square of a column that is added, so that the determinant is positive."""
EFFORT_PENALTY, CONTACT_PENALTY, DEPTH_PENALTY, OUTSIDE_PENALTY = 20.0, 3.0, 100.0, 1
"""Costs of effort beyond its range, relative to the weight; of a motion that collides; and of its
mean depth, relative to the clearance; and of coefficients scaled to the limits."""
FIRST_REDUCTION, FIRST_REDUCTIONS = 0.8, 12
"""Scale of one reduction of a random motion that collides, and their maximum number."""
SPACING = 5e-3
"""Time between samples [s] of the final check of effort."""
REFINEMENT, NEAR_LIMIT = 20, 0.05
"""Samples around a maximum of effort, of those nearer to the limit than this fraction of it."""
REDUCTION, MAX_REDUCTIONS = 0.98, 300
"""Scale of one reduction of the motion about its start, and their maximum number."""
COLLISION_INTERVAL = 0.1
"""Width [s] of the first intervals of the final check of self-collision."""
Progress = Callable[[int, int], object]


@requires_masses
def excite(
    arm: ArmModel,
    duration: float,
    *,
    harmonics: int = HARMONICS,
    seed: int = 0,
    clearance: float = CLEARANCE,
    scene: Scene = EMPTY_SCENE,
    configuration: ArrayLike | None = None,
    acceleration_limit: ArrayLike | None = None,
    evaluations: int | None = None,
    progress: Progress | None = None,
) -> Excitation:
    """Return an excitation trajectory for the dynamic parameters of an arm.

    Limits of position, velocity and acceleration hold at exact extremes. The efforts of the prior
    model with friction stay within EFFORT_FRACTION of the effort limits and of the motors' ranges:
    they are sampled every 5 ms, and finer at their maxima. Links keep half the clearance from each
    other and from the fixed objects of the scene at all times. The same arguments give the same
    trajectory.

    Parameters
    ----------
    arm : ArmModel
        Prior model.
    duration : float
        Duration [s], 2 to 3600.
    harmonics : int
        Harmonics of the Fourier series, 1 to 30.
    seed : int
        Seed of the random numbers.
    clearance : float
        Distance between links, and between links and objects [m], above 0.
    scene : Scene
        Objects around the arm.
    configuration : (nv,) array, optional
        Configuration at the start and end [rad or m]; default: the initial one.
    acceleration_limit : float or (nv,) array, optional
        Limits [rad/s² or m/s²]; default: none.
    evaluations : int, optional
        Number of motions that the search compares (default: 4000); the first 200 are random.
    progress : callable, optional
        Called with the number of evaluations and their total.

    Returns
    -------
    Excitation
        Motion from rest to rest.

    Raises
    ------
    InvalidValue
        For an argument out of its range, and for a start configuration whose gravity torque exceeds
        the usable effort.

    References
    ----------
    J. Swevers, C. Ganseman, D. Tükel, J. De Schutter, H. Van Brussel, Optimal robot excitation and
    identification, IEEE T-RA 13 (1997), sections III and IV. M. Gautier, W. Khalil, Exciting
    trajectories for the identification of base inertial parameters of robots, Int. J. Robotics
    Research 11 (1992).

    """
    duration = check_float("duration [s]", duration, lower=MIN_DURATION, upper=MAX_DURATION)
    harmonics = check_int("harmonics", harmonics, lower=1)
    if harmonics > MAX_HARMONICS:
        raise InvalidValue(f"harmonics = {harmonics}; expected at most {MAX_HARMONICS}")
    clearance = check_float("clearance [m]", clearance, above=0.0)
    start = arm.configuration("initial")
    if configuration is not None:
        start = arm.check_position("start configuration", configuration)
    count = EVALUATIONS if evaluations is None else check_int("evaluations", evaluations, lower=1)
    random = np.random.default_rng(check_int("seed", seed))
    rest = _rest(arm, start, duration, harmonics)
    limits = motion_limits(arm, start, acceleration_limit)
    collision = SelfCollision(arm, clearance, start, scene=scene)
    problem = _Problem(arm, rest, limits, collision, clearance)
    problem.require_start()
    return problem.finished(_best(problem, random, count, progress))


def _rest(arm: ArmModel, start: Vector, duration: float, harmonics: int) -> Excitation:
    """Return a trajectory without motion."""
    end_time = min(END_FRACTION * duration, MAX_END_TIME)
    zero = np.zeros((arm.nv, harmonics))
    return Excitation(
        arm=arm.name,
        joint_names=arm.joint_names,
        duration=duration,
        end_time=end_time,
        periods=max(round((duration - 2 * end_time) / BASE_PERIOD), 1),
        start=start,
        center=start,
        sine=zero,
        cosine=zero,
    )


def motion_limits(
    arm: ArmModel, start: Vector, acceleration_limit: ArrayLike | None = None
) -> MotionLimits:
    """Return the limits that an excitation trajectory keeps.

    Positions keep a margin of POSITION_MARGIN, at most RANGE_FRACTION of the range; a start nearer
    to its limit is permitted. Continuous joints stay within ±π of a whole number of turns.
    Velocities use VELOCITY_FRACTION of their limit.

    Parameters
    ----------
    arm : ArmModel
        Arm with its limits.
    start : (nv,) array
        Configuration at rest [rad or m].
    acceleration_limit : float or (nv,) array, optional
        Limits [rad/s² or m/s²], above 0; default: none.

    Raises
    ------
    InvalidValue
        For an acceleration limit that is not positive.

    """
    turn = np.where(np.isfinite(arm.lower), 0.0, 2 * np.pi * np.round(start / (2 * np.pi)))
    lower = np.where(np.isfinite(arm.lower), arm.lower, turn - np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, turn + np.pi)
    margin = np.minimum(POSITION_MARGIN, RANGE_FRACTION * (upper - lower))
    velocity = np.where(np.isfinite(arm.velocity_limit), arm.velocity_limit, MAX_VELOCITY)
    acceleration = np.full(arm.nv, np.inf)
    if acceleration_limit is not None:
        try:
            acceleration = np.broadcast_to(np.asarray(acceleration_limit, float), arm.nv)
        except (TypeError, ValueError) as error:
            raise InvalidValue(
                f"acceleration limit = {acceleration_limit!r}; expected a number or {arm.nv}"
            ) from error
        if not (acceleration > 0).all():
            raise InvalidValue(
                f"acceleration limit = {acceleration_limit!r} rad/s²; expected above 0"
            )
    return MotionLimits(
        as_readonly(np.minimum(lower + margin, start)),
        as_readonly(np.maximum(upper - margin, start)),
        as_readonly(VELOCITY_FRACTION * velocity),
        as_readonly(acceleration),
    )


def _best(
    problem: _Problem, random: np.random.Generator, evaluations: int, progress: Progress | None
) -> Matrix:
    """Return the coefficients of the best motion found."""
    shape, count = problem.sizes.shape, population(problem.sizes.size)
    starts = min(RANDOM_STARTS, evaluations)
    generations = (evaluations - starts) // count
    total = starts + generations * count
    done = 0

    def show(evaluated: int) -> None:
        nonlocal done
        done += evaluated
        if progress is not None:
            progress(done, total)

    scale = np.where(problem.sizes > 0, problem.sizes, 1.0)
    start = _best_start(problem, random, starts, show)

    def costs(rows: Matrix, needed: int) -> Vector:
        motions = [problem.within_limits(row.reshape(shape) * problem.sizes) for row in rows]
        outside = rows.reshape(-1, *shape) - np.array(motions) / scale
        drift = OUTSIDE_PENALTY * np.mean(outside**2, axis=(1, 2))
        costs: Vector = drift + [problem.cost(x) for x in motions]
        exact: list[float] = []
        for k in np.argsort(costs, kind="stable").tolist():
            if sum(cost <= costs[k] for cost in exact) >= needed:
                break
            costs[k] += problem.collision_cost(motions[k])
            exact.append(float(costs[k]))
        show(len(rows))
        return costs

    _, row = minimize(costs, (start / scale).ravel(), STEP, generations, random)
    return problem.within_limits(row.reshape(shape) * problem.sizes)


def _best_start(
    problem: _Problem, random: np.random.Generator, count: int, show: Callable[[int], None]
) -> Matrix:
    """Return the coefficients of the best of random motions, reduced until they do not collide."""
    least, best = np.inf, np.zeros(problem.sizes.shape)
    for _ in range(count):
        x = problem.random(random)
        for _ in range(FIRST_REDUCTIONS):
            cost = problem.cost(x)
            if cost >= least:
                break
            if not problem.collides_at_samples(x):
                least, best = cost, x
                break
            x = x * FIRST_REDUCTION
        show(1)
    return best


class _Problem:
    """Cost of the coefficients x (nv, 1 + 2 h) of a motion, and the final checks."""

    def __init__(
        self,
        arm: ArmModel,
        rest: Excitation,
        limits: MotionLimits,
        collision: SelfCollision,
        clearance: float,
    ) -> None:
        self._arm, self._rest, self._limits = arm, rest, limits
        self._collision, self._clearance = collision, clearance
        times, self._row_weights = _evaluation_times(rest)
        self._bases = rest.basis.at(times)
        structure = structural_rows(arm)
        base = base_parameters(structure, parameter_names(arm))
        self._weights = effort_weights(arm)
        self._independent = base.independent
        rows = structure[:, base.independent].reshape(-1, arm.nv, base.size)
        weighted = (rows / self._weights[:, None]).reshape(-1, base.size)
        self._column_scale = 1 / np.linalg.norm(weighted, axis=0) * np.sqrt(len(rows))
        prior = np.array(nominal_parameters(arm))
        layout = ParameterLayout(arm.nv)
        self._viscous, self._coulomb = prior[layout.viscous].copy(), prior[layout.coulomb].copy()
        prior[layout.coulomb] = 0.0  # |f| is added in both directions
        self._prior = prior
        self._ranges = _effort_ranges(arm, limits)
        self.middle = self._middle()
        frequencies = np.arange(1, rest.harmonics + 1) * rest.basis.angular_frequency
        half = (limits.upper - limits.lower) / 2
        fastest = np.minimum(half[:, None], limits.velocity[:, None] / frequencies)
        self.sizes = np.hstack([half[:, None], fastest, fastest]) * (limits.velocity > 0)[:, None]

    def _middle(self) -> Matrix:
        """Return coefficients of a motion to the middle of the range, as far as the limits permit.

        The largest velocity and acceleration of a quintic step d in T are 15 d / (8 T) and
        10 d / (√3 T²).
        """
        limits, T = self._limits, self._rest.end_time
        step = (limits.lower + limits.upper) / 2 - self._rest.start
        longest = np.minimum(
            limits.velocity * T * 8 / 15, limits.acceleration * T**2 * np.sqrt(3) / 10
        )
        middle = np.zeros((self._arm.nv, self._rest.basis.size))
        middle[:, 0] = np.clip(step, -longest / 2, longest / 2)
        return middle

    def random(self, random: np.random.Generator) -> Matrix:
        """Return random coefficients within the limits."""
        h = self._rest.harmonics
        decay = np.tile(np.arange(1, h + 1) ** -random.uniform(0, 1), 2)
        x = random.normal(size=self.sizes.shape) * self.sizes * 2
        x[:, 1:] *= decay
        x[:, 0] = self.middle[:, 0] * random.uniform(0, 2, len(x))
        full = self.within_limits(x)
        amplitude = random.uniform(0.4, 1.0, (len(x), 1))
        return self.middle + (full - self.middle) * amplitude

    def within_limits(self, x: Matrix) -> Matrix:
        """Return x, scaled toward the middle to the limits at the samples."""
        added = x - self.middle
        scale = np.ones(len(x))
        for order, basis in enumerate(self._bases):
            base, wave = basis @ self.middle.T, basis @ added.T
            if order == 0:
                base = base + self._rest.start
            for i in range(len(x)):
                low, high = self._limits.of(i)[order]
                scale[i] = min(scale[i], largest_scale(base[:, i], wave[:, i], low, high))
        limited: Matrix = self.middle + added * scale[:, None]
        return limited

    def cost(self, x: Matrix) -> float:
        """Return the cost J without self-collision."""
        q, v, a = self._motion(x)
        rows = regressor(self._arm, q, v, a)
        excess = self._effort_excess(rows @ self._prior, v).max()
        weighted = rows[:, :, self._independent] * self._column_scale
        weighted *= self._row_weights[:, None, None] / self._weights[:, None]
        weighted = weighted.reshape(-1, len(self._independent))
        squares = weighted.T @ weighted
        squares[np.diag_indices(len(squares))] += RIDGE
        cost = -float(np.linalg.slogdet(squares)[1]) / len(squares)
        return cost + EFFORT_PENALTY * max(float(excess), 0.0)

    def collision_cost(self, x: Matrix) -> float:
        """Return the penalty of self-collision at the samples."""
        q = self._motion(x)[0]
        depth = float(self._collision.depths(q).mean())
        return CONTACT_PENALTY * (depth > 0) + DEPTH_PENALTY * depth / self._clearance

    def collides_at_samples(self, x: Matrix) -> bool:
        """Return whether the arm collides at the samples."""
        return self._collision.any_of(self._motion(x)[0])

    def _motion(self, x: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        q, v, a = (basis @ x.T for basis in self._bases)
        return self._rest.start + q, v, a

    def require_start(self) -> None:
        """Raise InvalidValue if the motors do not hold the start configuration."""
        q, zero = self._rest.start[None], np.zeros((1, self._arm.nv))
        effort = rnea_batch(self._arm, q, zero, zero)
        excess = self._effort_excess(effort, zero)[0]
        for i in np.flatnonzero(excess > 0).tolist():
            raise InvalidValue(
                f"start configuration: joint '{self._arm.joint_names[i]}': effort ="
                f" {effort[0, i]:.4g} N·m; expected within {EFFORT_FRACTION:.0%} of its limit"
                f" {self._arm.effort_limit[i]:.4g} N·m less its friction"
                f" {self._coulomb[i]:.4g} N·m; start at another configuration"
            )

    def finished(self, x: Matrix) -> Excitation:
        """Return the motion within all limits at exact extremes, effort and collision included."""
        motion = scale_to_limits(self._rest.with_coefficients(x), self._limits, self.middle)
        for _ in range(MAX_REDUCTIONS):
            if self._effort_permitted(motion) and not self._collides(motion):
                return motion
            motion = motion.with_coefficients(motion.coefficients * REDUCTION)
        raise InvalidValue(
            "excitation: motion within effort limits and without self-collision: none found;"
            " expected a start configuration with space around it; start at another configuration"
            " or reduce the clearance"
        )

    def _effort_excess(self, effort: Matrix, v: Matrix) -> Matrix:
        """Return the efforts beyond the usable range (n, nv), relative to the weights.

        ``effort`` is without dry friction, which is added in the worse direction.
        """
        excess = np.empty_like(effort)
        for i, (grid, low, high) in enumerate(self._ranges):
            over = effort[:, i] + self._coulomb[i] - np.interp(v[:, i], grid, high)
            under = np.interp(v[:, i], grid, low) - effort[:, i] + self._coulomb[i]
            excess[:, i] = np.maximum(over, under) / self._weights[i]
        return excess

    def _excess_at(self, motion: Excitation, times: Vector) -> Matrix:
        q, v, a = motion.sample(times)
        return self._effort_excess(rnea_batch(self._arm, q, v, a) + self._viscous * v, v)

    def _effort_permitted(self, motion: Excitation) -> bool:
        """Return whether the effort is in its range at dense samples, finer at its maxima."""
        times = _distinct_times(motion, SPACING)
        excess = self._excess_at(motion, times)
        if excess.max() > 0:
            return False
        inner = excess[1:-1]
        peak = (inner >= excess[:-2]) & (inner >= excess[2:]) & (inner > -NEAR_LIMIT)
        near = np.flatnonzero(peak.any(axis=1)) + 1
        fine = [
            np.linspace(times[k - 1], times[k + 1], REFINEMENT + 1)
            for k in near.tolist()
            if times[k + 1] - times[k - 1] < 3 * SPACING
        ]
        return not fine or bool(self._excess_at(motion, np.concatenate(fine)).max() <= 0)

    def _collides(self, motion: Excitation) -> bool:
        """Return whether links are nearer than half of their clearance at any time.

        |q(t) - q(m)| <= |v(m)| w / 2 + max |a| w² / 8 in an interval of width w around m. Intervals
        are divided until this motion is too small for a collision.
        """
        times = _distinct_times(motion, COLLISION_INTERVAL)
        if self._collision.any_of(motion.sample(times)[0]):
            return True
        acceleration = np.abs(extreme_values(motion)[2]).max(axis=0)
        widths = np.diff(times)
        within = widths < 1.5 * COLLISION_INTERVAL  # not the periods that repeat
        middles, widths = (times[:-1] + widths / 2)[within], widths[within]
        while len(middles):
            q, v, _ = motion.sample(middles)
            half = widths[:, None] / 2
            free = self._collision.free_around(q, np.abs(v) * half + acceleration * half**2 / 2)
            if free is None:
                return True
            quarter = widths[~free] / 4
            middles = np.concatenate((middles[~free] - quarter, middles[~free] + quarter))
            widths = np.concatenate((2 * quarter, 2 * quarter))
        return False


def _evaluation_times(rest: Excitation) -> tuple[Vector, Vector]:
    """Return the times (n,) [s] of an evaluation, and the root of the time that each represents.

    They are both ends and one period of the series, which represents all its periods.
    """
    count = max(min(CYCLE_SAMPLES * rest.harmonics, MAX_SAMPLES), 5 * rest.harmonics, 60)
    period = 1 / rest.frequency
    ends = (np.arange(END_SAMPLES) + 0.5) * rest.end_time / END_SAMPLES
    cycle = rest.end_time + (np.arange(count) + 0.5) * period / count
    times = np.concatenate((ends, cycle, rest.duration - ends[::-1]))
    weights = np.full(len(times), rest.end_time / END_SAMPLES)
    weights[END_SAMPLES:-END_SAMPLES] = period * rest.periods / count
    return times, np.sqrt(weights / rest.duration)


def _distinct_times(motion: Excitation, spacing: float) -> Vector:
    """Return times (n,) [s] of both ends and one period, at most ``spacing`` [s] between them."""
    parts = []
    late = motion.duration - motion.end_time
    for begin, length in (
        (0.0, motion.end_time + 1 / motion.frequency),
        (late, motion.end_time),
    ):
        count = int(np.ceil(length / spacing)) + 1
        parts.append(begin + np.linspace(0.0, length, count))
    return np.concatenate(parts)


def _effort_ranges(arm: ArmModel, limits: MotionLimits) -> list[tuple[Vector, Vector, Vector]]:
    """Return velocities (n,) of each joint, and the usable efforts (n,) at these velocities."""
    effort_ranges = []
    for joint, actuator, fastest in zip(arm.joints, arm.actuators, limits.velocity, strict=True):
        grid = np.linspace(-fastest, fastest, 33) if fastest > 0 else np.array([-1.0, 1.0])
        ranges = np.array([actuator.effort_range(float(v)) for v in grid])
        low = np.maximum(ranges[:, 0], -joint.effort) * EFFORT_FRACTION
        high = np.minimum(ranges[:, 1], joint.effort) * EFFORT_FRACTION
        effort_ranges.append((grid, np.maximum(low, -1e12), np.minimum(high, 1e12)))
    return effort_ranges
