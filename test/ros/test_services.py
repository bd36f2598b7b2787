"""Pause, step and reset of the simulator."""

import numpy as np
import pytest
from rosgraph_msgs.msg import Clock

from .link import INITIAL, Motion, stamp

POSE = [0.3, -0.5, -0.4, 1.0, -0.7]


@pytest.fixture(scope="module")
def states(shared):
    record = shared.states()
    shared.start("simulator")
    shared.wait_until(record, 0.05)
    return record


@pytest.fixture
def paused(shared, states):
    """Pause the simulator; return its time [s]."""
    answer = shared.pause()
    assert (answer.success, answer.message) == (True, "paused")
    count = -1
    while count != len(states):  # until all sent states have arrived
        count = len(states)
        shared.wait_for(lambda: True, "")
        pause_for(0.2)
    yield stamp(states.newest)
    assert shared.pause(False).message == "running"


def pause_for(seconds):
    from time import sleep

    sleep(seconds)


def test_a_paused_simulator_publishes_no_states_and_no_other_time(shared, states, paused):
    ticks = shared.record(Clock, "/clock")
    count = len(states)
    pause_for(0.5)
    assert len(states) == count
    assert len({(tick.clock.sec, tick.clock.nanosec) for tick in ticks.messages()}) <= 1
    assert stamp(states.newest) == paused


@pytest.mark.parametrize("count", [1, 7, 100])
def test_step_advances_the_set_number_of_periods(shared, states, paused, count):
    assert shared.set("simulator", step_count=count)[0].successful
    first = len(states)
    assert shared.trigger("simulator/step").message == f"{count} control periods"
    shared.wait_for(lambda: len(states) >= first + count, f"not {count} states")
    pause_for(0.2)
    stamps = Motion(states.messages(first)).stamps
    start = round(paused * 1e9)
    assert stamps == [start + 2_000_000 * (k + 1) for k in range(count)]


def test_a_running_simulator_does_not_step(shared, states):
    answer = shared.trigger("simulator/step")
    assert not answer.success
    assert "pause it first" in answer.message


def test_during_an_emergency_stop_every_reply_states_that_time_is_stopped(shared, states):
    words = "emergency stop by service: simulated time stopped until ~/reset_emergency_stop"
    shared.set("simulator", step_count=10**9)
    assert shared.pause().message == "paused"
    assert shared.trigger("simulator/step").message == "1000000000 control periods"
    assert shared.trigger("simulator/emergency_stop").message == words
    shared.set("simulator", step_count=1)
    answer = shared.trigger("simulator/step")
    assert (answer.success, answer.message) == (False, f"no step: {words}")
    for answer in (shared.trigger("simulator/reset"), shared.trigger("simulator/push")):
        assert answer.success
        assert answer.message.endswith(f"; {words}")
    assert shared.pause(False).message == f"not paused; {words}"
    assert shared.pause().message == f"paused; {words}"
    assert shared.trigger("simulator/reset_emergency_stop").message == "paused"
    count = len(states)
    pause_for(0.2)
    assert len(states) == count  # the steps before the stop are forgotten
    assert shared.pause(False).message == "running"


@pytest.mark.parametrize("count", [0, -3])
def test_a_step_count_below_one_is_rejected(shared, states, count):
    result = shared.set("simulator", step_count=count)[0]
    assert not result.successful
    assert "step_count" in result.reason


def test_after_a_pause_time_continues_without_a_step(shared, states):
    shared.pause()
    pause_for(0.3)
    before = stamp(states.newest)
    shared.pause(False)
    shared.wait_longer(states, 0.2)
    stamps = Motion(states.messages()).stamps
    assert stamp(states.newest) > before
    assert set(np.diff(stamps)) <= {2_000_000}


@pytest.mark.parametrize(
    ("settings", "pose"),
    [({"reset_positions": POSE}, POSE), ({"reset_configuration": "zero"}, [0.0] * 5)],
)
def test_reset_places_the_arm_at_rest_in_the_set_configuration(shared, states, settings, pose):
    for name, value in settings.items():
        assert shared.set("simulator", **{name: value})[0].successful
    before = stamp(states.newest)
    answer = shared.trigger("simulator/reset")
    assert answer.success, answer.message
    shared.wait_for(lambda: np.allclose(states.newest.position, pose, atol=1e-6), "no reset")
    last = len(states)
    shared.wait_longer(states, 0.1)
    motion = Motion(states.messages(last))
    assert np.abs(motion.q - pose).max() < 1e-6
    assert np.abs(motion.v).max() < 1e-6
    assert motion.t[0] >= before
    assert (np.diff(motion.stamps) > 0).all()
    assert shared.set("simulator", reset_positions=[])[0].successful
    assert shared.set("simulator", reset_configuration="initial")[0].successful
    assert shared.trigger("simulator/reset").success
    shared.wait_for(lambda: np.allclose(states.newest.position, INITIAL, atol=1e-6), "no reset")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("reset_configuration", "upside_down", ["upside_down", "initial", "zero"]),
        ("reset_positions", [0.0] * 3, ["reset_positions", "5"]),
        ("reset_positions", [0.0, 0.0, 0.7, 0.0, 0.0], ["R3", "0.7", "0.6"]),
        ("reset_positions", [0.0, float("nan"), 0.0, 0.0, 0.0], ["reset_positions", "nan"]),
    ],
)
def test_an_invalid_reset_is_rejected_with_the_reason(shared, states, name, value, words):
    result = shared.set("simulator", **{name: value})[0]
    assert not result.successful
    assert all(word in result.reason for word in words), result.reason


def test_all_stamps_increase(shared, states):
    """The stamps increase through every pause, step and reset of the previous tests."""
    stamps = Motion(states.messages()).stamps
    assert (np.diff(stamps) > 0).all()
