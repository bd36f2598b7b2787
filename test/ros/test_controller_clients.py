"""Joint targets of displays: the newest one is sent."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from arm_dynamics import load_arm
from arm_dynamics.ros import controller_clients
from arm_dynamics.ros.controller_clients import JointTargets
from arm_dynamics.ros.diagnostics import DiagnosticsSummary


class Feedback:
    """Results of actions."""

    def __init__(self):
        self.results = []

    done = rejected = note = lambda self, text: self.results.append(text)


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
