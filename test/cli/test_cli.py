"""The command ``arm-dynamics``, each call in a separate process."""

import contextlib
import ctypes
import io
import re
import shlex
import signal
import subprocess
import sys
import time
from importlib import metadata

import pytest
from conftest import chain
from packaging.requirements import Requirement
from rich.console import Console

from arm_dynamics import load_arm
from arm_dynamics.cli import (
    gain_table,
    list_arms,
    montecarlo,
    record,
    stability,
    tune,
)
from arm_dynamics.cli import terminal as wait
from arm_dynamics.cli.arm_options import ALL
from arm_dynamics.cli.hardware import scan
from arm_dynamics.cli.main import main
from arm_dynamics.cli.terminal import StatusLine
from arm_dynamics.control.config import build_controller
from arm_dynamics.core import plugins, resources
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.core.requirements import to_install
from arm_dynamics.core.signals import before_end

BROKEN = """<robot name="broken">
  <link name="base"/>
  <link name="arm"><inertial><mass value="-1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="J1" type="revolute"><parent link="base"/><child link="arm"/>
    <axis xyz="0 0 0"/></joint>
</robot>
"""


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "arm_dynamics.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def ended(capsys, *words):
    """Return exit code and output of a command in this process."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return end.value.code, "".join(capsys.readouterr())


@pytest.mark.parametrize("words", [(), ("hardware",)])
def test_without_a_command_the_help_is_printed(capsys, words):
    code, output = ended(capsys, *words)
    assert code == 0
    for name in ("run", "check") if words else ("record", "hardware", "tune"):
        assert re.search(rf"^    {name} +\w", output, re.M)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("recrd",), "record"),
        (("hardware", "jgo"), "jog"),
        (("record", "run", "--configuraton", "zero"), "--configuration"),
        (("excite", "so101", "--outptu", "e.yaml"), "--output"),
        (("record", "run", "--integrator", "rk5"), "rk4"),
        (("record", "run", "--controller", "computed_torqe"), "computed_torque"),
        (("record", "run", "--arm", "Five_dofs"), "five_dof"),
        (("demo", "three_lnk"), "three_link"),
        (("tune", "two_link", "--gain-names", "i_clmp"), "i_clamp"),
    ],
)
def test_mistyped_names_are_answered_with_the_closest_one(
    capsys, monkeypatch, tmp_path, words, meant
):
    monkeypatch.chdir(tmp_path)
    code, output = ended(capsys, *words)
    assert code == 2
    assert output.rstrip().endswith(f"; did you mean '{meant}'?")
    assert list(tmp_path.iterdir()) == []  # also no folder of results


def test_names_without_a_similar_one_get_no_suggestion(capsys):
    for words in (("xyzzy",), ("record", "run", "--xyzzy"), ("record", "run", "--arm", "xyzzy")):
        code, output = ended(capsys, *words)
        assert code == 2
        assert "did you mean" not in output


def test_a_time_step_above_the_period_is_named(capsys, tmp_path):
    for words in (
        ("record", tmp_path / "run", "--dt", "0.01"),
        ("stability", "two_link", "--dt=1"),
    ):
        code, output = ended(capsys, *words)
        assert code == 2
        assert re.search(r"dt.* = \S+ ?s?; expected at most", output)


def test_progress_shows_the_remaining_time(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(wait.time, "monotonic", lambda: now[0])
    with wait.progress_bar("runs") as update:
        for done in (10, 20, 40):
            now[0] += 20.0
            update(done, 100)
    output = capsys.readouterr().err
    assert "20 of 100 runs, 160 s left" not in output
    assert "20 of 100 runs, 3 min left" in output
    assert "40 of 100 runs, 80 s left" in output


INTERRUPTED_IMPORT = """
import os, signal, sys
from {module} import {attr}

class Interrupting:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "{imported}":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting)
{attr}()
"""
"""Executable that receives SIGINT as soon as it imports a module for the first time."""


@pytest.mark.parametrize(
    ("name", "imported", "code"),
    [
        ("list", "arm_dynamics.cli.main", 130),
        ("list", "argparse", 130),
        ("list", "numpy", 130),
        ("stability", "numba", 130),
        ("sim", "argparse", 0),
    ],
)
def test_ctrl_c_during_an_import_ends_the_executable_with_one_line(name, imported, code):
    (entry,) = metadata.entry_points(group="console_scripts", name="arm-dynamics")
    program = INTERRUPTED_IMPORT.format(module=entry.module, attr=entry.attr, imported=imported)
    done = subprocess.run(
        [sys.executable, "-c", program, name],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr == f"arm-dynamics {name}: interrupted\n"


def test_the_emergency_signal_ends_a_command_without_torque_with_one_line(monkeypatch, capsys):
    monkeypatch.setattr(list_arms, "run", lambda _: signal.raise_signal(signal.SIGUSR1))
    assert ended(capsys, "list") == (130, "arm-dynamics list: interrupted\n")
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP", "SIGUSR1"])
def test_each_signal_ends_a_hardware_command_without_torque_as_ctrl_c_does(
    monkeypatch, capsys, name
):
    """The terminal is restored, and the port closed, where KeyboardInterrupt passes."""
    passed = []

    def run(_):
        try:
            signal.raise_signal(getattr(signal, name))
        except KeyboardInterrupt:
            passed.append(name)
            raise

    monkeypatch.setattr(scan, "run", run)
    assert ended(capsys, "hardware", "scan") == (130, "arm-dynamics hardware: interrupted\n")
    assert passed == [name]


def signal_at_the_end_of_the_parent():
    number = ctypes.c_int()
    get_parent_death_signal = 2
    ctypes.CDLL(None).prctl(get_parent_death_signal, ctypes.byref(number))
    return number.value


def test_workers_of_gain_table_end_with_it_and_a_killed_one_ends_it_with_one_line(
    monkeypatch, capsys
):
    found = []

    def build(*_, executor, progress):
        found.append(executor.submit(signal.getsignal, signal.SIGINT).result())
        found.append(executor.submit(signal_at_the_end_of_the_parent).result())
        executor.submit(signal.raise_signal, signal.SIGKILL).result()

    monkeypatch.setattr(gain_table, "build_gain_table", build)
    monkeypatch.setenv("PYTHONWARNINGS", "")  # restored after the test
    code, output = ended(capsys, "gain-table", "two_link", "--grid", "J1=0:1:2", "--workers", "2")
    assert found == [signal.SIG_IGN, signal.SIGTERM]
    assert code == 2
    assert output.endswith("one of 2 processes was killed; expected enough memory for all of them;"
                         " reduce --workers\n")  # fmt: skip


@pytest.mark.parametrize("text", ["bar", "status"])
def test_the_cursor_is_shown_when_a_process_ends_immediately(monkeypatch, text):
    """``EndProcess`` calls ``before_end`` instead of leaving the blocks."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True)
    monkeypatch.setattr(wait, "Console", lambda **_: console)
    monkeypatch.setattr(wait, "FIRST_LINE_TIME", 0.0)
    show = "\x1b[?25h"
    with wait.progress_bar("runs") if text == "bar" else wait.waiting("computing"):
        while "\x1b[?25l" not in screen.getvalue():
            time.sleep(0.01)
        assert show not in screen.getvalue()
        for call in before_end:
            call()
        assert show in screen.getvalue()
    assert not before_end


@pytest.mark.parametrize("arguments", [["list"], ["montecarlo", "--help"]])
def test_output_that_cannot_show_a_character_does_not_end_the_command(arguments, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = command(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "?" in done.stdout


def test_audit_of_a_good_arm_ends_with_0():
    done = command("audit", "five_dof")
    assert (done.returncode, done.stderr) == (0, "")
    assert "five_dof.urdf" in done.stdout


def test_audit_of_a_broken_file_prints_all_faults_and_ends_with_2(tmp_path):
    file = tmp_path / "broken.urdf"
    file.write_text(BROKEN)
    done = command("audit", file)
    assert done.returncode == 2
    for word in ("-1", "axis", "limit", "line 3", "J1"):
        assert word in done.stdout
    assert done.stderr == ""


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["audit", "no_such.urdf"], "no_such.urdf"),
        (["audit", "six_dof"], "six_dof"),
        (["audit", "a" * 5000], "aaa"),
        (["audit", "/"], "'/'"),
    ],
)
def test_a_missing_file_is_one_line_and_code_2(arguments, word):
    done = command(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert word in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_a_folder_or_binary_is_rejected_as_urdf(tmp_path):
    file = tmp_path / "binary.urdf"
    for content in (b"\xff\xfe\x00\x80", b"\x7fELF\x02\x01\x00\xff"):
        file.write_bytes(content)
        done = command("audit", file)
        assert done.returncode == 2
        assert "binary.urdf: 1 error" in done.stdout
        assert "not well-formed XML" in done.stdout
        assert done.stderr == ""


@pytest.mark.slow
def test_joints_to_lock_may_precede_or_follow_the_file():
    done = command("audit", "--lock", "R2", "--lock", "R5", "five_dof")
    assert (done.returncode, done.stderr) == (0, "")
    done = command("audit", "--lock", "R2", "five_dof", "--lock", "R9")
    assert done.returncode == 2
    assert "'R9' is to be locked" in done.stdout
    assert "'R2'" not in done.stdout


def test_list_shows_the_bundled_arms():
    done = command("list")
    assert done.returncode == 0
    for word in ("five_dof", "dc_motor", "5: R1", "R5", "-1.1"):
        assert word in done.stdout


def test_the_list_has_aligned_columns_and_units_of_prismatic_joints(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert list_arms.run([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert {"mass [kg]", "initial q [rad, m]"} <= {cell.strip() for cell in lines[1].split("┃")}
    rows = [line for line in lines if not line.startswith("of the installed")]
    assert len(rows) == 4 + len(resources.resource_names("urdf", ".urdf")), "one line an arm"
    arm = chain({"kind": "prismatic", "lower": 0.0, "upper": 0.5}, {})
    assert list_arms.arm_row("rail", arm)[-1] == "0 m, 0"


@pytest.mark.quick(2)
@pytest.mark.parametrize("arguments", [["dance"], ["audit"], ["list", "--nonsense"]])
def test_an_invalid_call_ends_with_2_and_shows_the_usage(arguments):
    done = command(*arguments)
    assert done.returncode == 2
    assert "usage: arm-dynamics" in done.stderr
    assert "Traceback" not in done.stderr


PARSERS = {
    "stability": stability.command_parser,
    "gain-table": gain_table.command_parser,
    "montecarlo": montecarlo.command_parser,
    "record": record.command_parser,
    "tune": tune.command_parser,
}
LACKS = {"gain-table": {"--controller", "--dt"}, "tune": {"--payload-modeled"}}
"""Gain tables have no time step; training cases have payloads and steps."""


@pytest.mark.parametrize("name", PARSERS)
def test_every_command_of_an_arm_has_the_same_options(name):
    found = {option for action in PARSERS[name]()._actions for option in action.option_strings}
    shared = {f"--{option}" for option in (*ALL, "payload-modeled")}
    assert shared - found == LACKS.get(name, set())


def test_the_options_define_the_arm_its_controller_and_its_payload(tmp_path):
    given = record.command_parser().parse_args(
        [str(tmp_path / "run"), "--lock", "R5", "--configuration=0.1,-0.4,0.3,-0.2",
         "--payload", "0.3", "--payload-modeled", "--controller", "computed_torque", "--dt", "2e-4"]
    )  # fmt: skip
    simulation, loop = record.build_loop(given)
    assert simulation.arm.joint_names == loop.arm.joint_names == ("R1", "R2", "R3", "R4")
    assert simulation.state.q.tolist() == [0.1, -0.4, 0.3, -0.2]
    assert (simulation.dt, simulation.arm.payload.mass) == (2e-4, 0.3)
    assert type(loop.controller).__name__ == "ComputedTorque"
    assert loop.controller.arm.payload.mass == 0.3
    assert loop.arm.payload.mass == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--controller", "position"], "controllers of this arm: pid, gravity_compensation"),
        (["--controller", "pidd"], "unknown controller 'pidd'; known: computed_"),
        (
            ["--configuration", "home"],
            "unknown configuration of arm 'five_dof' 'home'; known: initial, zero",
        ),
        (["--configuration=0,x,0,0,0"], "--configuration = 0,x,0,0,0: could not convert"),
        (["--lock", "R9"], "'R9' is to be locked"),
    ],
)
def test_wrong_options_are_rejected_in_one_line(tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        main(["record", str(tmp_path / "run"), *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_gains_of_a_locked_joint_are_ignored_and_those_of_an_unknown_one_rejected(tmp_path):
    arm = load_arm("so101", lock=["gripper"])
    assert build_controller(arm).values["wrist_roll"]["p"] == 20.0
    assert arm.locked == ("gripper",)
    file = tmp_path / "gains.yaml"
    file.write_text("joint_controller: {ros__parameters: {gains: {grip: {p: 1.0}}}}")
    with pytest.raises(UnknownName, match="'grip'; known: controller, elbow_flex, gripper"):
        build_controller(arm, file=file)


def test_version_option_prints_the_package_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"arm-dynamics {metadata.version('arm_dynamics')}\n"


def test_a_status_without_terminal_prints_text_and_time(capsys, monkeypatch):
    monkeypatch.setattr(wait, "FIRST_LINE_TIME", 0.05)
    monkeypatch.setattr(wait, "LINE_PERIOD", 0.05)
    with wait.waiting("replaying run"):
        until = time.monotonic() + 10
        message = ""
        while message.count("replaying run (0 s)") < 2 and time.monotonic() < until:
            message += capsys.readouterr().err
            time.sleep(0.01)
    assert message.count("replaying run (") >= 2
    monkeypatch.setattr(wait, "FIRST_LINE_TIME", 60.0)
    began = time.monotonic()
    with pytest.raises(KeyError), wait.waiting("short"):
        raise KeyError
    assert time.monotonic() - began < 30
    assert capsys.readouterr().err == ""


def test_each_stage_ends_the_line_of_the_one_before(monkeypatch):
    output = []

    @contextlib.contextmanager
    def waiting(text):
        output.append(f"begin {text}")
        yield
        output.append(f"end {text}")

    monkeypatch.setattr(wait, "waiting", waiting)
    with wait.waiting_stages() as begin:
        begin("preparing")
        begin("fitting")
    assert output == ["begin preparing", "end preparing", "begin fitting", "end fitting"]


@pytest.mark.parametrize("extra", ["plot", "record", "viewer", "hardware", "table", "ros"])
def test_the_install_hint_names_this_environment_and_the_library(extra):
    """It does not name this package, which is not in a package registry."""
    words = shlex.split(to_install(extra))
    assert words[:4] == [sys.executable, "-m", "pip", "install"]
    assert len(words) > 4
    assert not any(word.startswith("arm_dynamics") for word in words)
    required = {Requirement(word).name for word in words[4:]}
    assert required <= {Requirement(entry).name for entry in metadata.requires("arm_dynamics")}


def test_the_repr_of_an_arm_is_one_line():
    assert repr(load_arm("five_dof").with_payload(0.5)) == (
        "<ArmModel five_dof: 5 joints R1 … R5, dc_motor, 8 kg, payload 0.5 kg>"
    )
    assert max(len(repr(load_arm(name))) for name in resources.resource_names("urdf", ".urdf")) < 80


def test_a_status_line_stays_in_one_line(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with StatusLine() as line:
        line.show("x" * 200)
        line.end("y" * 200)
    out = capsys.readouterr().out
    assert "x" * 79 in out
    assert "x" * 80 not in out
    assert "y" * 200 in out, "what stays is whole"


def test_help_names_every_command():
    done = command("--help")
    assert done.returncode == 0
    for name in ("audit", "list", "sim"):
        assert name in done.stdout


@pytest.mark.parametrize(
    ("parser", "taken", "rejected"),
    [
        (tune.command_parser,
         {"pid", "pid_gravity", "computed_torque", "velocity_pid", "lqr"},
         {"task_space", "resolved_rate", "impedance", "gravity_compensation", "position"}),
        (montecarlo.command_parser, {"pid", "pid_gravity"}, {"computed_torque", "task_space"}),
        (stability.command_parser,
         {"pid", "pid_gravity", "computed_torque", "gravity_compensation", "lqr"},
         {"task_space", "resolved_rate", "impedance", "velocity_pid", "position"}),
    ],
)  # fmt: skip
def test_help_lists_the_controllers_of_the_command(parser, taken, rejected):
    text = " ".join(parser().format_help().split())
    offered = set(re.search(r"--controller NAME controller: (.*?) \(default", text)[1].split(", "))
    assert taken <= offered
    assert not rejected & offered
    for name in plugins.registered_names("controllers"):
        if name in offered:
            assert parser().parse_args(["two_link", "--controller", name]).controller == name
        else:
            with pytest.raises(UnknownName, match=f"'{name}'; known: "):
                parser().parse_args(["two_link", "--controller", name])


def test_a_missing_matplotlib_is_reported_before_the_computation(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    file, figure = tmp_path / "e.yaml", tmp_path / "e.png"
    with pytest.raises(SystemExit) as end:
        main(["excite", "two_link", "--output", str(file), "--figure", str(figure)])
    assert end.value.code == 2
    assert "--figure: matplotlib is not installed" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize(
    "program",
    [
        "import arm_dynamics",
        "from arm_dynamics.cli.main import main\nimport contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(['--help'])",
    ],
)
def test_the_package_and_the_help_import_no_large_library(program):
    """Their import takes most of a second or more each."""
    large = "numpy", "scipy", "pinocchio", "numba", "viser", "rich", "yaml", "matplotlib"
    text = f"{program}\nimport sys\nprint(*sorted({large!r} & sys.modules.keys()))"
    text = text.replace(repr(large), f"set({large!r})")
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""
