"""Numbers on the command line: each has a range; values outside print one line and exit with 2."""

import argparse

import pytest

from arm_dynamics.cli import gain_table, montecarlo, record, stability, tune
from arm_dynamics.cli.hardware import jog
from arm_dynamics.cli.main import main
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.number_option import Number
from arm_dynamics.demos import puma560
from arm_dynamics.simulation.simulation import steps_per_period

PARSERS = {
    "stability": stability.command_parser,
    "gain-table": gain_table.command_parser,
    "hardware jog": jog.command_parser,
    "montecarlo": montecarlo.command_parser,
    "record": record.command_parser,
    "tune": tune.command_parser,
    "demo puma560": puma560.command_parser,
}
NEEDED = {
    "stability": ["five_dof"],
    "gain-table": ["five_dof", "--grid", "R2=0:1:2"],
    "hardware jog": ["five_dof", "--joint", "R2"],
    "hardware check": ["five_dof"],
    "montecarlo": ["five_dof"],
    "record": ["folder"],
    "tune": ["five_dof"],
    "demo puma560": [],
    "sim": ["--headless"],
}
OPTIONS = [
    (command, action.option_strings[0])
    for command, parser in PARSERS.items()
    for action in parser()._actions
    if isinstance(action.type, Number)
]
OPTIONS += [("hardware check", "--duration")]
OPTIONS += [("sim", name) for name in ("--duration", "--rate", "--port", "--tolerance")]
WRONG = ("nan", "-inf", "-1e300", "1e300", "-99999999", "x", "9" * 5000)


def exit_code_and_output(capsys, *arguments):
    """Return the exit code and the lines of both outputs."""
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return end.value.code, (out + err).strip().splitlines()


@pytest.mark.parametrize("command", PARSERS)
def test_every_number_has_a_range(command):
    for action in PARSERS[command]()._actions:
        assert action.type not in (int, float), action.option_strings
        if isinstance(action.type, Number):
            assert action.type.option == action.option_strings[0]
            assert isinstance(action, argparse._StoreAction)


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_numbers_out_of_range_print_one_line(command, option, capsys, tmp_path, monkeypatch):
    if command == "sim":
        pytest.importorskip("rclpy", reason="rclpy is not installed")
    monkeypatch.chdir(tmp_path)
    for wrong in WRONG:
        code, lines = exit_code_and_output(
            capsys, *command.split(), *NEEDED[command], f"{option}={wrong}"
        )
        assert (code, len(lines)) == (2, 1), lines
        assert f"{option} = {wrong[:40]}" in lines[0]
        assert "; expected a" in lines[0]
        assert len(lines[0]) < 200
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("record f --dt 1e-300", "--dt = 1e-300 s; expected a number from 1e-09 to 1e+06 s"),
        ("record f --dt 0", "--dt = 0 s; expected"),
        ("record f --dt 1e-9 --period 1", "1e+09 steps of dt = 1e-09 s; expected at most 1e+06"),
        ("record f --dt 1e-9 --duration 1e6 --period 1e-6", "1e+15 time steps; expected at most"),
        ("record f --dt 3e-4", "such as 0.0021 s"),
        ("record f --duration 1e-6", "--duration"),
        ("montecarlo five_dof --runs 1000000 --duration 1e6", "time steps; expected at most"),
        ("montecarlo five_dof --dt 1e-9", "1e+13 time steps; expected at most 1e+11"),
        ("montecarlo five_dof --target nan,nan", "--target"),
        ("tune five_dof --training-cases 100000 --duration 1e6", "time steps; expected at most"),
        ("tune five_dof --dt 1e-4,nan", "nan"),
        ("tune five_dof --dt 1e-300", "1e-300"),
        (
            "gain-table five_dof --grid R2=0:1:1000000000000",
            "--grid count = 1000000000000; expected",
        ),
        (
            "gain-table five_dof --grid R2=0:1:9999 R3=0:1:9999",
            "1e+08 configurations; expected at most 1e+06",
        ),
        ("gain-table five_dof --grid R2=nan:1:3", "--grid end = nan rad or m; expected"),
        ("gain-table five_dof --grid R2=0:1:-3", "--grid count = -3; expected"),
        ("stability five_dof --dt 1e-9", "1e-09"),
        ("demo puma560 --port 99999", "--port = 99999; expected an integer from 0 to 65535"),
        ("sim --port 99999", "--port = 99999; expected an integer from 0 to 65535"),
    ],
)
def test_excessive_runs_are_rejected_immediately(arguments, message, capsys, tmp_path, monkeypatch):
    if arguments.startswith("sim"):
        pytest.importorskip("rclpy", reason="rclpy is not installed")
    monkeypatch.chdir(tmp_path)
    code, lines = exit_code_and_output(capsys, *arguments.split())
    assert (code, len(lines)) == (2, 1), lines
    assert message in lines[0]
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.parametrize("dt", [1e-300, 5e-324, 1e-13])
def test_a_period_of_too_many_steps_is_rejected(dt):
    with pytest.raises(InvalidValue, match=r"steps of dt .*; expected at most 1e\+09"):
        steps_per_period(2e-3, dt)
