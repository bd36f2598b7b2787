"""The filtered check of self-collision equals the exhaustive one of all pairs of shapes."""

import math
import warnings

import numpy as np
import pinocchio as pin
import pytest
from conftest import examples
from hook_arm import hooks
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.collision import Scene, SceneObject, collision_filter
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.identification import Excitation
from arm_dynamics.identification.excitation import excitation_search as search
from arm_dynamics.identification.gravity.pose_selection import path_is_free
from arm_dynamics.model.solids import Shape


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    return hooks(tmp_path_factory.mktemp("meshes"))


def motion(arm, seed, count):
    """Return configurations (n, nv) of a random sum of sines within the limits."""
    random = np.random.default_rng(seed)
    low, high = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    t = np.linspace(0, 2 * np.pi, count)[:, None, None]
    phase = random.uniform(0, 2 * np.pi, (arm.nv, 3))
    wave = np.sin(np.arange(1, 4) * t + phase) @ random.dirichlet(np.ones(3))
    return (low + high) / 2 + wave * (high - low) / 2


def exhaustive(collision, arm, q):
    """Return the first pair in collision and its depth [m] by the check of all pairs."""
    shapes, results, data = collision._shapes, collision._results, arm.model.createData()
    found, depths = [], []
    for request, margin in zip(results.collisionRequests, collision._margins, strict=True):
        request.security_margin = margin
    for row in q:
        pin.computeCollisions(arm.model, data, shapes, results, row, False)
        hits = [k for k, result in enumerate(results.collisionResults) if result.isCollision()]
        found.append(hits)
        depth = 0.0
        if hits:
            distance = pin.computeDistance(shapes, results, hits[0]).min_distance
            depth = max(results.collisionRequests[hits[0]].security_margin - distance, 0.0)
        depths.append(depth)
    return found, np.array(depths)


def require_equal(collision, arm, q, atol=1e-12):
    """Compare the filtered with the exhaustive check; return the fraction in collision.

    The depth of a contact with a hull depends on the first guess of its iterations.
    """
    hits, depths = exhaustive(collision, arm, q)
    found = [[] for _ in q]
    for sample, k, _ in collision.collisions(q, every=True):
        found[sample].append(k)
    assert found == hits
    np.testing.assert_allclose(collision.depths(q), depths, atol=atol)
    assert collision.any_of(q) == any(hits)
    for row, own in zip(q[::10], hits[::10], strict=True):
        assert (collision.find(row) is not None) == bool(own)
    return np.mean([bool(own) for own in hits])


@pytest.fixture(scope="module")
def collision(arm):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SelfCollision(arm, 0.02, arm.configuration("initial"))


@given(st.integers(0, 10**6))
@settings(max_examples=examples(20), deadline=None)
def test_equals_the_exhaustive_check_with_meshes(arm, collision, seed):
    require_equal(collision, arm, motion(arm, seed, 60))


def test_these_motions_collide_and_do_not(arm, collision):
    q = np.vstack([motion(arm, seed, 60) for seed in range(5)])
    assert 0.05 < require_equal(collision, arm, q) < 0.95


def test_a_free_path_keeps_half_of_the_clearance(arm):
    start, clearance = np.zeros(arm.nv), 0.02
    collision, half = (SelfCollision(arm, c, start) for c in (clearance, clearance / 2))
    random, results = np.random.default_rng(0), []
    for _ in range(40):
        begin, end = random.uniform(arm.lower, arm.upper, (2, arm.nv))
        dense = begin + np.linspace(0, 1, 500)[:, None] * (end - begin)
        results.append(path_is_free(collision, begin, end))
        if results[-1]:
            assert not half.any_of(dense)
        elif not collision.any_of(dense[[-1]]):
            assert collision.any_of(dense)
    assert 5 < sum(results) < 35


def distances(collision, arm, q):
    """Return the distance (pairs,) [m] of each checked pair of shapes."""
    shapes, data = collision._shapes, arm.model.createData()
    results = shapes.createData()
    pin.computeDistances(arm.model, data, shapes, results, q)
    return np.array([result.min_distance for result in results.distanceResults])


@given(st.integers(0, 10**6), st.floats(1e-3, 0.5))
@settings(max_examples=examples(40), deadline=None)
def test_motion_changes_no_distance_by_more_than_its_bound(arm, collision, seed, size):
    random = np.random.default_rng(seed)
    q = random.uniform(arm.lower, arm.upper)
    change = size * random.uniform(-1, 1, arm.nv)
    first, second = (distances(collision, arm, x) for x in (q, q + change))
    separate = (first > 0) & (second > 0)  # overlapping meshes have no exact distance
    bound = collision._reaches @ np.abs(change)
    assert (np.abs(second - first)[separate] <= bound[separate] + 1e-9).all()


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.01, 0.05]))
@settings(max_examples=examples(40), deadline=None)
def test_around_a_free_configuration_every_pair_keeps_half_of_its_clearance(
    arm, collision, seed, size
):
    random = np.random.default_rng(seed)
    q = random.uniform(arm.lower, arm.upper, (20, arm.nv))
    free = collision.free_around(q, np.full(q.shape, size))
    if free is None:
        assert collision.any_of(q)
        return
    for row in q[free]:
        for change in random.choice([-size, size], (4, arm.nv)):
            assert (distances(collision, arm, row + change) >= collision._margins / 2 - 1e-9).all()


def test_a_point_is_free_or_in_collision_and_a_large_motion_is_neither(arm, collision):
    q = motion(arm, 0, 100)
    hit = np.array([collision.any_of(row[None]) for row in q])
    assert 0 < hit.sum() < len(q)
    assert collision.free_around(q, np.zeros(q.shape)) is None
    assert collision.free_around(q[~hit], np.zeros(q[~hit].shape)).all()
    assert not collision.free_around(q[~hit], np.full(q[~hit].shape, 3.0)).any()


def test_the_final_check_finds_a_collision_between_its_first_samples():
    """A pulse cos(θ/2)^60 moves to a folded configuration and back in less than 0.1 s."""
    arm = load_arm("so101")
    start = arm.configuration("initial")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = SelfCollision(arm, 0.01, start)
    q = np.vstack([motion(arm, seed, 40) for seed in range(5)])
    folded = q[[own.any_of(row[None]) for row in q]][0]
    k, middle = np.arange(1, 31), 2 * np.pi * 0.25 / 0.6
    size = np.array([math.comb(60, 30 - i) for i in range(31)]) / 4.0**30
    move = (folded - start)[:, None]
    waves = (2 * size[1:] * move * wave(k * middle) for wave in (np.sin, np.cos))
    center = start + size[0] * move[:, 0]
    pulse = Excitation("a", arm.joint_names, 2.2, 0.8, 1, start, center, *waves)
    np.testing.assert_allclose(pulse.sample(np.array([1.05]))[0][0], folded, atol=1e-9)
    assert not own.any_of(pulse.sample(search._distinct_times(pulse, 0.1))[0])
    problem = search._Problem(arm, pulse, search.motion_limits(arm, start), own, 0.01)
    assert problem._collides(pulse)
    assert not problem._collides(pulse.with_coefficients(pulse.coefficients * 0.1))


@pytest.mark.parametrize("name", ["five_dof", "so101"])
def test_equals_the_exhaustive_check_of_bundled_arms(name):
    arm = load_arm(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collision = SelfCollision(arm, 0.01, arm.configuration("initial"))
    require_equal(collision, arm, np.vstack([motion(arm, seed, 40) for seed in range(5)]))


def test_equals_the_exhaustive_check_with_a_scene(arm):
    """Of meshes of the arm and of all shapes of objects."""
    floor = SceneObject(
        "floor", Shape("ground", ()), (0.1, 0, -0.1), pin.rpy.rpyToMatrix(0.2, 0, 0)
    )
    points = np.array([[0, 0, 0], [0.2, 0, 0], [0, 0.2, 0], [0, 0, 0.2]])
    objects = (
        floor,
        SceneObject("crate", Shape("box", (0.1, 0.2, 0.1)), (0.3, 0, 0.2)),
        SceneObject("post", Shape("cylinder", (0.04, 0.8)), (-0.3, 0.1, 0.2)),
        SceneObject("wedge", Shape("mesh", ()), (0, 0.3, 0.1), floor.rotation, vertices=points),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = arm.configuration("initial")
        collision = SelfCollision(arm, 0.02, start, scene=Scene(objects))
    checked = {collision.ends(k)[1] for k in range(collision.pairs)}
    assert checked >= {one.name for one in objects}
    q = np.vstack([motion(arm, seed, 40) for seed in range(5)])
    assert require_equal(collision, arm, q, atol=1e-6) > 0.1


@pytest.mark.parametrize("margin", [0.0, 0.005, 0.1])
def test_no_pair_within_its_margin_is_omitted(arm, collision, margin):
    own = collision_filter.CollisionFilter(arm, collision._shapes)
    pairs = [(pair.first, pair.second) for pair in collision._shapes.collisionPairs]
    own.use_pairs(dict.fromkeys(pairs, margin))
    results, data = collision._shapes.createData(), arm.model.createData()
    q = motion(arm, 3, 80)
    near = set(own.near(q))
    for k, row in enumerate(q):
        pin.computeDistances(arm.model, data, collision._shapes, results, row)
        for n, result in enumerate(results.distanceResults):
            assert result.min_distance > margin or (k, n) in near
    assert len(near) < len(q) * len(pairs)


def test_placements_equal_the_forward_kinematics(arm):
    for own in (arm, load_arm("so101"), load_arm("puma560")):
        q, data = motion(own, 1, 30), own.model.createData()
        axes = collision_filter._joint_axes(own.model)
        rotations, origins = collision_filter._placements(own.model, axes, q)
        for k, row in enumerate(q):
            pin.forwardKinematics(own.model, data, row)
            for body in range(own.model.njoints):
                np.testing.assert_allclose(rotations[k, body], data.oMi[body].rotation, atol=1e-12)
                np.testing.assert_allclose(origins[k, body], data.oMi[body].translation, atol=1e-12)
