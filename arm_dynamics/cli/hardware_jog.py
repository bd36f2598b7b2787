"""``arm-dynamics hardware jog ARM --joint J``: one joint, slowly, while a key is held."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from math import pi

import numpy as np

from arm_dynamics.cli import hardware_options
from arm_dynamics.cli.hardware_check import check_health
from arm_dynamics.cli.jog_session import JogBounds, JogMotion, run_jog
from arm_dynamics.cli.keyboard import HoldToRunKey, confirm, require_terminal
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.number_option import MAX_NUMBER, Number
from arm_dynamics.hardware.build import build_driver
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.safety.command_limiter import MAX_VELOCITY
from arm_dynamics.safety.events import Events
from arm_dynamics.safety.safety_settings import SafetySettings

MAX_SPEED, MAX_TRAVEL = 45.0, 180.0
"""Degrees a second, or mm/s, and degrees, or mm, to each side of the start that are allowed."""
MIN_TRIP_VELOCITY = 1.5
"""Speed [rad/s] of any joint that is allowed before the arm trips, however slowly it is led."""
LOOK = 0.5
"""How long the arm is looked at before the question [s]."""
GOAL_TOLERANCE, MOVED = 1e-6, 0.05
"""Differences [rad or m] between goal and end, and by which a joint was moved."""
KEY_DIRECTIONS = {"right": 1.0, "+": 1.0, "=": 1.0, "left": -1.0, "-": -1.0}
TORQUE_OFF = "Torque goes off: the arm falls unless it is held. Clear the motors' faults?"
WARNING = """
Torque goes on: the arm holds itself where it is, and '{joint}' moves while a key is held,
at {speed:g} {unit}/s, between {lower:.1f} and {upper:.1f} {unit}. Keep clear of the arm.
Torque goes off at the end (q, Ctrl-C, a trip): an arm that does not rest on something falls,
so have it rest on something, or a hand at it."""


def run(arguments: Sequence[str]) -> int:
    """Check, ask, lead; 0 where torque was on and is off again, else 1."""
    given = _parser().parse_args(arguments)
    require_terminal("jog")
    arm = hardware_options.arm_with_hardware(given)
    i = arm.index(given.joint)
    scale = pi / 180 if arm.joints[i].unit == "rad" else 1e-3
    speed = scale * check_float("--speed", given.speed, above=0, upper=MAX_SPEED)
    speed = min(speed, arm.joints[i].velocity)
    span = scale * check_float("--max-travel", given.max_travel, above=0, upper=MAX_TRAVEL)
    by = None if given.distance is None else scale * check_float("--distance", given.distance)
    driver = _driver(given, arm, speed)
    law = _law(given, arm)
    if given.clear_faults and not _clear_faults(driver):
        print("nothing was done")
        return 1
    if not check_health(arm, driver.bus, LOOK, driver.safety.limit_recovery_margin):
        print("no torque before the check finds no problems")
        return 1
    driver.configure()
    try:
        start = _position(driver, i)
        bounds = _bounds(arm.joints[i], start, speed, span, by)
        if not _agreed(arm.joints[i], bounds, scale):
            print("no torque: nothing was done")
            return 1
        if abs(_position(driver, i) - start) > MOVED:
            print(f"no torque: '{given.joint}' was moved meanwhile; begin again")
            return 1
        motion = JogMotion(driver, law, i, bounds)
        return run_jog(motion, *_keys(motion, start, by))
    finally:
        driver.close()


def _parser() -> argparse.ArgumentParser:
    made = hardware_options.make_parser("jog", __doc__)
    hardware_options.add_arm(made)
    add = made.add_argument
    add("--joint", required=True, metavar="J", help="the joint that moves")
    add(
        "--distance",
        type=Number("--distance", -MAX_NUMBER, MAX_NUMBER, "deg or mm"),
        metavar="DEG",
        help="so far (mm for a prismatic joint), then end",
    )
    add(
        "--speed",
        type=Number("--speed", 0, MAX_NUMBER, "deg/s or mm/s"),
        default=10.0,
        metavar="DEG/S",
        help=f"10; up to {MAX_SPEED:g}",
    )
    add(
        "--max-travel",
        type=Number("--max-travel", 0, MAX_NUMBER, "deg or mm"),
        default=30.0,
        metavar="DEG",
        help="to each side of the start; 30",
    )
    add(
        "--clear-faults",
        action="store_true",
        help="clear faults first: torque off after a typed yes",
    )
    told = "position (default), or effort: the arm's law, which carries its weight"
    add("--interface", default="position", choices=("position", "effort"), help=told)
    return made


def _driver(given: argparse.Namespace, arm: ArmModel, speed: float) -> MotorBusDriver:
    """The arm's driver, with limits of speed that suit a joint that is led slowly."""
    slowest = min(float(np.min(arm.velocity_limit)), MAX_VELOCITY)
    share = min(1.0, max(MIN_TRIP_VELOCITY, 4 * speed) / slowest)
    driver = build_driver(
        arm,
        hardware_options.driver_name(given, arm),
        hardware_options.settings(given),
        safety=SafetySettings(velocity_limit_scale=share),
        interface=given.interface,
        events=Events(lambda kind, message: None),  # the live line shows trips and status
    )
    if not isinstance(driver, MotorBusDriver):
        raise ConfigError(f"driver '{given.driver}' has no motors to jog")
    return driver


def _law(given: argparse.Namespace, arm: ArmModel) -> Controller:
    law = build_controller(arm, "position" if given.interface == "position" else None, period=None)
    if law.interface != given.interface:
        raise ConfigError(f"--interface {given.interface}: the arm's law sets {law.interface}")
    return law


def _clear_faults(driver: MotorBusDriver) -> bool:
    """Torque off, and motors' faults cleared, once agreed; DriverFault names those that stay."""
    if not confirm(TORQUE_OFF):
        return False
    driver.configure()
    try:
        driver.read()
        driver.reset()
    finally:
        driver.close()
    return True


def _position(driver: MotorBusDriver, i: int) -> float:
    """Where the joint is; raises DriverFault for a silent one."""
    q = float(driver.read().q[i])
    return check_float(f"position of joint '{driver.arm.joint_names[i]}'", q)


def _bounds(joint: Joint, start: float, speed: float, span: float, by: float | None) -> JogBounds:
    """Between the joint's limits and near the start, or from the start by ``by``."""
    ends = (-span, span) if by is None else (min(by, 0.0), max(by, 0.0))
    lower, upper = max(joint.lower, start + ends[0]), min(joint.upper, start + ends[1])
    if by is not None and not joint.lower <= start + by <= joint.upper:
        raise ConfigError(
            f"--distance leads joint '{joint.name}' to {start + by:.4g} {joint.unit}:"
            f" [{joint.lower:.4g}, {joint.upper:.4g}] is allowed"
        )
    return JogBounds(speed, lower, upper)


def _agreed(joint: Joint, bounds: JogBounds, scale: float) -> bool:
    unit = "°" if joint.unit == "rad" else "mm"
    lower, upper, speed = bounds.lower / scale, bounds.upper / scale, bounds.speed / scale
    said = WARNING.format(joint=joint.name, speed=speed, unit=unit, lower=lower, upper=upper)
    return confirm(f"{said}\nTorque on?")


def _keys(
    motion: JogMotion, start: float, by: float | None
) -> tuple[HoldToRunKey, Callable[[], bool]]:
    """What keys do, said to the user, and when the way is done."""
    name = f"'{motion.driver.arm.joint_names[motion.joint]}'"
    if by is None:
        print(f"hold → or + : {name} up    hold ← or - : down    q or Ctrl-C: torque off")
        return HoldToRunKey(KEY_DIRECTIONS), lambda: False
    print(f"hold SPACE: {name} moves    q or Ctrl-C: torque off")
    goal = start + by
    return HoldToRunKey(
        {" ": 1.0 if by > 0 else -1.0}
    ), lambda: abs(motion.goal - goal) < GOAL_TOLERANCE
