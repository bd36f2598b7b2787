"""Driver and arm in processes of their own, on a pseudo terminal: stalled, killed, unplugged."""

import os
import signal
import time

import pytest
from emulators.makers import MAKERS
from emulators.served import Spoken, served
from fault_injection.host import build_host_driver

from arm_dynamics.core.errors import DriverFault

pytestmark = pytest.mark.hardware

SETTINGS = {
    "dynamixel": (),
    "mit_can": (),
    "mit_can by python-can": ("codec=python-can",),
    "feetech": (),
}
PATIENCE = 60.0
"""Deadline [s] of a wait, on a machine that is busy with other things."""
WATCHED = [name for name in SETTINGS if name != "feetech"]


def host(name, port):
    return Spoken("-m", "fault_injection.host", name.split()[0], str(port), *SETTINGS[name])


def each(names):
    """Tests of one driver follow each other: they share its processes."""
    return pytest.mark.parametrize("pair", names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def pair(request, tmp_path_factory):
    """An arm, and a host that swings it."""
    name, port = request.param, tmp_path_factory.mktemp("line") / "port"
    with served(name.split()[0], port) as arm, host(name, port) as program:
        assert program.first["error"] == ""
        assert program.first["status"] == "active"
        program.name, program.port = name, port
        swings(arm, program)
        yield arm, program


def until(what, why=lambda: "it did not come to be"):
    """What ``what`` says once it is true; ``why`` tells of it where it never is."""
    end = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < end, why()
        time.sleep(0.02)
    return found


def swings(arm, program):
    """Active, if need be (a busy machine) once more, and the arm moves from side to side."""

    def is_active():
        return program.tell("status")["status"] == "active" or taken_up(arm, program)

    until(is_active, why=lambda: program.tell("status"))
    arm.tell("forget")
    until(lambda: min(arm.tell("state")["moved"]) > 0.05, why=lambda: program.tell("status"))


def taken_up(arm, program):
    """What a person does when the arm has stopped for good."""
    arm.tell("hold")
    for word in ("reset", "activate"):
        answer = program.tell(word)
    return answer["status"] == "active"


@pytest.mark.quick(1)
@each(WATCHED)
def test_a_host_that_stalls_is_stopped_by_the_motors_and_then_goes_on(pair):
    arm, program = pair
    program.process.send_signal(signal.SIGSTOP)
    until(lambda: arm.tell("state")["stopped"])
    program.process.send_signal(signal.SIGCONT)
    until(lambda: program.tell("status")["status"] != "active")
    until(lambda: taken_up(arm, program))
    swings(arm, program)


@pytest.mark.quick(1)
@each(SETTINGS)
def test_unplugged_while_moving_and_plugged_in_again(pair):
    arm, program = pair
    arm.tell("unplug")
    until(lambda: program.tell("status")["status"] == "error")
    before = program.tell("status")["cycles"]
    arm.tell("plug")
    until(lambda: program.tell("status")["status"] == "inactive")
    assert not any(arm.tell("state")["torque"])
    until(lambda: taken_up(arm, program))
    swings(arm, program)
    assert program.tell("status")["cycles"] > before


@pytest.mark.quick(1)
@each(SETTINGS)
def test_a_second_program_is_refused_and_the_first_goes_on(pair):
    arm, program = pair
    before = program.tell("status")
    with host(program.name, program.port) as rival:
        assert os.path.basename(program.port) in rival.first["error"]
        assert rival.first["status"] == "unconfigured"
    swings(arm, program)
    after, starved = program.tell("status"), arm.tell("state")["skipped"] > 0.2
    lost = [told["counts"].get("connection_lost") for told in (before, after)]
    assert starved or lost[0] == lost[1], after["latest"]


@pytest.mark.quick(1)
@each(WATCHED)
def test_a_killed_host_leaves_motors_that_stop_and_another_program_takes_over(pair):
    arm, program = pair
    program.process.send_signal(signal.SIGKILL)
    program.process.wait()
    arm.tell("release")
    until(lambda: arm.tell("state")["stopped"])

    def taken_over():
        """By another program, or it says that a reset is due: Damiao's "communication lost"."""
        arm.tell("hold")
        with host(program.name, program.port) as other:
            if not other.first["error"]:
                swings(arm, other)
            return not other.first["error"] or "communication lost" in other.first["error"]

    until(taken_over)


def test_an_arm_that_is_wired_wrongly_is_not_opened(tmp_path):
    port = tmp_path / "port"
    with served("dynamixel", port) as arm:
        for told, said in (
            ("wrong_id 2 9", "'J2' .*no reply"),
            ("double 9 3", "'J3' .*two motors"),
            ("wrong_id 3 2", ""),
            ("wrong_model 2", "'J2' .*expected XM430-W350"),
            ("wrong_model 2 XM430-W350", ""),
            ("baud 1", "'J3' .*no reply; check power, cable"),
            ("heal", ""),
        ):
            assert "error" not in arm.tell(told)
            driver = build_host_driver(MAKERS["dynamixel"], str(port), {})
            if said:
                with pytest.raises(DriverFault, match=said):
                    driver.configure()
            else:
                driver.configure()
            driver.close()
