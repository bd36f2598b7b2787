"""Closed loop of two processes over ROS 2: answered cycles, latency, CPU.

    python benchmarks/ros_loop.py [--seconds 20] [--rates 500 1000] [--mpc-rates 100 250 500]

The simulator runs in this process and the joint controller in another one, as in ``make sim``. A
cycle is answered if the command with its stamp arrives before the next state is published. The
latency is the time from publishing a state to the arrival of its command, stamped by the
middleware. Each rate is compared with a bare rclpy exchange of the same messages in the same run.
The second table has the controller ``mpc``, which plans in a thread every 20 ms.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import rclpy
from bare_rclpy import Source
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from tables import table

from arm_dynamics.batch.planning.joint_mpc import PERIOD
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.resources import resource_folder
from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.core.timing import RoundTrip
from arm_dynamics.ros.nodes.simulator import SimulatorNode
from arm_dynamics.ros.runtime.process import sleep_precisely, spin_in_background

WARM_UP = 3.0
LATE = "late plans"
PARAMS = str(resource_folder("config") / "five_dof.yaml")


def cpu(pid: int) -> float:
    """Return the processor time [s] that a process has used."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Meter:
    """Measurement between the construction and ``row``."""

    def __init__(self, trip: RoundTrip, other: int) -> None:
        self._trip, self._pids, read = trip, (os.getpid(), other), trip.read
        read()
        self._latencies: list[float] = []

        def kept() -> Vector:
            taken = read()
            self._latencies.extend(taken)
            return taken

        trip.read = kept  # type: ignore[method-assign]  # diagnostics read, which clears, too
        self._counts = (trip.sent, trip.answered)
        self._cpu, self._start = [cpu(pid) for pid in self._pids], time.monotonic()

    def row(self, name: str) -> tuple[str, ...]:
        """Return one row of the table."""
        wall = time.monotonic() - self._start
        load = [100 * (cpu(p) - c) / wall for p, c in zip(self._pids, self._cpu, strict=True)]
        sent, answered = self._trip.sent - self._counts[0], self._trip.answered - self._counts[1]
        self._trip.read()
        p50, p99, worst = np.percentile(self._latencies, [50, 99, 100]) * 1e3
        return (
            name, f"{100 * answered / sent:.2f} %", f"{p50:.3f}", f"{p99:.3f}", f"{worst:.3f}",
            f"{load[0]:.0f}", f"{load[1]:.0f}",
        )  # fmt: skip


@contextmanager
def running(*command: str) -> Iterator[int]:
    """Run a Python process; yield its id."""
    process = subprocess.Popen([sys.executable, *command])
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(10)


def bare(rate: float, seconds: float) -> tuple[str, ...]:
    """Measure the bare exchange at ``rate`` [Hz]."""
    rclpy.init()
    node = Source()
    with running(str(Path(__file__).with_name("bare_rclpy.py"))) as pid:
        node.run(rate, WARM_UP + 2)
        meter = Meter(node.round_trip, pid)
        node.run(rate, seconds)
        row = meter.row(f"bare rclpy, {rate:.0f} Hz")
    node.destroy_node()
    rclpy.shutdown()
    return row


class Diagnosis:
    """Newest diagnostics values of joint_controller, received by a node."""

    def __init__(self, node: Node) -> None:
        self.values: dict[str, str] = {}
        node.create_subscription(DiagnosticArray, "/diagnostics", self._take, 10)

    def _take(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == "joint_controller":
                self.values = {pair.key: pair.value for pair in status.values}

    def number(self, name: str) -> int:
        """Return a number that the controller counts."""
        return int(self.values.get(name, 0))


def whole(rate: float, seconds: float, *options: str) -> tuple[tuple[str, ...], Diagnosis, int]:
    """Measure simulator and controller at ``rate`` [Hz] with options of the controller.

    Returns the row, and diagnosis of the controller with its number of late plans at the start.
    """
    rclpy.init(args=["--ros-args", "--params-file", PARAMS, "-p", f"update_rate:={rate}"])
    node, stop, found = SimulatorNode(), ShutdownFlag(), []
    diagnosis = Diagnosis(node)

    def observe(pid: int) -> None:
        while node.states.round_trip.answered < 1:
            time.sleep(0.05)
        time.sleep(WARM_UP)
        meter, late = Meter(node.states.round_trip, pid), diagnosis.number(LATE)
        time.sleep(seconds)
        found.append((meter.row(f"arm_dynamics, {rate:.0f} Hz"), diagnosis, late))
        stop.set()

    with running("-m", "arm_dynamics.ros.nodes.joint_controller", "--ros-args", *options) as pid:
        threading.Thread(target=observe, args=(pid,)).start()
        spin_in_background([node], node.run, stop)
    rclpy.shutdown()
    return found[0]


def with_mpc(rate: float, seconds: float) -> tuple[str, ...]:
    """Measure the loop with the controller ``mpc`` at ``rate`` [Hz]."""
    options = ("arm:=five_dof", "controller:=mpc", "gains.controller.planning_thread:=1.0")
    row, diagnosis, late = whole(rate, seconds, *(x for o in options for x in ("-p", o)))
    missed = diagnosis.number(LATE) - late
    return (f"{rate:.0f} Hz", *row[1:5], f"{missed} of {seconds / PERIOD:.0f}", row[6])


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rates", type=float, nargs="+", default=[500.0, 1000.0])
    parser.add_argument("--mpc-rates", type=float, nargs="+", default=[100.0, 250.0, 500.0])
    args = parser.parse_args()
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ["ROS_DOMAIN_ID"] = str(random.randint(1, 100))
    sleep_precisely()
    with table("ros loop") as printed:
        for rate in args.rates:
            printed.row(*bare(rate, args.seconds))
            printed.row(*whole(rate, args.seconds, "--params-file", PARAMS)[0])
    with table("ros mpc") as printed:
        for rate in args.mpc_rates:
            printed.row(*with_mpc(rate, args.seconds))


if __name__ == "__main__":
    main()
