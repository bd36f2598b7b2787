"""Recorded motion: readers of each format, rules of columns, checks of stamps and units."""

import argparse
import json
import re
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import Command, Simulation, load_arm
from arm_dynamics.cli.motion_options import add_motion_options, read_motions
from arm_dynamics.core import ConfigError, InvalidValue, RecordingError
from arm_dynamics.identification import identify
from arm_dynamics.identification.efforts.arm_identification import Prediction
from arm_dynamics.identification.servos.servo_fit import PositionPrediction
from arm_dynamics.recording import MotionData, Recorder, Recording, load_motion
from arm_dynamics.recording.bag import COMMANDS, STATES, BagWriter, Message
from arm_dynamics.recording.motions.motion_checks import check_units, require_speeds
from arm_dynamics.recording.motions.motion_columns import find_columns, unit_scale, words_of
from arm_dynamics.recording.motions.motion_tables import reason

ARM = load_arm("two_link")
N = 50
TIME = np.arange(N) * 0.01
Q = np.stack([np.sin(3 * TIME), 0.5 * np.cos(5 * TIME)], axis=1)
TAU = np.stack([20 * np.cos(3 * TIME), 5 * np.sin(5 * TIME)], axis=1)
STANDARD = ("time", "position.J1", "position.J2", "effort.J1", "effort.J2")


def table(time=TIME, q=Q, tau=TAU):
    return np.column_stack([time, q, tau])


def csv(path, names, values, delimiter=","):
    lines = [delimiter.join(map(str, row)) for row in np.asarray(values, object).tolist()]
    path.write_text("\n".join([delimiter.join(names), *lines]) + "\n", "utf-8")
    return path


def check(data, tolerance=1e-12, effort=True):
    assert data.joint_names == ARM.joint_names
    np.testing.assert_allclose(data.time, TIME, atol=1e-9)
    np.testing.assert_allclose(data.q, Q, atol=tolerance)
    if effort:
        np.testing.assert_allclose(data.effort, TAU, atol=20 * tolerance)
    else:
        assert data.effort is None


# Columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        STANDARD,
        ("t", "J1_position", "J2_position", "J1_effort", "J2_effort"),
        ("timestamp", "position_J1", "position_J2", "torque_J1", "torque_J2"),
        ("stamp", "q1", "q2", "tau1", "tau2"),
        ("time [s]", "q_0", "q_1", "effort_0", "effort_1"),
        ("%time", "q[0]", "q[1]", "tau_J[0]", "tau_J[1]"),
        ("__time", "/joint_states/J1/position", "/joint_states/J2/position",
         "/joint_states/J1/effort", "/joint_states/J2/effort"),
        ("time_s", "J1", "J2", "J1 torque [N·m]", "J2 torque (Nm)"),
        ("timestamp", "actual_q_0", "actual_q_1", "jointTorque1", "jointTorque2"),
        ("time", "J1_pos_rad", "J2_pos_rad", "torque_1_Nm", "torque_2_Nm"),
        ("time", "msr_jnt_pos_1", "msr_jnt_pos_2", "meas_tau_1", "meas_tau_2"),
    ],
)  # fmt: skip
def test_common_names_of_columns_are_found(tmp_path, names):
    others = ("command.effort.J1", "target_q_0", "J1_velocity", "dq1", "gripper.position")
    values = np.column_stack([np.full((N, 5), 9.0), table()])
    check(load_motion(ARM, csv(tmp_path / "a.csv", (*others, *names), values)))


@given(
    st.lists(st.text("abJ_Q2é ", min_size=1), min_size=1, max_size=5, unique_by=words_of).filter(
        lambda names: all(words_of(name) and words_of(name)[0].isalpha() for name in names)
    ),
    st.sampled_from(["{w}.{j}", "{j}_{w}", "/joint_states/{j}/{w}", "{w}_{j} [{u}]"]),
    st.randoms(use_true_random=False),
)
def test_the_columns_of_any_joints_are_found_in_any_order(joints, pattern, random):
    made = {
        part: [pattern.format(w=part, j=joint, u=unit) for joint in joints]
        for part, unit in (("position", "deg"), ("effort", "N·m"))
    }
    names = ["time", "index", *made["position"], *made["effort"]]
    random.shuffle(names)
    found = find_columns(joints, names, "file")
    assert found.time == "time"
    assert list(found.position) == made["position"]
    assert list(found.effort) == made["effort"]


@given(st.lists(st.text(max_size=12), max_size=8, unique=True))
def test_any_names_give_columns_or_a_recording_error(names):
    with suppress(RecordingError):
        found = find_columns(("J1", "J2"), names, "file")
        assert {found.time, *found.position} <= set(names)


def test_numbers_of_joints_belong_to_joints_of_other_names():
    names = ("t", "J1", "J2", "J1 torque", "J2 torque")
    found = find_columns(("joint_1", "joint_2"), names, "file")
    assert found.position == names[1:3]
    assert found.effort == names[3:]


def test_a_column_without_a_unit_counts_before_its_copy_in_another():
    names = ("t", "q1", "q2", "q1_deg", "q2_deg")
    assert find_columns(("J1", "J2"), names, "file").position == names[1:3]


def test_the_longest_name_of_a_joint_counts():
    names = ("t", "pan_joint_pos", "shoulder_pan_joint_pos")
    found = find_columns(("pan_joint", "shoulder_pan_joint"), names, "file")
    assert found.position == names[1:]
    assert found.effort is None


@pytest.mark.parametrize(
    ("joints", "names", "message"),
    [
        (("J1", "J2"), ("q1", "q2"), "columns of time = none"),
        (("J1", "J2"), ("t", "time", "q1", "q2"), "columns of time = t, time; expected one"),
        (("J1", "J2"), ("t", "a", "b"), "no columns of positions for joints J1, J2; columns = t"),
        (("J1", "J2"), ("t", "J1_pos"), "= J1_pos; expected also joints J2; columns = t, J1_pos"),
        (("J1", "J2"), ("t", "q1", "q2", "q3"), "= q1, q2, q3; expected one per joint J1, J2"),
        (("J2", "J3"), ("t", "q1", "q2"), "= q1, q2; expected one per joint J2, J3"),
        (("J2", "J3"), ("t", "pos.J1", "pos.J2"), "expected also joints J3"),
        (("J1", "J2"), ("t", "q_0", "q_1", "q_2"), "= q_0, q_1, q_2; expected one per joint"),
        (("J1",), ("t", "q1", "actual_q_1"), "joint 'J1' = columns q1, actual_q_1"),
        (("J1", "J2"), ("t", "q1", "q2", "tau.J1"), "efforts = tau.J1; expected also joints J2"),
    ],
)  # fmt: skip
def test_ambiguous_and_missing_columns_are_rejected(joints, names, message):
    with pytest.raises(RecordingError, match=f"^file: .*{message}.*columns={{"):
        find_columns(joints, names, "file")


def test_columns_can_be_named(tmp_path):
    names = ("clock", "a", "b", "c", "d")
    file = csv(tmp_path / "a.csv", names, table())
    columns = dict(zip(STANDARD, names, strict=True))
    check(load_motion(ARM, file, columns=columns))
    with pytest.raises(
        ConfigError, match=r"columns: key = 'J1'; expected one of time, position.J1"
    ):
        load_motion(ARM, file, columns={"J1": "a"})
    with pytest.raises(ConfigError, match=r"columns: time = 'x'; expected one of clock, a"):
        load_motion(ARM, file, columns={"time": "x"})


@pytest.mark.parametrize(
    ("quantity", "name", "scale"),
    [
        ("position", "q1 [deg]", np.pi / 180),
        ("position", "q[1]", None),
        ("position", "q1_deg", np.pi / 180),
        ("position", "q1_a", None),
        ("effort", "J1_torque_Nm", 1.0),
        ("current", "current_1_ma", 1e-3),
        ("effort", "tau1 (N·mm)", 1e-3),
        ("effort", "tau1 [A]", None),
        ("effort", "tau1 [kgf.cm]", 0.0980665),
        ("effort", "tau1 (kN·m)", 1e3),
        ("effort", "torque_1_mNm", 1e-3),
        ("position", "J1 [turn]", 2 * np.pi),
        ("time", "time [min]", 60.0),
        ("time", "time_ns", 1e-9),
        ("time", "time", None),
    ],
)
def test_units_in_names(quantity, name, scale):
    assert unit_scale(quantity, name) == scale


@pytest.mark.parametrize(("error", "text"), [
    (OSError("not a\n  Parquet file"), "not a Parquet file"), (OSError(), "OSError"),
    (ValueError("9" * 4000), "9" * 200),
])  # fmt: skip
def test_an_error_of_a_library_becomes_one_line(error, text):
    assert reason(error) == text


@pytest.mark.parametrize(
    ("quantity", "multiples"),
    [
        ("position", {"rad m": 1, "mrad mm": 1e-3, "cm": 1e-2, "deg °": np.pi / 180}),
        ("target", {"rev turn turns": 2 * np.pi}),
        ("effort", {"Nm N·m N": 1, "Ncm": 1e-2, "Nmm mNm": 1e-3, "kNm kN": 1e3}),
        ("effort", {"kgf·cm kgcm": 9.80665e-2}),
        ("current", {"A": 1, "mA": 1e-3}),
        ("voltage", {"V": 1, "mV": 1e-3}),
        ("time", {"s sec secs seconds": 1, "ms": 1e-3, "us µs": 1e-6, "min": 60}),
        ("time", {"ns nsec nsecs nanosec nanoseconds": 1e-9}),
    ],
)
def test_units_in_brackets_are_multiples_of_si_units(quantity, multiples):
    for units, scale in multiples.items():
        for unit in units.split():
            assert unit_scale(quantity, f"J1 [{unit}]") == pytest.approx(scale, rel=1e-15), unit


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("t", "q1", "q2", "torque1 [%]", "torque2 [%]"), "'torque1 [%]': unit of effort = %; ex"),
        (("t", "q1", "q2", "tau.J1 [Nm]", "tau.J2 (A)"), "'tau.J2 (A)': unit of effort = A; exp"),
        (("t", "J1_pos [steps]", "J2_pos [steps]"), "'J1_pos [steps]': unit of position = steps;"),
        (("t", "J1 [counts]", "J2 [counts]"), "'J1 [counts]': unit of position = counts; expecte"),
        (("t", "q1", "q2", "target1 [ticks]", "target2 [ticks]"), "unit of target = ticks; ex"),
        (("t [h]", "q1", "q2"), "'t [h]': unit of time = h; expected s, ms"),
    ],
)  # fmt: skip
def test_unknown_units_are_named_with_the_accepted_ones(names, message):
    with pytest.raises(RecordingError, match=f"{re.escape(message)}.*rename the column.*--column"):
        find_columns(("J1", "J2"), names, "file")


@pytest.mark.parametrize("unit", ["%", "A", "raw"])
def test_columns_with_unknown_units_do_not_count_next_to_others(unit):
    others = tuple(f"torque{k} [{unit}]" for k in (1, 2))
    names = ("t", "q1", "q2", "torque1 [Nm]", "torque2 [Nm]", *others)
    assert find_columns(("J1", "J2"), names, "file").effort == names[3:5]
    chosen = {f"effort.J{k}": name for k, name in enumerate(others, 1)}
    assert find_columns(("J1", "J2"), names, "file", chosen).effort == others


def test_brackets_also_contain_joints_numbers_and_quantities():
    names = ("t", "position[J1]", "position[J2]", "tau_J[0]", "tau_J[1]")
    found = find_columns(("J1", "J2"), names, "file")
    assert (*found.position, *found.effort) == names[1:]
    names = ("t", "J1 (position)", "J2 (position)")
    assert find_columns(("J1", "J2"), names, "file").position == names[1:]


@pytest.mark.parametrize(
    ("current", "voltage", "scale"),
    [
        (("current.J1", "current.J2"), ("voltage.J1", "voltage.J2"), 1.0),
        (("J1.current [mA]", "J2.current [mA]"), ("J1_voltage", "J2_voltage"), 1e-3),
        (("i1", "i2"), ("command.voltage.J1", "command.voltage.J2"), 1.0),
        (("actuator.J1.current", "actuator.J2.current"), ("volt_1", "volt_2"), 1.0),
        (("motor_current_0", "motor_current_1"), ("J1 voltage [V]", "J2 voltage [V]"), 1.0),
    ],
)
def test_columns_of_currents_and_voltages(tmp_path, current, voltage, scale):
    own = np.random.default_rng(0).normal(size=(N, 4))
    names = (*STANDARD, *current, *voltage)
    data = load_motion(ARM, csv(tmp_path / "a.csv", names, np.column_stack([table(), own])))
    check(data)
    np.testing.assert_allclose(data.current, scale * own[:, :2])
    np.testing.assert_allclose(data.voltage, own[:, 2:])


def test_currents_of_some_joints_only_are_ignored_unless_named(tmp_path):
    file = csv(tmp_path / "a.csv", (*STANDARD, "current.J1"), np.column_stack([table(), Q[:, 0]]))
    assert load_motion(ARM, file).current is None
    with pytest.raises(RecordingError, match=r"expected also joints J2.*--column current.J2"):
        load_motion(ARM, file, columns={"current.J1": "current.J1"})


# CSV -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
def test_delimiters_are_recognized(tmp_path, delimiter):
    check(load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, table(), delimiter)))


def test_quoted_names(tmp_path):
    names = [f'"{name}"' for name in STANDARD]
    check(load_motion(ARM, csv(tmp_path / "a.csv", names, table())))


def test_decimal_commas_and_names_in_a_comment(tmp_path):
    file = csv(tmp_path / "a.csv", STANDARD, table(), ";")
    file.write_text("# made by hand\n#" + file.read_text().replace(".", ",").replace(",J", ".J"))
    check(load_motion(ARM, file))


@pytest.mark.parametrize(("scale", "unit"), [(1, ""), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")])
def test_the_unit_of_the_time_is_plausible_and_stated(tmp_path, scale, unit):
    stamps = np.rint(TIME * scale).astype(int) + 1_700_000_000_000_000_000 if scale == 1e9 else None
    time = (TIME * scale).tolist() if stamps is None else stamps.tolist()
    rows = [[t, *row] for t, row in zip(time, table()[:, 1:].tolist(), strict=True)]
    data = load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, rows))
    check(data)
    assert data.source.endswith(f"(column 'time' read as {unit})" if unit else "a.csv")


@pytest.mark.parametrize("rate", [4.0, 50.0, 5000.0, 20000.0])
def test_slow_and_fast_recordings_in_seconds_are_read(tmp_path, rate):
    data = load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, table(np.arange(N) / rate)))
    assert data.period == pytest.approx(1 / rate)


def test_degrees_are_converted_by_unit_or_option_and_rejected_otherwise(tmp_path):
    arm = load_arm("so101")
    q = np.degrees(np.outer(np.sin(TIME), np.full(6, 1.0)))
    names = ("time", *(f"{joint}.pos" for joint in arm.joint_names))
    file = csv(tmp_path / "a.csv", names, np.column_stack([TIME, q]))
    np.testing.assert_allclose(load_motion(arm, file, degrees=True).q, np.radians(q))
    with pytest.raises(InvalidValue, match=r"'shoulder_pan' = 0 to 26.9\d rad.*pass --degrees"):
        load_motion(arm, file)
    names = ("time", *(f"{name} [deg]" for name in names[1:]))
    file = csv(tmp_path / "b.csv", names, np.column_stack([TIME, q]))
    np.testing.assert_allclose(load_motion(arm, file).q, np.radians(q))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lines = 0; expected a line of names"),
        ("0,1,2\n1,2,3\n", r"no names of columns .*add a first line of names, such as time,q1"),
        ("time,q1,q2\n0,1\n", "line 2: fields = 2; expected 3"),
        ("time,q1,q2\n0,1,x\n", "line 2: q2 = 'x'; expected a number"),
        ("time,q1,q1\n0,1,2\n", "columns = q1 more than once"),
        ("time,q1,q2\n", "samples = 0; expected a recorded motion"),
    ],
)
def test_damaged_text_is_rejected(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(RecordingError, match=message):
        load_motion(ARM, tmp_path / "a.csv")


def test_text_in_other_encodings(tmp_path):
    file = csv(tmp_path / "a.csv", ["time [ms]", "q1 [°]", "q2", "tau1", "tau2"], table())
    expected = load_motion(ARM, file)
    for encoding in ("latin-1", "utf-16", "utf-8-sig"):
        file.write_bytes(file.with_name("a.csv").read_text("utf-8").encode(encoding))
        data = load_motion(ARM, file)
        np.testing.assert_array_equal(data.q, expected.q)
        file = csv(tmp_path / "a.csv", ["time [ms]", "q1 [°]", "q2", "tau1", "tau2"], table())
    for content in (b"\xff\xfetim", b"\xe0\0\0"):
        file.write_bytes(content)
        with pytest.raises(RecordingError, match="expected a text file; save it as UTF-8"):
            load_motion(ARM, file)


def test_a_line_of_units(tmp_path):
    values = np.column_stack([1e3 * TIME, np.rad2deg(Q), 1e3 * TAU])
    lines = csv(tmp_path / "a.csv", STANDARD, values).read_text().splitlines()
    for units in ("ms,deg,deg,N·mm,N·mm", "[ms],[deg],[deg],[Nmm],[Nmm]"):
        (tmp_path / "b.csv").write_text("\n".join([lines[0], units, *lines[1:]]), "utf-8")
        check(load_motion(ARM, tmp_path / "b.csv"), 1e-9)
    (tmp_path / "b.csv").write_text("\n".join([lines[0], "ms,deg,deg,%,%", *lines[1:]]), "utf-8")
    with pytest.raises(RecordingError, match=r"column 'effort.J1 \[%\]': unit of effort = %; exp"):
        load_motion(ARM, tmp_path / "b.csv")


@pytest.mark.parametrize("unit", ["pct", "percent", "ticks", "Counts"])
def test_units_that_cannot_be_converted_are_found_without_brackets(tmp_path, unit):
    names = ["time", "q1", "q2", f"tau1_{unit}", f"tau2_{unit}"]
    message = rf"column 'tau1_{unit}': unit of effort = {unit.lower()}; expected N·m"
    with pytest.raises(RecordingError, match=message):
        load_motion(ARM, csv(tmp_path / "a.csv", names, table()))
    names = [*names[:3], f"tau1 {unit}:", f"tau2 {unit}:"]
    with pytest.raises(RecordingError, match=rf"column 'tau1 {unit}:': unit of effort = "):
        load_motion(ARM, csv(tmp_path / "b.csv", names, table()))
    names = [*names[:3], f"tau1_{unit}", f"tau2_{unit}", "target1", "target2"]  # servos
    data = load_motion(ARM, csv(tmp_path / "c.csv", names, np.c_[table(), Q]))
    assert data.effort is None
    np.testing.assert_allclose(data.command_position, Q)


def test_words_of_missing_values(tmp_path):
    values = table().astype(object)
    values[3, 1], values[5, 4], values[7, 2] = "NULL", "N/A", "-"
    data = load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, values))
    assert len(data.time) == N - 3


# Stamps ----------------------------------------------------------------------------------------


def test_repeated_stamps_and_empty_fields_are_dropped(tmp_path):
    values = table().astype(object)
    values = np.insert(values, [3, 3, 7], values[[2, 2, 6]], axis=0)
    file = csv(tmp_path / "a.csv", STANDARD, values)
    check(load_motion(ARM, file))
    lines = file.read_text().splitlines()
    lines[-1] = lines[-1].split(",")[0] + ",,,,"
    file.write_text("\n".join(lines))
    data = load_motion(ARM, file)
    assert len(data.time) == N - 1
    assert np.isfinite(data.effort).all()


def test_repeated_stamps_are_stated(tmp_path):
    coarse = np.floor(TIME * 50) / 50
    different = len(np.unique(coarse))
    data = load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, table(coarse)))
    assert len(data.time) == different < N
    assert f"stamps = {different} different of {N}; samples with the stamp" in data.notes[0]
    single = (1.7e9 + TIME).astype(np.float32)
    with pytest.raises(InvalidValue, match=rf"stamps = 1 different of {N}; .*more digits"):
        load_motion(ARM, csv(tmp_path / "b.csv", STANDARD, table(single)))


def test_seconds_and_nanoseconds_in_two_columns(tmp_path):
    names = ["header.stamp.sec", "header.stamp.nanosec", *STANDARD[1:]]
    stamps = 1_700_000_000_900_000_000 + np.round(TIME * 1e9).astype(np.int64)
    values = np.column_stack([stamps // 10**9, stamps % 10**9, Q, TAU]).astype(object)
    values[:, :2] = np.column_stack([stamps // 10**9, stamps % 10**9])
    check(load_motion(ARM, csv(tmp_path / "a.csv", names, values)), 1e-9)
    others = ["stamp_sec", "time_nanosec", *STANDARD[1:]]
    with pytest.raises(RecordingError, match="columns of time = stamp_sec, time_nanosec; expected"):
        find_columns(ARM.joint_names, others, "file")


@pytest.mark.parametrize("form", ["{}T{}", "{} {}Z", "{}T{}+02:00", "{}T{}000Z"])
def test_dates_as_stamps(tmp_path, form):
    values = table().astype(object)
    for k, time in enumerate(TIME):
        values[k, 0] = form.format("2026-03-29", f"23:59:{time + 50:09.6f}")
    check(load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, values)), 1e-6)


@pytest.mark.parametrize(
    ("joints", "names"),
    [
        (["shoulder_pan_joint", "elbow_joint"], ["shoulder_pan_pos", "elbow_pos"]),
        (["joint_a1", "joint_a2"], ["A1_Pos [deg]", "A2_Pos [deg]"]),
        (["joint_a1", "joint_a2"], ["AxisAct.A1", "AxisAct.A2"]),
        (["robot_j1_joint", "j1_joint"], ["robot_j1_joint_q", "j1_joint_q"]),
    ],
)
def test_joints_are_found_without_their_common_words(joints, names):
    assert find_columns(joints, ["t", *names[::-1]], "file").position == tuple(names)


def test_stamps_that_decrease_are_rejected_with_their_row(tmp_path):
    time = TIME.copy()
    time[20] = 0.1
    file = csv(tmp_path / "a.csv", STANDARD, table(time))
    with pytest.raises(
        InvalidValue, match=r"row 21: time = 0.1\d+ s after the first sample, but 0.19\d+ s in"
    ):
        load_motion(ARM, file)
    time[20] = np.nan
    with pytest.raises(InvalidValue, match="row 21: time = nan; expected a finite time"):
        load_motion(ARM, csv(tmp_path / "b.csv", STANDARD, table(time)))


def test_gaps_separate_the_segments_of_a_motion(tmp_path):
    time = np.arange(200) * 0.01
    time += 0.2 * (time > 0.995)
    values = np.column_stack([time, np.tile(np.sin(time), (4, 1)).T])
    data = load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, values))
    assert [part.time[[0, -1]].tolist() for part in data.segments()] == [
        pytest.approx([0.0, 0.99]),
        pytest.approx([1.2, 2.19]),
    ]


def test_implausible_and_few_stamps_are_rejected(tmp_path):
    with pytest.raises(InvalidValue, match=r"median period of column 'time' = 1e-06"):
        load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, table(TIME * 1e-4)))
    with pytest.raises(InvalidValue, match="samples = 5; expected at least 10"):
        load_motion(ARM, csv(tmp_path / "b.csv", STANDARD, table()[:5]))


def test_positions_of_some_joints_only_are_rejected(tmp_path):
    values = table()
    values[:, 2] = np.nan
    with pytest.raises(RecordingError, match="positions of joints J2 = not a number in all samp"):
        load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, values))


def test_efforts_of_some_joints_only_are_rejected(tmp_path):
    tau = np.column_stack([TAU[:, 0], np.full(N, np.nan)])
    with pytest.raises(RecordingError, match=r"no efforts of joints J2; .*lock these joints"):
        load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, table(tau=tau)))
    tau = np.full((N, 2), np.nan)
    check(load_motion(ARM, csv(tmp_path / "b.csv", STANDARD, table(tau=tau))), effort=False)


# Recordings and bags ---------------------------------------------------------------------------


def test_recordings_are_read_and_so_are_their_tables(tmp_path):
    pytest.importorskip("rosbags")
    sim = Simulation(ARM)
    with Recorder(sim, tmp_path / "run"):
        for k in range(30):
            sim.submit(Command.checked("effort", [10.0 + k, 5.0], 2, sim.state.time))
            sim.advance()
    recording = Recording.load(tmp_path / "run")
    data = load_motion(ARM, tmp_path / "run")
    # The initial state has no effort.
    np.testing.assert_array_equal(data.q, recording.q[1:])
    np.testing.assert_array_equal(data.effort, recording.tau[1:])
    np.testing.assert_allclose(data.time, recording.time[1:] - recording.time[1])
    for ending in ("csv", "parquet"):
        if ending == "parquet":
            pytest.importorskip("pyarrow")
        other = load_motion(ARM, recording.write(tmp_path / f"run.{ending}"))
        np.testing.assert_array_equal(other.q, data.q)
        np.testing.assert_array_equal(other.effort, data.effort)
        np.testing.assert_allclose(other.time, data.time)
    with pytest.raises(
        RecordingError, match=r"joints = J1, J2; expected shoulder_pan.*missing: sh"
    ):
        load_motion(load_arm("so101"), tmp_path / "run")


def bag(folder, names=("grip", "J2", "J1"), topic=STATES, effort=True):
    pytest.importorskip("rosbags")
    writer = BagWriter(folder)
    for t, q, tau in zip(TIME, Q, TAU, strict=True):
        fields = {"position": [9.0, q[1], q[0]][-len(names) :]}
        if effort:
            fields["effort"] = [9.0, tau[1], tau[0]][-len(names) :]
        now = 1_700_000_000_000_000_000 + round(t * 1e9)
        writer.add(Message(topic, now, names, fields))
        writer.add(Message(STATES, now + 1, ["wheel"], {"position": [1.0]}))
    writer.close()
    return folder


def test_joints_of_a_bag_are_found_by_name(tmp_path):
    folder = bag(tmp_path / "bag")
    check(load_motion(ARM, folder))
    check(load_motion(ARM, next(folder.glob("*.mcap"))))
    check(load_motion(ARM, folder, topic=STATES))
    check(load_motion(ARM, bag(tmp_path / "positions", effort=False)), effort=False)


def test_a_bag_without_commands_has_no_targets(tmp_path):
    data = load_motion(ARM, bag(tmp_path / "bag"))
    assert data.command_position is None


def test_topics_of_a_bag(tmp_path):
    folder = bag(tmp_path / "bag", topic=COMMANDS)
    with pytest.raises(RecordingError, match=r"joints = wheel; expected J1, J2; missing: J1, J2"):
        load_motion(ARM, folder)
    data = load_motion(ARM, folder, topic=COMMANDS)
    check(data)
    assert data.source.endswith("(/joint_commands)")
    with pytest.raises(ConfigError, match=r"topic = /x; expected one of /joint_"):
        load_motion(ARM, folder, topic="/x")


def test_two_arms_in_a_bag_need_a_topic(tmp_path):
    typesys = pytest.importorskip("rosbags.typesys")
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
    kinds, name = store.types, "sensor_msgs/msg/JointState"
    header = kinds["std_msgs/msg/Header"]
    stamp = kinds["builtin_interfaces/msg/Time"]
    plugin = rosbag2.StoragePlugin.SQLITE3
    with rosbag2.Writer(tmp_path / "bag", version=8, storage_plugin=plugin) as writer:
        for topic, factor in (("/left/joint_states", 1), ("/right/joint_states", 2)):
            connection = writer.add_connection(topic, name, typestore=store)
            for t, q, tau in zip(TIME, Q, TAU, strict=True):
                at = stamp(7, round(t * 1e9))
                message = kinds[name](
                    header(at, ""), ["J1", "J2"], factor * q, np.empty(0), factor * tau
                )
                # The stamps of the messages count, not the times of their arrival.
                late = round(7e9 + t * 2e9)
                writer.write(connection, late, store.serialize_cdr(message, name))
    with pytest.raises(RecordingError, match=r"'two_link' = /left/j.*, /right/j.*; pass --topic"):
        load_motion(ARM, tmp_path / "bag")
    check(load_motion(ARM, tmp_path / "bag", topic="/left/joint_states"))
    file = next((tmp_path / "bag").glob("*.db3"))
    check(load_motion(ARM, file, topic="/left/joint_states"))


def test_joints_in_different_messages_are_interpolated(tmp_path):
    pytest.importorskip("rosbags")
    writer = BagWriter(tmp_path / "bag")
    for k, t in enumerate(np.arange(0, 0.5, 0.005)):
        joint = k % 2  # each message has one joint, at half of the rate
        fields = {"position": [np.sin(3 * t)], "velocity": [3 * np.cos(3 * t)], "effort": [10 * t]}
        now = 1_700_000_000_000_000_000 + round(t * 1e9)
        writer.add(Message(STATES, now, [ARM.joint_names[joint]], fields))
    writer.close()
    data = load_motion(ARM, tmp_path / "bag")
    assert len(data.time) > 45
    time = data.time + data.effort[0, 0] / 10
    for joint in range(2):  # the error of linear interpolation is at most (3 h)^2 / 8
        np.testing.assert_allclose(data.q[:, joint], np.sin(3 * time), atol=2e-4)
        np.testing.assert_allclose(data.effort[:, joint], 10 * time, atol=1e-6)
        np.testing.assert_allclose(data.v[:, joint], 3 * np.cos(3 * time), atol=1e-3)


def test_velocities_commands_and_currents_of_a_recording_are_kept(tmp_path):
    pytest.importorskip("rosbags")
    arm = load_arm("five_dof").with_motors(inductance=1e-4, thermal_resistance=1.0)
    sim = Simulation(arm)
    with Recorder(sim, tmp_path / "run"):
        for k in range(30):
            sim.submit(Command.checked("voltage", np.full(5, 0.1 * k), 5, sim.state.time))
            sim.advance()
    recording = Recording.load(tmp_path / "run")
    data = load_motion(arm, tmp_path / "run")
    rows = slice(len(recording.time) - len(data.time), None)
    np.testing.assert_array_equal(data.v, recording.v[rows])
    np.testing.assert_array_equal(data.voltage, recording.commands["voltage"][rows])
    np.testing.assert_array_equal(data.current, recording.act[rows, ::2])
    assert data.command_effort is None
    assert data.command_position is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", "none = missing; expected a rosbag2 folder"),
        ("a.bag", "format = ROS 1; .*rosbags-convert"),
        ("a.npz", "ending = '.npz'; expected a rosbag2 folder"),
    ],
)
def test_other_files_are_rejected(tmp_path, name, message):
    if name != "none":
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(RecordingError, match=message):
        load_motion(ARM, tmp_path / name)


def test_options_of_other_formats_are_rejected(tmp_path):
    file = csv(tmp_path / "a.csv", STANDARD, table())
    with pytest.raises(ConfigError, match="episode = 0; expected no episode for this file"):
        load_motion(ARM, file, episode=0)
    with pytest.raises(ConfigError, match="topic = /a; expected no topic"):
        load_motion(ARM, file, topic="/a")
    with pytest.raises(ConfigError, match=r"columns = .*expected no columns"):
        load_motion(ARM, tmp_path, columns={"time": "t"})


# Parquet and LeRobot ---------------------------------------------------------------------------


def test_parquet_with_a_stamp_of_a_date(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(dict(zip(STANDARD, table().T, strict=True)))
    frame["time"] = pandas.Timestamp("2024-05-01") + pandas.to_timedelta(frame["time"], unit="s")
    frame["label"] = "text"
    frame.to_parquet(tmp_path / "a.parquet")
    check(load_motion(ARM, tmp_path / "a.parquet"), tolerance=1e-9)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordingError, match=r"b.parquet: .*expected a Parquet file"):
        load_motion(ARM, tmp_path / "b.parquet")


def test_parquet_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ConfigError, match=r"pyarrow = missing; .*extra 'table'; .* to \.csv"):
        load_motion(ARM, tmp_path / "a.parquet")


def dataset(folder, version="v3.0", names=("J2.pos", "J1.pos", "grip.pos"), episodes=2, **more):
    """Write a dataset: its state in degrees, with the arm's motion scaled by episode + 1."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    feature = {"dtype": "float32", "shape": [3], "names": names}
    features = {"timestamp": {"dtype": "float32"}, "observation.state": feature, **more}
    info = {
        "codebase_version": version, "total_episodes": episodes, "fps": 100, "features": features,
    }  # fmt: skip
    (folder / "meta").mkdir(parents=True)
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    tables = []
    for k in range(episodes):
        state = np.degrees(np.column_stack([(k + 1) * Q[:, ::-1], np.full(N, 50.0)]))
        columns = {
            "timestamp": arrow.array(TIME.astype(np.float32)),
            "observation.state": arrow.array(state.tolist(), arrow.list_(arrow.float64(), 3)),
            "episode_index": arrow.array([k] * N),
        }
        if "observation.effort" in more:
            columns["observation.effort"] = arrow.array(TAU[:, ::-1].tolist())
        if "action" in more:
            columns["action"] = arrow.array((state + 1.0).tolist())
        tables.append(arrow.table(columns))
    data = folder / "data" / "chunk-000"
    data.mkdir(parents=True)
    if version.startswith("v3"):
        parquet.write_table(arrow.concat_tables(tables), data / "file-000.parquet")
    else:
        for k, content in enumerate(tables):
            parquet.write_table(content, data / f"episode_{k:06d}.parquet")
    return folder


def test_actions_of_datasets_are_target_positions(tmp_path):
    names = ["J2.pos", "J1.pos", "grip.pos"]
    action = {"dtype": "float32", "shape": [3], "names": names}
    data = load_motion(ARM, dataset(tmp_path, episodes=1, action=action), degrees=True)
    assert data.effort is None
    np.testing.assert_allclose(data.command_position, Q + np.radians(1.0), atol=1e-12)


@pytest.mark.parametrize("word", ["target.{}", "action_{}.pos", "command.position.{}", "{} goal"])
def test_columns_of_target_positions(tmp_path, word):
    names = (*STANDARD, word.format("J1") + " [deg]", word.format("J2") + " [deg]")
    file = csv(tmp_path / "a.csv", names, np.column_stack((table(), np.degrees(Q + 0.1))))
    data = load_motion(ARM, file)
    check(data)
    np.testing.assert_allclose(data.command_position, Q + 0.1, atol=1e-12)
    more = csv(tmp_path / "b.csv", names[:-1], np.column_stack((table(), Q[:, 0])))
    assert load_motion(ARM, more).command_position is None
    chosen = {"target.J1": names[-2]}
    with pytest.raises(RecordingError, match=r"columns of targets = .*; expected also joints J2"):
        load_motion(ARM, more, columns=chosen)


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
@pytest.mark.parametrize(
    "names",
    [("J2.pos", "J1.pos", "grip.pos"), {"motors": ["main_J2", "main_J1", "main_grip"]}],
)
def test_episodes_of_datasets(tmp_path, version, names):
    folder = dataset(tmp_path / "set", version, names)
    data = load_motion(ARM, folder, episode=0, degrees=True)
    np.testing.assert_allclose(data.q, Q, atol=1e-12)
    np.testing.assert_allclose(data.time, TIME, atol=1e-6)
    assert data.effort is None
    assert data.source.endswith("set (episode 0)")
    second = load_motion(ARM, folder, episode=1, degrees=True)
    np.testing.assert_allclose(second.q, 2 * Q, atol=1e-12)
    for episode in (None, 2):
        with pytest.raises(InvalidValue, match=f"episode = {episode}; expected 0 to 1; pass"):
            load_motion(ARM, folder, episode=episode)


def test_efforts_of_datasets(tmp_path):
    feature = {"dtype": "float32", "names": ["J2", "J1"]}
    folder = dataset(tmp_path / "set", episodes=1, **{"observation.effort": feature})
    np.testing.assert_allclose(load_motion(ARM, folder, degrees=True).effort, TAU)


def test_datasets_in_degrees_are_rejected(tmp_path):
    arm = load_arm("so101")
    names = [f"{joint}.pos" for joint in arm.joint_names]
    folder = dataset(tmp_path / "set", names=[names[1], names[0], names[2]], episodes=1)
    with pytest.raises(RecordingError, match="expected also joints wrist_flex"):
        load_motion(arm, folder)
    locked = load_arm(
        "so101", lock=[joint for joint in arm.joint_names if not joint.startswith("s")]
    )
    assert locked.joint_names == ("shoulder_pan", "shoulder_lift")
    with pytest.raises(
        InvalidValue, match=r"pass --degrees \(degrees=True\) if the file has degrees"
    ):
        load_motion(locked, folder)


def test_damaged_datasets_are_rejected(tmp_path):
    def raises(message, folder):
        with pytest.raises(RecordingError, match=message):
            load_motion(ARM, folder, episode=0)

    raises("codebase_version = v1.6; expected v2.0", dataset(tmp_path / "old", "v1.6"))
    folder = dataset(tmp_path / "short", names=["J1", "J2"])
    raises("= 3 values; expected 2 as in its names", folder)
    file = next(folder.glob("data/**/*.parquet"))
    with pytest.raises(RecordingError, match=r"vectors without names; expected the folder"):
        load_motion(ARM, file)
    file.unlink()
    raises("rows of episode 0 = 0; .*download it", folder)
    (folder / "meta" / "info.json").write_text("{}")
    raises("expected codebase_version, total_episodes and features", folder)
    info = {"codebase_version": "v3.0", "total_episodes": 1, "features": {"action": {}}}
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    raises("features = action; expected observation.state", folder)


# Units -----------------------------------------------------------------------------------------

LONG = np.arange(0, 10, 0.01)
SWEEP = np.stack([np.sin(1.3 * LONG), np.cos(2 * LONG)], axis=1)
MOTION = MotionData(ARM.joint_names, LONG, SWEEP, 30 * SWEEP, "run")


def test_a_plausible_motion_has_no_warnings():
    assert check_units(ARM, MOTION) == ()
    assert check_units(ARM, replace(MOTION, effort=None)) == ()


def prismatic(lower=0.0, upper=0.4):
    """Return the arm with a prismatic second joint."""
    joint = replace(ARM.joints[1], kind="prismatic", lower=lower, upper=upper)
    return replace(ARM, joints=(ARM.joints[0], joint))


def test_positions_of_prismatic_joints_in_mm_are_rejected():
    arm, q = prismatic(), SWEEP * [1, 0.2] + [0, 0.2]
    assert check_units(arm, replace(MOTION, q=q)) == ()
    with pytest.raises(
        InvalidValue,
        match=r"run: position of joint 'J2' = .* to 400 m; expected 0 to 0.4 m; .*'pos.*.J2 \[mm",
    ):
        check_units(arm, replace(MOTION, q=q * [1, 1e3]))


def test_a_few_implausible_positions_are_named_as_samples():
    arm = load_arm("so101", lock=load_arm("so101").joint_names[2:])
    q = np.array(SWEEP)
    q[[400, 700], 1] = 50.0
    motion = MotionData(arm.joint_names, LONG, q, None, "run")
    with pytest.raises(
        InvalidValue,
        match=r"'shoulder_lift' = 50 rad in sample 401 of 1000, and implausible in 2 sam.*; delete",
    ):
        check_units(arm, motion)
    slow = np.clip(60 * SWEEP, -50.0, 12.7)  # degrees, few of them outside
    with pytest.raises(InvalidValue, match="pass --degrees"):
        check_units(arm, replace(motion, q=slow))


@pytest.mark.parametrize("factor", [8, 60])
def test_velocities_far_above_their_limits_are_named_with_the_likely_causes(factor):
    limit = ARM.joints[0].velocity
    motion = replace(MOTION, time=LONG / factor, q=limit / 1.3 * SWEEP * [1, 0.01])
    message = rf"run: velocity of joint 'J1' = [\d.]+ rad/s, .* limit of {limit:g} rad/s; check "
    assert any(re.match(message, text) for text in check_units(ARM, motion))


def test_single_glitches_and_noise_are_not_velocities():
    q = np.array(MOTION.q)
    q[::400] += 10.0
    assert not any("velocity" in text for text in check_units(ARM, replace(MOTION, q=q)))
    noise = np.random.default_rng(0).normal(0, 1e-3, (10000, 2))
    time = np.linspace(0, 1, 10000)
    q = np.sin(2 * time)[:, None] + noise
    warnings = check_units(ARM, MotionData(ARM.joint_names, time, q, None))
    assert not any("velocity" in text for text in warnings)


def test_a_single_effort_far_above_its_limit_is_rejected_with_its_sample():
    effort = np.array(MOTION.effort)
    effort[7, 1] = 1e6
    with pytest.raises(InvalidValue, match=r"effort of joint 'J2' = 1e\+06 N·m at t = .* in 1 of"):
        check_units(ARM, replace(MOTION, effort=effort))


def test_a_period_that_is_plausible_in_s_and_in_ms_needs_a_unit(tmp_path):
    time = np.arange(N) * 0.48
    with pytest.raises(InvalidValue, match=r"'time' = 0.48, plausible in s and in ms"):
        load_motion(ARM, csv(tmp_path / "a.csv", STANDARD, table(time)))
    names = ("time [s]", *STANDARD[1:])
    data = load_motion(ARM, csv(tmp_path / "b.csv", names, table(time)))
    assert data.period == pytest.approx(0.48)


@pytest.mark.parametrize(
    ("effort", "message"),
    [
        (0 * SWEEP, "efforts = 0 in all samples; expected measured efforts"),
        (3e4 * SWEEP, r"joint 'J1' = .*N·m, 1\d\d times its limit; expected at most 200 N·m.*N·mm"),
        (np.clip(400 * SWEEP, -200, 200), r"'J1' = its limit of 200 N·m in \d+ % .*slower motion"),
    ],
)
def test_implausible_efforts_are_rejected(effort, message):
    with pytest.raises(InvalidValue, match=message):
        check_units(ARM, replace(MOTION, effort=effort))


def test_other_joints_are_rejected():
    with pytest.raises(InvalidValue, match="joints = a, b; expected J1, J2"):
        check_units(ARM, replace(MOTION, joint_names=("a", "b")))


def test_small_efforts_and_one_speed_give_warnings():
    (warning,) = check_units(ARM, replace(MOTION, effort=0.01 * SWEEP))
    assert "may be currents [A]" in warning
    triangle = np.abs((0.5 * LONG) % 2 - 1)
    noise = np.random.default_rng(1).normal(0, 1e-4, len(LONG))
    q = np.stack([triangle + noise, np.full(len(LONG), 0.3)], axis=1)
    (warning,) = check_units(ARM, replace(MOTION, q=q))
    assert warning.startswith("run: joint 'J1': speed = 0.5 only")


def test_efforts_that_read_0_while_the_joint_moves_give_a_warning():
    effort = np.array(MOTION.effort)
    effort[: int(0.6 * len(effort)), 0] = 0.0
    (warning,) = check_units(ARM, replace(MOTION, effort=effort))
    assert f"effort of joint '{ARM.joint_names[0]}' = 0 in 6" in warning


def test_efforts_that_stay_at_a_level_below_their_limit_give_a_warning():
    effort = np.clip(MOTION.effort, -20, 20) * [1, 0.5]
    first, second = check_units(ARM, replace(MOTION, effort=effort))
    assert "effort of joint 'J1' = ±20 N·m, its largest value, in 5" in first
    assert "effort of joint 'J2' = ±10 N·m" in second


def test_an_effort_limit_that_is_exceeded_is_not_saturation():
    efforts = np.column_stack(
        [np.where(LONG > 5, 210.0, 260.0) * np.sign(SWEEP[:, 0]), SWEEP[:, 1]]
    )
    assert not any("limit" in text for text in check_units(ARM, replace(MOTION, effort=efforts)))


def test_one_speed_in_all_motions_is_rejected():
    triangle = 0.5 * np.abs(np.mod(LONG, 4.0) - 2.0)
    slow = replace(MOTION, q=np.stack([triangle, 1.5 * triangle], axis=1))
    with pytest.raises(InvalidValue, match=r"run: speeds .* = J1 0.5, J2 0.75 only; expected sev"):
        identify(ARM, [slow], [MOTION])
    with pytest.raises(InvalidValue, match=r"run: speeds .* = J2 0.75 only; expected several"):
        identify(ARM, [replace(slow, q=slow.q * [0, 1])], [MOTION])
    require_speeds([slow, replace(slow, q=2 * slow.q)])
    require_speeds([MOTION])


def test_a_path_names_an_episode(tmp_path):
    folder = dataset(tmp_path / "set")
    parser = argparse.ArgumentParser()
    add_motion_options(parser)
    args = parser.parse_args(["--degrees", "--episode", "0"])
    paths = [folder, Path(f"{folder}:1"), Path(f"{folder}:0")]
    given, second, first = read_motions(ARM, args, paths)
    assert [x.source[-11:] for x in (given, second, first)] == [f"(episode {k})" for k in (0, 1, 0)]
    assert (given.q == first.q).all()
    assert not (given.q == second.q).all()


def test_a_file_may_be_named_like_an_episode(tmp_path):
    file = tmp_path / "run:1"
    file.touch()
    parser = argparse.ArgumentParser()
    add_motion_options(parser)
    with pytest.raises(RecordingError, match="run:1: ending = ''"):
        read_motions(ARM, parser.parse_args([]), [file])


def test_errors_of_a_joint_without_motion_are_not_numbers():
    still, moved = np.zeros((20, 1)), np.linspace(0.0, 1.0, 20)[:, None]
    measured = np.hstack([still, moved])
    positions = PositionPrediction(np.arange(20.0), measured, measured + 0.1)
    efforts = Prediction(np.arange(20.0), measured, measured + 0.1, np.ones((20, 2), dtype=bool))
    for error in (positions.relative_error, efforts.relative_error):
        assert np.isnan(error[0])
        assert 0.1 < error[1] < 0.5
    assert efforts.offset == pytest.approx([-0.1, -0.1])
