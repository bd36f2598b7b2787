"""Static poses for gravity calibration, by D-optimal exchange.

maximize  log det(Σ_k Y_kᵀ Y_k)

over sets of poses, with the regressor Y_k of the gravity torques and effort offsets at pose k,
divided by the effort weights. Exchanges of one pose with a candidate continue until none increases
the determinant. Of several starts the one with the smallest condition number is the result.

References
----------
V. Fedorov, Theory of Optimal Experiments (1972), section 3.2. M. Gautier, W. Khalil, Exciting
trajectories for the identification of base inertial parameters of robots, Int. J. Robotics Research
11 (1992), section 3.

"""

from __future__ import annotations

import numpy as np

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
    check_int,
)
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.gravity.gravity_calibration import (
    least_pose_count,
    pose_condition,
    static_rows,
    usable_range,
)
from arm_dynamics.identification.parameters.base_parameter_set import base_parameters
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    nominal_parameters,
    parameter_names,
)
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

APPROACH = 0.1
"""Distance [rad or m] from which a pose is approached."""
APPROACH_FRACTION = 0.05
"""Largest such distance, relative to the range of the joint."""
EFFORT_FRACTION = 0.8
"""Largest fraction of the effort limits that a pose requires, friction included."""
CLEARANCE = 0.01
"""Distance [m] kept between the links."""
CANDIDATES, TRIALS = 300, 6000
"""Candidates, and random configurations of which they are selected."""
STARTS, SWEEPS = 4, 20
"""Random starts of the exchange, and its largest number of sweeps."""
RIDGE = 1e-9
"""Part of the identity added to the information of a set."""


@requires_arm
@with_one_blas_thread
def choose_poses(
    arm: ArmModel,
    count: int = 12,
    seed: int = 0,
    *,
    clearance: float = CLEARANCE,
    scene: Scene = EMPTY_SCENE,
) -> Matrix:
    """Return static poses whose gravity torques determine the arm's parameters.

    Gravity torque and friction of the prior model stay within 80 % of the effort limits. Poses are
    without self-collision as far as the URDF's collision geometry shows it, and so are straight
    joint-space paths from the initial configuration to the start of their approach; likewise
    without contacts with the fixed objects of the scene. Each pose has space for its approach from
    both sides (``approach_distance``). The same arguments give the same poses.

    Parameters
    ----------
    arm : ArmModel
        Prior model.
    count : int
        Number of poses, at least ``least_pose_count``.
    seed : int
        Seed of the random numbers.
    clearance : float
        Distance between links, and between links and objects [m], above 0.
    scene : Scene
        Objects around the arm.

    Returns
    -------
    Matrix
        Configurations (count, nv) [rad or m], ordered by their distance from each other.

    Raises
    ------
    InvalidValue
        For a count or clearance out of range, for an arm without gravity torques, and if too few
        configurations are within the limits.

    """
    count = check_int(f"count of poses of arm '{arm.name}'", count, lower=least_pose_count(arm))
    clearance = check_float("clearance [m]", clearance, above=0)
    random = np.random.default_rng(check_int("seed", seed))
    candidates = _candidates(arm, clearance, scene, random, max(count, CANDIDATES))
    if len(candidates) < count:
        raise InvalidValue(
            f"poses of arm '{arm.name}': configurations within effort limits and without"
            f" self-collision = {len(candidates)} of {TRIALS}; expected at least {count}; reduce"
            " the clearance or check the effort limits"
        )
    rows = static_rows(arm, candidates, np.zeros_like(candidates))
    base = base_parameters(rows.reshape(-1, rows.shape[-1]), parameter_names(arm))
    own = rows[:, :, base.independent]
    own = own / np.maximum(np.abs(own).max(axis=(0, 2), keepdims=True), 1e-12)
    own = own / np.linalg.norm(own.reshape(-1, base.size), axis=0) * np.sqrt(own.shape[0])
    best: tuple[float, IntArray] = (np.inf, np.arange(count))
    for _ in range(STARTS):
        chosen = _exchange(own, random.choice(len(candidates), count, replace=False))
        condition = pose_condition(rows[chosen], base)
        if condition < best[0]:
            best = (condition, chosen)
    return as_readonly(_ordered(candidates[best[1]], arm.configuration("initial")))


@requires_arm
def approach_distance(arm: ArmModel) -> Vector:
    """Return the distances δ (nv,) [rad or m] of the approach: from q - δ, then from q + δ."""
    lower, upper = usable_range(arm)
    distance: Vector = np.minimum(APPROACH, APPROACH_FRACTION * (upper - lower))
    return distance


def path_is_free(collision: SelfCollision, start: Vector, end: Vector) -> bool:
    """Return whether the straight joint-space path (nv,) to (nv,) is without self-collision.

    All pairs of shapes keep half of their clearance: intervals are divided until a bound decides.
    """
    middles, half = np.array([0.5]), 0.5
    while len(middles):
        q = start + middles[:, None] * (end - start)
        free = collision.free_around(q, np.tile(half * np.abs(end - start), (len(q), 1)))
        if free is None:
            return False
        half /= 2
        middles = np.concatenate((middles[~free] - half, middles[~free] + half))
    return not collision.any_of(end[None])


def _candidates(
    arm: ArmModel, clearance: float, scene: Scene, random: np.random.Generator, count: int
) -> Matrix:
    """Return up to ``count`` configurations (n, nv) within all limits."""
    lower, upper = usable_range(arm)
    distance = approach_distance(arm)
    q = random.uniform(lower + distance, upper - distance, (TRIALS, arm.nv))
    q = q[_is_holdable(arm, q)]
    start = np.array(arm.configuration("initial"))
    collision = SelfCollision(arm, clearance, start, scene=scene)
    found: list[Vector] = []
    for own in q:
        low, high = own - distance, own + distance
        if not collision.any_of(np.array((own, low, high))) and (
            path_is_free(collision, start, low) and path_is_free(collision, low, high)
        ):
            found.append(own)
        if len(found) == count:
            break
    return np.array(found).reshape(-1, arm.nv)


def _is_holdable(arm: ArmModel, q: Matrix) -> BoolArray:
    """Return the configurations (n,) whose gravity torque the motors hold."""
    prior = np.array(nominal_parameters(arm))
    friction = prior[ParameterLayout(arm.nv).coulomb]
    torque = static_rows(arm, q, np.zeros_like(q)) @ prior
    ranges = np.array([actuator.effort_range(0.0) for actuator in arm.actuators])
    low = EFFORT_FRACTION * np.maximum(ranges[:, 0], -arm.effort_limit) + friction
    high = EFFORT_FRACTION * np.minimum(ranges[:, 1], arm.effort_limit) - friction
    found: BoolArray = ((torque >= low) & (torque <= high)).all(axis=1)
    return found


def _exchange(rows: FloatArray, chosen: IntArray) -> IntArray:
    """Return the indices (count,) of a set whose determinant no single exchange increases.

    ``rows`` (n, nv, nb) are those of the candidates.
    """
    squares = np.swapaxes(rows, 1, 2) @ rows
    ridge = RIDGE * np.eye(rows.shape[2])
    chosen = np.array(chosen)
    value = float(np.linalg.slogdet(squares[chosen].sum(axis=0) + ridge)[1])
    for _ in range(SWEEPS):
        before = value
        for k in range(len(chosen)):
            rest = squares[np.delete(chosen, k)].sum(axis=0) + ridge
            values = np.linalg.slogdet(rest + squares)[1]
            values[np.delete(chosen, k)] = -np.inf
            new = int(np.argmax(values))
            if values[new] > value + 1e-9:
                chosen[k], value = new, float(values[new])
        if value <= before + 1e-6:
            break
    return chosen


def _ordered(poses: Matrix, start: Vector) -> Matrix:
    """Return the poses (count, nv), each the nearest one to its predecessor."""
    left, found, at = list(poses), [], np.array(start)
    while left:
        distances = [float(np.abs(pose - at).max()) for pose in left]
        at = left.pop(int(np.argmin(distances)))
        found.append(at)
    return np.array(found)
