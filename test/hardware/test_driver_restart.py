"""A program killed at any point, and a reset, leave motors that the next program can activate."""

from contextlib import suppress

import pytest
from emulators.memory import MemoryPort
from emulators.small_arm import small_arm
from emulators.vendors import CUBEMARS, VENDORS
from fault_injection.bench import Bench

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info

pytestmark = pytest.mark.hardware

PERIOD = 5e-3
KINDS = {**VENDORS, CUBEMARS.name: CUBEMARS}
KILLS = 6
"""Number of points at which a program is killed, spread over all its writes."""


class Killed(BaseException):
    """Exception that no handler of a driver catches: nothing more is sent."""


class KillingPort(MemoryPort):
    """Port whose program is killed at its ``left``-th write from now."""

    left = 10**9

    def write(self, data):
        self.left -= 1
        if self.left < 0:
            raise Killed
        super().write(data)

    def pass_until(self, time):
        """Advance in steps, so that the motors' watchdogs run periodically."""
        while self.time + 1e-2 < time:
            super().pass_until(self.time + 1e-2)
        super().pass_until(time)


class Setup:
    """Stationary motors on a bus, and the programs that use it."""

    def __init__(self, name):
        self.vendor = vendor = KINDS[name]
        self.arm = vendor.arm if name in VENDORS else small_arm(vendor.driver, vendor.drive)
        self.motors = vendor.motors(vendor.shafts())
        self.port = KillingPort(self.motors, baud=vendor.baud)

    def program(self, **settings):
        """Return a new program's driver; the port is free."""
        self.port.opened, self.port.left = False, 10**9
        wiring = read_hardware_info(self.arm)
        kind = plugins.load_class("drivers", self.vendor.driver)
        bus = kind(wiring.motors, {**wiring.settings, **settings}, self.port)
        return MotorBusDriver(self.arm, bus, interface=self.vendor.interface)

    def run_program(self, driver, writes):
        """Configure, activate, run cycles; return whether the ``writes``-th write killed it."""
        self.port.left = writes
        try:
            driver.configure()
            driver.activate()
            self.cycles(driver, 10)
        except Killed:
            return True
        return False

    def cycles(self, driver, count):
        for _ in range(count):
            self.port.pass_until(self.port.now() + PERIOD)
            with suppress(DriverFault):
                driver.read()
            driver.idle()

    @property
    def torque(self):
        return [self.motors.torque_is_on(shaft.id) for shaft in self.motors.shafts]


def is_working(shop, driver):
    """Return whether all motors have torque enabled and no trip occurred."""
    shop.cycles(driver, 10)
    return driver.status is DriverState.ACTIVE and all(shop.torque) and not driver.trips


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", KINDS)
def test_an_arm_is_activated_again_after_its_program_was_killed_at_any_point(name):
    """Immediately, or after the motors' watchdogs have tripped, in turn."""
    whole = Setup(name)
    assert not whole.run_program(whole.program(), 10**9)
    writes = 10**9 - whole.port.left
    for k in range(1, 1 + KILLS):
        kill, shop = k * writes // (KILLS + 1), Setup(name)
        assert shop.run_program(shop.program(), kill)
        shop.port.pass_until(shop.port.now() + (0.0 if k % 2 else 0.5))
        second = shop.program()
        second.configure()
        second.activate()
        assert is_working(shop, second), f"killed by write {kill} of {writes}"


@pytest.mark.parametrize("cause", ["overload", "heat"])
@pytest.mark.parametrize("name", KINDS)
def test_one_reset_after_a_rejected_activation_is_sufficient(name, cause):
    shop = Setup(name)
    driver, shaft = shop.program(), shop.motors.shafts[1]
    driver.configure()
    if cause == "heat":
        shaft.temperature = 110.0
        shop.port.pass_until(shop.port.now() + 0.1)
    else:
        shop.motors.trip(shaft.id, cause)
    with pytest.raises(DriverFault, match="reset to clear"):
        driver.activate()
    shaft.temperature = 30.0
    shop.port.pass_until(shop.port.now() + 0.2)
    driver.reset()
    driver.activate()
    assert is_working(shop, driver)


@pytest.mark.parametrize("name", [name for name in KINDS if KINDS[name].has_watchdog])
def test_one_reset_clears_watchdogs_that_tripped_during_a_pause(name):
    shop = Setup(name)
    driver = shop.program()
    driver.configure()
    driver.activate()
    shop.port.pass_until(shop.port.now() + 0.5)
    shop.cycles(driver, 5)
    driver.reset()
    driver.activate()
    assert is_working(shop, driver)


@pytest.mark.parametrize("name", KINDS)
def test_a_missing_motor_is_named_with_the_remedies(name):
    shop = Setup(name)
    driver = shop.program()
    driver.configure()
    remedies = driver.bus.remedies
    setting = "reply_timeout = 0.003 s" if "mit_can" in name else "latency = 0.00"
    assert f"if replies come late, raise {setting}" in remedies
    shop.motors.shafts[1].silent = True
    with pytest.raises(DriverFault, match="J2") as rejected:
        driver.activate()
    assert remedies in str(rejected.value)
    for shaft in shop.motors.shafts:
        shaft.silent = True
    shop.cycles(driver, 10)
    with pytest.raises(DriverFault, match="no motor replies") as no_reply:
        driver.read()
    assert remedies in str(no_reply.value)
    with pytest.raises(DriverFault) as missing:
        shop.program().configure()
    assert remedies in str(missing.value)


@pytest.mark.parametrize("name", ["mit_can", "mit_can_cubemars"])
def test_slow_replies_are_received_after_raising_the_setting_of_the_message(name):
    shop = Setup(name)
    shop.port.latency = 4e-3
    with pytest.raises(DriverFault, match=r"raise reply_timeout = 0\.003 s"):
        shop.program().configure()
    shop = Setup(name)
    shop.port.latency = 4e-3
    driver = shop.program(reply_timeout="0.01")
    driver.configure()
    driver.activate()
    assert is_working(shop, driver)


@pytest.mark.parametrize("name", VENDORS)
def test_close_releases_the_port(name):
    """In every state, active, lost or with a missing motor: the next program gets the port."""
    bench = Bench(VENDORS[name]).up()
    bench.driver.close()
    assert not bench.port.opened
    bench.shafts[1].silent = True
    with pytest.raises(DriverFault):
        bench.driver.configure()
    assert not bench.port.opened
    bench.shafts[1].silent = False
    bench.driver.configure()
    assert bench.port.opened
    bench.driver.close()
    assert not bench.port.opened
