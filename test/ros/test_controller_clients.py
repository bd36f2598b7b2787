"""Joint targets of displays: the newest one is sent."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from arm_dynamics import load_arm
from arm_dynamics.ros.topics import controller_clients
from arm_dynamics.ros.topics.controller_clients import (
    TRACKING_AGE,
    JointTargets,
    Tracked,
    TrackingSubscription,
)
from arm_dynamics.ros.topics.diagnostics import DiagnosticsSummary


class Feedback:
    """Results of actions."""

    def __init__(self):
        self.results = []

    done = rejected = note = lambda self, text: self.results.append(text)


def test_the_error_belongs_to_one_time(monkeypatch):
    """Reference and position of one message, whatever the newest state is; none when it is old."""
    tracking = object.__new__(TrackingSubscription)
    tracking.newest = None
    assert tracking.error is None
    q, v, measured = np.array([0.2, 0.3]), np.array([1.0, 2.0]), np.array([0.1, 0.5])
    tracking.newest = Tracked(q, v, measured, time.monotonic())
    assert tracking.error == pytest.approx([0.1, -0.2])
    tracking.newest = Tracked(q, v, measured, time.monotonic() - 2 * TRACKING_AGE)
    assert tracking.error is None


def test_a_target_during_an_emergency_stop_is_rejected(monkeypatch):
    """The arm must not move to an old target when the stop is reset."""
    monkeypatch.setattr(controller_clients, "SETTLING_TIME", 0.0)
    arm, sent, rejected = load_arm("two_link"), [], []
    publisher = SimpleNamespace(get_subscription_count=lambda: 1, publish=sent.append)
    node = SimpleNamespace(create_publisher=lambda *_: publisher)
    status, feedback = DiagnosticsSummary(), SimpleNamespace(rejected=rejected.append)
    targets = JointTargets(node, arm, status, lambda: True, feedback)
    status.messages["simulator"] = "emergency stop by topic emergency_stop"
    targets.go([0.1, 0.0])
    targets.update(np.zeros(2))
    assert rejected == ["emergency stop by topic emergency_stop; reset it before a target"]
    status.messages["simulator"] = "running"
    targets.update(np.zeros(2))
    assert not sent
    assert not targets.under_way


def test_a_target_given_while_an_older_one_is_sent_is_not_lost(monkeypatch):
    monkeypatch.setattr(controller_clients, "SETTLING_TIME", 0.0)
    arm, sent = load_arm("two_link"), []
    publisher = SimpleNamespace(get_subscription_count=lambda: 1, publish=sent.append)
    node = SimpleNamespace(create_publisher=lambda *_: publisher)
    newer = [[0.2, 0.3]]

    def clear():
        if newer:  # a user moves a slider at this moment
            targets.go(newer.pop())
        return True

    targets = JointTargets(node, arm, DiagnosticsSummary(), clear, Feedback())
    targets.go([0.1, 0.0])
    for _ in range(3):
        targets.update(np.zeros(2))
    assert [list(message.points[-1].positions) for message in sent] == [[0.2, 0.3]]
