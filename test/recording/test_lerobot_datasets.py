"""LeRobot datasets: units and zeros of positions by robot, names and ranges."""

import json
from dataclasses import replace

import numpy as np
import pytest

from arm_dynamics import load_arm
from arm_dynamics.core import ConfigError, InvalidValue, RecordingError
from arm_dynamics.recording import load_motion

ARM = load_arm("so101")
MIDDLE, HALF = (ARM.lower + ARM.upper) / 2, (ARM.upper - ARM.lower) / 2
TIME = np.arange(0, 6, 1 / 30)
PHASES = 2 * np.pi * np.outer(TIME, [0.1, 0.13, 0.17, 0.19, 0.23, 0.31]) + np.arange(6)
GRIPPER = 5


def positions(fraction=0.8):
    return MIDDLE + fraction * HALF * np.sin(PHASES)


def in_degrees(q):
    """Return values as LeRobot records them with use_degrees=true."""
    state = np.degrees(q - MIDDLE)
    state[:, GRIPPER] = 100 * (q - ARM.lower)[:, GRIPPER] / (2 * HALF[GRIPPER])
    return state


def in_percent(q):
    """Return values as LeRobot records them with use_degrees=false: wrist_roll is a full turn."""
    state = 100 * (q - MIDDLE) / HALF
    state[:, 4] = 100 * (q - MIDDLE)[:, 4] / np.pi
    state[:, GRIPPER] = 50 + state[:, GRIPPER] / 2
    return state


def dataset(folder, state, robot="so101_follower", name="{}.pos", arm=ARM):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    feature = {"dtype": "float32", "names": [name.format(joint) for joint in arm.joint_names]}
    features = {"observation.state": feature, "action": feature}
    info = {"codebase_version": "v3.0", "robot_type": robot, "total_episodes": 1}
    (folder / "meta" / "info.json").write_text(json.dumps({**info, "features": features}))
    columns = {"timestamp": TIME, "episode_index": np.zeros(len(TIME), int)}
    columns |= {"observation.state": state.tolist(), "action": (state + 1).tolist()}
    parquet.write_table(arrow.table(columns), folder / "data" / "chunk-000" / "file-000.parquet")
    return folder


@pytest.mark.parametrize("robot", ["so_follower", "so100_follower", "so101_follower", "lekiwi"])
@pytest.mark.parametrize(
    ("unit", "state"), [("degrees", in_degrees), ("normalized", in_percent)],
    ids=["degrees", "normalized"],
)  # fmt: skip
def test_positions_of_known_robots_are_read_by_their_ranges(tmp_path, robot, unit, state):
    name = "arm_{}.pos" if robot == "lekiwi" else "{}.pos"
    folder = dataset(tmp_path / "set", state(positions()), robot, name)
    motion = load_motion(ARM, folder, **{unit: True})
    np.testing.assert_allclose(motion.q, positions(), atol=1e-12)
    step = np.where(np.arange(6) == GRIPPER, HALF / 50, np.radians(1.0))
    if unit == "normalized":
        step = np.where(np.arange(6) == 4, np.pi, HALF) / [*[100] * 5, 50]
    np.testing.assert_allclose(motion.command_position - motion.q, np.tile(step, (180, 1)))
    first, gripper = motion.notes
    middle = "from the middle of the calibrated range, read as the middle of the range in the URDF"
    assert (middle if unit == "degrees" else "read as the range in the URDF; wrist_roll") in first
    assert "'gripper' = 0 to 100 of its range, read as -0.1745 to 1.745 rad" in gripper


def test_the_unit_of_a_known_robot_must_be_stated(tmp_path):
    beyond = dataset(tmp_path / "beyond", in_degrees(positions()))
    with pytest.raises(InvalidValue, match=r"so101_follower = degrees; .*; pass --degrees [^-]*$"):
        load_motion(ARM, beyond)
    small = dataset(tmp_path / "small", in_degrees(positions(0.5)))
    with pytest.raises(InvalidValue, match=r"or -100 to 100 of each .*use_degrees.*--normalized"):
        load_motion(ARM, small)
    (first, _) = load_motion(ARM, small, degrees=True).notes
    assert "all are within -100 to 100: pass --normalized" in first
    still = in_degrees(positions())
    still[:, :5] = np.nan
    with pytest.raises(RecordingError, match=r"positions of joints shoulder_pan, .* = not"):
        load_motion(ARM, dataset(tmp_path / "still", still), degrees=True)
    with pytest.raises(ConfigError, match="positions = degrees and normalized; expected one"):
        load_motion(ARM, small, degrees=True, normalized=True)


def test_values_that_contradict_the_stated_unit_are_rejected(tmp_path):
    folder = dataset(tmp_path / "degrees", in_degrees(positions()))
    with pytest.raises(InvalidValue, match="'wrist_roll' = up to 128; expected -100 to 100; pass"):
        load_motion(ARM, folder, normalized=True)
    clipped = np.clip(in_percent(positions(1.1)), [*[-100] * 5, 0], 100)
    for robot, remedy in (("so101_follower", "--normalized"), ("my_robot", "convert them to rad")):
        folder = dataset(tmp_path / robot, clipped, robot)
        arm = ARM if robot == "so101_follower" else load_arm("so101", lock=["gripper"])
        with pytest.raises(InvalidValue, match=f"= 100 at most, .*; expected degrees.*{remedy}"):
            load_motion(arm, folder, degrees=True)


def test_the_gripper_of_an_unknown_robot_is_rejected_by_name(tmp_path):
    folder = dataset(tmp_path / "set", in_degrees(positions()), None)
    with pytest.raises(RecordingError, match=r"joint 'gripper' = 10.01 to 90, degrees or 0 to 100"):
        load_motion(ARM, folder, degrees=True)
    with pytest.raises(InvalidValue, match="robot_type = none; expected one of so_follower"):
        load_motion(ARM, folder, normalized=True)
    arm = load_arm("so101", lock=["gripper"])
    motion = load_motion(arm, folder, degrees=True)
    np.testing.assert_allclose(motion.q, (positions() - MIDDLE)[:, :5], atol=1e-12)
    (note,) = motion.notes
    assert "degrees count from the zero of the calibration, read as that of the URDF" in note
    info = folder / "meta" / "info.json"
    info.write_text(info.read_text().replace("gripper.pos", "gripper.pos [deg]"))
    load_motion(ARM, folder, degrees=True)


def test_calibrations_before_june_2025_are_converted(tmp_path):
    q = positions(0.5)
    state = in_degrees(q)
    state[:, 1] = 90 - state[:, 1]  # LeRobot: examples/backward_compatibility/replay.py
    state[:, 2] += 90
    folder = dataset(tmp_path / "set", state, "so100", "main_{}")
    motion = load_motion(ARM, folder, degrees=True)
    np.testing.assert_allclose(motion.q, q, atol=1e-12)
    assert "converted from a calibration before June 2025" in motion.notes[0]
    with pytest.raises(InvalidValue, match=r"positions of so100 = degrees; .*; pass --degrees"):
        load_motion(ARM, folder)
    with pytest.raises(InvalidValue, match=r"robot_type = so100; .*; pass --degrees"):
        load_motion(ARM, folder, normalized=True)


def test_joints_without_a_known_unit_are_rejected_by_name(tmp_path):
    folder = dataset(tmp_path / "set", in_degrees(positions()))
    other = replace(ARM, joints=tuple(replace(x, name=x.name[::-1]) for x in ARM.joints))
    names = dataset(tmp_path / "names", in_degrees(positions()), arm=other)
    with pytest.raises(RecordingError, match=r"joint 'nap_redluohs', .* = not a motor of so101_f"):
        load_motion(other, names, degrees=True)
    joints = [*ARM.joints[:5], replace(ARM.joints[5], kind="continuous", lower=-np.inf)]
    with pytest.raises(RecordingError, match=r"'gripper' = a part of its range; expected position"):
        load_motion(replace(ARM, joints=tuple(joints)), folder, degrees=True)


def test_a_gripper_in_a_text_file_may_be_in_percent(tmp_path):
    names = ["time", *(f"{joint}.pos" for joint in ARM.joint_names)]
    values = np.column_stack([TIME, in_degrees(positions())])
    file = tmp_path / "a.csv"
    np.savetxt(file, values, delimiter=",", header=",".join(names), comments="")
    (note,) = load_motion(ARM, file, degrees=True).notes
    assert "'gripper' = 10.01 to 90, read as degrees; 0 to 100 of its range is also" in note
    with pytest.raises(ConfigError, match="normalized = True; expected no normalized"):
        load_motion(ARM, file, normalized=True)
