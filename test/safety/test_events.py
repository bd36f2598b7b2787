"""Log of events: each rejected request, streams throttled, bursts bounded."""

import time
from types import SimpleNamespace

import pytest

from arm_dynamics.safety.events import BURST, PERIOD, SINGLE, Events, Throttle


class Log:
    """Lines of a throttle with a settable clock."""

    def __init__(self, monkeypatch):
        self.now, self.lines = 100.0, []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.events = Events(Throttle(SimpleNamespace(warning=self.lines.append)).warn)


@pytest.fixture
def log(monkeypatch):
    return Log(monkeypatch)


@pytest.mark.parametrize("kind", sorted(SINGLE))
def test_each_rejected_request_is_logged(log, kind):
    for i in range(7):
        log.events.report(kind, f"reason {i}")
        log.now += 0.5
    assert log.lines == [f"{kind}: reason {i}" for i in range(7)]


def test_a_stream_is_logged_once_per_period_with_the_number_of_omitted_events(log):
    for _ in range(128):
        log.events.report("trajectory_refused", "too fast")
        log.now += PERIOD / 64
    log.now += PERIOD
    log.events.report("trajectory_refused", "too far")
    assert log.lines == [
        "trajectory_refused: too fast",
        "trajectory_refused: too fast (before it 63 more, not logged)",
        "trajectory_refused: too far (before it 63 more, not logged)",
    ]


def test_a_flood_of_goals_is_counted_beyond_a_burst(log):
    for i in range(1000):
        log.events.report("goal_rejected", f"reason {i}")
        log.now += PERIOD / 1024
    log.now += PERIOD
    log.events.report("goal_rejected", "last")
    assert len(log.lines) == BURST + 1
    assert log.lines[BURST - 1] == f"goal_rejected: reason {BURST - 1}"
    assert log.lines[-1] == f"goal_rejected: last (before it {1000 - BURST} more, not logged)"
    assert log.events.counts["goal_rejected"] == 1001


def test_a_lasting_cause_is_reported_once_and_again_after_a_change(log):
    for cause in ("hot", "hot", "hotter", "hotter", "", "", "hotter"):
        log.events.report_lasting("motor", cause)
        log.now += 2 * PERIOD
    assert log.lines == ["motor: hot", "motor: hotter", "motor: hotter"]
    assert log.events.counts["motor"] == 3


def test_event_kinds_are_throttled_separately(log):
    for kind in ("goal_rejected", "state_rejected", "goal_aborted"):
        log.events.report(kind, "why")
    assert log.lines == ["goal_rejected: why", "state_rejected: why", "goal_aborted: why"]
