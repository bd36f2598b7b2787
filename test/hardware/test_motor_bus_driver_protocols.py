"""Lifecycle with the protocols of all manufacturers, on an in-memory port with faults."""

from contextlib import suppress

import numpy as np
import pytest
from emulators.faults import Faults
from emulators.memory import MemoryPort
from emulators.vendors import VENDORS

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info

pytestmark = pytest.mark.hardware

PERIOD = 2e-3


class EmulatedLine:
    """Motors of one manufacturer on the small arm, behind an in-memory port."""

    def __init__(self, name):
        vendor = VENDORS[name]
        motors = vendor.motors(vendor.shafts())
        self.body, self.motors = vendor.body(motors), motors
        requests, answers = Faults(1, split=vendor.split), Faults(2, split=vendor.split)
        self.port = MemoryPort(
            motors, self.body, baud=vendor.baud, requests=requests, answers=answers
        )
        wiring = read_hardware_info(vendor.arm)
        kind = plugins.load_class("drivers", vendor.driver)
        bus = kind(wiring.motors, dict(wiring.settings), self.port)
        self.driver = MotorBusDriver(vendor.arm, bus, interface=vendor.interface)
        self.held = None

    def up(self):
        self.driver.configure()
        self.cycles(3)
        self.driver.activate()
        self.body.forget()
        return self

    def cycles(self, count):
        """Run cycles of a host that repeats its holding command."""
        for _ in range(count):
            self.port.pass_until(self.port.now() + PERIOD)
            with suppress(DriverFault):
                self.driver.read()
            if self.held is None:
                self.driver.idle()
            else:
                self.driver.write(Command(self.driver.interface, self.held))

    def hold(self):
        """Hold the current configuration in the following cycles."""
        self.held = self.driver._limiter.last.copy()

    @property
    def torque(self):
        return [self.motors.torque_is_on(shaft.id) for shaft in self.motors.shafts]


@pytest.mark.parametrize("name", VENDORS)
def test_activation_causes_no_motion_and_an_emergency_stop_disables_torque(name):
    line = EmulatedLine(name).up()
    line.cycles(150)
    assert line.driver.status is DriverState.ACTIVE
    assert line.torque == [True] * 3
    assert line.body.moved.max() < (1e-3 if line.driver.interface == "effort" else 0.02)
    feedback = line.driver.feedback
    np.testing.assert_allclose(feedback.q, line.body.state.q, atol=2e-3)
    assert (feedback.age < 0.02).all()
    assert line.driver.events.counts == {}
    line.driver.emergency_stop("test")
    line.cycles(2)
    assert line.torque == [False] * 3
    assert line.driver.status is DriverState.INACTIVE


@pytest.mark.quick(5)
@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("kind", ["loss", "corruption", "truncation", "duplication"])
def test_ten_percent_of_corrupt_frames_cause_no_motion(name, kind):
    line = EmulatedLine(name).up()
    line.cycles(20)
    line.hold()
    setattr(line.port.requests, kind, 0.1)
    setattr(line.port.answers, kind, 0.1)
    line.cycles(150)
    assert line.body.moved.max() < 0.02
    line.port.requests.heal()
    line.port.answers.heal()
    line.cycles(
        line.driver.safety.recovery_cycles + 40
    )  # a truncated frame may hide the following ones
    assert line.driver.status is DriverState.ACTIVE
    assert line.torque == [True] * 3


@pytest.mark.parametrize("name", VENDORS)
def test_a_disconnected_port_is_reopened(name):
    line = EmulatedLine(name).up()
    line.port.requests.unplugged = True
    line.cycles(10)
    assert line.driver.status is DriverState.ERROR
    line.port.requests.unplugged = False
    line.cycles(400)
    assert line.driver.status is DriverState.INACTIVE
    assert line.driver.events.counts == {"connection_lost": 1, "reconnected": 1}
    assert line.torque == [False] * 3
