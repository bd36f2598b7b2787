"""A node ends at any number of signals and during compilation."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor

from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.ros.runtime.process import spin_in_background

from .link import PATIENCE

FRESH = True


@pytest.fixture
def node(ros):
    interval = sys.getswitchinterval()
    rclpy.init(domain_id=ros.domain)
    yield rclpy.create_node("idle")
    rclpy.try_shutdown()
    sys.setswitchinterval(interval)
    gc.unfreeze()


def test_repeated_signals_end_a_node_with_0(ros):
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
def test_a_compiling_start_can_be_interrupted(ros, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    process = ros.start("joint_controller", controller="computed_torque")
    ros.wait_for(lambda: any(tmp_path.rglob("*.nb?")), "no function is compiled")
    process.signal(signal.SIGINT)
    assert process.wait() == 0
    assert process.output == ""
    assert len(list(tmp_path.rglob("*.nbc"))) < 20, "compiled on"


def test_services_end_before_their_executor_is_shut_down(node, monkeypatch):
    """Otherwise a spin without nodes and guard condition would wait indefinitely."""
    alive, shutdown = [], SingleThreadedExecutor.shutdown

    def watched(executor, *rest):
        alive.append("services" in {thread.name for thread in threading.enumerate()})
        return shutdown(executor, *rest)

    monkeypatch.setattr(SingleThreadedExecutor, "shutdown", watched)
    assert spin_in_background([node], lambda stop: time.sleep(0.05), ShutdownFlag())
    assert alive == [False]


def test_a_node_without_timers_ends_immediately(node):
    began = time.monotonic()
    for _ in range(30):  # a wait of a second each would exceed the limit
        assert spin_in_background([node], lambda stop: None, ShutdownFlag())
        node = rclpy.create_node("idle")
    assert time.monotonic() - began < 30.0


PROGRAM = """
import ctypes, os, sys, threading
import rclpy
from arm_dynamics.core import signals
from arm_dynamics.ros.runtime.process import spin_in_background

rclpy.init()
node = rclpy.create_node("idle")
in_call = threading.Event()

def compile_for_ever():
    mutex, lock = ctypes.create_string_buffer(128), ctypes.CDLL(None).pthread_mutex_lock
    signals.compiling.append(threading.get_ident())
    lock(mutex)
    in_call.set()
    lock(mutex)

def work(stop):
    {work}

assert spin_in_background([node], work, signals.stop_on_signals())
rclpy.try_shutdown()
"""


def ended(ros, work):
    """Return the exit code of a node whose output is not read before its end."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(work=work)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "ROS_DOMAIN_ID": str(ros.domain)},
    )  # fmt: skip
    try:
        return process.wait(PATIENCE)
    finally:
        process.kill()
        process.communicate()


def test_a_node_ends_while_a_callback_compiles(ros):
    """Its arm is stopped before; LLVM cannot be interrupted for up to a minute."""
    work = "node.create_timer(0.01, compile_for_ever); assert in_call.wait(60)"
    assert ended(ros, work) == 0


def test_the_loop_of_a_node_does_not_wait_for_a_terminal(ros):
    """Output of libraries included: the log of ROS is written by C."""
    work = "[os.write(2, 1000 * b'x') for _ in range(1000)]; print(1_000_000 * 'x', flush=True)"
    assert ended(ros, work) == 0
