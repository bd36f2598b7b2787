"""CubeMars motors do not report torque status: it is inferred from their torque."""

from random import Random
from types import SimpleNamespace

import pytest
from emulators import vendors
from fault_injection.faults import FAULTS
from fault_injection.outcome import outcome
from hypothesis import given
from hypothesis import strategies as st
from test_mit_can import CUBES, connected, effort, enabled

from arm_dynamics.hardware.mit_can.motors import MOTORS
from arm_dynamics.hardware.mit_can.reply_checks import MAX_MISSES, TorqueLossDetector
from arm_dynamics.hardware.motor_bus import MotorCommand

pytestmark = pytest.mark.hardware

AK, RANGE = MOTORS["AK60-6"], 15.0


def answer(torque, q=0.0, v=0.0):
    return SimpleNamespace(feedback=SimpleNamespace(position=q, velocity=v, torque=torque))


def bus_after_reboot(goals, count=MAX_MISSES):
    """Return a bus whose second motor rebooted, after ``count`` cycles of these goals."""
    bus, wire, _ = connected(CUBES)
    enabled(bus)
    wire.motors.reboot(2)
    for _ in range(count + 2):
        bus.write(goals)
        readings = bus.read()
    return bus, readings


@pytest.mark.parametrize(
    "goal",
    [
        MotorCommand("effort", -0.5),
        MotorCommand("position", 0.1),
        MotorCommand("velocity", 2.0),
        MotorCommand("velocity", 0.0, 1),
    ],
)
def test_a_motor_without_torque_is_reported_as_disabled(goal):
    bus, readings = bus_after_reboot({1: goal, 2: goal, 20: MotorCommand("effort", 0.0)})
    assert [readings[id].enabled for id in (1, 2, 20)] == [None, False, True]
    assert set(bus.disable([2])) == {2}
    assert bus.read()[2].enabled is None
    assert set(bus.enable([2])) == {2}
    bus.write({2: goal})
    assert bus.read()[2].enabled is None


def test_small_commands_and_few_replies_give_no_result():
    _, readings = bus_after_reboot(effort({1: 0.2, 2: 0.2, 20: 0.0}), 200)
    assert readings[2].enabled is None
    _, readings = bus_after_reboot(effort({1: 2.0, 2: 2.0, 20: 0.0}), MAX_MISSES - 4)
    assert readings[2].enabled is None


efforts = st.lists(st.floats(-RANGE, RANGE), min_size=1, max_size=6)


@given(
    efforts, st.floats(0.5, 1.5), st.integers(0, 2), st.integers(1, 2 * MAX_MISSES), st.integers()
)
def test_a_motor_that_follows_its_commands_is_never_reported(values, gain, late, often, seed):
    """Torque between half and 1.5 times the command, delayed, quantized, with noise of 50 mN·m."""
    rng, detector, torques = Random(seed), TorqueLossDetector({1: AK}), [0.0, 0.0]
    for value in [value for value in values for _ in range(often)]:
        detector.command_sent(1, (0.0, 0.0, 0.0, 0.0, value))
        torques.append(value)
        detector.update({1: answer(gain * torques[-1 - late] + rng.uniform(-0.05, 0.05))})
        assert not detector.torque_lost(1)


@given(st.floats(-3.0, 3.0), st.sampled_from((0.05, 0.3)))
def test_a_motor_at_its_current_limit_is_never_reported(q, fraction):
    """A stiff, distant position goal commands more than the maximum torque."""
    detector = TorqueLossDetector({1: AK})
    for _ in range(3 * MAX_MISSES):
        detector.command_sent(1, (0.0, 0.0, 500.0, 1.0, 0.0))
        pull = min(max(-500.0 * q, -fraction * RANGE), fraction * RANGE)
        detector.update({1: answer(pull, q)})
    assert not detector.torque_lost(1)


@given(st.floats(0.35, RANGE), st.integers())
def test_a_motor_without_torque_is_detected_in_time_despite_noise(value, seed):
    rng, detector = Random(seed), TorqueLossDetector({1: AK})
    for _ in range(MAX_MISSES):
        detector.command_sent(1, (0.0, 0.0, 0.0, 0.0, rng.choice((-1.0, 1.0)) * value))
        detector.update({1: answer(rng.uniform(-0.08, 0.08))})
    assert detector.torque_lost(1)


def test_only_consecutive_replies_without_torque_count():
    """A reply with torque restarts the count; small commands do not change it."""
    detector = TorqueLossDetector({1: AK})

    def send_and_reply(value, given, often=1):
        for _ in range(often):
            detector.command_sent(1, (0.0, 0.0, 0.0, 0.0, value))
            detector.update({1: answer(given)})
        return detector.torque_lost(1)

    for _ in range(5):
        assert not send_and_reply(5.0, 0.0, MAX_MISSES - 1)
        assert not send_and_reply(5.0, 5.0)
    assert not send_and_reply(5.0, 0.0, MAX_MISSES - 1)
    assert not send_and_reply(0.1, 0.0, 3 * MAX_MISSES)  # the first two reply to earlier commands
    assert send_and_reply(5.0, 0.0, 2)
    detector.reset([1])
    assert not send_and_reply(5.0, 0.0, MAX_MISSES - 1)


def test_motors_with_a_torque_status_are_not_checked():
    assert TorqueLossDetector({1: MOTORS["DM4310"], 2: AK}).ids == {2}
    bus, _, shafts = connected(CUBES)
    enabled(bus)
    for _ in range(2 * MAX_MISSES):
        bus.write(effort({20: 5.0}))
        shafts[2].effort = 0.0
        assert bus.read()[20].enabled


KINDS = (
    "one motor rebooted", "one motor at 110 °C", "one motor overloaded", "one motor not responding",
    "10 % of packets lost", "20 % of packets corrupted", "replies delayed by 0 to 10 ms",
)  # fmt: skip


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", KINDS)
def test_an_arm_of_cubemars_motors_stops_and_recovers(name, monkeypatch):
    """As with other motors; a reboot is detected by missing torque, which takes longer."""
    monkeypatch.setitem(vendors.VENDORS, "mit_can_cubemars", vendors.CUBEMARS)
    fault = next(fault for fault in FAULTS if fault.name == name)
    came = outcome("mit_can_cubemars", name)
    rebooted = name == "one motor rebooted"
    assert came.detection_time is not None
    assert came.detection_time <= (2 * MAX_MISSES if rebooted else fault.within)
    assert ("torque lost" in came.detected_by) == rebooted, "healthy motors never lose it"
    assert came.max_displacement <= fault.far
    assert came.max_torque <= 1.02
    assert came.max_position_error <= 3.0
    assert came.recovery == "automatic" if fault.alone else came.recovery
