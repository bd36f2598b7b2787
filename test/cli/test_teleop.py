"""Command teleop at a terminal, on emulated motors in virtual time and on simulated arms."""

import os
import signal
import sys

import numpy as np
import pytest
from hardware_terminal import User, VirtualLine, so101_motors
from virtual_time import install_virtual_time

from arm_dynamics.cli import teleop
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError
from arm_dynamics.hardware import register_bus
from arm_dynamics.recording.bag import COMMANDS, REFERENCES, messages
from arm_dynamics.recording.motions.motion_readers import load_motion

pytestmark = pytest.mark.hardware

LEADER = np.array((0.5, 0.2, 0.3, -0.2, 0.3, 0.8))
FOLLOWER = np.array((0.2, 0.3, 0.2, -0.3, 0.1, 0.5))
PORTS = ("--leader-port", "leader", "--follower-port", "follower")
SIMULATED = ("so101", "so101", "--leader-driver", "simulated", "--follower-driver", "simulated")


@pytest.fixture
def virtual_time(monkeypatch):
    return install_virtual_time(monkeypatch)


@pytest.fixture
def lines(monkeypatch, virtual_time):
    """Return the lines of a leader that is held by hand and of a follower."""
    made = {
        "leader": VirtualLine(virtual_time, *so101_motors(LEADER)),
        "follower": VirtualLine(virtual_time, *so101_motors(FOLLOWER)),
    }
    virtual_time.on_advance = lambda now: [line.advance(now) for line in made.values()]
    monkeypatch.setattr(register_bus, "SerialPort", lambda name, baud: made[name].open(name, baud))
    return made


@pytest.fixture
def terminal(monkeypatch, virtual_time):
    """A function that returns a command's exit code and its output for a user who runs ``does``."""

    def at_terminal(does, *words):
        with monkeypatch.context() as patch:
            user = User(patch, does, virtual_time)
            try:
                code = teleop.run([str(word) for word in words])
            finally:
                printed = user.leave()
        return code, printed

    return at_terminal


def starting(then):
    """Return a user who permits the torque, and waits for the end of the approach."""

    def does(user):
        user.wait("Type yes")
        user.press("yes\n")
        user.wait("following")
        then(user)

    return does


def test_the_follower_follows_until_q(terminal, lines, tmp_path):
    leader, follower = lines["leader"], lines["follower"]
    moved = LEADER + 0.2

    def does(user):
        user.look(0.5)
        leader.arm.hold_at(moved)
        user.look(1.0)
        at_end.append(follower.arm.state.q.copy())
        user.press("q")

    at_end = []
    record = tmp_path / "both"
    code, printed = terminal(starting(does), "so101", "so101", *PORTS, "--record", record)
    assert code == 0, printed
    np.testing.assert_allclose(at_end[0], moved, atol=0.05)
    assert (leader.most, follower.most) == (0, 6)
    assert follower.torques == 0
    assert "follower: torque is disabled" in printed
    assert follower.arm.fastest.max() < 2.5
    of_leader, of_follower = (
        load_motion(follower.arm.plant.arm, record / side) for side in ("leader", "follower")
    )
    assert abs(of_leader.time[-1] - of_follower.time[-1]) < 0.1
    np.testing.assert_allclose(of_leader.q[-1], moved, atol=0.01)
    np.testing.assert_allclose(of_follower.q[-1], moved, atol=0.05)
    assert {COMMANDS, REFERENCES} <= {topic for topic, *_ in messages(record / "follower")}


def test_nothing_moves_without_a_typed_yes(terminal, lines):
    def does(user):
        user.wait("Type yes")
        user.press("no\n")

    code, printed = terminal(does, "so101", "so101", *PORTS)
    assert code == 1
    assert "torque was not enabled" in printed
    assert lines["follower"].most == 0


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGINT, 0, "torque is disabled"),
        (signal.SIGTERM, 0, "torque is disabled"),
        (signal.SIGUSR1, 1, "emergency_stop (signal SIGUSR1)"),
    ],
)
def test_signals_disable_torque(terminal, lines, number, code, words):
    found, printed = terminal(
        starting(lambda user: os.kill(os.getpid(), number)), "so101", "so101", *PORTS
    )
    assert found == code, printed
    assert words in printed
    assert lines["follower"].torques == 0


def test_a_silent_leader_is_shown_and_the_follower_holds(terminal, lines):
    held = []

    def does(user):
        for shaft in lines["leader"].motors.shafts:
            shaft.silent = True
        lines["leader"].arm.hold_at(LEADER + 0.5)
        user.wait("leader silent, follower holds")
        user.look(0.5)
        held.append(lines["follower"].arm.state.q.copy())
        user.press("q")

    code, printed = terminal(starting(does), "so101", "so101", *PORTS)
    assert code == 0, printed
    assert "leader_silent" in printed
    np.testing.assert_allclose(held[0], LEADER, atol=0.05)


def test_a_trip_of_the_follower_ends_the_run(terminal, lines):
    def does(user):
        lines["follower"].motors.trip(3, "overload")
        user.wait("stopped:")

    code, printed = terminal(starting(does), "so101", "so101", *PORTS)
    assert code == 1
    assert "follower: joint 'elbow_flex'" in printed


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("so101", "so101", "--bilateral", *PORTS),
         "--bilateral: joint 'shoulder_pan' accepts position, voltage of the leader"),
        (("so101", "five_dof", "--leader-driver", "simulated", "--follower-driver", "simulated"),
         "expected also R1, R2, R3, R4, R5"),
        (("five_dof", "so101", "--leader-port", "x"), "leader 'five_dof'"),
        (("so101", "so101", "--leader-port", "leader", "--follower-port", "leader"),
         "port of both arms = leader; expected two ports"),
        ((*SIMULATED, "--controller", "gravity_compensation"), "follows no reference"),
        (("so101", "so101", "--leader-driver", "usb", *PORTS), "usb"),
        (("so101", "so101", "--follower-calibration", "no.json", *PORTS), "no.json"),
    ],
)  # fmt: skip
def test_invalid_options_are_rejected_before_anything_moves(terminal, lines, words, text):
    with pytest.raises(ArmDynamicsError) as error:
        terminal(lambda user: None, *words)
    assert text in str(error.value)
    assert lines["follower"].most == 0


def test_physical_arms_need_a_terminal(lines, monkeypatch):
    with open(os.devnull) as null:
        monkeypatch.setattr(sys, "stdin", null)
        with pytest.raises(ConfigError, match="keys: standard input = not a terminal"):
            teleop.run(["so101", "so101", *PORTS])


@pytest.mark.parametrize("more", [(), ("--bilateral",)])
def test_simulated_arms_need_neither_hardware_nor_a_terminal(virtual_time, capsys, more, tmp_path):
    folder = tmp_path / "recording"
    words = (*SIMULATED, *more, "--duration", "3", "--record", str(folder))
    assert teleop.run(words) == 0
    printed = capsys.readouterr().out
    assert "following" in printed
    assert ("force feedback 100%" in printed) == bool(more)
    assert (folder / "leader").is_dir()
    assert (folder / "follower").is_dir()
