"""Files that are damaged, or hold something else than one motion: one line with the cause."""

from dataclasses import replace

import damaged_files
import numpy as np
import pytest

from arm_dynamics import load_arm
from arm_dynamics.cli.main import main
from arm_dynamics.core import InvalidValue, RecordingError
from arm_dynamics.identification import compare, read_poses
from arm_dynamics.recording import load_motion
from arm_dynamics.recording.bag import GAPS, STATES, BagWriter, Message
from arm_dynamics.recording.replay import read_items

ARM = load_arm("two_link")
TIME = np.arange(0, 4, 0.01)
Q = np.stack([1 + np.sin(TIME), 0.5 * np.cos(2 * TIME)], axis=1)
TAU = np.stack([20 * np.cos(3 * TIME), 5 * np.sin(5 * TIME)], axis=1)
NAMES = ("time", "q1", "q2", "tau1", "tau2")


def csv(path, names, values, form="%.9g"):
    np.savetxt(path, values, form, ",", header=",".join(names), comments="")
    return path


def table(time=TIME, q=Q, tau=TAU):
    return np.column_stack([time, q, tau])


@pytest.mark.parametrize("make", damaged_files.FORMATS, ids=lambda make: make.__name__)
def test_damaged_files_give_one_line(tmp_path, make):
    for library in ("pyarrow", "rosbags"):
        pytest.importorskip(library)
    for path in damaged_files.variants(make, 8, 0, tmp_path):
        result = damaged_files.raw_error(path)
        assert result in ("accepted", "rejected", "empty"), result


def with_field(path, text):
    """Write a table with ``text`` as the position of J1 in line 5."""
    lines = csv(path, NAMES, table()).read_text().splitlines()
    fields = lines[4].split(",")
    lines[4] = ",".join([fields[0], text, *fields[2:]])
    path.write_text("\n".join(lines))
    return path


def test_an_integer_beyond_all_numbers_is_not_measured(tmp_path):
    file = with_field(tmp_path / "a.csv", "9" * 400)
    assert len(load_motion(ARM, file).time) == len(TIME) - 1


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("1e150", r"position of joint 'J1' = 1e\+150 in sample 4 of 400; expected at most 1e\+09"),
        ('"' + "7" * 200_000 + '"', "line 5: length = 2000.. characters: field larger than field"),
    ],
    ids=["size", "field"],
)
def test_values_that_no_sensor_reports(tmp_path, token, message):
    file = with_field(tmp_path / "a.csv", token)
    with pytest.raises((InvalidValue, RecordingError), match=message):
        load_motion(ARM, file)


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, '{"total_episodes": 1e400}', "[1]"])
def test_metadata_of_other_shapes(tmp_path, text):
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "info.json").write_text(text)
    with pytest.raises(RecordingError, match=r"info\.json: .*; expected codebase_version"):
        load_motion(ARM, tmp_path)


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, '{"dropped": 1e400}', "[1]"])
def test_gaps_of_other_shapes(tmp_path, text):
    pytest.importorskip("rosbags")
    writer = BagWriter(tmp_path / "run")
    writer.add(Message(GAPS, 10**9, (), text))
    writer.close()
    with pytest.raises(RecordingError, match=r"/recording_gaps, t = 1\.000000 s: "):
        list(read_items(tmp_path / "run"))


def test_the_reason_of_a_damaged_bag_is_short(tmp_path):
    folder = publishers(tmp_path / "run", ARM.joint_names)
    (folder / "metadata.yaml").write_text("7" * 200_000)
    with pytest.raises(RecordingError, match=r"run is damaged: .{1,200}; expected a complete rec"):
        load_motion(ARM, folder)


# Two sequences ---------------------------------------------------------------------------------


def publishers(folder, order, every=1):
    """Write messages of the arm, and after each ``every`` of them one with zeros."""
    pytest.importorskip("rosbags")
    writer = BagWriter(folder)
    for k, (t, q, tau) in enumerate(zip(TIME, Q, TAU, strict=True)):
        now = 10**18 + round(t * 1e9)
        writer.add(Message(STATES, now, ARM.joint_names, {"position": q, "effort": tau}))
        if k % every == 0:
            zeros = {"position": np.zeros(2), "effort": np.zeros(2)}
            writer.add(Message(STATES, now + 5_000_000, order, zeros))
    writer.close()
    return folder


def test_two_publishers_on_one_topic_are_named(tmp_path):
    folder = publishers(tmp_path / "order", ARM.joint_names[::-1])
    with pytest.raises(RecordingError, match=r"orders .* = J1, J2 and J2, J1; .* two publishers"):
        load_motion(ARM, folder)
    for every, percent in ((1, "100"), (10, "9")):
        folder = publishers(tmp_path / f"every{every}", ARM.joint_names, every)
        with pytest.raises(InvalidValue, match=f"jumps in {percent} % of .*two publishers on one"):
            load_motion(ARM, folder)


def test_two_runs_sorted_by_their_stamps_are_named(tmp_path):
    rows = np.concatenate([table(), table(TIME + 0.004, Q + np.array([0.3, 0.0]))])
    file = csv(tmp_path / "a.csv", NAMES, rows[np.argsort(rows[:, 0])])
    with pytest.raises(InvalidValue, match="two publishers on one topic, or of two runs sorted"):
        load_motion(ARM, file)


def test_a_clock_that_stepped_back_is_named(tmp_path):
    time = np.where(TIME < 2, TIME, TIME - 1)
    with pytest.raises(InvalidValue, match=r"row 201: .*the clock stepped back \(a restart"):
        load_motion(ARM, csv(tmp_path / "a.csv", NAMES, table(time)))
    time = TIME + np.where(np.arange(len(TIME)) % 2, 0.03, 0.0)
    with pytest.raises(InvalidValue, match=r"in \d+ rows: two publishers on one topic, or two"):
        load_motion(ARM, csv(tmp_path / "b.csv", NAMES, table(time)))


@pytest.mark.parametrize("period", [0.001, 0.01, 0.05])
def test_noise_vibration_and_slow_samples_are_one_sequence(tmp_path, period):
    time = np.arange(0, 400 * period, period)
    rng = np.random.default_rng(0)
    speed = np.array([joint.velocity for joint in ARM.joints])
    size = np.minimum(0.2, speed / (2 * np.pi * 3))
    q = size * np.sin(2 * np.pi * 3 * time)[:, None] + rng.normal(0, 2e-3, (len(time), 2))
    q[:, 1] = 1e-3 * (rng.random(len(time)) > 0.5)  # an encoder between two counts
    assert len(load_motion(ARM, csv(tmp_path / "a.csv", NAMES, table(time, q, q))).time) == 400


def test_compare_rejects_rows_of_two_sequences(tmp_path, capsys):
    q, tau = np.array(Q), np.array(TAU)
    q[::2], tau[::2] = 0.0, 0.0
    file = csv(tmp_path / "a.csv", NAMES, table(q=q, tau=tau))
    with pytest.raises(SystemExit) as ended:
        main(["compare", "two_link", str(file)])
    assert ended.value.code != 0
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = [line for line in printed.err.splitlines() if "compare:" in line]
    assert "two publishers on one topic" in line


def test_compare_rejects_efforts_that_show_no_dynamics(tmp_path):
    file = csv(tmp_path / "a.csv", NAMES, table(tau=np.full((400, 2), 3.0)))
    with pytest.raises(InvalidValue, match=r"samples that show .* = 0 of \d+; .* constant while"):
        compare(ARM, load_motion(ARM, file))


# Columns of two topics -------------------------------------------------------------------------


def test_columns_of_two_topics_are_interpolated(tmp_path):
    late = TIME + 0.0013
    rows = np.full((2 * len(TIME), 7), np.nan)
    rows[::2, 0], rows[::2, 1:3], rows[::2, 5:] = TIME, Q, Q + 0.1
    rows[1::2, 0], rows[1::2, 3:5] = late, TAU
    topics = (("joint_states", "position"), ("drives", "effort"), ("goal", "position"))
    names = [f"/{topic}/{joint}/{x}" for topic, x in topics for joint in ARM.joint_names]
    names = ["__time", *names]
    motion = load_motion(ARM, csv(tmp_path / "a.csv", names, rows))
    assert len(motion.time) >= len(TIME) - 1
    at = motion.time + 0.01
    expected = np.stack([1 + np.sin(at), 0.5 * np.cos(2 * at)], axis=1)
    np.testing.assert_allclose(motion.q, expected, atol=1e-3)
    (note,) = motion.notes
    assert "rows with positions and efforts of all joints = 0 of 800; columns of different" in note


def test_targets_of_another_topic_are_held(tmp_path):
    rows = np.full((2 * len(TIME), 5), np.nan)
    rows[::2, 0], rows[::2, 1:3] = TIME, Q
    rows[1::2, 0], rows[1::2, 3:] = TIME + 0.004, Q
    names = ("time", "q1", "q2", "target.q1", "target.q2")
    motion = load_motion(ARM, csv(tmp_path / "a.csv", names, rows))
    np.testing.assert_array_equal(motion.command_position[1:], motion.q[:-1])


# Choices ---------------------------------------------------------------------------------------


def test_one_of_several_columns_of_torques_is_stated(tmp_path):
    names = ("time", "q1", "q2", "Torque1", "Torque2", "TorqueSm1", "TorqueSm2", "TorqueCur1")
    rows = np.column_stack([table(), TAU, TAU[:, 0]])
    (note,) = load_motion(ARM, csv(tmp_path / "a.csv", names, rows)).notes
    assert "efforts = columns Torque1, Torque2; not used: TorqueSm1, TorqueSm2, TorqueCur1" in note
    file = csv(tmp_path / "b.csv", (*names[:3], *names[5:]), rows[:, [0, 1, 2, 5, 6, 7]])
    with pytest.raises(
        RecordingError, match=r"efforts = TorqueSm1, .*, with other words; exp.*one"
    ):
        load_motion(ARM, file)
    columns = {"effort.J1": "TorqueSm1", "effort.J2": "TorqueSm2"}
    assert load_motion(ARM, file, columns=columns).effort is not None


@pytest.mark.parametrize(("factor", "unit"), [(100, "ms"), (10_000, "ms"), (10_000_000, "µs")])
def test_integer_stamps_are_stated(tmp_path, factor, unit):
    values = np.column_stack([np.arange(len(TIME)) * factor // 1000 * 10, Q, TAU])
    if factor == 100:
        values[:, 0] = np.arange(len(TIME))
    form = ["%d", *["%.9g"] * 4]
    (note,) = load_motion(ARM, csv(tmp_path / "a.csv", NAMES, values, form)).notes
    assert f"stamps in column 'time' = integers without a unit, read as {unit} (median per" in note


@pytest.mark.parametrize(
    "lines",
    [
        [f"17,{k},base_link,J1,J2,{k / 9},0.2,0.0,0.0,1.5,2.5" for k in range(20)],
        [f"17,{k},,J1,J2,{k / 9},0.2,0.0,0.0,1.5,2.5" for k in range(20)],
        ["header:", "  stamp:", "    sec: 17", "    nanosec: 5", "  frame_id: ''", "name:", "- J1"],
    ],
    ids=["csv", "empty", "yaml"],
)
def test_the_output_of_ros2_topic_echo_is_named(tmp_path, lines):
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.raises(RecordingError, match=r"line 1 = .*, as ros2 topic echo prints them; exp"):
        load_motion(ARM, tmp_path / "a.csv")


# Poses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (0, 57.0, "row 3: position of joint 'J1' = 57 rad; expected -4.5 to 4.5 rad"),
        (1, np.nan, "row 3: position of joint 'J2' = nan rad"),
        (2, 1e5, r"row 3: effort of joint 'J1' = 1e\+05 N·m; expected -4000 to 4000 N·m"),
        (5, 3.0, r"row 3: approached = \[-1  3\]; expected -1, 0 or 1"),
    ],
)
def test_impossible_poses_are_rejected_with_their_row(tmp_path, column, value, message):
    joints = [replace(joint, lower=-3.0, upper=3.0) for joint in ARM.joints]
    arm = replace(ARM, joints=tuple(joints))
    names = [f"{part}.{j}" for part in ("position", "effort", "approached") for j in ("J1", "J2")]
    rows = np.column_stack([Q, TAU, np.sign(TAU)])[::40]
    file = csv(tmp_path / "poses.csv", names, rows)
    assert len(read_poses(arm, file)) == 10
    rows[2, column] = value
    with pytest.raises(InvalidValue, match=message):
        read_poses(arm, csv(file, names, rows))
