"""Compiled inverse kinematics on random chains, compared with Pinocchio."""

import subprocess
import sys
from functools import cache
from importlib import metadata
from math import pi

import numpy as np
import pinocchio as pin
import pytest
from conftest import chain, examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arm_dynamics import inverse_kinematics, load_arm, nearest_reachable
from arm_dynamics.dynamics.kinematics.chain import chain_of, error_jacobian, place_chain, pose_error
from arm_dynamics.dynamics.kinematics.frames import jacobian, pose
from arm_dynamics.dynamics.kinematics.inverse_kinematics import (
    STALLED,
    TOLERANCE,
    sampling_ranges,
)
from arm_dynamics.dynamics.kinematics.pose_descent import search_pose

WHOLE = np.vstack([np.eye(3), np.eye(3)])
number = st.floats(-1, 1)
joint = st.tuples(
    st.sampled_from(["revolute", "revolute", "continuous", "prismatic"]),
    st.tuples(number, number, number),
    st.tuples(number, number, number),
)
fractions = st.lists(st.floats(0.02, 0.98), min_size=9, max_size=9)
HAND = (
    '<link name="hand"/><joint name="hand_joint" type="fixed"><origin xyz="0.1 -0.2 0.3"'
    ' rpy="0.4 0.5 -0.6"/><parent link="J{}_link"/><child link="hand"/></joint>'
)


def random_chain(joints):
    """Return an arm with joints of these kinds, random axes and offsets, some narrow ranges, and a
    rotated end link.
    """
    given_joints = []
    for i, (kind, axis, offset) in enumerate(joints):
        direction = np.array(axis)
        if np.linalg.norm(direction) < 0.1:
            direction = np.eye(3)[i % 3]
        direction = direction / np.linalg.norm(direction)
        text = (" ".join(repr(float(x)) for x in values) for values in (direction, offset))
        width = 0.4 if kind == "prismatic" else (1.0, 3.0, 7.0)[i % 3]
        names = ("axis", "xyz")
        given_joints.append(
            {
                "kind": kind,
                "lower": -width,
                "upper": 0.8 * width,
                **dict(zip(names, text, strict=True)),
            }
        )
    return chain(*given_joints, more=HAND.format(len(joints)))


def within(arm, part):
    lower, upper = sampling_ranges(arm, np.zeros(arm.nv))
    return lower + np.array(part[: arm.nv]) * (upper - lower)


def placed(arm, q, frame=None):
    """Return axes and origins of the joints and the rotation of the end, computed by the compiled
    solver.
    """
    one = chain_of(arm, frame)
    n = one.joints.size
    axes, origins, R = np.empty((n, 3)), np.empty((n + 1, 3)), np.empty((3, 3))
    place_chain(one.placements, one.slides, q[one.joints], axes, origins, R)
    return one, axes, origins, R


# --- against Pinocchio ---


@settings(max_examples=examples(60))
@given(st.lists(joint, min_size=1, max_size=9), fractions)
def test_pose_and_jacobian_are_pinocchios(joints, part):
    arm = random_chain(joints)
    q = within(arm, part)
    for frame in (None, f"J{(arm.nv + 1) // 2}_link"):
        one, axes, origins, R = placed(arm, q, frame)
        position, rotation = pose(arm, q, frame)
        np.testing.assert_allclose(origins[-1], position, atol=1e-12)
        np.testing.assert_allclose(R, rotation, atol=1e-12)
        J = np.empty((6, one.joints.size))
        error_jacobian(axes, origins, one.slides, WHOLE, np.zeros(3), J)
        expected = jacobian(arm, q, frame)
        np.testing.assert_allclose(J, expected[:, one.joints], atol=1e-12)
        others = np.setdiff1d(np.arange(arm.nv), one.joints)
        assert not expected[:, others].any()


@settings(max_examples=examples(60))
@given(st.lists(joint, min_size=1, max_size=7), fractions, fractions, st.tuples(*[number] * 6))
def test_the_jacobian_of_the_error_is_its_derivative(joints, here, there, weights):
    arm = random_chain(joints)
    q, target = within(arm, here), pose(arm, within(arm, there))
    rows = np.array(weights)[:, None] * np.vstack([target[1].T] * 2)

    def error(x):
        _, _, origins, R = placed(arm, x)
        e, turn = np.empty(6), np.empty(3)
        pose_error(origins, R, *target, rows, True, e, turn)
        return e, turn

    e, turn = error(q)
    log = pin.log3(target[1] @ pose(arm, q)[1].T)
    assume(np.linalg.norm(log) < 3)  # the logarithm is discontinuous at half a turn
    np.testing.assert_allclose(turn, log, atol=1e-9)
    np.testing.assert_allclose(e[3:], rows[3:] @ log, atol=1e-9)
    np.testing.assert_allclose(e[:3], rows[:3] @ (target[0] - pose(arm, q)[0]), atol=1e-12)
    one, axes, origins, _ = placed(arm, q)
    J, h = np.empty((6, arm.nv)), 1e-6
    error_jacobian(axes, origins, one.slides, rows, turn, J)
    columns = [(error(q - h * d)[0] - error(q + h * d)[0]) / (2 * h) for d in np.eye(arm.nv)]
    np.testing.assert_allclose(J, np.transpose(columns), atol=2e-6)


# --- solutions ---


@cache
def arm_of(name):
    paths = {
        "panda": (
            "panda_description/urdf/panda.urdf",
            ("panda_finger_joint1", "panda_finger_joint2"),
        ),
        "ur5": ("ur_description/urdf/ur5_robot.urdf", ()),
    }
    if name not in paths:
        return load_arm(name)
    try:
        every = metadata.files("example-robot-data") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed (extra: test)")
    file = next(f for f in every if str(f).endswith(paths[name][0]))
    with pytest.warns(RuntimeWarning):
        return load_arm(str(file.locate()), lock=paths[name][1])


@pytest.mark.parametrize(
    ("name", "alone"), [("panda", 650), ("ur5", 870), ("puma560", 700), ("five_dof", 750)]
)
def test_a_thousand_reachable_poses_are_solved_most_from_one_start(name, alone):
    """Positions for five_dof, which has five joints; complete poses for the others."""
    arm, random = arm_of(name), np.random.default_rng(1)
    lower, upper = sampling_ranges(arm, np.zeros(arm.nv))
    count = 0
    for q, start in random.uniform(lower, upper, (1000, 2, arm.nv)):
        position, rotation = pose(arm, q)
        target = (position, rotation if arm.nv > 5 else None)
        found = inverse_kinematics(arm, *target, initial_guess=start)
        there = pose(arm, found.q)
        assert np.linalg.norm(there[0] - position) <= 1.01 * TOLERANCE
        if arm.nv > 5:
            assert np.linalg.norm(pin.log3(there[1] @ rotation.T)) <= 1.01 * TOLERANCE
        assert (arm.lower <= found.q).all()
        assert (found.q <= arm.upper).all()
        count += found.restarts == 0
    assert count >= alone


@settings(max_examples=examples(60))
@given(st.lists(joint, min_size=2, max_size=9), fractions, st.booleans())
def test_poses_of_random_chains_are_solved(joints, part, turned):
    """Revolute, continuous and prismatic joints, fewer and more than the axes of a pose."""
    arm = random_chain(joints)
    position, rotation = pose(arm, within(arm, part))
    found = inverse_kinematics(arm, position, rotation if turned else None, restarts=2000)
    there = pose(arm, found.q)
    assert np.linalg.norm(there[0] - position) <= 1.01 * TOLERANCE
    if turned:
        assert np.linalg.norm(pin.log3(there[1] @ rotation.T)) <= 1.01 * TOLERANCE
    assert (arm.lower <= found.q).all()
    assert (found.q <= arm.upper).all()


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(st.lists(joint, min_size=2, max_size=8), fractions, st.tuples(number, number, number))
def test_the_solution_for_an_unreachable_pose_is_a_local_minimum(joints, part, away):
    """The gradient of abs(e)² by Pinocchio is 0 except for joints at their limits."""
    arm = random_chain(joints)
    position, rotation = pose(arm, within(arm, part))
    assume(np.linalg.norm(away) > 0.1)
    target = position + 3 * np.array(away)
    found = nearest_reachable(arm, target, rotation, restarts=3)
    there, turned = pose(arm, found.q)
    log = pin.log3(rotation @ turned.T)
    assert found.position_error == pytest.approx(np.linalg.norm(target - there), abs=1e-9)
    assert found.orientation_error == pytest.approx(np.linalg.norm(log), abs=1e-9)
    J = jacobian(arm, found.q)
    down = J[:3].T @ (target - there) + J[3:].T @ pin.Jlog3(rotation @ turned.T).T @ log
    down[(found.q <= arm.lower) & (down < 0)] = 0.0
    down[(found.q >= arm.upper) & (down > 0)] = 0.0
    # A descent ends where a step lowers abs(e)² by at most the fraction STALLED, which bounds the
    # gradient by abs(J) abs(e) sqrt(STALLED), or at TOLERANCE; damping shortens the last step.
    size = np.hypot(found.position_error, found.orientation_error)
    bound = np.linalg.norm(J) * (10 * np.sqrt(STALLED) * size + TOLERANCE)
    np.testing.assert_allclose(down, 0.0, atol=bound)


# --- continuous joints, joints outside the chain, fixed frames ---


def test_joints_with_wide_ranges_end_within_half_a_turn_of_the_start():
    arm = arm_of("ur5")
    random = np.random.default_rng(3)
    for q, start in random.uniform(-pi, pi, (50, 2, 6)):
        found = inverse_kinematics(arm, *pose(arm, q), initial_guess=start)
        away = np.abs(found.q - start)
        away[2] = 0.0  # the elbow's range is one turn
        assert (away <= pi + 1e-9).all()


def test_joints_that_do_not_move_the_frame_keep_their_positions():
    arm = arm_of("puma560")
    start = arm.configuration("initial") + 0.1
    far = pose(arm, [1.0, -0.4, -2.0, 0, 0, 0], "J3_link")
    found = inverse_kinematics(arm, *far, initial_guess=start, frame="J3_link")
    np.testing.assert_array_equal(found.q[3:], start[3:])
    beyond = inverse_kinematics(arm, *far, initial_guess=start + 9 * np.eye(6)[4], frame="J3_link")
    assert beyond.q[4] == arm.upper[4]
    base = nearest_reachable(arm, (0.3, 0.0, -0.4), frame=arm.base_frame, restarts=2)
    assert base.position_error == pytest.approx(0.5)
    np.testing.assert_array_equal(base.q, arm.configuration("initial"))


def test_the_seed_changes_the_restarts():
    arm = arm_of("puma560")
    found = [
        nearest_reachable(arm, (9, 9, 9), np.eye(3), restarts=1, seed=s) for s in (0, 1, 2**80)
    ]
    assert len({f.iterations for f in found}) > 1
    assert (
        inverse_kinematics(
            arm, *pose(arm, [0.3, -0.4, -2, 0.2, 0.5, 0]), restarts=2**80
        ).position_error
        < 1e-9
    )


# --- compiling ---


def test_the_solver_is_compiled_at_its_first_use():
    program = (
        "import sys, arm_dynamics, arm_dynamics.control.controller_warm_up, arm_dynamics.cli.main\n"
        "assert 'arm_dynamics.dynamics.kinematics.inverse_kinematics' in sys.modules\n"
        "print('arm_dynamics.dynamics.kinematics.pose_descent' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["False"]


def test_one_compilation_is_used_for_every_arm_and_every_kind_of_array():
    pytest.importorskip("numba")
    for name in ("two_link", "puma560"):
        arm = arm_of(name)
        position, rotation = pose(arm, arm.configuration("initial"))
        wide = np.repeat(np.array(arm.configuration("initial")), 2)
        for start in (None, list(wide[::2]), wide[::2], wide[::2].copy()):
            inverse_kinematics(arm, position, np.asfortranarray(rotation), initial_guess=start)
    assert len(search_pose.signatures) == 1
