"""Tracking of the joint controller."""

import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from arm_dynamics.ros.topics.controller_clients import TRACKING_AGE, Tracked, TrackingSubscription


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
