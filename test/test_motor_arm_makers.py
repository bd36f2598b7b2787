"""The same life over every maker's protocol, on a line in memory that may be bad."""

from contextlib import suppress

import numpy as np
import pytest
from emulators.faults import Faults
from emulators.makers import MAKERS
from emulators.memory import MemoryPort

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info

pytestmark = pytest.mark.hardware

PERIOD = 2e-3


class Line:
    """A maker's motors on the small arm, behind a port in memory."""

    def __init__(self, name):
        maker = MAKERS[name]
        motors = maker.motors(maker.shafts())
        self.body, self.motors = maker.body(motors), motors
        requests, answers = Faults(1, split=maker.split), Faults(2, split=maker.split)
        self.port = MemoryPort(
            motors, self.body, baud=maker.baud, requests=requests, answers=answers
        )
        wiring = read_hardware_info(maker.arm)
        kind = plugins.load_class("drivers", maker.driver)
        bus = kind(wiring.motors, dict(wiring.settings), self.port)
        self.driver = MotorBusDriver(maker.arm, bus, interface=maker.interface)
        self.held = None

    def up(self):
        self.driver.configure()
        self.cycles(3)
        self.driver.activate()
        self.body.forget()
        return self

    def cycles(self, count):
        """As a host that repeats the command that holds the arm."""
        for _ in range(count):
            self.port.pass_until(self.port.now() + PERIOD)
            with suppress(DriverFault):
                self.driver.read()
            if self.held is None:
                self.driver.idle()
            else:
                self.driver.write(Command(self.driver.interface, self.held))

    def hold(self):
        """From now on the host commands what keeps the arm in its place."""
        self.held = self.driver._limiter.last.copy()

    @property
    def torque(self):
        return [self.motors.torque_is_on(shaft.id) for shaft in self.motors.shafts]


@pytest.mark.parametrize("name", MAKERS)
def test_activation_moves_nothing_and_an_emergency_stop_takes_torque_off(name):
    line = Line(name).up()
    line.cycles(150)
    assert line.driver.status is DriverState.ACTIVE
    assert line.torque == [True] * 3
    assert line.body.moved.max() < (1e-3 if line.driver.interface == "effort" else 0.02)
    told = line.driver.feedback
    np.testing.assert_allclose(told.q, line.body.state.q, atol=2e-3)
    assert (told.age < 0.02).all()
    assert line.driver.events.counts == {}
    line.driver.emergency_stop("test")
    line.cycles(2)
    assert line.torque == [False] * 3
    assert line.driver.status is DriverState.INACTIVE


@pytest.mark.quick(5)
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", ["loss", "corruption", "truncation", "duplication"])
def test_a_tenth_of_all_frames_spoilt_moves_nothing(name, kind):
    line = Line(name).up()
    line.cycles(20)
    line.hold()
    setattr(line.port.requests, kind, 0.1)
    setattr(line.port.answers, kind, 0.1)
    line.cycles(150)
    assert line.body.moved.max() < 0.02
    line.port.requests.heal()
    line.port.answers.heal()
    line.cycles(line.driver.safety.recovery_cycles + 40)  # a cut frame may swallow the next ones
    assert line.driver.status is DriverState.ACTIVE
    assert line.torque == [True] * 3


@pytest.mark.parametrize("name", MAKERS)
def test_a_port_that_is_pulled_is_taken_up_again(name):
    line = Line(name).up()
    line.port.requests.unplugged = True
    line.cycles(10)
    assert line.driver.status is DriverState.ERROR
    line.port.requests.unplugged = False
    line.cycles(400)
    assert line.driver.status is DriverState.INACTIVE
    assert line.driver.events.counts == {"connection_lost": 1, "reconnected": 1}
    assert line.torque == [False] * 3
