"""Simulate, control and show an arm, with one status line per second.

Simulator, controller and viewer are nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from arm_dynamics.cli.arm_options import build_arm, scene_of
from arm_dynamics.cli.sim import RunReport, check_options, command_parser, runs_demo
from arm_dynamics.control.config import controller_name, parameter_file
from arm_dynamics.core.number_option import Number
from arm_dynamics.core.signals import ShutdownFlag, ignore_further_signals, stop_on_signals
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.nodes.demo_motion import DemoService
from arm_dynamics.ros.parameters.arm_parameters import lockstep_by_default
from arm_dynamics.ros.runtime.dds_transport import RANGE, avoid_shared_memory
from arm_dynamics.ros.runtime.domain import MAX_DOMAIN_ID, VARIABLE, own_domain, require_alone
from arm_dynamics.ros.runtime.process import ChildProcesses
from arm_dynamics.ros.topics.diagnostics import RUN, DiagnosticsSummary, Throttle
from arm_dynamics.ros.topics.emergency_stop_interface import publish_emergency_signal

START_TIMEOUT = 300.0
"""Maximum time [s] from the start of the nodes to the first command: the first start compiles for
half a minute of processor time, longer on a busy machine."""
NOTICE_PERIOD = 15.0
"""Time [s] between two messages about a missing first command."""
COMMAND_TIMEOUT = 10.0
"""Time [s] without a command to the arm after which a started run fails."""


def run(arguments: Sequence[str]) -> int:
    """Simulate; return 0 after Ctrl-C, and 0 (passed) or 1 (failed) after --duration."""
    options = node_parser().parse_args(arguments)
    stop, children = stop_on_signals(), ChildProcesses()
    check_options(options)
    # All nodes run on this machine.
    os.environ.setdefault(RANGE, "LOCALHOST")
    warning = avoid_shared_memory()
    if warning:
        print(warning, file=sys.stderr, flush=True)
    holder = f"arm-dynamics sim {options.arm} (process {os.getpid()})"
    with own_domain("sim", options.domain, holder, stop) as (domain, node):
        print(f"ROS domain {domain}; to join: {VARIABLE}={domain} ros2 topic list", flush=True)
        print("starting the nodes; the first start compiles for half a minute", flush=True)
        try:
            session = _Session(node, children, options)
            publish_emergency_signal(node)
            start_nodes(children, options, session.run_name)
            return session.run(stop)
        finally:
            children.stop()
            ignore_further_signals()


def node_parser() -> argparse.ArgumentParser:
    """Return the parser of ``arm-dynamics sim`` with ROS 2."""
    parser = command_parser()
    parser.add_argument(
        "--domain",
        type=Number("--domain", 0, MAX_DOMAIN_ID, whole=True),
        help=f"ROS domain id (default: {VARIABLE}, else a free one)",
    )
    parser.add_argument(
        "--composed", action="store_true", help="simulator and controller in one process"
    )
    return parser


def start_nodes(children: ChildProcesses, options: argparse.Namespace, run: str) -> None:
    """Start simulator, joint controller and viewer as nodes of the run ``run``."""
    file = options.gains or parameter_file(options.arm)
    if options.controller is None and file is None:
        options.controller = controller_name(build_arm(options))
    model = _model_parameters(options)
    simulator = {
        "dt": options.dt,
        # In lockstep simulated time waits for commands.
        "lockstep": not options.realtime and lockstep_by_default(file),
        "update_rate": options.rate,
        "recording_path": options.record and options.record.absolute(),
    }
    controller = {"controller": options.controller}
    nodes = (
        {"composed": simulator | controller}
        if options.composed
        else {"simulator": simulator, "joint_controller": controller}
    )
    for node, parameters in nodes.items():
        arguments = ros_arguments(model | {RUN: run} | parameters, file)
        children.start(node, f"arm_dynamics.ros.nodes.{node}", arguments)
    if not options.headless:
        page = ros_arguments(model | {"port": options.port, "controls": options.control})
        children.start("viewer", "arm_dynamics.ros.nodes.viewer", page)


def _model_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the arm, which every node gets; None: not given."""
    loaded = ["simulator", *(["joint_controller"] if options.payload_modeled else [])]
    initial = options.configuration != "initial"
    return {
        "arm": options.arm,
        "scene": _scene_parameter(options.scene),
        "lock": json.dumps(options.lock) if options.lock else None,
        "tool_frame": None if options.tool_frame is None else json.dumps(options.tool_frame),
        "simulator:initial_positions": (
            build_arm(options).configuration("initial").tolist() if initial else None
        ),
        **{f"{node}:payload_mass": options.payload or None for node in loaded},
    }


def _scene_parameter(scene: str | None) -> str | None:
    """Return --scene as a parameter: the nodes have the folder of this command."""
    return None if scene is None else json.dumps(scene)


def ros_arguments(parameters: Mapping[str, Any], file: Path | None = None) -> list[str]:
    """Return the arguments of a node; parameters that are not None override the ``file``."""
    values = {name: value for name, value in parameters.items() if value is not None}
    assignments = [
        f"{name}:={str(v).lower() if isinstance(v, bool) else v}" for name, v in values.items()
    ]
    return [
        "--ros-args",
        *(["--params-file", str(file)] if file else []),
        *(argument for assignment in assignments for argument in ("-p", assignment)),
    ]


class _Session:
    """Prints the status of a run and evaluates its end."""

    def __init__(self, node: Node, children: ChildProcesses, options: argparse.Namespace) -> None:
        self._node, self._children = node, children
        self.run_name = f"sim-{os.getpid()}-{time.time_ns():x}"
        self._status = DiagnosticsSummary(node.get_namespace(), self.run_name)
        reject = partial(Throttle(node.get_logger()).warn, "/diagnostics")
        listen(node, DiagnosticArray, "/diagnostics", self._status.read, qos.STREAM, reject)
        self._report = RunReport(self._status, options)
        self._demo = DemoService(
            node, build_arm(options), running=runs_demo(options), scene=scene_of(options)
        ).motion
        self._updates, self._alive, self._timeout = 0, time.monotonic(), START_TIMEOUT
        self._notice = self._alive + NOTICE_PERIOD

    def run(self, stop: ShutdownFlag) -> int:
        """Watch the run until its end; return the exit code."""
        while not stop.is_set():
            rclpy.spin_once(self._node, timeout_sec=0.05)
            ended = self._children.exited_process()
            if ended is not None:
                print(f"{ended[0]} ended unexpectedly with code {ended[1]}", flush=True)
                return ended[1] or 1
            if self._timeout == START_TIMEOUT:
                require_alone(self._node)  # nodes of a given domain may be discovered late
            if self._commands_arrive():
                code = self._report.update(self._demo)
                if code is not None:
                    return code
            self._report_waiting()
            if time.monotonic() - self._alive > self._timeout:
                print(f"no command reached the arm within {self._timeout:.0f} s", flush=True)
                return 1
        print("stopped", flush=True)
        return 0

    def _report_waiting(self) -> None:
        """Print the waiting time for the first command, and possible causes."""
        now = time.monotonic()
        if (
            self._timeout == START_TIMEOUT
            and now > self._notice
            and not self._status.is_time_stopped
        ):
            self._notice = now + NOTICE_PERIOD
            messages, ok = self._status.messages, self._status.ok
            causes = [f"{name}: {text}" for name, text in messages.items() if not ok[name]]
            cause_text = "; ".join(causes) or "the first start compiles (up to minutes)"
            duration = f"{now - self._alive:.0f} s"
            print(f"no command reached the arm for {duration}: {cause_text}", flush=True)

    def _commands_arrive(self) -> bool:
        """Return whether new diagnostics report that commands reach the arm."""
        if self._status.updates == self._updates:
            return False
        self._updates = self._status.updates
        running = self._report.is_running
        if running:
            self._timeout = COMMAND_TIMEOUT
        if running or self._status.is_time_stopped:
            self._alive = time.monotonic()
        return running or self._status.is_time_stopped
