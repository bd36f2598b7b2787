"""``arm-dynamics hardware run ARM``: a controller on a physical arm, without ROS."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from math import degrees, isfinite
from types import SimpleNamespace

import numpy as np

from arm_dynamics.cli import arm_options, hardware_options
from arm_dynamics.cli.hardware_check import check_health
from arm_dynamics.cli.jog_session import QUIT, REST, catch_stop_signals, torque_off, tripped_by
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
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.number_option import Number, port, seconds
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.build import build_driver
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.events import Events, Throttle
from arm_dynamics.viewer import ArmPage, open_page

LOOK, RATE = 0.5, 200.0
"""Time [s] for which motors are read before the question; control rate [Hz] without another."""
MAX_STOP_TIME = 1.0
"""Time [s] in which the arm comes to rest before torque is disabled."""
WARNING = """
Torque goes on: '{arm}' holds its configuration under the controller {controller}. Keep clear of it.
Torque goes off at the end (q, Ctrl-C, a trip): support an arm that does not rest on something."""


def run(arguments: Sequence[str]) -> int:
    """Check, ask, hold; 0 where torque was on and is off again, else 1."""
    given = _parser().parse_args(arguments)
    require_terminal("run")
    arm = hardware_options.arm_with_hardware(given)
    file = given.gains or parameter_file(given.arm)
    node = node_parameters(file, "hardware") if file else {}
    if given.controller is None and node.get("command_interface") == "position":
        given.controller = "position"
    controller = build_controller(arm, given.controller, file, period=None)
    if given.payload and given.payload_modeled:
        controller.set_model(arm_options.loaded(arm, given))
    given.rate = given.rate or float(node.get("update_rate", RATE))
    driver, events = _driver(given, arm, controller)
    if not check_health(arm, driver.bus, LOOK, driver.safety.limit_recovery_margin):
        print("no torque before all is well")
        return 1
    name = controller_name(arm, given.controller, file)
    with waiting(f"compiling the controller {name}"):
        warm_up_controller(controller)
    if not confirm(f"{WARNING.format(arm=arm.name, controller=name)}\nTorque on?"):
        print("no torque: nothing was done")
        return 1
    with_page = not given.headless and find_spec("viser") is not None
    with _page(given, arm, driver) if with_page else nullcontext() as page:
        return _session(given, driver, controller, events, page)


def _parser() -> argparse.ArgumentParser:
    made = hardware_options.make_parser("run", __doc__)
    arm_options.add_arm(made)
    arm_options.add_options(
        made,
        only=("lock", "payload", "gains", "controller"),
        controllers=arm_options.joint_controllers,
        modeled=True,
    )
    add = made.add_argument
    rate = f"control rate [Hz] (default: the parameter file's, else {RATE:g})"
    add("--rate", type=Number("--rate", 1, 1e4, "Hz"), metavar="HZ", help=rate)
    text = "end after this time [s] (default: q)"
    add("--duration", type=seconds("--duration"), metavar="S", help=text)
    add("--headless", action="store_true", help="no page")
    add("--page-port", type=port("--page-port"), default=8080, metavar="N", help="(8080)")
    return made


def _driver(
    given: argparse.Namespace, arm: ArmModel, controller: Controller
) -> tuple[MotorBusDriver, Events]:
    """The arm's driver, and events that are printed on lines of their own."""
    above = SimpleNamespace(warning=lambda text: print(f"\r\x1b[K{text}", flush=True))
    events = Events(Throttle(above).warn)
    name = hardware_options.driver_name(given, arm)
    driver = build_driver(
        arm,
        name,
        hardware_options.settings(given),
        interface=controller.interface,
        period=1 / given.rate,
        events=events,
    )
    if not isinstance(driver, MotorBusDriver):
        raise ConfigError(f"driver '{name}' has no motors")
    return driver, events


def _page(given: argparse.Namespace, arm: ArmModel, driver: MotorBusDriver) -> ArmPage:
    page = open_page(arm, given.page_port, on_emergency=lambda: driver.emergency_stop("the page"))
    print(page.url)
    return page


def _session(
    given: argparse.Namespace,
    driver: MotorBusDriver,
    controller: Controller,
    events: Events,
    page: ArmPage | None,
) -> int:
    """Torque on, cycle after cycle until the end, torque off whatever happens between."""
    tripped: list[str] = []
    with catch_stop_signals() as stopped:
        driver.configure()
        try:
            loop, pacer = ControlLoop(driver, controller, events), Pacer(1 / given.rate)
            for _ in range(3):
                loop.step()
            driver.activate()
            until = time.monotonic() + (given.duration or float("inf"))
            print("q or Ctrl-C: torque off")
            with Keyboard() as keys, StatusLine() as line:
                while not (stopped() or tripped or time.monotonic() > until):
                    if keys.latest_key() in (QUIT, GONE):
                        break
                    _cycle(loop, page)
                    line.show(_shown(loop, driver))
                    tripped = tripped_by(driver)
                    pacer.wait()
                line.end(_shown(loop, driver))
            _come_to_rest(loop, driver, pacer)
            tripped = tripped_by(driver)  # also of what happened after q
        finally:
            torque_off(driver)
    if tripped:
        print("stopped:", *tripped, sep="\n  ")
    return 1 if tripped else 0


def _cycle(loop: ControlLoop, page: ArmPage | None) -> None:
    loop.step()
    state = loop.state
    if page is not None and state is not None and np.isfinite([state.q, state.v]).all():
        effort = state.tau if np.isfinite(state.tau).all() else None
        page.show(state.q, state.v, effort, time=state.time)


def _come_to_rest(loop: ControlLoop, driver: MotorBusDriver, pacer: Pacer) -> None:
    """Hold until every joint rests, or LONGEST."""
    until = time.monotonic() + MAX_STOP_TIME
    while driver.status.torque_enabled and time.monotonic() < until:
        loop.step()
        if np.nanmax(np.abs(driver.feedback.v)) < REST:
            break
        pacer.wait()


def _shown(loop: ControlLoop, driver: MotorBusDriver) -> str:
    """Status, the largest error of all joints, the largest temperature."""
    state, reference = loop.state, loop.reference
    error, joint = float("nan"), ""
    if state is not None and reference is not None:
        errors = np.abs(reference.q - state.q)
        worst = int(np.nanargmax(errors))
        error, joint = float(errors[worst]), loop.arm.joint_names[worst]
    shown = f"{error:.4f} rad ({degrees(error):.1f}°) of {joint}" if isfinite(error) else "unknown"
    warm = driver.feedback.temperature
    hot = f"  {np.nanmax(warm):.0f} °C" if np.isfinite(warm).any() else ""
    status = driver.status.value if not driver.trips else str(driver.trips[-1])
    return f"{status}  largest error {shown}{hot}"
