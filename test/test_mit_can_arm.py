"""The bundled arm of CAN motors, whole: plant, emulated motors, slcan, driver, safety, law."""

from functools import cache

import numpy as np
import pytest
from emulators.arm import EmulatedArm
from emulators.base import Shaft
from emulators.faults import Faults, after
from emulators.memory import MemoryPort
from emulators.mit import MitMotors

from arm_dynamics import load_arm
from arm_dynamics.config import build_controller
from arm_dynamics.drivers.mit_can import MitCan
from arm_dynamics.drivers.motor_arm import MotorArm
from arm_dynamics.drivers.status import Status
from arm_dynamics.errors import DriverFault
from arm_dynamics.model.wiring import read_wiring
from arm_dynamics.state import Reference

PERIOD = 2e-3


@cache
def arm():
    return load_arm("seven_dof_can")


class Rig:
    """``answers`` are the faults of what comes back from the motors."""

    def __init__(self):
        wired = read_wiring(arm())
        self.motors = MitMotors([Shaft(m.id, m.motor, supply=24.0) for m in wired.motors])
        self.body = EmulatedArm(arm(), self.motors, arm().pose("initial"))
        self.answers = Faults(seed=1, split=after(b"\r"))
        self.port = MemoryPort(self.motors, self.body, baud=4e6, answers=self.answers)
        self.driver = MotorArm(arm(), MitCan(wired.motors, wired.settings, self.port))
        self.law, self.goal = build_controller(arm()), arm().pose("initial")

    def up(self):
        self.driver.configure()
        self.driver.read()
        self.driver.activate()
        self.law.reset(self.driver.read())
        self.driver.idle()
        return self

    def run(self, cycles):
        for _ in range(cycles):
            start = self.port.now()
            self.cycle()
            self.port.pass_until(start + PERIOD)

    def cycle(self):
        try:
            state = self.driver.read()
        except DriverFault:
            self.driver.idle()
            return
        if np.isfinite(state.q).all():
            self.driver.write(self.law.update(state, Reference.hold(self.goal), PERIOD))
        else:
            self.driver.idle()

    def error(self):
        return np.abs(self.body.state.q - self.goal).max()


def test_activation_moves_nothing_and_the_arm_is_held():
    rig = Rig().up()
    assert rig.driver.status is Status.ACTIVE
    assert rig.body.moved.max() < 1e-3
    rig.run(500)
    assert rig.error() < 1e-3
    assert not rig.driver.trips


def test_it_goes_to_where_it_is_told():
    rig = Rig().up()
    rig.goal = rig.goal + 0.1
    rig.run(1000)
    assert rig.error() < 2e-3
    assert not rig.driver.trips


@pytest.mark.parametrize("fault", ["loss", "truncation", "duplication", "corruption"])
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_bad_answers_neither_trip_nor_move_it(fault, share):
    """A changed digit is another number there; nothing of it is believed."""
    rig = Rig().up()
    rig.run(50)
    rig.body.forget()
    setattr(rig.answers, fault, share)
    rig.run(250)
    assert [t.kind for t in rig.driver.trips] == []
    assert rig.body.moved.max() < 0.02
    rig.answers.heal()
    rig.run(150)
    assert rig.driver.status is Status.ACTIVE
    assert rig.error() < 2e-3


def test_half_of_the_answers_lost_stops_it_where_it_is():
    rig = Rig().up()
    rig.run(50)
    rig.body.forget()
    rig.answers.loss = 0.7
    rig.run(300)
    assert rig.driver.status is Status.STOPPED
    assert rig.body.moved.max() < 0.05
    rig.answers.heal()
    rig.run(200)
    assert rig.driver.status is Status.ACTIVE


def test_motors_let_go_when_the_host_is_silent():
    """Half a second without a frame: every motor stops by itself, and says so."""
    rig = Rig().up()
    rig.run(50)
    rig.port.pass_until(rig.port.now() + 0.5)
    assert not any(rig.motors.torque_is_on(shaft.id) for shaft in rig.motors.shafts)
    assert all(shaft.effort == 0.0 for shaft in rig.motors.shafts)
    rig.run(20)
    assert {t.kind for t in rig.driver.trips} >= {"fault"}
    assert any("communication lost" in str(t) for t in rig.driver.trips)


@pytest.mark.parametrize("happens", ["reboot", "overheating", "overload"])
def test_a_motor_that_fails_stops_the_arm(happens):
    rig = Rig().up()
    rig.run(50)
    if happens == "reboot":
        rig.motors.reboot(4)
    else:
        rig.motors.trip(4, happens)
    rig.run(5)
    assert rig.driver.status is not Status.ACTIVE
    assert any(t.joint == "J4" for t in rig.driver.trips)
