"""Measure the efforts of an arm at static poses and calibrate its masses, friction and offsets."""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import pi
from types import SimpleNamespace

import numpy as np
from rich.console import Console
from rich.table import Table

from arm_dynamics.cli import hardware_options
from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.hardware_check import check_health
from arm_dynamics.cli.hardware_jog import MOVED_THRESHOLD
from arm_dynamics.cli.jog_session import (
    QUIT,
    REST_VELOCITY,
    catch_stop_signals,
    disable_torque,
    latched_trips,
)
from arm_dynamics.cli.keyboard import GONE, Keyboard, confirm, require_terminal
from arm_dynamics.cli.terminal import StatusLine, waiting
from arm_dynamics.control.config import build_controller, node_parameters, parameter_file
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_float, check_int
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.files import output_file
from arm_dynamics.core.number_option import MAX_NUMBER, Number, seed
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.identification.gravity_calibration import (
    GravityFit,
    StaticPose,
    calibrate_gravity,
)
from arm_dynamics.identification.identified_urdf import identified_urdf
from arm_dynamics.identification.pose_selection import (
    CLEARANCE,
    approach_distance,
    choose_poses,
    path_is_free,
)
from arm_dynamics.identification.self_collision import SelfCollision
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns
from arm_dynamics.safety.events import Events, Throttle

MAX_SPEED, SPEED = 90.0, 20.0
"""Limit and default of --speed [deg/s]."""
COUNT = 12
"""Default number of poses."""
CHECK_DURATION = 0.5
"""Time [s] for which the motors are checked before torque is enabled."""
RATE = 100.0
"""Control rate [Hz] if the parameter file sets none."""
APPROACH_TIME, SETTLING_TIME, READING_TIME = 1.5, 0.5, 0.3
"""Duration [s] of an approach, of the rest after it, and of the readings that are averaged."""
MIN_MOVE_TIME = 0.5
"""Shortest duration [s] of a motion between two poses."""
MAX_SPREAD = 0.01
"""Largest difference [rad or m] between the positions of a pose."""
MAX_STOP_TIME = 1.0
"""Longest time [s] to wait for the stop before torque is disabled."""
WARNING = """
Torque will be enabled: '{arm}' moves slowly (at most {speed:g} deg/s) through {count} poses, for
about {minutes:.0f} min. All joints move through their whole ranges. The floor and objects around
the arm are not checked. Stay clear of the arm. Torque is disabled at the end (q, Ctrl-C, a trip),
and an unsupported arm falls: support it.
Enable torque?"""


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """Motion to a target (nv,) [rad or m] of a duration [s]; ``side`` of a measured approach.

    ``side`` is the direction -1 or 1 in which all joints approach; 0 if nothing is measured.
    """

    target: Vector
    duration: float
    side: float = 0.0


def run(arguments: Sequence[str]) -> int:
    """Measure the poses and write the calibrated URDF; return 0 if it is written, else 1."""
    args = command_parser().parse_args(arguments)
    require_terminal("calibrate-gravity")
    arm = hardware_options.arm_with_hardware(args)
    speed = pi / 180 * check_float("--speed", args.speed, above=0, upper=MAX_SPEED)
    count = check_int("--poses", int(args.poses), lower=3)
    if args.output.is_dir() or not args.output.absolute().parent.is_dir():
        raise ConfigError(f"--output = {args.output}; expected a file in a folder that exists")
    file = parameter_file(args.arm)
    node = node_parameters(file, "hardware") if file else {}
    position = node.get("command_interface") == "position" or args.stiffness is not None
    controller = build_controller(arm, "position" if position else None, file, period=None)
    period = 1 / float(node.get("update_rate", RATE))
    printed = SimpleNamespace(warning=lambda text: print(f"\r\x1b[K{text}", flush=True))
    events = Events(Throttle(printed).warn)
    driver = hardware_options.build_motor_driver(
        args, arm, interface=controller.interface, period=period, events=events
    )
    if not check_health(arm, driver.bus, CHECK_DURATION, driver.safety.limit_recovery_margin):
        print("torque was not enabled: the check found problems")
        return 1
    start = _measured_positions(driver)
    with waiting("choosing poses without self-collision"):
        here = arm.with_initial(np.clip(start, arm.lower, arm.upper))
        poses = choose_poses(here, count, args.seed)
        legs = tuple(plan_legs(here, poses, speed))
        warm_up_controller(controller)
    if args.output.exists() and not confirm(f"{args.output} exists. Overwrite it?"):
        print("nothing was changed")
        return 1
    minutes = sum(leg.duration + SETTLING_TIME for leg in legs) / 60
    text = WARNING.format(arm=arm.name, speed=args.speed, count=count, minutes=max(minutes, 1))
    if not confirm(text):
        print("torque was not enabled: nothing was changed")
        return 1
    if np.abs(_measured_positions(driver) - start).max() > MOVED_THRESHOLD:
        print("torque was not enabled: the arm moved during the question; start again")
        return 1
    session = _Session(driver, controller, events, period, args.stiffness)
    measured, trips = session.run(legs)
    if trips or len(measured) < 2 * count:
        print("stopped: nothing is written", *trips, sep="\n  ")
        return 1
    fit = calibrate_gravity(arm, measured)
    print_fit(fit, args.stiffness)
    urdf = identified_urdf(
        arm,
        fit.parameters,
        deviations=fit.deviation,
        date=datetime.date.today(),
        sources=[f"{count} static poses"],
    )
    with output_file(args.output) as target:
        target.write_text(urdf, encoding="utf-8")
    print(f"{args.output} is written")
    return 0


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = hardware_options.make_parser("calibrate-gravity", __doc__)
    hardware_options.add_arm(parser)
    add = parser.add_argument
    add("--output", type=path_argument, required=True, metavar="FILE", help="calibrated URDF")
    text = f"number of poses, each approached from both sides (default: {COUNT})"
    add(
        "--poses",
        type=Number("--poses", 3, 100, whole=True),
        default=COUNT,
        metavar="COUNT",
        help=text,
    )
    number = Number("--speed", 0, MAX_NUMBER, "deg/s")
    text = f"speed between poses, at most {MAX_SPEED:g} [deg/s] (default: {SPEED:g})"
    add("--speed", type=number, default=SPEED, metavar="SPEED", help=text)
    number = Number("--stiffness", 0, MAX_NUMBER, "N·m/rad")
    text = (
        "stiffness of the position servos; efforts are then their position errors"
        " [N·m/rad] (default: measured efforts)"
    )
    add("--stiffness", type=number, metavar="STIFFNESS", help=text)
    add(
        "--seed",
        type=seed("--seed"),
        default=0,
        metavar="SEED",
        help="seed of the poses (default: 0)",
    )
    return parser


def plan_legs(arm: ArmModel, poses: Matrix, speed: float) -> Iterator[Leg]:
    """Yield the motions from the initial configuration through the poses and back.

    Each pose q is approached from q - δ and from q + δ. Motions between poses whose straight
    joint-space path collides lead over the initial configuration.
    """
    delta, start = approach_distance(arm), np.array(arm.configuration("initial"))
    collision, at = SelfCollision(arm, CLEARANCE, start), start
    for q in poses:
        low = q - delta
        if at is not start and not path_is_free(collision, at, low, CLEARANCE):
            yield _move(at, start, speed)
            at = start
        yield _move(at, low, speed)
        yield Leg(q, APPROACH_TIME, 1.0)
        yield _move(q, q + delta, speed)
        yield Leg(q, APPROACH_TIME, -1.0)
        yield _move(q, low, speed)
        at = low
    yield _move(at, start, speed)


def _move(begin: Vector, end: Vector, speed: float) -> Leg:
    """Return a quintic motion whose largest speed is 15/8 |Δq| / T."""
    return Leg(end, max(MIN_MOVE_TIME, 15 / 8 * float(np.abs(end - begin).max()) / speed))


class _Session:
    """Moves an arm of motors through legs and measures static poses."""

    def __init__(
        self,
        driver: MotorBusDriver,
        controller: Controller,
        events: Events,
        period: float,
        stiffness: float | None,
    ) -> None:
        self._driver, self._period, self._stiffness = driver, period, stiffness
        self._controller, self._events = controller, events
        self._poses: list[StaticPose] = []
        self._trips: list[str] = []

    def run(self, legs: Sequence[Leg]) -> tuple[list[StaticPose], list[str]]:
        """Enable torque, move, disable torque; return the poses and the trips."""
        driver = self._driver
        with catch_stop_signals() as stopped:
            driver.configure()
            try:
                self._loop = ControlLoop(driver, self._controller, self._events)
                self._pacer = Pacer(self._period)
                for _ in range(3):
                    self._loop.step()
                driver.activate()
                print("q or Ctrl-C: disable torque")
                with Keyboard() as keys, StatusLine() as line:
                    self._keys, self._line, self._stopped = keys, line, stopped
                    self._follow(legs)
                    line.end(f"{len(self._poses)} efforts measured")
                until = time.monotonic() + MAX_STOP_TIME
                self._loop.request_stop()
                while driver.status.torque_enabled and time.monotonic() < until:
                    self._loop.step()
                    if np.nanmax(np.abs(driver.feedback.v)) < REST_VELOCITY:
                        break
                    self._pacer.wait()
                self._trips = self._trips or latched_trips(driver)
            finally:
                disable_torque(driver)
        return self._poses, self._trips

    def _follow(self, legs: Sequence[Leg]) -> None:
        """Run all legs until one of them is interrupted."""
        if not self._run_for(SETTLING_TIME, "torque enabled"):
            return
        begun = self._loop.restart_count
        total = sum(leg.side != 0 for leg in legs)
        for leg in legs:
            text = f"pose {len(self._poses) + 1} of {total}" if leg.side else "moving"
            state, reference = self._loop.present()
            self._loop.follow(_trajectory(self._loop.arm, leg, reference.q, state.time))
            rest = SETTLING_TIME if leg.side else 0.0
            if not self._run_for(leg.duration + rest, text):
                return
            if leg.side and not self._measure(leg, text):
                return
            if self._loop.restart_count != begun:
                self._trips = ["the control loop restarted during the motion"]
                return

    def _measure(self, leg: Leg, text: str) -> bool:
        """Append the mean of the readings; return False if the run was interrupted."""
        readings: list[tuple[Vector, Vector]] = []
        if not self._run_for(READING_TIME, text, readings):
            return False
        q, effort = (np.array(values) for values in zip(*readings, strict=True))
        if np.ptp(q, axis=0).max() > MAX_SPREAD:
            self._trips = [f"{text}: positions differ by {np.ptp(q, axis=0).max():.3g} at rest"]
            return False
        if not np.isfinite(effort).all():
            raise InvalidValue(
                "efforts = not measured by these motors; expected numbers; set --stiffness"
            )
        q = q.mean(axis=0)
        turns = whole_turns(self._loop.arm, q, leg.target)
        side = np.full(q.size, leg.side)
        self._poses.append(StaticPose(q + turns, effort.mean(axis=0), side))
        return True

    def _run_for(
        self, duration: float, text: str, readings: list[tuple[Vector, Vector]] | None = None
    ) -> bool:
        """Run control cycles; return False after a stop key, a signal or a trip."""
        end = time.monotonic() + duration
        while time.monotonic() < end:
            if self._stopped() or self._keys.latest_key() in (QUIT, GONE):
                return False
            self._loop.step()
            latest = self._loop.latest
            if readings is not None and latest is not None:
                state, _, command = latest
                effort = state.tau
                if self._stiffness is not None:
                    effort = self._stiffness * (command.value - state.q)
                readings.append((state.q, effort))
            self._line.show(f"{self._driver.status.value}  {text}")
            self._trips = latched_trips(self._driver)
            if self._trips:
                return False
            self._pacer.wait()
        return True


def _trajectory(arm: ArmModel, leg: Leg, q: Vector, now: float) -> JointTrajectory:
    """Return the quintic motion from rest at ``q`` to the leg's target."""
    zero, begin = as_readonly(np.zeros(arm.nv)), now + 0.02
    target = as_readonly(leg.target + whole_turns(arm, leg.target, q))
    motion = JointTrajectory(
        (
            Waypoint(begin, as_readonly(q), zero, zero),
            Waypoint(begin + leg.duration, target, zero, zero),
        )
    )
    motion.check(arm)
    return motion


def print_fit(fit: GravityFit, stiffness: float | None) -> None:
    """Print the errors of the gravity torques and the friction of each joint."""
    table = Table(title="Gravity torques within the position limits", title_justify="left")
    for head in ("joint", "error before", "error after", "Coulomb friction", "effort offset"):
        table.add_column(head, justify="left" if head == "joint" else "right")
    values = (fit.effort_error_before, fit.effort_error, fit.coulomb, fit.offset)
    for i, joint in enumerate(fit.arm.joints):
        unit = "N" if joint.kind == "prismatic" else "N·m"
        table.add_row(joint.name, *(f"{float(value[i]):.3g} {unit}" for value in values))
    Console().print(table)
    print(f"condition number of the poses: {fit.condition:.1f}")
    if stiffness is not None:
        worst = 1e3 * float(fit.sag_before(stiffness).max()), 1e3 * float(fit.sag(stiffness).max())
        print(f"largest sag: {worst[0]:.1f} mrad before, {worst[1]:.1f} mrad expected after")


def _measured_positions(driver: MotorBusDriver) -> Vector:
    """Return the measured positions (nv,) [rad or m]; raise InvalidValue without feedback."""
    driver.configure()
    try:
        q = np.array(driver.read().q)
    finally:
        driver.close()
    if not np.isfinite(q).all():
        missing = [n for n, x in zip(driver.arm.joint_names, q, strict=True) if not np.isfinite(x)]
        raise InvalidValue(
            f"positions of joints {', '.join(missing)} = not measured; expected feedback"
        )
    return q
