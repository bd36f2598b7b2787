"""Processes of nodes: signals, services in a background thread, ordered shutdown, children."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Any

import rclpy
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from arm_dynamics.core.background_output import output_in_background
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError
from arm_dynamics.core.signals import (
    EndProcess,
    ShutdownFlag,
    compiling,
    delaying_interrupts,
    emergency_signal,
    ending_immediately,
    exit_with_parent,
    ignore_further_signals,
    stop_on_signals,
)
from arm_dynamics.ros.parameters.arm_parameters import without_arm_warnings
from arm_dynamics.ros.parameters.ros_parameters import (
    Entries,
    parameter_entries,
    require_declared,
    take_numbers_as_text,
)
from arm_dynamics.ros.runtime.dds_transport import avoid_shared_memory
from arm_dynamics.ros.runtime.size_limits import LimitedExecutor
from arm_dynamics.ros.topics.diagnostics import Throttle
from arm_dynamics.ros.topics.emergency_stop_interface import publish_emergency_signal
from arm_dynamics.safety.events import Events

MainLoop = Callable[[ShutdownFlag], None]
FAILURE_TIMEOUT = 10.0
"""Time [s] in which every callback fails, after which a node ends: its timers fail too."""
RETRY_PAUSE = 0.01
"""Time [s] after a failing callback, and between two looks at one that does not end."""
NO_LOGGING, NO_LOG_FILE = "failed to initialize logging: ", "Failed opening file "
"""First words of the errors of rcl and of spdlog if the log cannot be written."""


def run_nodes(
    build: Callable[[], tuple[Sequence[Node], MainLoop]], args: list[str] | None = None
) -> int:
    """Build nodes, serve their callbacks in a thread and run their main loop here.

    The stop signals end the process immediately during the start; afterwards they set the flag
    that the main loop reads. SIGUSR1 is the emergency stop of every arm with the topic
    ``emergency_stop``, if the nodes have none.

    Returns
    -------
    int
        Exit code: 0; 1 if every callback failed; 2 after a one-line message if ROS or a node
        rejects its input.

    """
    parent = os.environ.get(PARENT)
    if parent is not None:
        exit_with_parent(int(parent))
    sleep_precisely()
    stop = stop_on_signals()
    arguments = sys.argv if args is None else args
    try:
        with ending_immediately():
            entries = _initialize(arguments)
            nodes, work = build()
            for node in nodes:
                require_declared(node, entries=entries)
                take_numbers_as_text(node)
        if not emergency_signal.connected:
            publish_emergency_signal(nodes[0])
        return 0 if spin_in_background(nodes, work, stop) else 1
    except ArmDynamicsError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        ignore_further_signals()
        rclpy.try_shutdown()


def _initialize(arguments: Sequence[str]) -> Entries:
    """Start ROS and return the given parameters; raise ConfigError if they cannot be read.

    ROS itself silently keeps the last of two entries of one name. A parameter file is read only
    here: it may change while a node compiles.
    """
    warning = avoid_shared_memory()
    try:
        entries = parameter_entries(arguments)
    except ConfigError as error:
        raise ConfigError(f"ROS arguments: {error}") from error
    start_ros(arguments)
    if warning:
        get_logger("transport").warning(warning)
    return entries


def start_ros(arguments: Sequence[str] | None = None, domain: int | None = None) -> None:
    """Start ROS without its signal handlers.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments of ROS; those of the process by default.
    domain : int, optional
        Domain id; that of the environment by default.

    Raises
    ------
    ConfigError
        If ROS rejects its arguments or cannot write its log.

    """
    try:
        rclpy.init(
            args=None if arguments is None else list(arguments),
            domain_id=domain,
            signal_handler_options=SignalHandlerOptions.NO,
        )
    except RuntimeError as error:  # the root of all that rclpy raises here
        text = " ".join(re.sub(r"\s*,? at \S+\.c(pp)?:\d+", "", str(error)).split())
        cause = text.removeprefix(NO_LOGGING)
        if cause != text or text.startswith(NO_LOG_FILE):
            remedy = "set ROS_LOG_DIR to a folder that can be written"
            raise ConfigError(f"ROS log folder: {cause}; {remedy}") from error
        raise ConfigError(f"ROS arguments: {text}") from error


def sleep_precisely() -> None:
    """Set the timer slack of Linux to 1 µs; its default of 50 µs delays the end of each sleep."""
    if sys.platform == "linux":
        set_timer_slack = 29
        ctypes.CDLL(None).prctl(set_timer_slack, 1000, 0, 0, 0)


def run_node(node: Callable[[], Any]) -> int:
    """Run one node, whose main loop is its method ``run``; return the exit code."""

    def build() -> tuple[list[Node], MainLoop]:
        built = node()
        return [built], built.run

    return run_nodes(build)


def spin_in_background(nodes: Sequence[Node], work: MainLoop, stop: ShutdownFlag) -> bool:
    """Spin the nodes' services in a thread while ``work`` runs here; end both in order.

    A failing callback is an event and the node continues: a request or message that rclpy itself
    cannot handle must not disable the torque of an arm. If all callbacks fail for
    ``FAILURE_TIMEOUT``, the main loop ends too, because the node no longer serves emergency stops.
    Return whether it did not.
    """
    counters = (getattr(node, "events", None) for node in nodes)
    events = next(filter(None, counters), None) or Events(Throttle(get_logger("services")).warn)
    executor: Any = LimitedExecutor(events)
    for node in nodes:
        executor.add_node(node)
    # A service callback may hold the interpreter for this long before the loop gets it back.
    sys.setswitchinterval(5e-5)
    gc.collect()
    gc.freeze()
    services = ServiceThread(executor, events, stop)
    services.start()
    try:
        with output_in_background():
            work(stop)
    finally:
        # In this order: after a shutdown nothing wakes a spin, which may then never end.
        services.end()
        if compiling:  # in a callback or in the background, for up to a minute
            if sys.exc_info()[0] is not None:
                traceback.print_exc()
            EndProcess(1 if services.failed or sys.exc_info()[0] is not None else 0)()
        executor.shutdown()
        for node in nodes:
            node.destroy_node()
    return not services.failed


class ServiceThread(Thread):
    """Spins an executor. A failing callback is an event; permanent failure sets ``stop``."""

    def __init__(self, executor: Any, events: Events, stop: ShutdownFlag) -> None:
        super().__init__(name="services")
        self._executor, self._events, self._stop_flag = executor, events, stop
        self._ending = Event()
        self.failed = False
        """Whether every callback failed for FAILURE_TIMEOUT."""

    def run(self) -> None:
        """Spin until ``end`` is called."""
        last_success = time.monotonic()
        while not self._ending.is_set():
            try:
                self._executor.spin_once()
                last_success = time.monotonic()
            except Exception as error:
                frame = traceback.extract_tb(error.__traceback__)[-1]
                self._events.report(
                    "callback_failed",
                    f"{type(error).__name__}: {error}"
                    f" ({frame.name}, {frame.filename}:{frame.lineno})",
                )
                if time.monotonic() - last_success > FAILURE_TIMEOUT:
                    self.failed = True
                    traceback.print_exc()
                    self._stop_flag.set()
                    return
                time.sleep(RETRY_PAUSE)

    def end(self) -> None:
        """End the thread; a callback that compiles is not waited for."""
        self._ending.set()
        self._executor.create_task(lambda: None)
        while self.is_alive() and not compiling:
            self.join(RETRY_PAUSE)


EXIT_TIMEOUT = 5.0
"""Time [s] for a process to end after a signal, before it gets a stronger one."""
PARENT = "ARM_DYNAMICS_PARENT"
"""Environment variable with the process id of a child's parent."""


class ChildProcesses:
    """Starts nodes as separate processes and ends them together.

    They do not repeat the warnings of the arm, which this process has loaded too.
    """

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, module: str, arguments: Sequence[str]) -> None:
        """Run ``python -m module`` in a separate session: Ctrl-C reaches only this process."""
        with delaying_interrupts():
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                start_new_session=True,
                env={**os.environ, **without_arm_warnings(), PARENT: str(os.getpid())},
            )

    def exited_process(self) -> tuple[str, int] | None:
        """Return name and exit code of a process that has ended, or None."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None:
                return name, code
        return None

    def stop(self) -> None:
        """End all processes, if necessary by SIGKILL."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            running = [p for p in self._processes.values() if p.poll() is None]
            for process in running:
                process.send_signal(number)
            until = time.monotonic() + EXIT_TIMEOUT
            while any(p.poll() is None for p in running) and time.monotonic() < until:
                time.sleep(0.02)
