"""``arm-dynamics hardware emulate`` serves the motors of an arm at a pseudo terminal."""

import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from arm_dynamics import load_arm
from arm_dynamics.cli.hardware import emulate
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.state import Command
from arm_dynamics.hardware import build_driver
from arm_dynamics.hardware.build import bus_class
from arm_dynamics.hardware.emulation.arm_hardware import different_arm, emulated_motors
from arm_dynamics.hardware.emulation.serial_terminal import SerialTerminal

pytestmark = pytest.mark.hardware


class Emulator:
    """The command in another process, and its printed lines."""

    def __init__(self, *arguments):
        words = [sys.executable, "-m", "arm_dynamics.cli.main", "hardware", "emulate", *arguments]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def line(self, words):
        """Return the next line that contains ``words``."""
        for line in self.process.stdout:
            if words in line:
                return line
        raise AssertionError(f"no line with '{words}'")

    def type(self, line):
        self.process.stdin.write(f"{line}\n")

    def end(self):
        """Interrupt the command; return its exit code and its last line."""
        self.process.send_signal(signal.SIGINT)
        last = self.process.stdout.read().splitlines()[-1]
        return self.process.wait(60), last


@pytest.fixture
def emulator(tmp_path):
    emulator = Emulator("so101", "--link", str(tmp_path / "arm.tty"), "--payload", "0.1")
    yield emulator
    emulator.process.kill()
    emulator.process.wait()
    emulator.process.stdin.close()
    emulator.process.stdout.close()


def test_the_commands_and_the_driver_find_the_motors_and_move_the_arm(emulator, tmp_path):
    """The printed command names the port. The torque is reported, and Ctrl-C removes the link."""
    link = tmp_path / "arm.tty"
    assert emulator.line("motors of") == f"6 motors of 'so101' (feetech) at {link}\n"
    assert emulator.line("next:") == f"next: arm-dynamics hardware check so101 --port {link}\n"
    settings = {"port": str(link), "baud": "1000000"}
    found = bus_class("feetech", settings).scan(settings)
    assert [(motor.id, motor.model) for motor in found] == [(id, "sts3215") for id in range(1, 7)]

    emulator.type("hold")
    assert "supported at 0.000, " in emulator.line("supported")
    emulator.type("nonsense")
    assert emulator.line("nonsense").startswith("'nonsense' is unknown; ")
    emulator.type("elbow_flex 500")
    assert "joint 'elbow_flex' = 8.72665 rad; expected" in emulator.line("elbow_flex")
    emulator.type("elbow_flex 10")
    assert "supported at 0.000, 0.000, 0.175, " in emulator.line("supported")
    arm = load_arm("so101")
    driver = build_driver(arm, "feetech", settings, interface="position", period=0.01)
    driver.configure()
    driver.activate()
    emulator.line("torque enabled: 6 of 6 motors")
    emulator.type("elbow_flex 20")
    assert emulator.line("torque =").startswith("torque = enabled; expected disabled")
    target = driver.read().q.copy()
    target[0] += 0.05
    for _ in range(3000):
        state = driver.read()
        if abs(state.q[0] - target[0]) < 0.02:
            break
        driver.write(Command.checked("position", target, arm.nv))
    assert state.q[0] == pytest.approx(target[0], abs=0.02)
    driver.deactivate()
    driver.close()
    emulator.line("torque enabled: 0 of 6 motors")
    assert emulator.end() == (0, "stopped")
    assert not link.is_symlink()


def test_a_typed_quit_ends_the_emulation(emulator, tmp_path):
    emulator.line("next:")
    emulator.type("quit")
    emulator.line("stopped")
    assert emulator.process.wait(60) == 0
    assert not (tmp_path / "arm.tty").is_symlink()


def test_the_motors_are_those_of_the_urdf_at_the_supply_of_its_actuators():
    arm = load_arm("seven_dof_can")
    motors = emulated_motors(arm)
    assert [shaft.model for shaft in motors.shafts][:2] == ["DM8009", "DM8009"]
    assert {shaft.supply for shaft in motors.shafts} == {24.0}
    assert {shaft.supply for shaft in emulated_motors(load_arm("so101")).shafts} == {12.0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["five_dof"], "docs/hardware.md, 'Drivers'"),
        (["so101", "--driver", "simulated"], "driver = 'simulated'; expected one of feetech, "),
        (["so101", "--link", "/"], "--link = /; expected a new path or a symbolic link"),
        (["so101", "--payload", "-1"], "payload"),
    ],
)
def test_bad_arguments_are_rejected(arguments, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        emulate.run(arguments)


def test_a_plugged_terminal_replaces_its_link_and_an_unplugged_one_removes_it(tmp_path):
    link, steps = tmp_path / "tty", []
    motors = SimpleNamespace(step=steps.append, shafts=(), receive=lambda data, now: data[::-1])
    terminal = SerialTerminal(motors, None, link)
    try:
        first = terminal.path
        assert link.resolve() == type(link)(first).resolve()
        with open(link, "r+b", buffering=0) as user:
            user.write(b"abc")
            while not terminal._waiting and not steps[50:]:
                terminal.serve()
            terminal.serve()
            assert user.read(3) == b"cba"
    finally:
        terminal.unplug()
    assert not link.is_symlink()


def test_a_different_arm_has_the_payload_and_friction():
    arm = load_arm("so101")
    other = different_arm(arm, 0.1, 1.5)
    before = arm.actuators[0].constants["coulomb_friction"]
    assert other.payload.mass == 0.1
    assert other.actuators[0].constants["coulomb_friction"] == pytest.approx(1.5 * before)
