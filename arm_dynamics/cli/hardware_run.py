"""Run a controller on a physical arm in plain Python, and show the arm in the viewer."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from importlib.util import find_spec
from math import degrees, isfinite
from types import SimpleNamespace

import numpy as np

from arm_dynamics.cli import arm_options, hardware_options
from arm_dynamics.cli.excitation_option import add_excitation
from arm_dynamics.cli.hardware_check import check_health
from arm_dynamics.cli.jog_session import (
    QUIT,
    REST_VELOCITY,
    catch_stop_signals,
    disable_torque,
    latched_trips,
)
from arm_dynamics.cli.keyboard import GONE, Keyboard, confirm, require_terminal
from arm_dynamics.cli.terminal import StatusLine, waiting
from arm_dynamics.control.config import (
    build_controller,
    controller_name,
    node_parameters,
    parameter_file,
)
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.number_option import Number, port, seconds
from arm_dynamics.core.state import Command, State
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.identification.excitation import Excitation
from arm_dynamics.identification.excitation_start import excitation_motion
from arm_dynamics.recording import StateLog
from arm_dynamics.safety.events import Events, Throttle
from arm_dynamics.viewer import ArmPage, open_page

CHECK_DURATION = 0.5
"""Time [s] for which the motors are checked before torque is enabled."""
RATE = 200.0
"""Control rate [Hz] if neither --rate nor the parameter file sets one."""
SETTLING_TIME = 0.5
"""Time [s] from torque on to the excitation: the loop restarts where torque came on."""
MAX_STOP_TIME = 1.0
"""Longest time [s] to wait for rest before torque is disabled."""
WARNING = """
Torque will be enabled: '{arm}' {motion} under the controller {controller}.
Stay clear of the arm. Torque is disabled at the end (q, Ctrl-C, a trip), and an unsupported arm
falls: support it.
Enable torque?"""
HOLD = "holds its configuration"
EXCITATION = (
    "moves to the start configuration of {file}, runs its {duration:g} s and holds. The motion to"
    " the start, the floor and objects around the arm are not checked. It runs"
)


def run(arguments: Sequence[str]) -> int:
    """Check the arm, confirm, run the controller; return 0 after a run without a trip, else 1."""
    args = command_parser().parse_args(arguments)
    require_terminal("run")
    arm = hardware_options.arm_with_hardware(args)
    file = args.gains or parameter_file(args.arm)
    node = node_parameters(file, "hardware") if file else {}
    if args.controller is None and node.get("command_interface") == "position":
        args.controller = "position"
    controller = build_controller(arm, args.controller, file, period=None)
    if args.payload and args.payload_modeled:
        controller.set_model(arm_options.loaded(arm, args))
    period = 1 / (args.rate or float(node.get("update_rate", RATE)))
    excitation, motion = None, HOLD
    if args.excitation is not None:
        excitation = Excitation.load(args.excitation).require_joints(arm)
        motion = EXCITATION.format(file=args.excitation, duration=excitation.duration)
    above_status = SimpleNamespace(warning=lambda text: print(f"\r\x1b[K{text}", flush=True))
    events = Events(Throttle(above_status).warn)
    driver = hardware_options.build_motor_driver(
        args, arm, interface=controller.interface, period=period, events=events
    )
    if not check_health(arm, driver.bus, CHECK_DURATION, driver.safety.limit_recovery_margin):
        print("torque was not enabled: the check found problems")
        return 1
    name = controller_name(arm, args.controller, file)
    with waiting(f"compiling the controller {name}"):
        warm_up_controller(controller)
    if not confirm(WARNING.format(arm=arm.name, motion=motion, controller=name)):
        print("torque was not enabled: nothing was changed")
        return 1
    duration = args.duration or float("inf")
    with ExitStack() as stack:
        log, page = None, None
        if args.record is not None:
            log = stack.enter_context(closing(StateLog(arm, args.record, events)))
        if not args.headless and find_spec("viser") is not None:
            stop = partial(driver.emergency_stop, "the viewer")
            page = stack.enter_context(open_page(arm, args.page_port, on_emergency=stop))
            print(page.url)
        return _run_controller(driver, controller, events, period, duration, excitation, page, log)


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = hardware_options.make_parser("run", __doc__)
    arm_options.add_arm(parser)
    arm_options.add_options(
        parser,
        only=("lock", "payload", "gains", "controller"),
        controllers=arm_options.joint_controllers,
        modeled=True,
    )
    add = parser.add_argument
    add_excitation(parser)
    text = "record states and commands: a new folder"
    add("--record", type=arm_options.path_argument, metavar="FOLDER", help=text)
    text = f"control rate [Hz] (default: the parameter file's, else {RATE:g})"
    add("--rate", type=Number("--rate", 1, 1e4, "Hz"), metavar="HZ", help=text)
    text = "duration [s] (default: until q)"
    add("--duration", type=seconds("--duration"), metavar="S", help=text)
    add("--headless", action="store_true", help="without the viewer")
    text = "port of the viewer; 0 for any free one (default: 8080)"
    add("--page-port", type=port("--page-port"), default=8080, metavar="PORT", help=text)
    return parser


def _run_controller(
    driver: MotorBusDriver,
    controller: Controller,
    events: Events,
    period: float,
    duration: float,
    excitation: Excitation | None = None,
    page: ArmPage | None = None,
    log: StateLog | None = None,
) -> int:
    """Enable torque, run control cycles until the end, and disable torque in every case."""
    trips: list[str] = []
    recorded: State | None = None
    with catch_stop_signals() as stopped:
        driver.configure()
        try:
            loop, pacer = ControlLoop(driver, controller, events), Pacer(period)
            for _ in range(3):
                loop.step()
            driver.activate()
            begin = time.monotonic() + SETTLING_TIME
            end = time.monotonic() + duration
            print("q or Ctrl-C: disable torque")
            with Keyboard() as keys, StatusLine() as line:
                while not (stopped() or trips or time.monotonic() > end):
                    if keys.latest_key() in (QUIT, GONE):
                        break
                    command = loop.step()
                    if log is not None and command is not None and loop.state is not recorded:
                        recorded = loop.state
                        _record(log, recorded, command)
                    if excitation is not None and time.monotonic() > begin:
                        state, reference = loop.present()
                        loop.follow(
                            excitation_motion(loop.arm, excitation, reference.q, state.time)
                        )
                        excitation = None
                    if page is not None:
                        _show(loop, page)
                    line.show(_status(loop, driver))
                    trips = latched_trips(driver)
                    pacer.wait()
                line.end(_status(loop, driver))
            until = time.monotonic() + MAX_STOP_TIME
            while driver.status.torque_enabled and time.monotonic() < until:
                loop.step()
                if np.nanmax(np.abs(driver.feedback.v)) < REST_VELOCITY:
                    break
                pacer.wait()
            trips = latched_trips(driver)  # also those after q
        finally:
            disable_torque(driver)
    if trips:
        print("stopped:", *trips, sep="\n  ")
    return 1 if trips else 0


def _record(log: StateLog, state: State | None, command: Command) -> None:
    """Record a state and the command that answers it."""
    if state is not None:
        log.state(state.time, state)
        log.command(state.time, command)


def _show(loop: ControlLoop, page: ArmPage) -> None:
    """Show the measured state on the page unless a joint has no feedback."""
    state = loop.state
    if state is not None and np.isfinite([state.q, state.v]).all():
        effort = state.tau if np.isfinite(state.tau).all() else None
        page.show(state.q, state.v, effort, time=state.time)


def _status(loop: ControlLoop, driver: MotorBusDriver) -> str:
    """Return the driver's state, the largest joint error and the highest temperature."""
    state, reference = loop.state, loop.reference
    error, joint = float("nan"), ""
    if state is not None and reference is not None:
        errors = np.abs(reference.q - state.q)
        worst = int(np.nanargmax(errors))
        error, joint = float(errors[worst]), loop.arm.joint_names[worst]
    shown = f"{error:.4f} rad ({degrees(error):.1f}°) of {joint}" if isfinite(error) else "unknown"
    temperature = driver.feedback.temperature
    highest = f"  {np.nanmax(temperature):.0f} °C" if np.isfinite(temperature).any() else ""
    status = driver.status.value if not driver.trips else str(driver.trips[-1])
    return f"{status}  largest error {shown}{highest}"
