"""Commands hardware scan, check, calibrate, jog and run at a terminal, on emulated motors."""

import os
import re
import select
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from browser import Panel
from hardware_terminal import Line, User, VirtualLine, so101_motors
from virtual_time import install_virtual_time

from arm_dynamics import load_arm
from arm_dynamics.cli.hardware import calibrate, calibrate_gravity, torque_session
from arm_dynamics.cli.hardware import command as hardware
from arm_dynamics.cli.hardware.options import with_advice
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core import resources, signals
from arm_dynamics.core.errors import (
    ArmDynamicsError,
    ConfigError,
    DriverFault,
    InvalidValue,
    TrajectoryRejected,
    UnknownName,
)
from arm_dynamics.dynamics import gravity
from arm_dynamics.hardware import register_bus
from arm_dynamics.hardware.dynamixel.bus import Dynamixel
from arm_dynamics.hardware.emulation.dynamixel_motors import EmulatedDynamixels
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.emulation.feetech_servos import EmulatedFeetech
from arm_dynamics.hardware.emulation.mit_motors import MitMotors
from arm_dynamics.hardware.feetech import registers as table
from arm_dynamics.hardware.mit_can.discovery import Registers
from arm_dynamics.hardware.mit_can.transport import MAX_ATTEMPTS
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.hardware.serial_port import SerialPort
from arm_dynamics.identification import Excitation, read_poses
from arm_dynamics.identification.excitation import excitation_search
from arm_dynamics.identification.gravity import pose_measurement
from arm_dynamics.model.hardware_info import JointMotor, read_hardware_info
from arm_dynamics.model.urdf_text import with_params
from arm_dynamics.recording import Recording

pytestmark = pytest.mark.hardware

START = np.array((0.2, 0.3, 0.2, -0.3, 0.1, 0.5))
RIGHT, LEFT = "\x1b[C", "\x1b[D"


@pytest.fixture
def lines():
    made = []

    def opened(line):
        made.append(line)
        return line

    yield opened
    for line in made:
        line.close()


@pytest.fixture
def virtual_time(monkeypatch):
    return install_virtual_time(monkeypatch)


@pytest.fixture
def arm_lines(monkeypatch, virtual_time):
    """A function that connects an SO-101 in virtual time."""

    def connected(q, **options):
        line = VirtualLine(virtual_time, *so101_motors(q, **options))
        monkeypatch.setattr(register_bus, "SerialPort", line.open)
        return line

    return connected


@pytest.fixture
def arm_line(arm_lines):
    return arm_lines(START)


@pytest.fixture
def real_arm_line(lines):
    """An SO-101 in real time, at a pseudo terminal that other processes can open."""
    return lines(Line(*so101_motors(START)))


def command(*words):
    return hardware.run([str(word) for word in words])


def at_port(line):
    """Return the options of a port; motors in real time reply late on a busy machine."""
    late = ("--set", "latency=0.05") if isinstance(line, Line) else ()
    return "--port", line.name, *late


@pytest.fixture
def terminal(monkeypatch, virtual_time):
    """A function that returns a command's exit code and its output for a user who runs ``does``."""

    def at_terminal(does, *words):
        with monkeypatch.context() as patch:
            user = User(patch, does, virtual_time)
            try:
                code = command(*words)
            finally:
                printed = user.leave()
        return code, printed

    return at_terminal


def registers(line):
    """Return the registers that a driver could change."""
    return [bytes(servo.memory[:56]) for servo in line.motors.servos]


# --- scan


def scanned(line, *words):
    return command("scan", "--port", line.name, *words)


def test_scan_lists_motors_and_their_number(lines, capsys):
    line = lines(Line(EmulatedFeetech([Shaft(1, "sts3215"), Shaft(4, "sts3250")])))
    before = registers(line)
    assert scanned(line, "--driver", "feetech", "--baud", 1_000_000) == 0
    printed = capsys.readouterr().out
    for word in ("sts3215", "sts3250", "3.10", "1000000", "2 motors with distinct ids"):
        assert word in printed
    assert registers(line) == before
    assert line.most == 0


def test_scan_without_a_baud_rate_tries_all(monkeypatch, lines, capsys):
    line = lines(Line(EmulatedDynamixels([])))
    monkeypatch.setattr(Dynamixel, "bauds", (1_000_000, 2_000_000))
    assert scanned(line, "--driver", "dynamixel") == 1
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["scanning at 1000000 baud", "scanning at 2000000 baud"]
    assert "no motor replies" in captured.out
    assert "power" in captured.out


def test_scan_names_a_duplicate_id(lines, capsys):
    shafts = [Shaft(1, "sts3215"), Shaft(2, "sts3215", q=0.4), Shaft(2, "sts3250")]
    line = lines(Line(EmulatedFeetech(shafts)))
    assert scanned(line, "--driver", "feetech", "--baud", 1_000_000) == 1
    printed = capsys.readouterr().out
    assert "id 2: used by two motors" in printed
    assert "id 1:" not in printed
    assert line.most == 0


def test_scan_of_can_motors_needs_no_rate(lines, capsys):
    line = lines(Line(MitMotors([Shaft(3, "DM4310"), Shaft(5, "DM8009")])))
    assert scanned(line, "--driver", "mit_can", "--set", "interface=slcan") == 0
    printed = capsys.readouterr().out
    assert "DM4310" in printed
    assert "DM8009" in printed
    assert line.most == 0


def test_a_scan_of_can_motors_repeats_a_request_without_a_reply(monkeypatch, lines, capsys):
    line, requested, original = lines(Line(MitMotors([Shaft(3, "DM4310")]))), [], Registers.replies

    def late(registers, id, register):
        requested.append(id)
        return original(registers, id, register) if requested.count(id) > 1 else []

    monkeypatch.setattr(Registers, "replies", late)
    assert scanned(line, "--driver", "mit_can", "--set", "interface=slcan") == 0
    assert "DM4310" in capsys.readouterr().out
    assert requested.count(3) in range(2, MAX_ATTEMPTS + 1)
    assert requested.count(4) == MAX_ATTEMPTS


# --- check


def checked(line, arm="so101"):
    return command("check", arm, *at_port(line), "--duration", 0.05)


def test_check_of_a_good_arm_ends_with_0_and_moves_nothing(arm_line, capsys):
    before = registers(arm_line)
    assert checked(arm_line) == 0
    printed = capsys.readouterr().out
    assert "no problems found" in printed
    for name, q in zip(load_arm("so101").joint_names, START, strict=True):
        row = next(row for row in printed.splitlines() if name in row)
        assert "100%" in row
        assert any(abs(float(w) - q) < 2e-3 for w in row.split() if "." in w and "…" not in w)
    assert registers(arm_line) == before
    assert arm_line.most == 0


def inject_problem(line, what):
    shafts, motors = line.motors.shafts, line.motors
    {
        "silent": lambda: setattr(shafts[2], "silent", True),
        "hot": lambda: setattr(shafts[2], "temperature", 80.0),
        "overload": lambda: motors.trip(3, "overload"),
        "torque": lambda: motors.servos[2].write(40, bytes([1])),
        "outside": lambda: line.arm.hold_at(elbow(1.9)),
        "model": lambda: motors.servos[2].put(motors.servos[2].memory, 3, 2825),
    }[what]()


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("silent", "motor 3 (elbow_flex) does not reply"),
        ("silent", "cycles; expected all; check its cable, power and id; arm-dynamics hardware"),
        ("hot", "temperature = 80 °C; expected below 75 °C"),
        ("overload", "fault: overload"),
        ("torque", "torque = enabled; expected disabled: another program controls it, or left it"),
        ("outside", "position = 1.901 rad; expected -1.69 to 1.69 rad"),
        ("model", "model = sts3250, expected sts3215"),
    ],
)
def test_check_names_the_joint_and_the_problem(arm_line, capsys, what, words):
    inject_problem(arm_line, what)
    assert checked(arm_line) == 1
    printed = capsys.readouterr().out
    assert words in printed
    assert "motor 3" in printed
    assert "'elbow_flex'" in printed or what == "model"
    assert "no problems found" not in printed
    assert arm_line.torques == (1 if what == "torque" else 0), "what is on stays on"


def store_range(line, lower, upper, homing_offset=0):
    """Store position limits and homing offset [steps] in servo 3, in both of its memories."""
    servo = line.motors.servos[2]
    for memory in (servo.saved, servo.memory):
        for register, value in (
            (table.MIN_POSITION, lower),
            (table.MAX_POSITION, upper),
            (table.HOMING_OFFSET, homing_offset),
        ):
            servo.put(memory, register.address, value)


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("contradict", "lines"),
    [
        (
            lambda line: setattr(line.motors.shafts[2], "supply", 5.0),
            [
                "supply = 5.0 V; expected 9.6 to 15 V, for the supply_voltage of 12 V in the URDF;"
                " correct one of them"
            ],
        ),
        (lambda line: setattr(line.motors.shafts[2], "supply", 9.7), []),
        (
            lambda line: store_range(line, 1848, 2248),
            [
                "position limits in the servo = -0.307 to 0.307 rad (homing offset 0 rad); expected"
                " -1.69 to 1.69 rad, as in the URDF; the servo stops within the joint's range:"
                " correct one of them"
            ],
        ),
        (
            lambda line: store_range(line, 1448, 3648, 500),
            [
                "position limits in the servo = -0.92 to 2.45 rad (homing offset 0.767 rad);"
                " expected -1.69 to 1.69 rad, as in the URDF; they are shifted: correct the servo's"
                " homing offset, or the offset in the URDF with arm-dynamics hardware calibrate"
            ],
        ),
        (lambda line: store_range(line, 2048 - 1050, 2048 + 1050), []),
        (lambda line: store_range(line, 0, 0), []),
    ],
    ids=["supply", "drained battery", "narrow", "shifted", "measured by hand", "without limits"],
)
def test_check_warns_of_a_supply_and_of_servo_limits_that_contradict_the_urdf(
    arm_line, capsys, contradict, lines
):
    contradict(arm_line)
    before = registers(arm_line)
    assert checked(arm_line) == 0
    printed = capsys.readouterr().out.splitlines()
    expected = [f"warning: joint 'elbow_flex' (motor 3): {line}" for line in lines]
    assert [line for line in printed if "warning" in line] == expected
    assert ("no problems found" in printed) == (not lines)
    assert registers(arm_line) == before


def test_check_without_any_reply_reports_it_once(lines, capsys):
    assert checked(lines(Line(EmulatedFeetech([])))) == 1
    printed = capsys.readouterr().out
    assert printed.count("no motor replies") == 1
    assert "hardware scan" in printed


# --- rejected input


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (["scan", "--port", "/dev/null"], ConfigError, "--driver is required"),
        (["scan", "--driver", "feetech"], ConfigError, "port is missing"),
        (["scan", "--driver", "simulated"], ConfigError, "no motors; expected one of .*feetech"),
        (["scan", "--driver", "servos"], UnknownName, "unknown driver 'servos'.*dynamixel"),
        (
            ["scan", "--driver", "feetech", "--set", "x"],
            ConfigError,
            "--set = x; expected NAME=VALUE",
        ),
        (["check", "so101", "--port", "/dev/none"], DriverFault, "none.*serial ports of this"),
        (["check", "so101", "--port", "/dev/null"], DriverFault, "expected a serial port"),
        (["check", "five_dof"], ConfigError, "'five_dof'.*'R1'.*docs/hardware.md"),
        (["check", "so101", "--driver", "dynamixel", "--port", "x"], UnknownName, "sts3215"),
        (["check", "so101", "--duration", "-1"], ConfigError, "--duration = -1 s; expected"),
        (["jog", "so101", "--joint", "elbow_flex"], ConfigError, "expected a terminal"),
        (["calibrate", "so101", "--output", "x"], ConfigError, "expected a terminal"),
        (["calibrate-gravity", "so101", "--output", "x"], ConfigError, "expected a terminal"),
    ],
)
def test_invalid_options_are_rejected_by_name(monkeypatch, words, error, text):
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(error, match=text):
            command(*words)


def test_a_port_opened_by_another_program_is_named(real_arm_line):
    other = SerialPort(real_arm_line.name, 1_000_000)
    other.open()
    with pytest.raises(DriverFault, match="another program has it open"):
        checked(real_arm_line)
    other.close()
    port = "--port", real_arm_line.name, "--set", "latency=2"  # the emulator may pause
    assert command("check", "so101", *port, "--duration", 0.05) == 0


def test_the_error_of_missing_permission_names_the_remedy():
    fault = DriverFault("port 'p'")
    fault.__cause__ = PermissionError(13, "Permission denied")
    assert "usermod -aG dialout" in str(with_advice(fault))
    assert with_advice(DriverFault("x")).args == ("x",)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--speed", "0"], "--speed"),
        (["--speed", "100"], "--speed"),
        (["--max-travel", "-1"], "--max-travel"),
        (["--distance", "nan"], "--distance"),
        (["--distance", "170"], "target of joint 'elbow_flex' = 3.1.*expected -1.69 to"),
        (["--interface", "effort"], "no watchdog"),
    ],
)
def test_jog_rejects_options_out_of_range(terminal, arm_line, words, text):
    def user(user):
        if "effort" in words:
            user.wait("Type yes:")
            user.press("yes\n")

    jog = ("jog", "so101", "--joint", "elbow_flex", *at_port(arm_line), *words)
    with pytest.raises(ArmDynamicsError, match=text):
        terminal(user, *jog)
    assert arm_line.most == 0


# --- jog


def jogged(terminal, line, does, *more, joint="shoulder_pan", arm="so101"):
    words = ("jog", arm, "--joint", joint, *at_port(line), *more)

    def user(user):
        user.wait("Type yes:")
        assert line.most == 0, "torque enabled before the confirmation"
        does(user)

    return terminal(user, *words)


@pytest.mark.quick(1)
@pytest.mark.parametrize("answer", ["\n", "YES\n", "\x04"])
def test_jog_does_not_enable_torque_without_a_typed_yes(terminal, arm_line, answer):
    code, printed = jogged(terminal, arm_line, lambda user: user.press(answer))
    assert code == 1
    assert "torque was not enabled" in printed
    assert arm_line.most == 0
    np.testing.assert_allclose(arm_line.arm.state.q, START, atol=1e-9)


def test_jog_ignores_input_typed_before_its_question(terminal, arm_line):
    def user(user):
        user.press("yes\nyes\n")
        user.wait("Enable torque? Type yes:")
        user.press("no\n")
        user.look(0.5)
        user.press("q")

    words = ("jog", "so101", "--joint", "elbow_flex", *at_port(arm_line))
    code, printed = terminal(user, *words)
    assert code == 1
    assert "torque was not enabled: nothing was changed" in printed
    assert arm_line.most == 0


def test_jog_does_not_enable_torque_with_a_motor_fault(terminal, arm_line):
    arm_line.motors.trip(3, "overload")
    words = ("jog", "so101", "--joint", "elbow_flex", *at_port(arm_line))
    code, printed = terminal(lambda user: None, *words)
    assert code == 1
    assert "torque was not enabled: the check found problems" in printed
    assert arm_line.most == 0


def test_jog_clears_faults_on_request(terminal, arm_line):
    arm_line.motors.trip(3, "overload")
    words = ("jog", "so101", "--joint", "elbow_flex", *at_port(arm_line), "--clear-faults")

    def user(user):
        user.wait("Type yes:")
        user.press("yes\n")
        user.wait("Enable torque? Type yes:")
        user.press("no\n")

    code, printed = terminal(user, *words)
    assert code == 1
    assert "no problems found" in printed
    assert arm_line.most == 0


@pytest.mark.quick(1)
@pytest.mark.parametrize(("answer", "holding"), [("no\n", 1), ("yes\n", 0)])
def test_jog_does_not_disable_torque_before_a_typed_yes(terminal, arm_line, answer, holding):
    inject_problem(arm_line, "torque")
    words = ("jog", "so101", "--joint", "elbow_flex", *at_port(arm_line))
    code, printed = terminal(lambda user: None, *words)
    assert (code, arm_line.torques) == (1, 1)
    assert "disable it with hardware jog --clear-faults or the switch of the supply" in printed
    seen = []

    def user(user):
        user.wait("This disables torque, and an unsupported arm falls.")
        user.wait("Type yes:")
        user.look(0.1)
        seen.append(arm_line.torques)
        user.press(answer)
        if not holding:
            user.wait("Enable torque? Type yes:")
            user.press("no\n")

    code, _ = terminal(user, *words, "--clear-faults")
    assert code == 1
    assert (seen, arm_line.torques) == ([1], holding)


def test_jog_moves_the_joint_while_a_key_is_held_and_disables_torque_at_the_end(terminal, arm_line):
    seen = {}

    def does(user):
        user.press("yes\n")
        user.wait("Ctrl-C")
        user.wait("active")
        user.look(0.3)
        seen["before"] = arm_line.arm.state.q.copy()
        user.hold(RIGHT, 0.7)
        user.look(0.5)
        seen["held"] = arm_line.arm.state.q.copy()
        user.look(0.3)
        seen["after"] = arm_line.arm.state.q.copy()
        user.hold(LEFT, 0.5)
        user.look(0.3)
        seen["back"] = arm_line.arm.state.q.copy()
        assert arm_line.torques == 6
        user.press("q")

    code, printed = jogged(terminal, arm_line, does, "--speed", 20)
    assert code == 0
    assert "torque is disabled" in printed
    assert arm_line.torques == 0
    for words in ("shoulder_pan", "reference", "effort", "30 °C"):
        assert words in printed
    assert 0.1 < seen["held"][0] - seen["before"][0] < 0.4
    assert abs(seen["after"][0] - seen["held"][0]) < 0.005
    assert seen["back"][0] < seen["held"][0] - 0.05
    np.testing.assert_allclose(seen["back"][1:], seen["before"][1:], atol=0.01)


def test_jog_by_a_distance_ends_at_its_target(terminal, arm_line):
    def does(user):
        user.press("yes\n")
        user.wait("active")
        user.hold(" ", 1.0)
        seen.append(arm_line.arm.state.q.copy())

    seen = []
    code, printed = jogged(terminal, arm_line, does, "--distance", "-5", "--speed", 20)
    assert code == 0
    assert "reference 6.4°" in printed
    assert seen[0][0] == pytest.approx(START[0] - np.radians(5), abs=0.02)
    assert arm_line.torques == 0


def test_jog_moves_an_arm_without_masses_and_limits_of_effort(terminal, arm_line, tmp_path):
    text = re.sub(r"<inertial>.*?</inertial>", "", load_arm("so101").urdf, flags=re.DOTALL)
    file = tmp_path / "kinematic.urdf"
    file.write_text(re.sub(r' (effort|velocity)="[^"]*"', "", text))
    seen = []

    def does(user):
        user.press("yes\n")
        user.wait("active")
        user.hold(" ", 1.0)
        seen.append(arm_line.arm.state.q.copy())

    with pytest.warns(RuntimeWarning, match="no moving link has a mass"):
        code, printed = jogged(
            terminal, arm_line, does, "--distance", "-5", "--speed", 20, arm=file
        )
    assert code == 0, printed
    assert seen[0][0] == pytest.approx(START[0] - np.radians(5), abs=0.02)
    assert arm_line.torques == 0
    effort = ("--interface", "effort")
    with pytest.raises(InvalidValue, match=r"links = 0 kg; .*--estimate-inertia"):
        terminal(lambda user: None, "jog", file, "--joint", "gripper", *at_port(arm_line), *effort)


ENDING_SIGNALS = ("SIGUSR1", "SIGTSTP", "SIGTERM", "SIGHUP", "SIGQUIT")
EMERGENCY = r"stopped:\s+emergency_stop \(signal SIGUSR1\)"


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ENDING_SIGNALS)
def test_a_signal_ends_jog_with_torque_disabled(terminal, arm_line, name):
    def does(user):
        user.press("yes\n")
        user.wait("active")
        user.hold(RIGHT, 0.3)
        os.kill(os.getpid(), getattr(signal, name))

    code, printed = jogged(terminal, arm_line, does)
    assert code == (name == "SIGUSR1")
    assert bool(re.search(EMERGENCY, printed)) == (name == "SIGUSR1")
    assert "torque is disabled" in printed
    assert arm_line.torques == 0
    assert arm_line.most == 6


@pytest.mark.quick(1)
@pytest.mark.parametrize("keys", ["q\n", f"{RIGHT}q{RIGHT}"])
def test_q_among_other_keys_ends_jog(terminal, arm_line, keys):
    def does(user):
        user.press("yes\n")
        user.wait("active")
        user.press(keys)

    code, printed = jogged(terminal, arm_line, does)
    assert (code, arm_line.torques) == (0, 0)
    assert "torque is disabled" in printed


@pytest.mark.parametrize(("keys", "ends"), [(5 * RIGHT, False), (f"q{RIGHT}", True)])
def test_keys_during_the_activation_move_nothing_and_q_ends_jog(
    monkeypatch, terminal, arm_line, keys, ends
):
    users, moved, activate = [], [], MotorBusDriver.activate

    def activate_late(driver):
        activate(driver)
        users[0].press(keys)

    def does(user):
        users.append(user)
        user.press("yes\n")
        user.wait("reference")
        user.look(0.3)
        moved.append(abs(arm_line.arm.state.q[0] - START[0]))
        if not ends:
            user.press("q")

    monkeypatch.setattr(MotorBusDriver, "activate", activate_late)
    code, printed = jogged(terminal, arm_line, does)
    assert (code, arm_line.torques, arm_line.most) == (0, 0, 6)
    assert "torque is disabled" in printed
    assert moved[0] < 1e-3


def test_a_fault_ends_jog_with_torque_disabled(terminal, arm_line):
    def does(user):
        user.press("yes\n")
        user.wait("active")
        arm_line.motors.trip(5, "overheating")

    code, printed = jogged(terminal, arm_line, does)
    assert code == 1
    assert "  joint 'wrist_roll': motor_fault" in printed
    assert "torque is disabled" in printed
    assert arm_line.torques == 0


def test_a_lost_port_is_reported_with_the_remedy(terminal, arm_line):
    def does(user):
        user.press("yes\n")
        user.wait("active")
        arm_line.unplug()

    code, printed = jogged(terminal, arm_line, does)
    assert code == 1
    assert "SWITCH THE MOTORS' POWER OFF" in printed


# --- run


RUN_DURATION = 30.0


def run_until_q(terminal, line, *more, does=lambda user: None, q="q"):
    """Return exit code, output, and joint positions before torque was disabled, of a run that the
    keys ``q`` end.
    """
    seen = {}

    def user(user):
        user.wait("Enable torque? Type yes:")
        assert line.most == 0, "torque enabled before the confirmation"
        user.press("yes\n")
        user.wait("active")
        user.look(0.8)
        does(user)
        seen["torques"], seen["q"] = line.torques, line.arm.state.q.copy()
        user.press(q)

    options = "--headless", "--rate", 100, "--duration", RUN_DURATION
    code, printed = terminal(user, "run", "so101", *at_port(line), *options, *more)
    return code, printed, seen


def test_run_holds_the_arm_with_its_parameter_file_and_disables_torque_at_the_end(
    terminal, arm_line
):
    code, printed, seen = run_until_q(terminal, arm_line)
    assert code == 0, printed
    assert "under the controller position" in printed
    assert "largest error" in printed
    assert seen["torques"] == 6
    np.testing.assert_allclose(seen["q"], START, atol=0.02)
    assert "torque is disabled" in printed
    assert arm_line.torques == 0


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ENDING_SIGNALS)
def test_a_signal_ends_run_with_torque_disabled(terminal, arm_line, virtual_time, name):
    def send(user):
        os.kill(os.getpid(), getattr(signal, name))

    code, printed, _ = run_until_q(terminal, arm_line, does=send, q="")
    assert virtual_time.monotonic() < RUN_DURATION / 2
    assert code == (name == "SIGUSR1")
    assert bool(re.search(EMERGENCY, printed)) == (name == "SIGUSR1")
    assert "torque is disabled" in printed
    assert arm_line.torques == 0


@pytest.mark.quick(1)
@pytest.mark.parametrize("keys", ["q\n", "xqx", f"q{LEFT}"])
def test_q_among_other_keys_ends_run(terminal, arm_line, virtual_time, keys):
    code, _, _ = run_until_q(terminal, arm_line, q=keys)
    assert virtual_time.monotonic() < RUN_DURATION / 2
    assert (code, arm_line.torques) == (0, 0)


@pytest.fixture
def excitation(monkeypatch, tmp_path):
    """A function that saves an excitation trajectory of so101 and returns it and its file."""
    monkeypatch.setattr(excitation_search, "RANDOM_STARTS", 20)
    monkeypatch.setattr(excitation_search, "EVALUATIONS", 100)

    def saved(duration, start):
        motion = excitation_search.excite(
            load_arm("so101"), duration, harmonics=1, configuration=start
        )
        motion.save(tmp_path / "e.yaml")
        return motion, tmp_path / "e.yaml"

    return saved


INTERRUPTED = "excitation_interrupted: "


def run_excitation(terminal, line, file, watch):
    """Return output, recording and what was seen of a run."""
    words = "--excitation", file, "--record", file.parent / "run"
    code, printed, seen = run_until_q(terminal, line, *words, does=watch)
    assert code == 0, printed
    return printed, Recording.load(words[-1]), seen


def test_run_follows_an_excitation_trajectory(monkeypatch, terminal, arm_line, excitation):
    start = START + np.array([0.1, 0, 0, 0, 0, 0])
    motion, file = excitation(3.0, start)
    expected, moved = np.ptp(motion.sample(np.linspace(0, 3, 100))[0], axis=0), []

    def computed(excitation, *begin):
        torques.append(arm_line.torques)
        return original(excitation, *begin)

    torques, original = [], Excitation.trajectory
    monkeypatch.setattr(Excitation, "trajectory", computed)

    def watch(user):
        for _ in range(100):
            user.look(0.05)
            moved.append(arm_line.arm.state.q.copy())

    printed, recording, seen = run_excitation(terminal, arm_line, file, watch)
    assert (np.diff(recording.time) > 0).all()
    np.testing.assert_allclose(np.ptp(recording.q, axis=0), np.ptp(moved, axis=0), rtol=0.1)
    assert np.isfinite(recording.tau).all()
    assert np.isfinite(recording.commands["position"][1:]).all()
    assert "moves to the start configuration" in printed
    np.testing.assert_allclose(np.ptp(moved, axis=0)[1:], expected[1:], rtol=0.2, atol=0.03)
    np.testing.assert_allclose(seen["q"], start, atol=0.03)
    assert torques == [0], "computed with enabled torque"


def test_an_excitation_beyond_the_limits_ends_before_the_question(terminal, arm_line, tmp_path):
    arm, far = load_arm("so101"), np.zeros((6, 1))
    far[0] = 3.0
    Excitation(arm.name, arm.joint_names, 9.0, 2.0, 1, START, START, far, far).save(
        tmp_path / "e.yaml"
    )
    words = "run", "so101", *at_port(arm_line), "--headless", "--excitation", tmp_path / "e.yaml"
    with pytest.raises(TrajectoryRejected, match="joint 'shoulder_pan': position = "):
        terminal(lambda user: None, *words)
    assert arm_line.most == 0


@pytest.mark.parametrize("restart", ["before", "during"])
def test_an_interrupted_excitation_fails_and_the_arm_holds(
    monkeypatch, terminal, virtual_time, arm_line, excitation, restart
):
    """A pause of the machine restarts the loop: before the motion it begins later."""
    start = START + np.array([0.3, 0, 0, 0, 0, 0])
    _, file = excitation(3.0, start)
    step, active, followed, paused, rests = ControlLoop.step, [], [], [], []

    def slow(loop):
        if loop.state is not None and loop.driver.status.torque_enabled:
            active.append(loop.state.time)
        ready = active and loop.state.time > active[0] + 0.2
        if restart == "during":
            ready = followed and loop.state.time > followed[0] + 1.5
        if ready and not paused:
            paused.append(loop.state.time)
            virtual_time.sleep(0.5)
        return step(loop)

    def follow(loop, trajectory, **options):
        followed.append(loop.state.time)
        return original(loop, trajectory, **options)

    original = ControlLoop.follow
    monkeypatch.setattr(ControlLoop, "step", slow)
    monkeypatch.setattr(ControlLoop, "follow", follow)

    def watch(user):
        if restart == "before":
            while not followed:
                user.look(0.1)
        else:
            user.wait(INTERRUPTED)
            for _ in range(2):
                rests.append(arm_line.arm.state.q.copy())
                user.look(1.0)

    code, printed, _ = run_until_q(terminal, arm_line, "--excitation", file, does=watch)
    if restart == "before":
        assert followed[0] > paused[0] + 0.95
        return
    assert "control_restarted: no state for " in printed
    assert code == 1
    assert len(followed) == 1
    assert "holding the measured configuration" in printed.split(INTERRUPTED)[1]
    np.testing.assert_allclose(rests[1], rests[0], atol=0.05)
    assert abs(rests[1][0] - START[0]) > 0.05, "the arm had begun to move"


def test_q_stops_the_motion_before_torque_is_disabled(monkeypatch, terminal, arm_line, excitation):
    """Without a stop the arm would fall with the speed of the excitation trajectory."""
    _, file = excitation(6.0, START)
    moved, speeds, deactivate = [], [], MotorBusDriver.deactivate

    def recorded(driver):
        speeds.append(np.abs(driver.feedback.v).max())
        deactivate(driver)

    monkeypatch.setattr(MotorBusDriver, "deactivate", recorded)

    def watch(user):
        for _ in range(1000):
            user.look(0.02)
            moved.append(np.abs(arm_line.arm.state.v).max())
            if moved[-1] > 0.3:
                break

    run_excitation(terminal, arm_line, file, watch)
    assert moved[-1] > 0.3
    assert speeds[-1] < 0.1


@pytest.mark.slow
def test_run_compensates_gravity_if_a_missing_watchdog_is_allowed(terminal, arm_line):
    options = "--controller", "gravity_compensation"

    def confirm(user):
        user.wait("Enable torque? Type yes:")
        user.press("yes\n")

    with pytest.raises(ArmDynamicsError, match="no watchdog"):
        terminal(confirm, "run", "so101", *at_port(arm_line), "--headless", *options)
    assert arm_line.most == 0
    code, printed, seen = run_until_q(
        terminal, arm_line, *options, "--set", "allow_missing_watchdog=true"
    )
    assert code == 0, printed
    assert "under the controller gravity_compensation" in printed
    assert seen["torques"] == 6
    assert np.abs(seen["q"] - START).max() < 0.1
    assert arm_line.torques == 0


@pytest.mark.slow
def test_run_ends_with_1_after_a_trip_and_needs_a_confirmation_of_torque(terminal, arm_line):
    words = ("run", "so101", *at_port(arm_line), "--headless")

    def decline(user):
        user.press("yes\n")
        user.wait("Enable torque? Type yes:")
        user.press("no\n")

    code, printed = terminal(decline, *words)
    assert (code, arm_line.most) == (1, 0)
    assert "torque was not enabled: nothing was changed" in printed

    def trip(user):
        arm_line.motors.trip(5, "overheating")
        user.wait("joint 'wrist_roll': motor_fault")

    code, printed, _ = run_until_q(terminal, arm_line, does=trip)
    assert code == 1
    assert "joint 'wrist_roll': motor_fault" in printed
    assert arm_line.torques == 0


def test_the_emergency_stop_of_the_viewer_page_ends_run(terminal, arm_line):
    seen = []

    def user(user):
        user.wait("Enable torque? Type yes:")
        user.press("yes\n")
        user.wait("active")
        (url,) = re.findall(r"http://\S+", user.output)
        with Panel(url) as panel:
            words = "view only, the arm cannot be moved: run the command with --control"
            panel.wait_for(lambda: words in panel.text, "no line about the view-only page")
            assert not panel.sliders
            panel.push("EMERGENCY STOP")
            user.wait("emergency")
            seen.append(arm_line.torques)

    words = ("run", "so101", *at_port(arm_line), "--page-port", 0, "--rate", 50, "--duration", 60)
    code, printed = terminal(user, *words)
    assert code == 1, printed
    assert seen, printed
    assert "the viewer" in printed.split("stopped:")[1]
    assert arm_line.torques == 0


def test_sliders_of_the_page_move_the_arm_with_control(terminal, arm_line):
    def user(user):
        user.wait("moves to the targets of the page")
        user.wait("Enable torque? Type yes:")
        user.press("yes\n")
        user.wait("active")
        (url,) = re.findall(r"http://\S+", user.output)
        with Panel(url) as panel:

            def reads(condition):  # the terminal is also read, else the command waits
                user.look(0.05)
                return condition()

            name = "wrist_roll"
            panel.wait_for(lambda: reads(lambda: name in panel.sliders), "no sliders")
            panel.set(name, panel.sliders[name] + 0.2)
            panel.wait_for(lambda: reads(lambda: "targets reached" in panel.text), "no motion")
            panel.wait_for(lambda: reads(lambda: "torque on" in panel.text), "no motors")
        moved.append(arm_line.arm.state.q[4] - before)
        user.press("q")

    words = ("run", "so101", *at_port(arm_line), "--page-port", 0, "--rate", 50, "--duration", 60)
    before, moved = arm_line.arm.state.q[4], []
    code, printed = terminal(user, *words, "--control")
    assert code == 0, printed
    assert moved == [pytest.approx(0.2, abs=0.05)]
    with pytest.raises(ConfigError, match="--control: expected a page"):
        hardware.run(["run", "so101", "--control", "--headless"])


# --- calibrate


def move_to_mark(user, line, q, key, words):
    """Move the arm to ``q`` by hand and press ``key`` until ``words`` are printed."""
    for fraction in (0.5, 1.0):  # servos lose count after a step of half a turn
        line.arm.hold_at((1 - fraction) * line.arm.state.q + fraction * q)
        user.look(0.15)
    user.output = ""
    while words not in user.output:
        user.press(key)
        user.look(0.3)


def calibrated(terminal, line, does, output, *more):
    words = ("calibrate", "so101", *at_port(line), "--output", output, *more)
    return terminal(does, *words)


def elbow(value):
    q = START.copy()
    q[2] = value
    return q


@pytest.fixture
def flipped_line(arm_lines):
    """An arm whose elbow motor has the opposite sign and another offset."""
    return arm_lines(START, flipped=("elbow_flex",), offset={"elbow_flex": 0.25})


def calibrate_elbow(user, line, lower=-1.69, upper=1.69):
    user.wait("Type yes:")
    user.press("yes\n")
    for q, mark in ((0.0, "zero mark"), (lower, "lower end"), (upper, "upper end")):
        user.wait(mark)
        move_to_mark(user, line, elbow(q), "m", "measured")


def continuous_elbow(path, ratio):
    """Write an SO-101 whose elbow is continuous, with a mechanical reduction."""
    text = (resources.resource_folder("urdf") / "so101.urdf").read_text(encoding="utf-8")
    text, count = re.subn(
        r'(<joint name="elbow_flex" type=)"revolute"(.*?<limit )lower="\S+" upper="\S+" ',
        r'\1"continuous"\2',
        text,
        count=1,
        flags=re.DOTALL,
    )
    assert count == 1
    changed = with_params(text, {"elbow_flex": {"mechanical_reduction": f"{ratio:g}"}})
    path.write_text(changed, encoding="utf-8")
    return path


@pytest.mark.quick(1)
@pytest.mark.parametrize(("turn", "code", "sign"), [(1.5, 0, -1), (0.005, 1, 1)])
def test_a_continuous_geared_joint_is_calibrated_by_a_positive_rotation(
    terminal, arm_lines, tmp_path, turn, code, sign
):
    line = arm_lines(
        START, flipped=("elbow_flex",), offset={"elbow_flex": 0.25}, ratio={"elbow_flex": 4}
    )
    arm, output = continuous_elbow(tmp_path / "arm.urdf", 4), tmp_path / "mine.urdf"

    def does(user):
        user.wait("Type yes:")
        user.press("yes\n")
        for q, mark in ((0.0, "zero mark"), (turn, "a quarter turn further")):
            user.wait(mark)
            move_to_mark(user, line, elbow(q), "m", "measured")

    words = ("calibrate", arm, *at_port(line), "--output", output, "--joint", "elbow_flex")
    ended, printed = terminal(does, *words)
    assert ended == code, printed
    assert ("WARNING: rotation from zero = -0.0" in printed) == (code == 1)
    assert line.most == 0, "torque must stay disabled"
    found = {m.joint: m for m in read_hardware_info(load_arm(output)).motors}["elbow_flex"]
    assert (found.sign, found.mechanical_reduction) == (sign, 4)
    assert sign * found.offset == pytest.approx(-0.25, abs=2e-3)


def test_calibration_changes_only_sign_and_offset(terminal, flipped_line, tmp_path):
    output = tmp_path / "mine.urdf"
    code, printed = calibrated(
        terminal,
        flipped_line,
        lambda user: calibrate_elbow(user, flipped_line),
        output,
        "--joint",
        "elbow_flex",
    )
    assert code == 0, printed
    assert "WARNING" not in printed
    assert flipped_line.most == 0, "torque must stay disabled"
    before = (resources.resource_folder("urdf") / "so101.urdf").read_text()
    after = output.read_text()
    differing = [
        (a, b) for a, b in zip(before.splitlines(), after.splitlines(), strict=True) if a != b
    ]
    assert [b.split('"')[1] for _, b in differing] == ["sign", "offset"]
    found = {m.joint: m for m in read_hardware_info(load_arm(output)).motors}["elbow_flex"]
    assert found.sign == -1
    assert found.offset == pytest.approx(0.25, abs=2e-3)
    assert checked(flipped_line, output) == 0


@pytest.mark.slow
def test_calibration_warns_of_end_stops_that_differ_from_the_urdf(terminal, flipped_line, tmp_path):
    code, printed = calibrated(
        terminal,
        flipped_line,
        lambda user: calibrate_elbow(user, flipped_line, upper=1.3),
        tmp_path / "mine.urdf",
        *("--joint", "elbow_flex"),
    )
    assert code == 1, "written, with warnings"
    assert (tmp_path / "mine.urdf").exists()
    assert "WARNING, see above: elbow_flex" in printed
    assert "WARNING: upper end at 1.30 rad, the URDF's limit is 1.69" in printed
    assert "lower end at" not in printed.replace("lower end (", "")


def test_a_calibration_with_all_joints_skipped_writes_nothing(terminal, arm_line, tmp_path):
    def does(user):
        user.wait("Type yes:")
        user.press("yes\n")
        for joint in load_arm("so101").joint_names:
            for mark in ("zero mark", "lower end", "upper end"):
                user.wait(f"'{joint}' at its {mark}")
                user.look(0.05)
                user.press("\n")

    output = tmp_path / "mine.urdf"
    code, printed = calibrated(terminal, arm_line, does, output)
    assert code == 1
    assert printed.count("kept") == 6
    assert "nothing is written" in printed
    assert not output.exists()


@pytest.mark.quick(1)
@pytest.mark.parametrize(("answer", "written"), [("y\n", False), ("yes\n", True)])
def test_overwriting_a_file_needs_a_confirmation(terminal, flipped_line, tmp_path, answer, written):
    output = tmp_path / "mine.urdf"
    output.write_text("mine")

    def does(user):
        calibrate_elbow(user, flipped_line)
        user.wait("exists. Overwrite it? Type yes:")
        user.press(answer)

    code, _ = calibrated(terminal, flipped_line, does, output, "--joint", "elbow_flex")
    assert code == (0 if written else 1)
    assert (output.read_text() == "mine") != written


def test_calibration_writes_nothing_without_confirmation_or_after_q(terminal, arm_line, tmp_path):
    output = tmp_path / "mine.urdf"
    arm_line.motors.servos[1].write(40, bytes([1]))

    def decline(user):
        user.wait("Type yes:")
        user.press("no\n")

    code, printed = calibrated(terminal, arm_line, decline, output)
    assert (code, arm_line.torques) == (1, 1), "torque enabled by another program is kept"
    assert "nothing was changed" in printed

    def quit_early(user):
        user.wait("Type yes:")
        user.press("yes\n")
        user.wait("zero mark")
        user.look(0.1)
        user.press("q\n")

    with pytest.raises(ConfigError, match="nothing is written"):
        calibrated(terminal, arm_line, quit_early, output)
    assert arm_line.torques == 0
    assert not output.exists()


def test_calibration_of_motors_without_a_common_interface_names_each():
    interfaces = {1: ("effort", "voltage"), 2: ("position",)}
    bus = SimpleNamespace(
        motors={id: JointMotor(f"J{id}", id, "m") for id in interfaces},
        interfaces=interfaces.__getitem__,
        open=lambda: None,
        discover=lambda: None,
    )
    expected = (
        r"command interfaces: motor 1 \(joint 'J1'\) = effort, voltage; motor 2 \(joint 'J2'\) ="
        " position; expected one that all motors have; calibrate .* --lock"
    )
    with pytest.raises(DriverFault, match=expected):
        calibrate._prepare(bus)


def test_calibration_needs_an_existing_folder_for_its_file(terminal, arm_line, tmp_path):
    for output in (tmp_path, tmp_path / "none" / "mine.urdf"):
        with pytest.raises(ConfigError, match="expected a file in a folder that exists"):
            calibrated(terminal, arm_line, lambda user: None, Path(output))


# --- in a separate process


class JogProcess:
    """Jog in a separate process at a pseudo terminal, with torque enabled."""

    def __init__(self, line):
        self.printed = ""
        self._pid, self._terminal = os.forkpty()
        if not self._pid:
            words = ["jog", "so101", "--joint", "shoulder_pan", *at_port(line)]
            os.execv(
                sys.executable,
                [sys.executable, "-m", "arm_dynamics.cli.main", "hardware", *words],
            )
        self.wait("Type yes:")
        self.press("yes\n")
        self.wait("active")

    def press(self, keys):
        os.write(self._terminal, keys.encode())

    def read(self):
        self.printed += os.read(self._terminal, 4096).decode("utf-8", "replace")

    def wait(self, words):
        while words not in self.printed:
            self.read()

    def is_silent(self, seconds):
        """Return whether the terminal gives no output for a time."""
        return not select.select([self._terminal], [], [], seconds)[0]

    def end(self):
        """Return the exit code after the last output."""
        self.wait("torque is disabled")
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        os.close(self._terminal)
        return code


@pytest.mark.slow
def test_ctrl_c_at_a_terminal_ends_jog_with_torque_disabled(real_arm_line):
    """The terminal generates the signal."""
    jog = JogProcess(real_arm_line)
    jog.press("\x03")
    assert jog.end() == 0
    assert real_arm_line.most == 6
    assert real_arm_line.torques == 0


@pytest.mark.slow
def test_jog_continues_at_a_stopped_terminal_and_q_ends_it(real_arm_line):
    requests, ended, receive = [], threading.Event(), real_arm_line.motors.receive

    def count(data, now):
        requests.append(bool(data))
        if real_arm_line.most and not real_arm_line.torques:
            ended.set()
        return receive(data, now)

    jog = JogProcess(real_arm_line)
    jog.press("\x13")  # Ctrl-S
    while not jog.is_silent(0.5):
        jog.read()
    real_arm_line.motors.receive = count
    until = time.monotonic() + 60
    while sum(requests) < 200:  # some seconds
        assert time.monotonic() < until, "the loop waits for the terminal"
        assert real_arm_line.torques == 6
        time.sleep(0.01)
    assert jog.is_silent(0)
    jog.press("q\n")
    assert ended.wait(60), "torque stays enabled"
    jog.press("\x11")  # Ctrl-Q
    assert jog.end() == 0


# --- calibrate-gravity


def calibrated_gravity(monkeypatch, terminal, line, does, output, *more):
    """Return exit code and output of a calibration with quick approaches."""
    for name, value in (("APPROACH_TIME", 0.6), ("SETTLING_TIME", 0.3), ("READING_TIME", 0.1)):
        monkeypatch.setattr(pose_measurement, name, value)

    def user(user):
        user.wait("Enable torque? Type yes:")
        assert line.most == 0, "torque enabled before the confirmation"
        does(user)

    options = "--output", output, "--poses", 4, "--speed", 90, *more
    return terminal(user, "calibrate-gravity", "so101", *at_port(line), *options)


@pytest.mark.slow
def test_gravity_calibration_moves_through_the_poses_and_finds_a_payload(
    monkeypatch, terminal, arm_lines, tmp_path
):
    line, output = arm_lines(START, payload=0.15), tmp_path / "mine.urdf"
    code, printed = calibrated_gravity(
        monkeypatch, terminal, line, lambda user: user.press("yes\n"), output
    )
    assert code == 0, printed
    assert "8 efforts measured" in printed
    assert "torque is disabled" in printed
    assert line.torques == 0
    assert "4 static poses" in output.read_text()
    described, found = load_arm("so101"), load_arm(str(output))
    actual = described.with_payload(0.15)
    q = np.random.default_rng(0).uniform(actual.lower, actual.upper, (20, 6))
    before, after = (
        np.abs([gravity(arm, x) - gravity(actual, x) for x in q]).max(axis=0)
        for arm in (described, found)
    )
    assert after.max() < 0.2 * before.max()


@pytest.mark.slow
def test_the_poses_are_saved_before_a_fit_that_fails(monkeypatch, terminal, arm_line, tmp_path):
    def rejected(*_):
        raise InvalidValue("poses = bad; expected others")

    monkeypatch.setattr(calibrate_gravity, "calibrate_gravity", rejected)
    output = tmp_path / "mine.urdf"
    with pytest.raises(InvalidValue, match="poses = bad"):
        calibrated_gravity(
            monkeypatch, terminal, arm_line, lambda user: user.press("yes\n"), output
        )
    assert not output.exists()
    assert arm_line.torques == 0
    assert len(read_poses(load_arm("so101"), tmp_path / "mine.poses.csv")) == 8


@pytest.mark.quick(1)
@pytest.mark.parametrize("stop_by", ["q\n", signal.SIGINT, signal.SIGUSR1, signal.SIGTSTP])
def test_a_stopped_gravity_calibration_writes_nothing(
    monkeypatch, terminal, arm_line, tmp_path, stop_by
):
    output = tmp_path / "mine.urdf"

    def stop(user):
        user.press("yes\n")
        user.wait("pose 1 of 8")
        if stop_by == "q\n":
            user.press(stop_by)
        else:
            os.kill(os.getpid(), stop_by)

    code, printed = calibrated_gravity(monkeypatch, terminal, arm_line, stop, output)
    assert code == 1
    assert "nothing is written" in printed
    assert "torque is disabled" in printed
    assert arm_line.torques == 0
    assert not output.exists()


def test_too_few_poses_are_rejected_before_torque_is_enabled(terminal, arm_line, tmp_path):
    options = "--output", tmp_path / "mine.urdf", "--poses", 3
    with pytest.raises(InvalidValue, match=r"--poses of arm 'so101' = 3; expected .* at least 4"):
        terminal(lambda _: None, "calibrate-gravity", "so101", *at_port(arm_line), *options)
    assert arm_line.most == 0
    assert list(tmp_path.iterdir()) == []


def test_gravity_calibration_needs_a_confirmation(monkeypatch, terminal, arm_line, tmp_path):
    output = tmp_path / "mine.urdf"
    code, printed = calibrated_gravity(
        monkeypatch, terminal, arm_line, lambda user: user.press("no\n"), output
    )
    assert code == 1
    assert "torque was not enabled: nothing was changed" in printed
    assert arm_line.most == 0


# --- a loop that does not react


class Unresponsive:
    """Driver whose torque only ``close`` disables."""

    def __init__(self):
        self.calls = []

    def close(self):
        self.calls.append("close")

    def emergency_stop(self, source):
        self.calls.append(source)


@pytest.mark.parametrize(
    ("name", "calls"), [("SIGTERM", ["close"]), ("SIGUSR1", ["signal SIGUSR1", "close"])]
)
def test_torque_is_disabled_if_the_loop_does_not_react_to_a_signal(monkeypatch, name, calls):
    """For example in a controller that compiles; then the process ends."""
    driver, ends, ended = Unresponsive(), [], threading.Event()

    def end(code, text):
        return lambda: (ends.append((code, text, [*driver.calls])), ended.set())

    monkeypatch.setattr(torque_session, "EndProcess", end)
    monkeypatch.setattr(signals, "compiling", [])
    with torque_session.torque_guard(driver) as stopped:
        signals.compiling.append(threading.get_ident())
        os.kill(os.getpid(), getattr(signal, name))
        assert ended.wait(60)
        assert stopped()
    code, text, before = ends[0]
    assert (code, before) == (1, calls)
    assert "torque was disabled" in text


def test_a_terminal_cannot_stop_the_process_while_torque_is_enabled():
    with torque_session.torque_guard(Unresponsive()):
        for number in (signal.SIGTTIN, signal.SIGTTOU):
            assert signal.getsignal(number) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTTOU) is signal.SIG_DFL
