"""Every driver of motors under every fault: noticed, bounded, nothing raised, and it goes on."""

import runpy
from pathlib import Path

import pytest
from emulators.makers import MAKERS
from fault_injection.faults import FAULTS
from fault_injection.outcome import outcome

from arm_dynamics.core import plugins
from arm_dynamics.hardware.motor_bus import MotorBus

pytestmark = pytest.mark.hardware

PAGE = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "faults.py"))
ALL = [(name, fault) for name in MAKERS for fault in FAULTS]
LONGEST = 0.03
"""No cycle takes longer [s], whatever is broken."""


@pytest.fixture(params=ALL, ids=[f"{name}-{fault.name}" for name, fault in ALL])
def case(request):
    """A maker, a fault and what comes of it; an error that leaves the loop fails the test."""
    name, fault = request.param
    return MAKERS[name], fault, outcome(name, fault.name)


@pytest.mark.quick(30)
def test_it_is_noticed_in_time_the_arm_stays_near_and_goes_on(case):
    maker, fault, came = case
    if came.detection_time is None:
        assert fault.quiet or (fault.silence and not maker.watched)
    else:
        assert came.detection_time <= fault.within
    assert came.max_displacement <= fault.far
    assert came.max_torque <= 1.02
    assert came.max_cycle_time <= LONGEST
    assert came.max_position_error <= (8.0 if fault.far > 100 else 3.0), (
        "the arm is elsewhere than is told"
    )
    assert came.recovery == "automatic" if fault.alone else came.recovery


@pytest.mark.quick(30)
def test_motors_with_a_watchdog_stop_without_a_host(case):
    maker, fault, came = case
    if fault.silence and maker.watched:
        assert came.stopped
    if fault.configuring:
        assert came.stopped
        assert came.max_displacement == 0.0


def test_every_driver_of_motors_is_broken_here():
    kinds = {name: plugins.load_class("drivers", name) for name in plugins.BUILT_IN["drivers"]
             if name != "topic"}  # fmt: skip
    buses = {name for name, kind in kinds.items() if issubclass(kind, MotorBus)}
    assert buses == {maker.driver for maker in MAKERS.values()}


@pytest.mark.slow
def test_the_page_says_what_comes_of_it():
    """Write it anew with ``python docs/faults.py``."""
    there = PAGE["PAGE"].read_text("utf-8")
    assert list(PAGE["differences"](PAGE["page"](), there)) == []


def test_the_comparison_sees_a_word_and_a_large_number():
    row = "| unplugged | port | 1 | 11 |"
    assert not list(PAGE["differences"](row, row.replace("11", "12")))
    assert list(PAGE["differences"](row, row.replace("11", "30")))
    assert list(PAGE["differences"](row, row.replace("port", "age")))
    assert list(PAGE["differences"](row, row + "\n| more |"))
