"""``arm-dynamics sim``: an arm simulated, controlled and shown, with one status line a second."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from arm_dynamics import plugins
from arm_dynamics.config import parameter_file
from arm_dynamics.errors import ConfigError
from arm_dynamics.model.load import load_arm
from arm_dynamics.number_option import LARGEST, Number, port, seconds
from arm_dynamics.ros import qos
from arm_dynamics.ros.children import Children
from arm_dynamics.ros.listen import listen
from arm_dynamics.ros.status import Status
from arm_dynamics.ros.stop import Stop, be_left_to_end, stop_on_signals
from arm_dynamics.ros.throttle import Throttle
from arm_dynamics.ros.tour import Tour

START_UP = 300.0
"""Time [s] that the nodes have until the first command has moved the arm: the first start compiles
for half a minute of processor time, of which a busy machine gives little."""
NOTICE = 15.0
"""Time [s] after which, and again and again, it is said that the first command is waited for."""
SILENCE = 10.0
"""Time [s] without a command to the arm after which a run that had begun is given up."""


def run(arguments: Sequence[str]) -> int:
    """Simulate until Ctrl-C (0) or the end of --duration (0 held, 1 not held)."""
    options = _parser().parse_args(arguments)
    _check(options)
    # Everything here is one machine's business.
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    stop = stop_on_signals()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    children = Children()
    node = rclpy.create_node("sim")
    try:
        _start(children, options)
        return _Session(node, children, options).run(stop)
    finally:
        children.stop()
        be_left_to_end()
        node.destroy_node()
        rclpy.try_shutdown()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-dynamics sim", description=__doc__)
    add = parser.add_argument
    add("arm", nargs="?", default="five_dof", help="bundled arm or URDF file")
    laws = ", ".join(plugins.names("controllers"))
    add("--controller", help=f"{laws}; default: the parameter file's, else pid_gravity")
    add(
        "--duration",
        type=seconds("--duration"),
        help="simulated seconds after which to end; default: Ctrl-C",
    )
    add("--headless", action="store_true", help="no browser page")
    add("--motion", choices=("hold", "tour"), help="default: tour with a page, hold without")
    add("--port", type=port("--port"), default=8080, help="port of the page")
    add(
        "--rate",
        type=Number("--rate", 1e-3, 1e6, "Hz"),
        help="control rate [Hz]; default: the parameter file's, else 500",
    )
    add(
        "--lockstep",
        action=argparse.BooleanOptionalAction,
        help="the plant waits for every command; default: as the parameter file says, else no",
    )
    add("--composed", action="store_true", help="simulator and controller in one process")
    add("--params-file", type=Path, help="ROS parameters; default: config/<arm>.yaml")
    add("--record", type=Path, metavar="FOLDER", help="write all of it down, for 'replay'")
    add(
        "--tolerance",
        type=Number("--tolerance", 1e-9, LARGEST, "rad or m"),
        default=0.01,
        help="largest joint error at the end [rad]",
    )
    return parser


def _check(options: argparse.Namespace) -> None:
    """Refuse what the nodes would refuse, before any of them starts."""
    arm = load_arm(options.arm)
    if options.controller is not None:
        interface = plugins.load("controllers", options.controller).interface
        for actuator in arm.actuators:
            if interface not in actuator.interfaces:
                raise ConfigError(
                    f"--controller {options.controller} commands {interface}; the actuator of"
                    f" joint '{actuator.joint}' takes {', '.join(actuator.interfaces)}"
                )
    if options.params_file is not None and not options.params_file.is_file():
        raise ConfigError(f"--params-file {options.params_file}: no such file")
    if options.record is not None and options.record.exists():
        raise ConfigError(f"--record {options.record}: exists already, name a new folder")


def _start(children: Children, options: argparse.Namespace) -> None:
    ros = ["--ros-args", "-p", f"arm:={options.arm}"]
    params = options.params_file or parameter_file(options.arm)
    files = ["--params-file", str(params)] if params else []
    simulator = _given(options, "rate", "lockstep")
    if options.record is not None:
        simulator += ["-p", f"record:={options.record.absolute()}"]
    controller = _given(options, "controller")
    if options.composed:
        arguments = [*ros[:1], *files, *ros[1:], *simulator, *controller]
        children.start("composed", "arm_dynamics.ros.composed", arguments)
    else:
        arguments = [*ros[:1], *files, *ros[1:]]
        children.start("simulator", "arm_dynamics.ros.simulator", [*arguments, *simulator])
        children.start(
            "joint_controller", "arm_dynamics.ros.joint_controller", [*arguments, *controller]
        )
    if not options.headless:
        children.start("viewer", "arm_dynamics.ros.viewer", [*ros, "-p", f"port:={options.port}"])


def _given(options: argparse.Namespace, *names: str) -> list[str]:
    """Those that the user gave, as ROS arguments: they win over the parameter file."""
    values = {name: getattr(options, name) for name in names}
    given = [f"{name}:={str(v).lower()}" for name, v in values.items() if v is not None]
    return [word for parameter in given for word in ("-p", parameter)]


class _Session:
    """Prints how the run goes, and judges it at its end."""

    def __init__(self, node: Node, children: Children, options: argparse.Namespace) -> None:
        self._node, self._children, self._options = node, children, options
        self._status = Status(node.get_namespace())
        refuse = partial(Throttle(node.get_logger()).warn, "/diagnostics")
        listen(node, DiagnosticArray, "/diagnostics", self._status.read, qos.STREAM, refuse)
        motion = options.motion or ("hold" if options.headless else "tour")
        self._tour = Tour(node, load_arm(options.arm)) if motion == "tour" else None
        self._seen, self._alive, self._patience = 0, time.monotonic(), START_UP
        self._notice = self._alive + NOTICE

    def run(self, stop: Stop) -> int:
        """Watch until the end; the exit code."""
        while not stop.is_set():
            rclpy.spin_once(self._node, timeout_sec=0.05)
            ended = self._children.ended()
            if ended is not None:
                print(f"{ended[0]} ended by itself with code {ended[1]}", flush=True)
                return ended[1] or 1
            if self._news():
                self._report()
                if self._over():
                    return self._verdict()
            self._say_waiting()
            if time.monotonic() - self._alive > self._patience:
                print(f"no command reached the arm within {self._patience:.0f} s", flush=True)
                return 1
        print("stopped", flush=True)
        return 0

    def _say_waiting(self) -> None:
        """Before the first command: how long it has been waited for, and what may be wrong."""
        now = time.monotonic()
        if self._patience == START_UP and now > self._notice:
            self._notice = now + NOTICE
            told, well = self._status.messages, self._status.well
            wrong = [f"{name}: {text}" for name, text in told.items() if not well[name]]
            why = "; ".join(wrong) or "the first start compiles, on a busy machine for minutes"
            print(f"no command reached the arm for {now - self._alive:.0f} s: {why}", flush=True)

    def _news(self) -> bool:
        """Whether simulator and controller have said anew that commands reach the arm."""
        if self._status.updates == self._seen:
            return False
        self._seen = self._status.updates
        known = self._status.number("worst joint error [rad]") is not None
        running = known and (self._status.number("commands per second") or 0) > 0
        if running:
            self._patience = SILENCE
        if running or self._status.values.get("paused") == "true":
            self._alive = time.monotonic()
        return running

    def _over(self) -> bool:
        limit = self._options.duration
        return limit is not None and (self._status.number("simulated time [s]") or 0) >= limit

    def _report(self) -> None:
        number = self._status.number
        simulated = number("simulated time [s]") or 0.0
        if self._tour is not None:
            self._tour.go_on(simulated)
        trouble = "".join(
            f"  {name}: {text}"
            for name, text in self._status.messages.items()
            if not self._status.well[name]
        )
        print(
            f"t {simulated:8.2f} s  real-time {number('real-time factor') or 0:5.2f}"
            f"  worst joint error {number('worst joint error [rad]') or 0:.5f} rad"
            f"  commands {number('commands per second') or 0:5.0f} /s"
            f"  deadlines missed {number('deadlines missed') or 0:.0f}{trouble}",
            flush=True,
        )

    def _verdict(self) -> int:
        """0 when the arm is where it should be, 1 when not."""
        error = self._status.number("worst joint error [rad]")
        well = all(self._status.well.values())
        held = error is not None and error <= self._options.tolerance and well
        shown = "no controller" if error is None else f"{error:.5f} rad"
        print(
            f"{'held' if held else 'NOT HELD'}: worst joint error of the last second {shown}"
            f" (limit {self._options.tolerance:g} rad) after"
            f" {self._status.values['simulated time [s]']} s simulated",
            flush=True,
        )
        return 0 if held else 1
