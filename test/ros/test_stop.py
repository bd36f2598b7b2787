"""However often a process is told to stop, it stops."""

import gc
import os
import signal
import sys
import threading
import time

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor

from arm_dynamics.ros.process import spin_in_background
from arm_dynamics.ros.shutdown_flag import ShutdownFlag


@pytest.fixture
def node(ros):
    interval = sys.getswitchinterval()
    rclpy.init(domain_id=ros.domain)
    yield rclpy.create_node("idle")
    rclpy.try_shutdown()
    sys.setswitchinterval(interval)
    gc.unfreeze()


def test_a_hail_of_signals_ends_a_node_cleanly(ros):
    states = ros.states()
    process = ros.start("simulator")
    ros.wait_until(states, 0.2)
    for _ in range(300):
        if process.code is not None:
            break
        os.kill(process.pid, signal.SIGTERM)
        time.sleep(1e-4)
    assert process.stop() == 0


@pytest.mark.slow
def test_a_start_that_compiles_is_interrupted(ros, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    process = ros.start("joint_controller", controller="computed_torque")
    ros.wait_for(lambda: any(tmp_path.rglob("*.nb?")), "nothing is compiled")
    process.signal(signal.SIGINT)
    assert process.wait() == 0
    assert process.output == ""
    assert len(list(tmp_path.rglob("*.nbc"))) < 20, "compiled on"


def test_services_have_ended_before_their_executor_is_taken_apart(node, monkeypatch):
    """Else a spin that has just lost its nodes and its guard waits for nothing, for ever."""
    alive, shutdown = [], SingleThreadedExecutor.shutdown

    def watched(executor, *rest):
        alive.append("services" in {thread.name for thread in threading.enumerate()})
        return shutdown(executor, *rest)

    monkeypatch.setattr(SingleThreadedExecutor, "shutdown", watched)
    assert spin_in_background([node], lambda stop: time.sleep(0.05), ShutdownFlag())
    assert alive == [False]


def test_a_node_without_timers_ends_at_once(node):
    began = time.monotonic()
    for _ in range(100):
        assert spin_in_background([node], lambda stop: None, ShutdownFlag())
        node = rclpy.create_node("idle")
    assert time.monotonic() - began < 30.0
