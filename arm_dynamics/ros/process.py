"""The life of one ROS process: signals in, services in the background, ordered shutdown."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Event, Thread
from typing import Any

import rclpy
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from arm_dynamics.core.errors import ArmDynamicsError, ConfigError
from arm_dynamics.core.yaml_file import read_yaml
from arm_dynamics.ros.child_processes import exit_with_parent
from arm_dynamics.ros.dds_transport import avoid_shared_memory
from arm_dynamics.ros.diagnostics import Throttle
from arm_dynamics.ros.ros_parameters import require_declared, take_numbers_as_text
from arm_dynamics.ros.shutdown_flag import (
    ShutdownFlag,
    ending_at_once,
    ignore_further_signals,
    stop_on_signals,
)
from arm_dynamics.ros.size_limits import LimitedExecutor
from arm_dynamics.safety.events import Events

MainLoop = Callable[[ShutdownFlag], None]
BROKEN = 10.0
"""Time [s] of nothing but failing callbacks after which a node ends: its timers fail too."""
PAUSE = 0.01
"""Time [s] after a failing callback."""


def run_nodes(
    build: Callable[[], tuple[Sequence[Node], MainLoop]], args: list[str] | None = None
) -> int:
    """Build nodes, spin their services in a thread, run the work here until told to stop.

    SIGINT and SIGTERM end the start at once, and set the event that the work watches. Returns the
    exit code: 0, 1 when no callback worked any more, or 2 after a one-line message for input that
    ROS or the nodes refuse.
    """
    exit_with_parent()
    sleep_precisely()
    stop = stop_on_signals()
    try:
        with ending_at_once():
            _initialize(args)
            nodes, work = build()
            for node in nodes:
                require_declared(node)
                take_numbers_as_text(node)
        return 0 if spin_in_background(nodes, work, stop) else 1
    except ArmDynamicsError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        ignore_further_signals()
        rclpy.try_shutdown()


def _initialize(args: list[str] | None) -> None:
    """Start ROS; raises ConfigError for arguments or a parameter file that cannot be read.

    ROS keeps the last of two entries of one name, and says nothing.
    """
    warning = avoid_shared_memory()
    words = sys.argv if args is None else args
    for option, file in pairwise(words):
        if option == "--params-file":
            try:
                read_yaml(file)
            except ConfigError as error:
                raise ConfigError(f"ROS arguments: {error}") from error
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:  # the root of all that rclpy raises here
        text = re.sub(r"\s*,? at \S+\.c:\d+", "", str(error))
        raise ConfigError(f"ROS arguments: {' '.join(text.split())}") from error
    if warning:
        get_logger("transport").warning(warning)


def sleep_precisely() -> None:
    """Ask Linux to end sleeps within a microsecond; by default it takes 50 more."""
    if sys.platform == "linux":
        set_timer_slack = 29
        ctypes.CDLL(None).prctl(set_timer_slack, 1000, 0, 0, 0)


def run_node(node: Callable[[], Any]) -> int:
    """``run_nodes`` for one node that works in its own ``run_nodes`` method."""

    def build() -> tuple[list[Node], MainLoop]:
        built = node()
        return [built], built.run

    return run_nodes(build)


def _events(nodes: Sequence[Node]) -> Events:
    """Where the first node counts its events; else they are logged."""
    found = (getattr(node, "events", None) for node in nodes)
    return next(filter(None, found), None) or Events(Throttle(get_logger("services")).warn)


def spin_in_background(nodes: Sequence[Node], work: MainLoop, stop: ShutdownFlag) -> bool:
    """Spin the nodes' services in a thread while ``work`` runs here; end both in order.

    A callback that fails is an event, and the rest goes on: a request or message that rclpy itself
    cannot handle must not cost an arm its torque. Where nothing works for ``BROKEN``, the work ends
    too: a node without services must not go on as if it had them. Returns whether all went well.
    """
    events = _events(nodes)
    executor: Any = LimitedExecutor(events)
    for node in nodes:
        executor.add_node(node)
    # A service callback may keep the interpreter for this long before the loop gets it back.
    sys.setswitchinterval(5e-5)
    gc.collect()
    gc.freeze()
    failures: list[BaseException] = []
    ending = Event()

    def serve() -> None:
        well = time.monotonic()
        while not ending.is_set():
            try:
                executor.spin_once()
                well = time.monotonic()
            except Exception as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                events.report(
                    "callback_failed",
                    f"{type(error).__name__}: {error} ({at.name}, {at.filename}:{at.lineno})",
                )
                if time.monotonic() - well > BROKEN:
                    failures.append(error)
                    traceback.print_exc()
                    stop.set()
                    return
                time.sleep(PAUSE)

    thread = Thread(target=serve, name="services")
    thread.start()
    try:
        work(stop)
    finally:
        # In this order: a shutdown takes away what would wake a spin, which may then never end.
        ending.set()
        executor.create_task(lambda: None)
        thread.join()
        executor.shutdown()
        for node in nodes:
            node.destroy_node()
    return not failures
