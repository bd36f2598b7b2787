"""Every motor driver under every injected fault: detection, bounded motion, recovery."""

import runpy
from pathlib import Path

import pytest
from emulators.vendors import VENDORS
from fault_injection.faults import FAULTS
from fault_injection.outcome import outcome

from arm_dynamics.core import plugins
from arm_dynamics.hardware.motor_bus import MotorBus

pytestmark = pytest.mark.hardware

PAGE = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "faults.py"))
ALL = [(name, fault) for name in VENDORS for fault in FAULTS]
MAX_CYCLE_TIME = 0.03
"""Maximum duration of a cycle during any fault [s]."""


@pytest.fixture(params=ALL, ids=[f"{name}-{fault.name}" for name, fault in ALL])
def case(request):
    """Return motors, fault and outcome; an error that leaves the loop fails the test."""
    name, fault = request.param
    return VENDORS[name], fault, outcome(name, fault.name)


@pytest.mark.quick(30)
def test_the_fault_is_detected_in_time_motion_is_bounded_and_the_arm_recovers(case):
    vendor, fault, result = case
    if result.detection_time is None:
        assert fault.quiet or (fault.silence and not vendor.has_watchdog)
    else:
        assert result.detection_time <= fault.within
    assert result.max_displacement <= fault.far
    assert result.max_torque <= 1.02
    assert result.max_cycle_time <= MAX_CYCLE_TIME
    assert result.max_position_error <= (8.0 if fault.far > 100 else 3.0), (
        "error of the reported position"
    )
    assert result.recovery == "automatic" if fault.alone else result.recovery


@pytest.mark.quick(30)
def test_motors_with_a_watchdog_stop_without_a_host(case):
    vendor, fault, result = case
    if fault.silence and vendor.has_watchdog:
        assert result.stopped
    if fault.configuring:
        assert result.stopped
        assert result.max_displacement == 0.0


def test_faults_are_injected_into_every_motor_driver():
    kinds = {name: plugins.load_class("drivers", name) for name in plugins.BUILT_IN["drivers"]
             if name != "topic"}  # fmt: skip
    buses = {name for name, kind in kinds.items() if issubclass(kind, MotorBus)}
    assert buses == {vendor.driver for vendor in VENDORS.values()}


@pytest.mark.slow
def test_the_page_contains_the_outcomes():
    """Update the page with ``python docs/faults.py``."""
    there = PAGE["PAGE"].read_text("utf-8")
    assert list(PAGE["differences"](PAGE["page"](), there)) == []


def test_the_comparison_finds_a_changed_word_and_a_large_change_of_a_number():
    row = "| unplugged | port | 1 | 11 |"
    assert not list(PAGE["differences"](row, row.replace("11", "12")))
    assert list(PAGE["differences"](row, row.replace("11", "30")))
    assert list(PAGE["differences"](row, row.replace("port", "age")))
    assert list(PAGE["differences"](row, row + "\n| more |"))
