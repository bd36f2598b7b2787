"""Static poses in recordings, and gravity calibration from a recording."""

import numpy as np
import pytest
from test_identification import hidden_arm

from arm_dynamics import load_arm
from arm_dynamics.cli import identify
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics import gravity
from arm_dynamics.identification import nominal_parameters
from arm_dynamics.identification.gravity.recorded_poses import static_poses
from arm_dynamics.recording import MotionData

MOVE, HOLD, RATE = 1.5, 1.2, 100.0


def visiting(arm, actual, poses, noise=1e-4):
    """Return a recording that holds each pose, with Coulomb friction against the last motion."""
    steps, holds = int(MOVE * RATE), int(HOLD * RATE)
    ramp = (1 - np.cos(np.linspace(0, np.pi, steps)))[:, None] / 2
    friction = nominal_parameters(actual)[12 * arm.nv : 13 * arm.nv]
    q, effort, direction, before = [], [], np.zeros(arm.nv), poses[0]
    for pose in poses:
        moved = pose - before
        direction = np.where(np.abs(moved) > 1e-9, np.sign(moved), direction)
        path = np.vstack((before + ramp * moved, np.tile(pose, (holds, 1))))
        q.append(path)
        effort.append([gravity(actual, row) + direction * friction for row in path])
        before = pose
    q, effort = np.vstack(q), np.vstack(effort)
    random = np.random.default_rng(0)
    scale = 1e-3 * np.abs(effort).max(axis=0)
    return MotionData(
        arm.joint_names,
        np.arange(len(q)) / RATE,
        q + noise * random.normal(size=q.shape),
        effort + scale * random.normal(size=q.shape),
        "visits",
    )


@pytest.fixture(scope="module")
def puma():
    arm = load_arm("puma560")
    random = np.random.default_rng(1)
    poses = random.uniform(0.8 * arm.lower, 0.8 * arm.upper, (24, arm.nv))
    actual = hidden_arm(arm, 3)
    return arm, actual, poses, visiting(arm, actual, poses)


def test_each_rest_is_a_pose_with_its_direction(puma):
    _, _, expected, motion = puma
    poses = static_poses(motion)
    assert len(poses) == len(expected)
    np.testing.assert_allclose([pose.q for pose in poses], expected, atol=1e-4)
    moved = np.diff(expected, axis=0)
    directions = np.array([pose.direction for pose in poses[1:]])
    np.testing.assert_array_equal(directions * moved > 0, np.ones_like(moved, dtype=bool))


def test_short_rests_do_not_count(puma):
    _, _, _, motion = puma
    with pytest.raises(InvalidValue, match="poses at rest for 4 s = 0; expected ten or more"):
        static_poses(motion, rest=4.0)


def test_a_joint_that_does_not_move_keeps_its_direction():
    arm = load_arm("two_link")
    poses = static_poses(visiting(arm, arm, np.array([[0, 0], [0.5, 0.4], [0.5, 0.1]])))
    np.testing.assert_array_equal([pose.direction for pose in poses], [[0, 0], [1, 1], [1, -1]])


def test_the_command_calibrates_gravity_from_a_recording(puma, tmp_path, capsys):
    arm, actual, _, motion = puma
    heads = [f"{kind}.{joint}" for kind in ("position", "effort") for joint in arm.joint_names]
    file, output = tmp_path / "poses.csv", tmp_path / "mine.urdf"
    np.savetxt(
        file, np.column_stack((motion.time, motion.q, motion.effort)), delimiter=",",
        header=",".join(("time", *heads)), comments="",
    )  # fmt: skip
    assert identify.run(["gravity", "puma560", str(file), "--output", str(output)]) == 0
    assert "condition number of the poses" in capsys.readouterr().out
    found, random = load_arm(output), np.random.default_rng(9)
    errors = []
    for q in random.uniform(arm.lower, arm.upper, (50, arm.nv)):
        exact = gravity(actual, q)
        errors.append((gravity(arm, q) - exact, gravity(found, q) - exact))
    before, after = np.abs(errors).max(axis=0)
    assert after[1] < 0.1 * before[1]
    assert after[2] < 0.1 * before[2]
