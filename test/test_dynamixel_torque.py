"""Torque on over goals of long ago, on a line that loses what should have replaced them."""

import numpy as np
import pytest
from dynamixel_line import bus
from emulators.makers import MAKERS
from emulators.memory import MemoryPort

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.motor_bus import MotorCommand
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info

pytestmark = pytest.mark.hardware

GOALS = {"position": 116, "velocity": 104, "effort": 102, "voltage": 100}
OLD = {"position": 3000, "velocity": 200, "effort": 900, "voltage": 700}
SYNC_WRITE = 0x83


def goal_write(data, interface):
    """Whether ``data`` is a sync write of goals."""
    place = GOALS[interface].to_bytes(2, "little")
    return data[:4] == b"\xff\xff\xfd\x00" and data[7:10] == bytes((SYNC_WRITE,)) + place


class Lossy(MemoryPort):
    """Loses the first write that ``lost`` is true of; ``then`` happens beside it."""

    def __init__(self, *args, lost, then, **more):
        super().__init__(*args, **more)
        self.lost, self.then = lost, then

    def write(self, data):
        if self.lost is not None and self.lost(data):
            self.lost = None
            self.then()
        else:
            super().write(data)


def arm_over_old_goals(interface, silenced):
    """An arm at rest that nobody holds once a motor has torque; its goals are of long ago."""
    maker = MAKERS["dynamixel"]
    motors = maker.motors(maker.shafts())
    body = maker.body(motors)
    body.hold_at((np.pi / 2, 0.0, 0.0), until=any)

    def then():
        motors.shafts[2].silent = silenced

    port = Lossy(motors, body, lost=None, then=then)
    made = plugins.load_class("drivers", "dynamixel")(
        read_hardware_info(maker.arm).motors, maker.drive.settings, port
    )
    driver = MotorBusDriver(maker.arm, made, interface=interface)
    driver.configure()
    for _ in range(4):
        driver.read()
        driver.idle()
        port.pass_until(port.now() + 0.005)
    for shaft in motors.shafts:
        motors.set(shaft.id, GOALS[interface], OLD[interface])
    port.lost = lambda data: goal_write(data, interface)
    body.forget()
    return driver, body, port


@pytest.mark.parametrize("interface", ["position", "effort"])
def test_a_lost_goal_and_a_motor_that_falls_silent_move_nothing(interface):
    driver, body, port = arm_over_old_goals(interface, silenced=True)
    with pytest.raises(DriverFault, match="J3"):
        driver.activate()
    port.pass_until(port.now() + 0.3)
    assert port.lost is None
    assert body.moved.max() < np.radians(0.1)
    assert body.strongest.max() < 0.1


@pytest.mark.parametrize("interface", ["position", "effort"])
def test_a_lost_goal_is_sent_again(interface):
    driver, body, port = arm_over_old_goals(interface, silenced=False)
    driver.activate()
    assert port.lost is None
    assert body.moved.max() < np.radians(0.1)
    assert body.strongest.max() < 0.1


@pytest.mark.parametrize("interface", list(GOALS))
def test_a_motor_whose_goal_is_not_confirmed_gets_no_torque(interface):
    made, motors, _ = bus()
    made.open()
    made.identify()
    made.prepare(interface)
    for id in made.motors:
        motors.set(id, GOALS[interface], OLD[interface])
    made.write({id: MotorCommand(interface, 0.0) for id in made.motors})
    motors.set(2, 98, -1)  # its watchdog has tripped: it takes no goal
    motors.set(2, GOALS[interface], OLD[interface])
    assert made.enable([1, 2, 3]) == {1, 3}
    assert [motors.torque_is_on(id) for id in (1, 2, 3)] == [True, False, True]
    still = 2048 if interface == "position" else 0
    assert [motors.get(id, GOALS[interface]) for id in (1, 3)] == [still, still]


def test_a_motor_that_does_not_confirm_its_torque_is_told_to_have_none():
    made, motors, wire = bus()
    made.open()
    made.identify()
    made.prepare("effort")
    switched = []

    def spoil(data):
        switched.append(motors.torque_is_on(3))
        return b"" if switched[-1] else data  # nothing is heard any more while it has torque

    wire.spoil = spoil
    assert made.enable([3]) == set()
    assert any(switched)
    assert not motors.torque_is_on(3)
