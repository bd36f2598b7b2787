"""Simulate, control and show an arm, with one status line per second.

With ROS 2 (``arm_dynamics.ros.nodes.sim``) simulator, controller and viewer are nodes. Here they
are one loop, without topics and services.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.cli.arm_options import (
    DT,
    add_arm,
    add_options,
    add_scene,
    build_arm,
    controller_of,
    joint_controllers,
    require_accepted,
    scene_of,
    with_payload,
)
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.control.config import controller_name, node_parameters, parameter_file
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.joint_motions import INTERRUPTED, DemoMotion
from arm_dynamics.control.monitors import MaxErrorTracker
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.core.number_option import MAX_NUMBER, Number, port, seconds
from arm_dynamics.core.requirements import ros_missing
from arm_dynamics.core.signals import (
    EndProcess,
    ShutdownFlag,
    emergency_signal,
    ignore_further_signals,
    stop_on_signals,
)
from arm_dynamics.core.state import Command
from arm_dynamics.core.status_summary import StatusSummary
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.core.timing import Pacer, RateMeter
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.identification.page.recorders import SimulationRecorder
from arm_dynamics.identification.page.workbench import Workbench
from arm_dynamics.model.arm_argument import require_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.model_error import require_holdable
from arm_dynamics.recording.recorder import RECORDING_TIMEOUT, Recorder
from arm_dynamics.safety.events import event_values
from arm_dynamics.simulation.simulation import Simulation
from arm_dynamics.simulation.simulation_control import SimulationControl
from arm_dynamics.simulation.simulation_parameters import (
    FACTOR,
    TIMEOUT,
    changed_arm,
    control_period,
)
from arm_dynamics.simulation.simulation_report import SimulationReport
from arm_dynamics.viewer.local_simulation import LocalSimulation
from arm_dynamics.viewer.loop_controls import LoopOutput
from arm_dynamics.viewer.page import ArmPage
from arm_dynamics.viewer.show import open_page, show_state
from arm_dynamics.viewer.simulation_controls import SimulationControls

SLOW_FACTOR = 0.95
"""Real-time factor below which the status line states it."""
STATUS_PERIOD = 1.0
"""Time [s] between two status lines."""
PAGE_PERIOD = 1 / 30
"""Time [s] between two updates of the page."""
RATE = 500.0
"""Control rate [Hz] if neither --rate nor the parameter file sets one."""


def run(arguments: Sequence[str]) -> int:
    """Simulate; return 0 after Ctrl-C, and 0 (passed) or 1 (failed) after --duration."""
    parser = command_parser()
    parser.add_argument("--domain", type=_requires_ros, help="ROS domain id (requires ROS 2)")
    parser.add_argument(
        "--composed", action="store_true", help="one process for all, as always without ROS 2"
    )
    options = parser.parse_args(arguments)
    stop = stop_on_signals(EndProcess(0, "stopped"))
    arm = check_options(options)
    print(f"no ROS topics and services: {ros_missing()}", flush=True)
    with ExitStack() as stack:
        try:
            return _Run(options, arm, stack).run(stop)
        finally:
            ignore_further_signals()


def _requires_ros(text: str) -> str:
    raise ConfigError(f"--domain = {text}: {ros_missing()}")


SCENE_DT = 1e-3
"""Default time step [s] with free objects: a step in contact takes some tenths of a millisecond."""


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of ``arm-dynamics sim`` without the options of nodes."""
    parser = SuggestingParser(
        prog="arm-dynamics sim", description=(__doc__ or "").partition("\n")[0]
    )
    add_arm(parser, default="five_dof")
    add_options(parser, controllers=joint_controllers, dt=None)
    add_scene(parser)
    _add_run_options(parser.add_argument)
    _add_loop_options(parser.add_argument)
    return parser


def _add_run_options(add: Callable[..., Any]) -> None:
    """Add the options of the run and its result."""
    add(
        "--duration",
        type=seconds("--duration"),
        help="simulated time to run [s] (default: until Ctrl-C)",
    )
    add(
        "--motion",
        choices=("hold", "demo"),
        help="motion of the arm (default: demo with a page, hold without)",
    )
    add(
        "--record",
        type=Path,
        metavar="FOLDER",
        help="new folder to record into, for the command replay",
    )
    add(
        "--tolerance",
        type=Number("--tolerance", 1e-9, MAX_NUMBER, "rad or m"),
        default=0.01,
        help="maximum joint error at the end [rad] (default: 0.01)",
    )


def _add_loop_options(add: Callable[..., Any]) -> None:
    """Add the options of the page and of the control loop."""
    add("--headless", action="store_true", help="no browser page")
    add(
        "--control",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="the page can move the simulated arm: its address contains a token; --no-control: the"
        " page is view-only (default: --control)",
    )
    add(
        "--port", type=port("--port"), default=8080, help="port of the browser page (default: 8080)"
    )
    add(
        "--rate",
        type=Number("--rate", 1e-3, 1e6, "Hz"),
        help=f"control rate [Hz] (default: that of the parameter file, else {RATE:g})",
    )
    add(
        "--realtime",
        action="store_true",
        help="real time: simulated time does not wait for late commands (default: lockstep, unless"
        " the parameter file sets lockstep: false)",
    )


def check_options(options: argparse.Namespace) -> ArmModel:
    """Return the arm and print its tool frame; reject invalid options before anything starts."""
    arm = build_arm(options)
    require_masses(arm, "a simulation")
    if options.gains is not None and not options.gains.is_file():
        raise ConfigError(f"--gains = {options.gains}; expected an existing file")
    name = controller_name(arm, options.controller, options.gains)
    require_accepted(arm, name, joint_controllers())
    require_holdable(with_payload(arm, options) if options.payload_modeled else arm)
    if options.dt is None and any(not one.is_fixed for one in scene_of(options)):
        options.dt = SCENE_DT
    if options.record is not None and options.record.exists():
        raise ConfigError(f"--record = {options.record}; expected a new folder")
    print(f"arm '{arm.name}': tool frame = {arm.tool_frame}", flush=True)
    return arm


def runs_demo(options: argparse.Namespace) -> bool:
    """Return whether the arm performs the demo motion from the start."""
    return bool((options.motion or ("hold" if options.headless else "demo")) == "demo")


class RunReport:
    """Status lines of a run, from the statuses of its parts, and its result."""

    def __init__(self, status: StatusSummary, options: argparse.Namespace) -> None:
        self._status, self._options = status, options

    @property
    def is_running(self) -> bool:
        """Whether commands reach the arm."""
        number = self._status.number
        return (
            number("max joint error [rad]") is not None and (number("commands per second") or 0) > 0
        )

    def update(self, demo: DemoMotion) -> int | None:
        """Print a status line and continue the demo motion; return the exit code at the end."""
        number, stopped = self._status.number, self._status.is_time_stopped
        simulated = number("simulated time [s]") or 0.0
        if stopped:
            message = self._status.messages.get("simulator", "paused")
            print(f"t {simulated:8.2f} s  simulated time stopped: {message}", flush=True)
            if self._options.duration is None or not number("diverged"):
                return None
            print("FAILED: the simulation diverged", flush=True)
            return 1
        demo.continue_motion(simulated, *(number(event) or 0.0 for event in INTERRUPTED))
        self._print(simulated)
        limit = self._options.duration
        return self._result() if limit is not None and simulated >= float(limit) else None

    def _print(self, simulated: float) -> None:
        """Print the status line of a run whose time passes."""
        number = self._status.number
        trouble = "".join(
            f"\n  {name}: {text}"
            for name, text in self._status.messages.items()
            if not self._status.ok[name]
        )
        factor, missed = number("real-time factor") or 0.0, number("deadlines missed") or 0.0
        print(
            f"t {simulated:8.2f} s  max error {number('max joint error [rad]') or 0:.5f} rad"
            f"  {number('commands per second') or 0:5.0f} commands/s"
            f"{f'  RTF {factor:.2f}' * (factor < SLOW_FACTOR)}"
            f"{f'  {missed:.0f} late' * (self._options.realtime and missed > 0)}{trouble}",
            flush=True,
        )

    def _result(self) -> int:
        """Print the result; return 0 if the arm is at its reference, else 1."""
        error = self._status.number("max joint error [rad]")
        ok = all(self._status.ok.values())
        passed = error is not None and error <= self._options.tolerance and ok
        error_text = "no controller" if error is None else f"{error:.5f} rad"
        time_passed = self._status.values["simulated time [s]"]
        print(
            f"{'passed' if passed else 'FAILED'}: max joint error {error_text}"
            f" (limit {self._options.tolerance:g} rad) after {time_passed} s",
            flush=True,
        )
        return 0 if passed else 1


def build_simulation(options: argparse.Namespace, arm: ArmModel) -> tuple[Simulation, float]:
    """Return the simulated arm of the options and the parameter file, and its real-time factor."""
    file = options.gains or parameter_file(options.arm)
    given = node_parameters(file, "simulator") if file else {}
    simulated = with_payload(changed_arm(arm, given), options)
    dt = float(given.get("dt", DT)) if options.dt is None else options.dt
    rate = float(given.get("update_rate", RATE)) if options.rate is None else options.rate
    start = given.get("initial_positions") or arm.configuration("initial")
    if options.configuration != "initial":
        start = arm.configuration("initial")
    simulation = Simulation(
        simulated,
        q=arm.check_position("initial q", start),
        dt=dt,
        period=control_period(rate, dt),
        timeout=TIMEOUT.check("simulator", given.get(TIMEOUT.name, TIMEOUT.default or 0.1)),
        integrator=str(given.get("integrator", "semi_implicit_euler")),
        nominal=arm,
        scene=scene_of(options),
    )
    return simulation, FACTOR.check("simulator", given.get(FACTOR.name, 1.0))


class _Run:
    """Simulation, controller and page in one loop."""

    def __init__(self, options: argparse.Namespace, arm: ArmModel, stack: ExitStack) -> None:
        self._status, self._requests = StatusSummary(), LoopRequests()
        self._workbench: Workbench | None = None
        stack.callback(self._requests.close)
        self._page = self._open_page(options, arm, stack)
        with waiting("compiling the simulation"):
            self.simulation, factor = build_simulation(options, arm)
        self.control = SimulationControl(
            self.simulation,
            self._requests,
            release="it is released on the page" if options.control else "the next start",
        )
        options.period = self.simulation.period
        controller = controller_of(arm, options, joint_controllers())
        with waiting("compiling the controller"):
            warm_up_controller(controller, every_function=False)  # time waits for others
            command = Command(controller.interface, as_readonly(np.zeros(arm.nv)))
            self.simulation.plant.efforts(self.simulation.state, command)
            self.simulation.plant.motors(self.simulation.state, command)
        driver = SimulationDriver(arm, self.simulation, self.control)
        self.loop = ControlLoop(
            driver, controller, self.simulation.watchdog.events, scene=scene_of(options)
        )
        self._pacer = Pacer(self.simulation.period, factor)
        self._report = SimulationReport(
            self.simulation,
            self.control,
            lambda: self._pacer.missed,
            self._requests.post,
            lockstep=not options.realtime,
        )
        output = LoopOutput(self.loop, self._requests)
        self._demo = DemoMotion(arm, output, output.reference, scene_of(options))
        self._demo.set_running(runs_demo(options))
        self._lines = RunReport(self._status, options)
        self._max_error, self._rate, self._commands = (
            MaxErrorTracker(arm.joint_names),
            RateMeter(),
            0,
        )
        self._controls: SimulationControls | None = None
        if self._page is not None and options.control:
            simulated = LocalSimulation(
                self.simulation,
                self.loop,
                self.control,
                self._requests,
                self._demo,
                self._pacer,
            )
            self._controls = SimulationControls(
                simulated,
                arm,
                self._page,
                self._status,
                lambda: self._stop_workbench("another target", halt=False),
            )
            recorder = SimulationRecorder(self.simulation, self.loop, self._requests)
            self._workbench = Workbench(
                self._page, self.loop, recorder, self._requests, self._controls.end_motions
            )
            stack.callback(self._workbench.close)
        self._recorder: Recorder | None = None
        if options.record is not None:
            self._recorder = stack.enter_context(
                Recorder(
                    self.simulation, options.record, loop=self.loop, patience=RECORDING_TIMEOUT
                )
            )
        emergency_signal.connect(lambda: self._stop_arm("signal SIGUSR1"))

    def _open_page(
        self, options: argparse.Namespace, arm: ArmModel, stack: ExitStack
    ) -> ArmPage | None:
        """Open the page with the arm at rest, and print its address."""
        if options.headless:
            return None
        with waiting("opening the page"):
            page = stack.enter_context(
                open_page(
                    arm,
                    options.port,
                    control=options.control,
                    control_hint="start the simulation with --control",
                    on_emergency=lambda: self._stop_arm("the page"),
                )
            )
        page.show_scene(scene_of(options))
        print(f"the arm is shown at {page.url}", flush=True)
        page.show(arm.configuration("initial"))
        return page

    def _stop_arm(self, source: str) -> None:
        """Request an emergency stop, from any thread."""
        self._requests.post(lambda: self.control.engage_emergency_stop(source))
        self._stop_workbench("emergency stop")

    def _stop_workbench(self, reason: str, *, halt: bool = True) -> None:
        """Request the end of a motion that the page started, from any thread."""
        if self._workbench is not None:
            self._workbench.stop(reason, halt=halt)

    def run(self, stop: ShutdownFlag) -> int:
        """Simulate until the end of the run; return the exit code."""
        self._pacer.restart()
        next_status = time.monotonic() + STATUS_PERIOD
        next_page = 0.0
        while not stop.is_set():
            self._requests.serve()
            if self.control.is_time_stopped:
                self.control.sleep()
                self._pacer.restart()
            elif self.control.attempt(self._advance):
                self._pacer.wait()
                self.control.period_elapsed()
            now = time.monotonic()
            if self._page is not None and now >= next_page:
                next_page = now + PAGE_PERIOD
                self._show(self._page)
            if now >= next_status:
                next_status = now + STATUS_PERIOD
                self._read_status()
                code = self._lines.update(self._demo)
                if code is not None:
                    return code
        print("stopped", flush=True)
        return 0

    def _advance(self) -> bool:
        """Run one control cycle, which advances the simulation by one period."""
        self._commands += self.loop.step() is not None
        if self._workbench is not None:
            self._workbench.advance()
        if self.loop.state is not None and self.loop.reference is not None:
            self._max_error.observe(self.loop.reference.q, self.loop.state.q)
        return True

    def _show(self, page: ArmPage) -> None:
        state, reference = self.simulation.state, self.loop.reference
        measured = self.loop.state
        error = reference.q - measured.q if reference and measured else None
        command = self.loop.command
        signals = {"acceleration [rad/s², m/s²]": self.simulation.acceleration}
        if command is not None:
            signals[f"command: {command.interface}"] = command.value
        show_state(page, state, error, self._status, signals)
        page.show_scene(self.simulation.scene)
        if page.emergency is not None:
            page.emergency.show(self._status.emergency)
        if self._controls is not None:
            self._controls.update(reference.q if reference else None, state.q)
        if self._workbench is not None:
            self._workbench.update()

    def _read_status(self) -> None:
        """Update the statuses of simulator, controller and joints."""
        queue = self._recorder.queue if self._recorder else None
        more = self._report.summary(queue.trouble if queue else "", queue.values() if queue else {})
        self._status.take("simulator", *more)
        for joint, values in self._report.joints().items():
            self._status.take(f"simulator: {joint}", True, "simulated", values)
        max_error, joint = self._max_error.read()
        running = self._rate.update(self._commands) > 0 or self._status.is_time_stopped
        values = {
            "max joint error [rad]": f"{max_error:.6f}",
            "joint of max error": joint,
            **event_values(self.loop.events),
        }
        message = "running" if running else "no command"
        self._status.take("joint_controller", running, message, values)
