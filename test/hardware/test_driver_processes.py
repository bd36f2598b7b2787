"""Driver and arm in separate processes on a pseudo terminal: stalled, killed, disconnected."""

import os
import signal
import time

import pytest
from emulators.served import Spoken, served
from emulators.vendors import VENDORS
from fault_injection.host import built

from arm_dynamics.core.errors import DriverFault

pytestmark = pytest.mark.hardware

SETTINGS = {
    "dynamixel": (),
    "mit_can": (),
    "mit_can by python-can": ("codec=python-can",),
    "feetech": (),
}
PATIENCE = 60.0
"""Deadline [s] of a wait, on a busy machine."""
WATCHED = [name for name in SETTINGS if name != "feetech"]


def host(name, port):
    return Spoken("-m", "fault_injection.host", name.split()[0], str(port), *SETTINGS[name])


def for_each(names):
    """Parametrize ``pair``; tests of one driver run consecutively in the same processes."""
    return pytest.mark.parametrize("pair", names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def pair(request, tmp_path_factory):
    """Yield an arm, and a host that moves it back and forth."""
    name, port = request.param, tmp_path_factory.mktemp("line") / "port"
    with served(name.split()[0], port) as arm, host(name, port) as program:
        assert program.first["error"] == ""
        assert program.first["status"] == "active"
        program.name, program.port = name, port
        require_motion(arm, program)
        yield arm, program


def until(what, why=lambda: "deadline passed"):
    """Return the first true result of ``what``; fail with ``why()`` after the deadline."""
    end = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < end, why()
        time.sleep(0.02)
    return found


def require_motion(arm, program):
    """Activate the arm again if necessary (busy machine) and wait until it moves."""

    def is_active():
        return program.request("status")["status"] == "active" or recover(arm, program)

    until(is_active, why=lambda: program.request("status"))
    arm.request("forget")
    until(lambda: min(arm.request("state")["moved"]) > 0.05, why=lambda: program.request("status"))


def recover(arm, program):
    """Reset and activate the arm as an operator does after a stop."""
    arm.request("hold")
    for word in ("reset", "activate"):
        answer = program.request(word)
    return answer["status"] == "active"


@pytest.mark.quick(1)
@for_each(WATCHED)
def test_motors_stop_when_the_host_stalls_and_the_host_recovers(pair):
    arm, program = pair
    program.process.send_signal(signal.SIGSTOP)
    until(lambda: arm.request("state")["stopped"])
    program.process.send_signal(signal.SIGCONT)
    until(lambda: program.request("status")["status"] != "active")
    until(lambda: recover(arm, program))
    require_motion(arm, program)


@pytest.mark.quick(1)
@for_each(SETTINGS)
def test_the_driver_reconnects_after_a_disconnection_during_motion(pair):
    arm, program = pair
    arm.request("unplug")
    until(lambda: program.request("status")["status"] == "error")
    before = program.request("status")["cycles"]
    arm.request("plug")
    until(lambda: program.request("status")["status"] == "inactive")
    assert not any(arm.request("state")["torque"])
    until(lambda: recover(arm, program))
    require_motion(arm, program)
    assert program.request("status")["cycles"] > before


@pytest.mark.quick(1)
@for_each(SETTINGS)
def test_a_second_program_is_rejected_and_the_first_continues(pair):
    arm, program = pair
    before = program.request("status")
    with host(program.name, program.port) as rival:
        assert os.path.basename(program.port) in rival.first["error"]
        assert rival.first["status"] == "unconfigured"
    require_motion(arm, program)
    after, starved = program.request("status"), arm.request("state")["skipped"] > 0.2
    lost = [status["counts"].get("connection_lost") for status in (before, after)]
    assert starved or lost[0] == lost[1], after["latest"]


@pytest.mark.quick(1)
@for_each(WATCHED)
def test_motors_stop_after_the_host_is_killed_and_another_program_starts(pair):
    arm, program = pair
    program.process.send_signal(signal.SIGKILL)
    program.process.wait()
    arm.request("release")
    until(lambda: arm.request("state")["stopped"])

    def is_driven_again():
        """Return whether another program drives the arm or reports "communication lost"."""
        arm.request("hold")
        with host(program.name, program.port) as other:
            if not other.first["error"]:
                require_motion(arm, other)
            return not other.first["error"] or "communication lost" in other.first["error"]

    until(is_driven_again)


def test_an_arm_with_wrong_ids_or_models_is_not_opened(tmp_path):
    port = tmp_path / "port"
    with served("dynamixel", port) as arm:
        for fault, message in (
            ("wrong_id 2 9", "'J2' .*no reply"),
            ("double 9 3", "'J3' .*two motors"),
            ("wrong_id 3 2", ""),
            ("wrong_model 2", "'J2' .*expected XM430-W350"),
            ("wrong_model 2 XM430-W350", ""),
            ("baud 1", "'J3' .*no reply; check power, cable"),
            ("heal", ""),
        ):
            assert "error" not in arm.request(fault)
            driver = built(VENDORS["dynamixel"], str(port), {})
            if message:
                with pytest.raises(DriverFault, match=message):
                    driver.configure()
            else:
                driver.configure()
            driver.close()
