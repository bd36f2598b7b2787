"""The SO-101 on emulated servos: the controllers of the simulation, by position and by effort."""

import numpy as np
import pytest
from emulators.memory import MemoryPort

from arm_dynamics import ControlLoop, load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.emulation.feetech_servos import EmulatedFeetech
from arm_dynamics.hardware.feetech import Feetech
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info

pytestmark = pytest.mark.hardware

START = (0.2, 0.3, 0.2, -0.3, 0.1, 0.5)
PERIOD = 4e-3
ARM = load_arm("so101")


class Rig:
    """The arm, its servos and the line between, on virtual time."""

    def __init__(self, interface, settings=None):
        wiring = read_hardware_info(ARM)
        motors = EmulatedFeetech([Shaft(motor.id, "sts3215") for motor in wiring.motors])
        for servo in motors.servos:
            servo.memory[21] = 32
        self.motors, offset = motors, [motor.offset for motor in wiring.motors]
        self.body = EmulatedArm(ARM, motors, START, offset=offset)
        self.port = MemoryPort(motors, self.body)
        bus = Feetech(wiring.motors, {**wiring.settings, **(settings or {})}, self.port)
        self.driver = MotorBusDriver(ARM, bus, interface=interface)

    def up(self):
        self.driver.configure()
        self.driver.read()
        self.driver.activate()
        self.body.forget()
        return self

    def run(self, loop, seconds):
        """Run the loop at its period, or as fast as the transport allows."""
        end = self.port.now() + seconds
        while self.port.now() < end:
            due = self.port.now() + PERIOD
            loop.step()
            self.port.pass_until(due)


def test_position_commands_hold_the_arm_and_move_it_to_a_goal():
    rig = Rig("position").up()
    np.testing.assert_allclose(rig.body.state.q, START, atol=0.02)  # deflection of the servos
    loop = ControlLoop(rig.driver, PositionController(ARM))
    rig.run(loop, 0.5)
    assert rig.body.moved.max() < 0.02
    loop.hold(dict(zip(ARM.joint_names, np.array(START) + 0.3, strict=True)))
    rig.run(loop, 2.0)
    assert rig.driver.status is DriverState.ACTIVE, rig.driver.trips
    np.testing.assert_allclose(rig.body.state.q, np.array(START) + 0.3, atol=0.01)


def test_the_simulations_controller_holds_the_arm_with_efforts_by_voltage():
    rig = Rig("effort", {"allow_missing_watchdog": "true"}).up()
    assert rig.driver.capabilities[0].effort_source == "estimated"
    loop = ControlLoop(rig.driver, build_controller(ARM))
    loop.step()
    loop.hold(dict(zip(ARM.joint_names, START, strict=True)))
    rig.run(loop, 2.0)
    assert rig.driver.status is DriverState.ACTIVE, rig.driver.trips
    np.testing.assert_allclose(rig.body.state.q, START, atol=2e-3)


def test_effort_commands_without_watchdog_need_permission():
    rig = Rig("effort")
    rig.driver.configure()
    rig.driver.read()
    with pytest.raises(DriverFault, match="has no watchdog"):
        rig.driver.activate()
    assert not any(rig.motors.torque_is_on(id) for id in range(1, 7))
