"""Run an installed simulator and record its states: ``run_installed.py EXECUTABLE SECONDS``.

Fail unless joint_states arrive at the expected rate with increasing stamps and SIGINT ends the
simulator with exit code 0.
"""

import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState

from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.ros.runtime.domain import own_domain

MIN_RATE = 100
"""Required rate of received states [1/s]; the simulator publishes 500."""


def main(executable: str, seconds: float) -> None:
    """Run the test; raise SystemExit with the cause of a failure."""
    with own_domain("listener", None, Path(__file__).name, ShutdownFlag()) as (_, node):
        process = subprocess.Popen([executable])  # it inherits the domain
        try:
            stamps = listen(node, seconds)
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=20)
    print(f"{len(stamps)} joint states in {seconds:g} s, exit code {code}")
    if len(stamps) < MIN_RATE * seconds:
        sys.exit(f"joint states = {len(stamps)}; expected at least {MIN_RATE * seconds:g}")
    if any(later <= earlier for earlier, later in pairwise(stamps)):
        sys.exit("stamps of joint_states do not increase")
    sys.exit(code)


def listen(node: Node, seconds: float, timeout: float = 180.0) -> list[float]:
    """Return the stamps [s] of the joint states within ``seconds`` after the first one."""
    stamps: list[float] = []
    node.create_subscription(JointState, "joint_states", lambda m: stamps.append(_time(m)), 50)
    end = time.monotonic() + timeout
    while not stamps and time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.5)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.1)
    return stamps


def _time(message: JointState) -> float:
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
