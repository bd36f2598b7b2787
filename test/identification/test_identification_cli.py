"""Commands identify and compare."""

import io

import numpy as np
import pytest
from rich.console import Console
from test_gravity_calibration import poses_of, rough, static_poses
from test_identification import hidden_arm, simulated

from arm_dynamics import load_arm
from arm_dynamics.batch.tuning.tolerance import read_tolerances
from arm_dynamics.cli import compare, identify, record
from arm_dynamics.cli.main import main
from arm_dynamics.cli.terminal import print_table
from arm_dynamics.core.errors import ConfigError, InvalidValue, RecordingError
from arm_dynamics.core.resources import resource_folder
from arm_dynamics.dynamics import gravity
from arm_dynamics.identification import nominal_parameters, parameter_names, write_poses
from arm_dynamics.identification.efforts.drive_gain_fit import nominal_gains
from arm_dynamics.identification.gravity.gravity_calibration import random_configurations
from arm_dynamics.identification.results.identification_result import new_faults
from arm_dynamics.model.audit import audit_urdf


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Return a folder with the CSV files of two motions of a two_link arm that differs."""
    folder = tmp_path_factory.mktemp("recordings")
    arm = load_arm("two_link")
    actual = hidden_arm(arm, 3)
    for seed, name in enumerate(("run1", "run2")):
        motion, _ = simulated(arm, actual, seed, 20.0)
        kinds = ("position", motion.q), ("effort", motion.effort)
        heads = [f"{kind}.{joint}" for kind, _ in kinds for joint in arm.joint_names]
        np.savetxt(
            folder / f"{name}.csv", np.column_stack((motion.time, motion.q, motion.effort)),
            delimiter=",", header=",".join(("time", *heads)), comments="",
        )  # fmt: skip
    return folder


def errors(output):
    """Return the relative errors of joints in per cent that ``compare`` prints."""
    return [error for error, _without_offset in percents(output)]


def percents(output):
    """Return all relative errors in per cent of each joint."""
    rows = [line.split("│") for line in output.splitlines() if line.startswith("│ J")]
    cells = [[cell.replace("%", "") for cell in row if "%" in cell] for row in rows]
    return [[float(cell) for cell in row] for row in cells if len(row) > 1]


def test_an_identified_urdf_predicts_another_recording(recordings, tmp_path, capsys):
    files = [tmp_path / name for name in ("mine.urdf", "report.html", "tolerances.yaml")]
    options = zip(("--output", "--report", "--tolerances"), map(str, files), strict=True)
    run1, run2 = (str(recordings / f"run{k}.csv") for k in (1, 2))
    words = ["two_link", run1, "--held-out", run2, *(w for pair in options for w in pair)]
    assert identify.run(words) == 0
    printed = capsys.readouterr().out
    assert "efforts: delay" in printed
    assert all(str(file) in printed for file in files)
    assert "<svg" in files[1].read_text()
    found = load_arm(files[0])
    assert not np.allclose(nominal_parameters(found), nominal_parameters(load_arm("two_link")))
    assert read_tolerances(files[2], found)
    figure = tmp_path / "compare.png"
    assert compare.run(["two_link", run2, "--figure", str(figure)]) == 0
    assert figure.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"--figure = .*exists already; expected a new file"):
        compare.run(["two_link", run2, "--figure", str(figure)])
    before = errors(capsys.readouterr().out)
    assert compare.run([str(files[0]), run2]) == 0
    after = errors(capsys.readouterr().out)
    assert len(before) == len(after) == 2
    assert max(after) < 2.0 < min(before)
    stated = [row[-1] for row in percents(printed)][-2:]
    assert stated == pytest.approx(after, rel=0.1), "error of the URDF"


def test_a_file_that_exists_is_kept(recordings, tmp_path):
    file = tmp_path / "mine.urdf"
    file.write_text("precious")
    with pytest.raises(ConfigError, match="exists already"):
        identify.run(["two_link", str(recordings / "run1.csv"), "--output", str(file)])
    assert file.read_text() == "precious"


def test_a_folder_that_does_not_exist_is_rejected_before_the_fit(recordings, tmp_path):
    with pytest.raises(ConfigError, match=r"--output = .*; expected a file in a folder that ex"):
        identify.run(["two_link", str(recordings), "--output", str(tmp_path / "no" / "mine.urdf")])


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            [1, 1, 1, -1, -1],
            "efforts of all joints: sign = opposite to those of the nominal model or of friction",
        ),
        (
            [1, 1, 1, 1, -1],
            "efforts of joints J2: sign = opposite to those of the nominal model or of friction",
        ),
        ([0, 1, 2, 4, 3], "held-out error of the efforts of joints J"),
    ],
)
def test_efforts_of_other_signs_or_joints_are_named(recordings, tmp_path, capsys, change, message):
    text = (recordings / "run1.csv").read_text()
    table = np.loadtxt(recordings / "run1.csv", delimiter=",", skiprows=1)
    table = table * change if -1 in change else table[:, change]
    file, heads = tmp_path / "run.csv", text.splitlines()[0]
    np.savetxt(file, table, delimiter=",", header=heads, comments="")
    output = tmp_path / "mine.urdf"
    words = ["efforts", "two_link", str(file), "--no-simulation", "--output", str(output)]
    assert identify.run(words) == 1
    assert message in capsys.readouterr().out
    header = " ".join(output.read_text().split("<robot")[0].split())
    assert message in header


@pytest.mark.quick(1)
@pytest.mark.parametrize(("factor", "unit"), [(10.2, "kgf·cm is likely"), (0.1, "currents or raw")])
def test_efforts_of_another_scale_are_named_with_the_likely_unit(
    recordings, tmp_path, capsys, factor, unit
):
    heads = (recordings / "run1.csv").read_text().splitlines()[0]
    table = np.loadtxt(recordings / "run1.csv", delimiter=",", skiprows=1)
    file = tmp_path / "run.csv"
    scales = [1, 1, 1, factor, factor]
    np.savetxt(file, table * scales, delimiter=",", header=heads, comments="")
    for run, command, options in (
        (compare.run, [], []),
        (identify.run, ["efforts"], ["--no-simulation"]),
    ):
        assert run([*command, "two_link", str(file), *options]) == 0
        printed = capsys.readouterr().out
        assert "times those of the nominal model; expected 0.3 to 3 times" in printed
        assert unit in printed
        assert run([*command, "two_link", str(recordings / "run1.csv"), *options]) == 0
        assert "times those of the nominal model" not in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--held-out"], []])
def test_the_same_recording_twice_is_named(recordings, options):
    run1 = str(recordings / "run1.csv")
    with pytest.raises(
        InvalidValue, match=r"run1.csv and .*run1.csv: two recordings are identical"
    ):
        identify.run(["two_link", run1, *options, run1])


def test_a_column_option_without_a_column_is_rejected(recordings):
    with pytest.raises(ConfigError, match="--column = time; expected NAME=COLUMN"):
        compare.run(["two_link", str(recordings / "run1.csv"), "--column", "time"])


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_numbers_of_a_table_are_never_cut(width, is_terminal):
    row = ("a_joint_with_a_very_long_name.viscous", "N·m·s/rad", "-0.0008669", "-6.769e-05", "46 %")
    other = ("[J2].mx", "kg·m", "0.1", "0.2", "not distinguished")
    file, heads = io.StringIO(), ("parameter", "unit", "prior", "value", "standard deviation")
    console = Console(file=file, width=width, force_terminal=is_terminal, color_system=None)
    print_table("Parameters", heads, [row, other], console)
    printed = file.getvalue()
    assert all(cell in printed for cell in (*row[1:], *other[:-1], *other[-1].split()))
    names = (line.strip("│ ").split(" ")[0] for line in printed.splitlines())
    assert row[0] in (printed if not is_terminal else "".join(names))
    if is_terminal and width >= 60:
        assert max(map(len, printed.splitlines())) <= width


def test_a_warning_of_the_description_is_printed_once(recordings, tmp_path, capsys):
    text = (resource_folder("urdf") / "two_link.urdf").read_text()
    axis = text[text.index("<axis") :].partition(">")[0] + ">"
    file = tmp_path / "questionable.urdf"
    file.write_text(text.replace(axis, '<axis xyz="0 0 2"/>', 1))
    output, run1 = str(tmp_path / "mine.urdf"), str(recordings / "run1.csv")
    with pytest.warns(RuntimeWarning, match="length 2") as caught:
        assert (
            identify.run(["efforts", str(file), run1, "--no-simulation", "--output", output]) == 0
        )
    assert len(caught) == 1
    assert "warning" not in capsys.readouterr().err


def test_identified_masses_have_the_unit_of_the_nominal_ones(tmp_path):
    """The fit of a heavy robot puts a large mass into one link: the audit alone suspects grams."""
    arm = load_arm("five_dof")
    heavy = arm.urdf.replace('<mass value="4.5"', '<mass value="7980"')
    assert any("write kilograms" in str(fault) for fault in audit_urdf(heavy))
    warnings = " ".join(map(str, new_faults(arm, heavy, tmp_path / "new.urdf")))
    assert "largest principal moment" in warnings
    assert "kilograms" not in warnings


def test_currents_without_torque_constants_are_named_with_their_remedy(recordings, tmp_path):
    text = (recordings / "run1.csv").read_text().replace("effort.", "current.")
    file = tmp_path / "currents.csv"
    file.write_text(text)
    message = r"currents, and no torque constants of joints J1, J2 in .*add kt and gear_ratio"
    with pytest.raises(InvalidValue, match=message):
        compare.run(["two_link", str(file)])


# Gravity calibration ---------------------------------------------------------------------------

STIFFNESS = 400.0


def write_table(file, arm, columns, time=()):
    """Write a CSV file with the columns (n, nv) of each kind."""
    names = [f"{kind}.{joint}" for kind in columns for joint in arm.joint_names]
    heads, parts = (["time"], [time]) if len(time) else ([], [])
    np.savetxt(
        file, np.column_stack((*parts, *columns.values())),
        delimiter=",", header=",".join((*heads, *names)), comments="",
    )  # fmt: skip
    return str(file)


def held_poses(folder, arm, load, is_recording):
    """Return a pose table, or a recording in which the arm stops at each pose for 1 s.

    ``load`` chooses the columns: efforts, currents, currents that are called efforts, or targets.
    """
    actual = rough(arm.with_payload(0.2))
    poses = static_poses(actual, poses_of(arm.name))
    q, effort, side = (
        np.array([getattr(p, n) for p in poses]) for n in ("q", "effort", "direction")
    )
    if is_recording:
        ramp = np.concatenate((np.linspace(-0.05, 0.0, 50), np.zeros(100)))
        q = (q[:, None] + ramp[:, None] * side[:, None]).reshape(-1, arm.nv)
        effort = np.repeat(effort, len(ramp), axis=0)
    values = {
        "effort": ("effort", effort),
        "current": ("current", effort / nominal_gains(arm)),
        "--currents": ("effort", effort / nominal_gains(arm)),
        "--stiffness": ("target", q + effort / STIFFNESS),
    }
    columns = {"position": q, **dict([values[load]])}
    if is_recording:
        return write_table(folder / "run.csv", arm, columns, 0.01 * np.arange(len(q)))
    return write_table(folder / "poses.csv", arm, {**columns, "approached": side})


@pytest.mark.parametrize("is_recording", [True, False])
@pytest.mark.parametrize(
    ("load", "options"),
    [
        ("effort", ()),
        ("current", ()),
        ("--currents", ("--currents",)),
        ("--stiffness", ("--stiffness", str(STIFFNESS))),
    ],
)
def test_gravity_is_calibrated_from_efforts_currents_and_target_positions(
    tmp_path, capsys, load, options, is_recording
):
    arm, output = load_arm("five_dof"), tmp_path / "mine.urdf"
    file = held_poses(tmp_path, arm, load, is_recording)
    assert identify.run(["gravity", "five_dof", file, *options, "--output", str(output)]) == 0
    assert ("largest sag" in capsys.readouterr().out) == (load == "--stiffness")
    actual, found = arm.with_payload(0.2), load_arm(output)
    q = random_configurations(arm, 20, 1)
    before, after = (
        np.abs([gravity(one, x) - gravity(actual, x) for x in q]).max() for one in (arm, found)
    )
    assert after < 0.1 * before


def test_the_report_of_gravity_names_what_it_determines_and_what_not(tmp_path, capsys):
    arm = load_arm("five_dof")
    file = held_poses(tmp_path, arm, "effort", is_recording=False)
    assert identify.run(["five_dof", file]) == 0
    printed = capsys.readouterr().out
    (row,) = [line for line in printed.splitlines() if "R5.my" in line]
    name, unit, prior, value, deviation = (cell.strip() for cell in row.strip("│ ").split("│"))
    assert (name, unit, prior) == ("R5.my", "kg·m", "0.0085")
    actual = dict(zip(parameter_names(arm), nominal_parameters(arm.with_payload(0.2)), strict=True))
    assert abs(float(value) - actual["R5.my"]) <= 4 * float(deviation)
    assert "R3.my + 0.425 R4.m" in printed
    (left,) = [line for line in printed.splitlines() if "not determined by gravity" in line]
    assert "viscous of all joints; mx of R1; my of R1, R3" in left


@pytest.mark.slow
def test_gravity_is_calibrated_from_the_recorded_poses_of_a_simulated_arm(tmp_path, capsys):
    folder, output = str(tmp_path / "poses"), tmp_path / "mine.urdf"
    words = (
        "--arm",
        "two_link",
        "--payload",
        "0.2",
        "--poses",
        "4",
        "--dt",
        "1e-3",
        "--period",
        "4e-3",
    )
    assert record.run([folder, *words]) == 0
    assert f"identify gravity two_link {folder}" in capsys.readouterr().out
    assert identify.run(["gravity", "two_link", folder, "--output", str(output)]) == 0
    arm, found = load_arm("two_link"), load_arm(output)
    actual = arm.with_payload(0.2)
    q = random_configurations(arm, 20, 1)
    before, after = (
        np.abs([gravity(one, x) - gravity(actual, x) for x in q]).max() for one in (arm, found)
    )
    assert after < 0.05 * before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--duration", "3"), "--poses = 3; expected without --excitation and --duration"),
        ((), "count of poses of arm 'two_link' = 3; expected an integer of at least 4"),
    ],
)
def test_poses_of_a_simulated_arm_are_rejected_before_a_recording(tmp_path, options, message):
    folder = tmp_path / "poses"
    with pytest.raises((ConfigError, InvalidValue), match=message):
        record.run([str(folder), "--arm", "two_link", "--poses", "3", *options])
    assert not folder.exists()


def test_the_same_poses_twice_are_rejected(tmp_path):
    one, copy = tmp_path / "one.poses.csv", tmp_path / "copy.poses.csv"
    write_poses(load_arm("two_link"), static_poses(load_arm("two_link"), poses_of("two_link")), one)
    copy.write_bytes(one.read_bytes())
    for files in ((one, one), (one, copy)):
        with pytest.raises(InvalidValue, match=r"poses are identical to those of .*one.poses.csv"):
            identify.run(["gravity", "two_link", *map(str, files)])


@pytest.mark.parametrize("is_recording", [True, False])
@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("current", (), r"no torque constants of joints J1, J2 in .*add kt and gear_ratio"),
        ("effort", ("--currents",), r"no torque constants of joints J1, J2 in .*add kt and gear"),
        ("effort", ("--stiffness", "9"), r"no target positions in the|expected also target.J1"),
    ],
)
def test_gravity_without_torque_constants_or_targets_is_rejected(
    tmp_path, columns, options, message, is_recording
):
    arm = load_arm("two_link")
    values, time = ({"position": Q, columns: TAU}, TIME)
    if not is_recording:
        values, time = {**values, "approached": np.sign(Q)}, ()
    file = write_table(tmp_path / "poses.csv", arm, values, time)
    with pytest.raises((InvalidValue, ConfigError, RecordingError), match=message):
        identify.run(["gravity", "two_link", file, *options])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gravity", "--stiffness", "9", "--currents"], "not allowed with argument --stiffness"),
        (["gravity", "--held-out", "run2"], "unrecognized arguments: --held-out run2"),
        (["gravity", "--report", "r.html"], "unrecognized arguments: --report r.html"),
        (["efforts", "--stiffness", "9"], "unrecognized arguments: --stiffness 9"),
        (["efforts", "--servo", "sts3215"], "unrecognized arguments: --servo sts3215"),
        (
            ["efforts", "--payload-mass", "1", "--coupled", "J1=1,J2=1"],
            "argument --coupled: not allowed with argument --payload-mass",
        ),
        (["efforts", "--payload-mass", "1"], "and recordings --without the payload are required"),
        (["payload", "--report", "r.html"], "unrecognized arguments: --report r.html"),
        (["servos", "--cutoff", "9"], "unrecognized arguments: --cutoff 9"),
        (["--no-simulation"], "unrecognized arguments: --no-simulation"),
    ],
)
def test_options_belong_to_their_sub_command(recordings, capsys, words, message):
    command, options = (words[:1], words[1:]) if words[0][0] != "-" else ([], words)
    with pytest.raises(SystemExit) as ended:
        main(["identify", *command, "two_link", str(recordings / "run1.csv"), *options])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_plain_command_names_the_selected_one(recordings, tmp_path, capsys):
    arm, run1 = load_arm("five_dof"), str(recordings / "run1.csv")
    assert identify.run(["five_dof", held_poses(tmp_path, arm, "effort", is_recording=False)]) == 0
    assert capsys.readouterr().out.startswith("static poses in the recordings: arm-dynamics ident")
    with pytest.raises(InvalidValue, match="two recordings are identical"):
        identify.run(["two_link", run1, run1])
    assert "recordings: arm-dynamics identify efforts\n" in capsys.readouterr().out


# Rejected recordings ---------------------------------------------------------------------------

TIME = np.arange(2000) * 0.01
Q = np.stack((np.sin(TIME) * np.sin(0.37 * TIME), 0.5 * np.sin(0.5 * TIME)), axis=1)
TAU = np.stack((20 * np.cos(TIME), 5 * np.sin(1.7 * TIME)), axis=1)
TRIANGLE = np.repeat(np.abs((TIME / 4) % 2 - 1)[:, None], 2, axis=1)
LIMIT = load_arm("two_link").effort_limit
BACKWARD = np.where(np.arange(2000) == 1000, 3.0, TIME)
FEW = np.repeat(np.random.default_rng(0).uniform(-1, 1, (4, 2)), 500, axis=0)


@pytest.mark.parametrize(
    ("time", "q", "effort", "words", "message"),
    [
        (TIME, 0 * Q, TAU, (), "motion = 0 rad; expected more than 0.001 rad"),
        (TIME[:40], Q[:40], TAU[:40], (), "at least 12 after it; record a longer motion"),
        (TIME, TRIANGLE, TAU, (), "only; expected several for each joint"),
        (TIME, Q, np.clip(1e3 * TAU, -LIMIT, LIMIT), (), "its limit of 200 N·m in 99 % of the"),
        (BACKWARD, Q, TAU, (), "time = 3.000000 s after the first sample, but 9.990000 s in the"),
        (0 * TIME, Q, TAU, (), "stamps = 1 different of 2000; expected a different one for each"),
        (TIME, Q[:, :1], TAU[:, :1], (), "expected also joints J2"),
        (TIME, Q, None, (), "they give ranges and speeds only; record efforts, or the target"),
        (TIME, Q, None, ("efforts",), "no joint efforts in the recording; positions alone"),
        (TIME, Q, TAU, ("servos", "--servo", "sts3215"), "no target positions in the recording"),
        (TIME, Q, None, ("gravity",), "no joint efforts in the recording, and positions at rest"),
        (TIME, Q, TAU, ("gravity",), "poses at rest for 0.5 s = 0; expected ten or more"),
        (TIME, FEW, FEW, ("gravity",), "of 4 poses; expected at least"),
    ],
)  # fmt: skip
def test_a_recording_that_determines_nothing_is_one_message_and_no_file(
    tmp_path, capsys, time, q, effort, words, message
):
    parts = [("position", q)] if effort is None else [("position", q), ("effort", effort)]
    heads = [f"{kind}.J{i + 1}" for kind, values in parts for i in range(values.shape[1])]
    recording, output = tmp_path / "run.csv", tmp_path / "mine.urdf"
    np.savetxt(
        recording, np.column_stack((time, *(values for _, values in parts))),
        delimiter=",", header=",".join(("time", *heads)), comments="",
    )  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "identify",
                *words[:1],
                "two_link",
                str(recording),
                *words[1:],
                "--output",
                str(output),
            ]
        )
    assert ended.value.code == 2
    printed = capsys.readouterr()
    errors = [line for line in printed.err.splitlines() if not line.startswith("warning")]
    (line,) = [line for line in errors if line.startswith("arm-dynamics identify: ")]
    assert message in line
    assert list(tmp_path.iterdir()) == [recording]
