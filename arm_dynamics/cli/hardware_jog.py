"""Move one joint of a physical arm slowly while a key is held."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from math import pi

import numpy as np

from arm_dynamics.cli import hardware_options
from arm_dynamics.cli.jog_session import JogBounds, JogMotion, run_jog
from arm_dynamics.cli.keyboard import HoldToRunKey, confirm, require_terminal
from arm_dynamics.cli.torque_session import confirm_torque, motors_are_healthy
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.number_option import MAX_NUMBER, Number
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.safety.command_limiter import MAX_VELOCITY
from arm_dynamics.safety.events import Events
from arm_dynamics.safety.safety_settings import SafetySettings

MAX_SPEED, MAX_TRAVEL = 45.0, 180.0
"""Limits of --speed [deg/s or mm/s] and --max-travel [deg or mm]."""
SPEED, TRAVEL = 10.0, 30.0
"""Default values of --speed [deg/s or mm/s] and --max-travel [deg or mm]."""
MIN_TRIP_VELOCITY = 1.5
"""Smallest velocity [rad/s] of a joint at which the arm trips, for any --speed."""
GOAL_TOLERANCE = 1e-6
"""Largest difference [rad or m] of the reference from the target of --distance."""
MOVED_THRESHOLD = 0.05
"""Difference [rad or m] by which a joint counts as moved during the question."""
KEY_DIRECTIONS = {"right": 1.0, "+": 1.0, "=": 1.0, "left": -1.0, "-": -1.0}
CLEAR_FAULTS = (
    "This disables torque, and an unsupported arm falls. Support the arm. Clear the motors' faults?"
)
WARNING = """
Torque will be enabled: the arm holds its configuration, and '{joint}' moves while a key is held,
at {speed:g} {unit}/s, between {lower:.1f} and {upper:.1f} {unit}. Stay clear of the arm.
Torque is disabled at the end (q, Ctrl-C, a trip), and an unsupported arm falls: support it.
Enable torque?"""


def run(arguments: Sequence[str]) -> int:
    """Check the arm, confirm, jog; return 0 after a jog without a trip, else 1."""
    args = command_parser().parse_args(arguments)
    require_terminal("jog")
    arm = hardware_options.arm_with_hardware(args)
    i = arm.index(args.joint)
    joint = arm.joints[i]
    scale = pi / 180 if joint.unit == "rad" else 1e-3
    speed = scale * check_float("--speed", args.speed, above=0, upper=MAX_SPEED)
    speed = min(speed, joint.velocity)
    travel = scale * check_float("--max-travel", args.max_travel, above=0, upper=MAX_TRAVEL)
    distance = None if args.distance is None else scale * check_float("--distance", args.distance)
    driver, controller = _driver_and_controller(args, arm, speed)
    if args.clear_faults:
        if not confirm(CLEAR_FAULTS):
            print("nothing was changed")
            return 1
        driver.configure()
        try:
            driver.read()
            driver.reset()
        finally:
            driver.close()
    if not motors_are_healthy(driver):
        return 1
    driver.configure()
    try:
        start = _position(driver, i)
        bounds = _bounds(joint, start, speed, travel, distance)
        unit = "°" if joint.unit == "rad" else "mm"
        lower, upper, speed = bounds.lower / scale, bounds.upper / scale, bounds.speed / scale
        text = WARNING.format(joint=joint.name, speed=speed, unit=unit, lower=lower, upper=upper)
        if not confirm_torque(text):
            return 1
        if abs(_position(driver, i) - start) > MOVED_THRESHOLD:
            print(f"torque was not enabled: '{joint.name}' moved during the question; start again")
            return 1
        motion = JogMotion(driver, controller, i, bounds)
        return run_jog(motion, *_keys(motion, start, distance))
    finally:
        driver.close()


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = hardware_options.make_parser("jog", __doc__)
    hardware_options.add_arm(parser)
    add = parser.add_argument
    add("--joint", required=True, metavar="JOINT", help="joint to move")
    number = Number("--distance", -MAX_NUMBER, MAX_NUMBER, "deg or mm")
    text = (
        "distance to move, then stop [deg; mm for a prismatic joint] (default: jog with the keys)"
    )
    add("--distance", type=number, metavar="DISTANCE", help=text)
    number = Number("--speed", 0, MAX_NUMBER, "deg/s or mm/s")
    text = f"speed, at most {MAX_SPEED:g} [deg/s; mm/s] (default: {SPEED:g})"
    add("--speed", type=number, default=SPEED, metavar="SPEED", help=text)
    number = Number("--max-travel", 0, MAX_NUMBER, "deg or mm")
    text = f"largest distance to each side of the start [deg; mm] (default: {TRAVEL:g})"
    add("--max-travel", type=number, default=TRAVEL, metavar="DISTANCE", help=text)
    text = "disable torque and clear faults first, after a typed yes"
    add("--clear-faults", action="store_true", help=text)
    text = "position, or effort: the arm's own controller, which compensates gravity"
    text = f"command interface: {text} (default: position)"
    add("--interface", default="position", choices=("position", "effort"), help=text)
    return parser


def _driver_and_controller(
    args: argparse.Namespace, arm: ArmModel, speed: float
) -> tuple[MotorBusDriver, Controller]:
    """Build the driver, with velocity limits for a slow joint, and the controller."""
    slowest = min(float(np.min(arm.velocity_limit)), MAX_VELOCITY)
    velocity_scale = min(1.0, max(MIN_TRIP_VELOCITY, 4 * speed) / slowest)
    driver = hardware_options.build_motor_driver(
        args,
        arm,
        safety=SafetySettings(velocity_limit_scale=velocity_scale),
        interface=args.interface,
        events=Events(lambda kind, message: None),  # the status line shows trips
    )
    position = "position" if args.interface == "position" else None
    controller = build_controller(arm, position, period=None)
    if controller.interface != args.interface:
        raise ConfigError(
            f"--interface = {args.interface}; expected {controller.interface}, which the arm's"
            " controller commands"
        )
    return driver, controller


def _position(driver: MotorBusDriver, i: int) -> float:
    """Return the measured position [rad or m]; raises InvalidValue without feedback."""
    q = float(driver.read().q[i])
    return check_float(f"position of joint '{driver.arm.joint_names[i]}'", q)


def _bounds(
    joint: Joint, start: float, speed: float, travel: float, distance: float | None
) -> JogBounds:
    """Return bounds within the joint limits: start ± travel, or from start to its target."""
    below, above = (-travel, travel) if distance is None else (min(distance, 0), max(distance, 0))
    lower, upper = max(joint.lower, start + below), min(joint.upper, start + above)
    if distance is not None and not joint.lower <= start + distance <= joint.upper:
        raise ConfigError(
            f"--distance: target of joint '{joint.name}' = {start + distance:.4g} {joint.unit};"
            f" expected {joint.lower:.4g} to {joint.upper:.4g} {joint.unit}"
        )
    return JogBounds(speed, lower, upper)


def _keys(
    motion: JogMotion, start: float, distance: float | None
) -> tuple[HoldToRunKey, Callable[[], bool]]:
    """Print and return the keys of the motion, and whether it has reached its target."""
    name = f"'{motion.driver.arm.joint_names[motion.joint]}'"
    if distance is None:
        print(f"hold → or + : {name} up    hold ← or - : down    q or Ctrl-C: disable torque")
        return HoldToRunKey(KEY_DIRECTIONS), lambda: False
    print(f"hold SPACE: {name} moves    q or Ctrl-C: disable torque")
    goal = start + distance
    return (
        HoldToRunKey({" ": 1.0 if distance > 0 else -1.0}),
        lambda: abs(motion.goal - goal) < GOAL_TOLERANCE,
    )
