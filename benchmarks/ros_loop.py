"""Closed loop between two processes over ROS 2: answered cycles, latency, CPU.

    python benchmarks/ros_loop.py [--seconds 20] [--rates 500 1000]

The simulator runs in this process, the joint controller in another, as ``make sim`` has
them. A cycle counts as answered when the command that carries its stamp arrives before the
next state goes out; the latency is from publishing the state to the arrival of its command
(as stamped by the middleware, not by a poll).
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import rclpy
from machine import machine

from arm_dynamics.resources import folder
from arm_dynamics.ros.process import spin_beside
from arm_dynamics.ros.simulator import SimulatorNode

WARM_UP = 3.0


def cpu(pid: int) -> float:
    """CPU seconds used by a process so far."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(rate: float, seconds: float) -> str:
    """One row of the table."""
    params = str(folder("config") / "five_dof.yaml")
    rclpy.init(args=["--ros-args", "--params-file", params, "-p", f"rate:={rate}"])
    node = SimulatorNode()
    controller = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "arm_dynamics.ros.joint_controller",
            "--ros-args",
            "--params-file",
            params,
        ]
    )
    stop = threading.Event()
    result: list[str] = []

    def observe() -> None:
        while node.round_trip.answered < 1:
            time.sleep(0.05)
        time.sleep(WARM_UP)
        node.round_trip.read()
        trip = node.round_trip
        sent, answered, missed = trip.sent, trip.answered, node.pacer.missed
        cpu_before = (cpu(os.getpid()), cpu(controller.pid))
        start = time.monotonic()
        time.sleep(seconds)
        wall = time.monotonic() - start
        share = [
            100 * (after - before) / wall
            for before, after in zip(
                cpu_before, (cpu(os.getpid()), cpu(controller.pid)), strict=True
            )
        ]
        sent, answered = trip.sent - sent, trip.answered - answered
        late = node.pacer.missed - missed
        p50, p99, worst = np.percentile(trip.read(), [50, 99, 100]) * 1e3
        result.append(
            f"| {rate:.0f} | {answered} of {sent} ({100 * answered / sent:.2f} %) "
            f"| {p50:.3f} | {p99:.3f} | {worst:.3f} | {share[0]:.0f} | {share[1]:.0f} | {late} |"
        )
        stop.set()

    watcher = threading.Thread(target=observe)
    watcher.start()
    spin_beside([node], node.run, stop)
    controller.terminate()
    controller.wait(10)
    rclpy.shutdown()
    return result[0]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rates", type=float, nargs="+", default=[500.0, 1000.0])
    given = parser.parse_args()
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ["ROS_DOMAIN_ID"] = str(random.randint(1, 100))
    print(machine())
    print("| rate [Hz] | answered | p50 [ms] | p99 [ms] | max [ms] "
          "| CPU simulator [%] | CPU controller [%] | deadlines missed |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for rate in given.rates:
        print(measure(rate, given.seconds), flush=True)


if __name__ == "__main__":
    main()
