"""Measure the efforts of an arm at static poses and calibrate its masses, friction and offsets."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence
from math import pi

import numpy as np

from arm_dynamics.cli import hardware_options
from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.hardware_jog import MOVED_THRESHOLD
from arm_dynamics.cli.identification_tables import print_gravity_fit
from arm_dynamics.cli.keyboard import confirm, require_terminal
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.cli.torque_session import (
    confirm_torque,
    motors_are_healthy,
    printed_events,
    torque_session,
)
from arm_dynamics.control.config import build_controller, node_parameters, parameter_file
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.core.arrays import Vector, check_float, check_int
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.files import output_file
from arm_dynamics.core.number_option import MAX_NUMBER, Number, seed
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.identification.gravity_calibration import (
    StaticPose,
    calibrate_gravity,
    least_pose_count,
)
from arm_dynamics.identification.identified_urdf import identified_urdf
from arm_dynamics.identification.pose_measurement import (
    SETTLING_TIME,
    measure_poses,
    plan_legs,
)
from arm_dynamics.identification.pose_selection import choose_poses
from arm_dynamics.identification.recorded_poses import write_poses

MAX_SPEED, SPEED = 90.0, 20.0
"""Limit and default of --speed [deg/s]."""
COUNT = 12
"""Default number of poses."""
RATE = 100.0
"""Control rate [Hz] if the parameter file sets none."""
ENABLE_TIME = 0.5
"""Time [s] from torque on to the measurement: the loop restarts where torque came on."""
WARNING = """
Torque will be enabled: '{arm}' moves slowly (at most {speed:g} deg/s) through {count} poses, for
about {minutes:.0f} min. All joints move through their whole ranges. The floor and objects around
the arm are not checked. Stay clear of the arm. Torque is disabled at the end (q, Ctrl-C, a trip),
and an unsupported arm falls: support it.
Enable torque?"""


def run(arguments: Sequence[str]) -> int:
    """Measure the poses and write the calibrated URDF; return 0 if it is written, else 1."""
    args = command_parser().parse_args(arguments)
    require_terminal("calibrate-gravity")
    arm = hardware_options.arm_with_hardware(args)
    speed = pi / 180 * check_float("--speed", args.speed, above=0, upper=MAX_SPEED)
    least = least_pose_count(arm)
    count = check_int(f"--poses of arm '{arm.name}'", int(args.poses), lower=least)
    hardware_options.require_output_folder(args.output)
    file = parameter_file(args.arm)
    node = node_parameters(file, "hardware") if file else {}
    position = node.get("command_interface") == "position" or args.stiffness is not None
    controller = build_controller(arm, "position" if position else None, file, period=None)
    period = 1 / float(node.get("update_rate", RATE))
    events = printed_events()
    driver = hardware_options.build_motor_driver(
        args, arm, interface=controller.interface, period=period, events=events
    )
    if not motors_are_healthy(driver):
        return 1
    start = _measured_positions(driver)
    with waiting("choosing poses without self-collision"):
        here = arm.with_initial(np.clip(start, arm.lower, arm.upper))
        poses = choose_poses(here, count, args.seed)
        legs = plan_legs(here, poses, speed)
        warm_up_controller(controller)
    table = args.output.with_suffix(".poses.csv")
    for path in (args.output, table):
        if path.exists() and not confirm(f"{path} exists. Overwrite it?"):
            print("nothing was changed")
            return 1
    minutes = sum(leg.duration + SETTLING_TIME for leg in legs) / 60
    text = WARNING.format(arm=arm.name, speed=args.speed, count=count, minutes=max(minutes, 1))
    if not confirm_torque(text):
        return 1
    if np.abs(_measured_positions(driver) - start).max() > MOVED_THRESHOLD:
        print("torque was not enabled: the arm moved during the question; start again")
        return 1
    loop = ControlLoop(driver, controller, events)
    measured: list[StaticPose] = []
    with torque_session(loop, driver, period) as session:

        def step(text: str) -> bool:
            return session.step(lambda: f"{driver.status.value}  {text}")

        if all(step("torque enabled") for _ in range(round(ENABLE_TIME / period))):
            measured = measure_poses(loop, legs, step, stiffness=args.stiffness)
        session.line.end(f"{len(measured)} efforts measured")
    if session.trips or len(measured) < 2 * count:
        print("stopped: nothing is written", *session.trips, sep="\n  ")
        return 1
    write_poses(arm, measured, table)
    print(f"{table} is written: arm-dynamics identify {args.arm} {table} --gravity reads it")
    fit = calibrate_gravity(arm, measured)
    print_gravity_fit(fit, args.stiffness)
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
