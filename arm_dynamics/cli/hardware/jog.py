"""Move one joint of a physical arm slowly while a key is held."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import degrees, nan, pi

import numpy as np

from arm_dynamics.cli.hardware import options as hardware_options
from arm_dynamics.cli.hardware.keyboard import (
    ENDS,
    HoldToRunKey,
    Keyboard,
    confirm,
    require_terminal,
)
from arm_dynamics.cli.hardware.torque_session import (
    confirm_torque,
    disable_torque,
    exit_code,
    latched_trips,
    motors_are_healthy,
    torque_guard,
    wait_for_rest,
)
from arm_dynamics.cli.terminal import StatusLine, number_text
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.errors import ConfigError, DriverFault
from arm_dynamics.core.number_option import MAX_NUMBER, Number
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.driver import DriverState
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
LEAD = 0.15
"""Largest distance [rad or m] of the reference from the joint: it waits for a blocked joint."""
PERIOD = 0.01
"""Control period [s]."""
MAX_STOP_TIME = 0.5
"""Longest time [s] to wait for rest before torque is disabled."""
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
        return run_jog(motion, start, distance)
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


@dataclass(frozen=True, slots=True)
class JogBounds:
    """Speed [rad/s or m/s] of a jogged joint, and its lower and upper position [rad or m]."""

    speed: float
    lower: float
    upper: float


class JogMotion:
    """Reference of a jogged joint, tracked by a controller; the other joints are held.

    dx/dt = direction · speed while lower <= x <= upper and |x - q| < LEAD, with direction -1, 0
    or 1. Each ``run_cycle`` is one control cycle. While the driver is not active, the controller
    restarts at the measured position.
    """

    def __init__(
        self, driver: MotorBusDriver, controller: Controller, joint: int, bounds: JogBounds
    ) -> None:
        self.driver, self.bounds, self.joint = driver, bounds, joint
        self._controller = controller
        self._reference: Vector | None = None
        self._time = 0.0

    @property
    def reference_position(self) -> float:
        """Reference x of the joint [rad or m]; NaN before the first cycle."""
        return nan if self._reference is None else float(self._reference[self.joint])

    def warm_up(self) -> None:
        """Compile the controller by two updates, whose commands are not sent.

        Raises
        ------
        DriverFault
            If no joint has feedback.

        """
        state = self.driver.read()
        self._restart(state)
        self._command(state, 0.0, 0.0)
        self._command(state, 0.0, 1e-3)
        self._reference = None

    def run_cycle(self, direction: float) -> None:
        """Read the state, move the reference and write the command; hold a stopped arm."""
        try:
            state = self.driver.read()
        except DriverFault:
            self._idle()
            return
        if not (self.driver.status.torque_enabled and np.isfinite([state.q, state.v]).all()):
            self._idle()
            return
        active = self.driver.status is DriverState.ACTIVE
        if self._reference is None or not active:
            self._restart(state)
        dt, self._time = max(0.0, state.time - self._time), state.time
        self.driver.write(self._command(state, direction if active else 0.0, dt))

    def _idle(self) -> None:
        self._reference = None
        self.driver.idle()

    def _restart(self, state: State) -> None:
        self._controller.reset(state)
        self._reference, self._time = np.array(state.q), state.time

    def _command(self, state: State, direction: float, dt: float) -> Command:
        """Return the controller's command for the reference after dt [s].

        A reference outside its bounds can only return into them.
        """
        assert self._reference is not None
        x, q, bounds = self.reference_position, float(state.q[self.joint]), self.bounds
        desired = x + direction * bounds.speed * min(dt, 0.1)
        if direction > 0:
            desired = max(x, min(desired, bounds.upper, q + LEAD))
        elif direction < 0:
            desired = min(x, max(desired, bounds.lower, q - LEAD))
        else:
            desired = x
        v = np.zeros_like(self._reference)
        self._reference[self.joint] = desired
        v[self.joint] = (desired - x) / dt if dt > 0 else 0.0
        reference = Reference(self._reference, v, np.zeros_like(v))
        return self._controller.update(state, reference, dt)


def run_jog(motion: JogMotion, start: float, distance: float | None) -> int:
    """Enable torque, jog until the target, QUIT, a signal or a trip, and disable torque.

    Parameters
    ----------
    motion : JogMotion
        Motion of the joint.
    start : float
        Position [rad or m] at the start.
    distance : float or None
        Distance [rad or m] to the target, by the space bar; None: no target, by the arrow keys.

    Returns
    -------
    int
        1 after a trip, else 0.

    """
    name = f"'{motion.driver.arm.joint_names[motion.joint]}'"
    if distance is None:
        target, key = nan, HoldToRunKey(KEY_DIRECTIONS)
        print(f"hold → or + : {name} up    hold ← or - : down    q or Ctrl-C: disable torque")
    else:
        target, key = start + distance, HoldToRunKey({" ": 1.0 if distance > 0 else -1.0})
        print(f"hold SPACE: {name} moves    q or Ctrl-C: disable torque")
    driver, pacer = motion.driver, Pacer(PERIOD)
    trips: list[str] = []
    motion.warm_up()
    with torque_guard(driver) as stopped:
        try:
            with Keyboard() as keys, StatusLine() as line:
                driver.activate()
                ended = bool(ENDS & {*keys.pressed()})  # keys pressed before do not move the joint
                while not (
                    ended
                    or stopped()
                    or trips
                    or abs(motion.reference_position - target) < GOAL_TOLERANCE
                ):
                    pressed, now = keys.pressed(), time.monotonic()
                    if ENDS & {*pressed}:
                        break
                    for one in pressed:
                        key.press(one, now)
                    motion.run_cycle(key.direction(now))
                    line.show(status_text(motion))
                    trips = latched_trips(driver)
                    pacer.wait()
                line.end(status_text(motion))
            wait_for_rest(
                driver,
                lambda: motion.run_cycle(0.0),
                pacer,
                joints=slice(motion.joint, motion.joint + 1),
                min_time=5 * PERIOD,
                max_time=MAX_STOP_TIME,
            )
            trips = trips or latched_trips(driver)  # also those after q
        finally:
            disable_torque(driver)
    return exit_code(trips)


def status_text(motion: JogMotion) -> str:
    """Return position, reference, effort and temperature of the joint, and the driver's state."""
    driver, i = motion.driver, motion.joint
    feedback, joint = driver.feedback, driver.arm.joints[i]
    scale, unit = (degrees(1.0), "°") if joint.unit == "rad" else (1e3, " mm")
    parts = [
        f"{joint.name} {number_text(scale * feedback.q[i], '.1f')}{unit}",
        f"reference {number_text(scale * motion.reference_position, '.1f')}{unit}",
        f"effort {number_text(feedback.tau[i], '.2f')} {'N·m' if joint.unit == 'rad' else 'N'}",
        f"{number_text(feedback.temperature[i], '.0f')} °C",
        driver.status.value if not driver.trips else str(driver.trips[-1]),
    ]
    return "  ".join(parts)
