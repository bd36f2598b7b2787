"""Settings of drivers: unknown names are rejected before anything is opened."""

import pytest
from emulators.vendors import VENDORS

from arm_dynamics.core.errors import UnknownName
from arm_dynamics.hardware.build import build_bus

pytestmark = pytest.mark.hardware

DRIVERS = {vendor.driver: vendor.arm for vendor in VENDORS.values()}


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_unknown_setting_is_rejected_by_name(driver):
    arm = DRIVERS[driver]
    known = {"port": "/dev/null", "baud": "1000000", "allow_missing_watchdog": "true"}
    text = f"setting of driver '{driver}' 'watchdog_off'.*allow_missing_watchdog"
    with pytest.raises(UnknownName, match=text):
        build_bus(arm, driver, {**known, "watchdog_off": "true"})
    assert build_bus(arm, driver, known).settings["allow_missing_watchdog"] == "true"


def test_settings_of_single_motors_are_accepted():
    bus = build_bus(DRIVERS["mit_can"], "mit_can", {"interface": "virtual", "kp_2": "30"})
    assert bus.settings["kp_2"] == "30"
    with pytest.raises(UnknownName, match="ki_2"):
        build_bus(DRIVERS["mit_can"], "mit_can", {"interface": "virtual", "ki_2": "30"})
