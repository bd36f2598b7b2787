"""Torque is enabled while old goals are stored and the writes that replace them are lost."""

import numpy as np
import pytest
from dynamixel_rig import bus
from emulators.memory import MemoryPort
from emulators.vendors import VENDORS

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.motor_bus import MotorCommand
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info

pytestmark = pytest.mark.hardware

GOALS = {"position": 116, "velocity": 104, "effort": 102, "voltage": 100}
OLD = {"position": 3000, "velocity": 200, "effort": 900, "voltage": 700}
SYNC_WRITE = 0x83


def is_goal_write(data, interface):
    """Return whether ``data`` is a sync write of goals."""
    place = GOALS[interface].to_bytes(2, "little")
    return data[:4] == b"\xff\xff\xfd\x00" and data[7:10] == bytes((SYNC_WRITE,)) + place


class LossyPort(MemoryPort):
    """Port that loses the first write for which ``lost`` is true, and then calls ``then``."""

    def __init__(self, *args, lost, then, **more):
        super().__init__(*args, **more)
        self.lost, self.then = lost, then

    def write(self, data):
        if self.lost is not None and self.lost(data):
            self.lost = None
            self.then()
        else:
            super().write(data)


def arm_with_old_goals(interface, silenced):
    """Return an arm with old goals, supported until a motor has torque enabled."""
    vendor = VENDORS["dynamixel"]
    motors = vendor.motors(vendor.shafts())
    body = vendor.body(motors)
    body.hold_at((np.pi / 2, 0.0, 0.0), until=any)

    def then():
        motors.shafts[2].silent = silenced

    port = LossyPort(motors, body, lost=None, then=then)
    made = plugins.load_class("drivers", "dynamixel")(
        read_hardware_info(vendor.arm).motors, vendor.drive.settings, port
    )
    driver = MotorBusDriver(vendor.arm, made, interface=interface)
    driver.configure()
    for _ in range(4):
        driver.read()
        driver.idle()
        port.pass_until(port.now() + 0.005)
    for shaft in motors.shafts:
        motors.set(shaft.id, GOALS[interface], OLD[interface])
    port.lost = lambda data: is_goal_write(data, interface)
    body.forget()
    return driver, body, port


@pytest.mark.parametrize("interface", ["position", "effort"])
def test_a_lost_goal_and_a_motor_without_reply_cause_no_motion(interface):
    driver, body, port = arm_with_old_goals(interface, silenced=True)
    with pytest.raises(DriverFault, match="J3"):
        driver.activate()
    port.pass_until(port.now() + 0.3)
    assert port.lost is None
    assert body.moved.max() < np.radians(0.1)
    assert body.strongest.max() < 0.1


@pytest.mark.parametrize("interface", ["position", "effort"])
def test_a_lost_goal_is_sent_again(interface):
    driver, body, port = arm_with_old_goals(interface, silenced=False)
    driver.activate()
    assert port.lost is None
    assert body.moved.max() < np.radians(0.1)
    assert body.strongest.max() < 0.1


@pytest.mark.parametrize("interface", list(GOALS))
def test_torque_is_not_enabled_without_a_confirmed_goal(interface):
    made, motors, _ = bus()
    made.open()
    made.discover()
    made.prepare(interface)
    for id in made.motors:
        motors.set(id, GOALS[interface], OLD[interface])
    made.write({id: MotorCommand(interface, 0.0) for id in made.motors})
    motors.set(2, 98, -1)  # its watchdog has tripped: it accepts no goal
    motors.set(2, GOALS[interface], OLD[interface])
    assert made.enable([1, 2, 3]) == {1, 3}
    assert [motors.torque_is_on(id) for id in (1, 2, 3)] == [True, False, True]
    still = 2048 if interface == "position" else 0
    assert [motors.get(id, GOALS[interface]) for id in (1, 3)] == [still, still]


def test_torque_is_disabled_if_enabling_is_not_confirmed():
    made, motors, wire = bus()
    made.open()
    made.discover()
    made.prepare("effort")
    switched = []

    def distort(data):
        switched.append(motors.torque_is_on(3))
        return b"" if switched[-1] else data  # no reply is received while torque is enabled

    wire.distort = distort
    assert made.enable([3]) == set()
    assert any(switched)
    assert not motors.torque_is_on(3)
