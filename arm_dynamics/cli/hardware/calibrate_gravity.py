"""Measure the efforts of an arm at static poses and calibrate its masses, friction and offsets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from math import pi
from pathlib import Path

import numpy as np

from arm_dynamics.cli import arm_options
from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.hardware import options as hardware_options
from arm_dynamics.cli.hardware.jog import MOVED_THRESHOLD
from arm_dynamics.cli.hardware.keyboard import confirm, require_terminal
from arm_dynamics.cli.hardware.torque_session import (
    confirm_torque,
    motors_are_healthy,
    printed_events,
    torque_session,
)
from arm_dynamics.cli.identification_tables import print_report
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.control.config import build_controller, node_parameters, parameter_file
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector, check_float, check_int
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.number_option import MAX_NUMBER, Number, seed
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.identification.gravity.gravity_calibration import (
    StaticPose,
    calibrate_gravity,
    least_pose_count,
)
from arm_dynamics.identification.gravity.pose_measurement import (
    SETTLING_TIME,
    Leg,
    measure_poses,
    plan_legs,
)
from arm_dynamics.identification.gravity.pose_selection import choose_poses
from arm_dynamics.identification.gravity.recorded_poses import write_poses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.equations_of_motion import accepted_interfaces
from arm_dynamics.simulation.simulation import Simulation

SIMULATED = "simulated"
"""Driver of a simulated arm, without motors: no torque is enabled."""
MAX_SPEED, SPEED = 90.0, 20.0
"""Limit and default of --speed [deg/s]."""
COUNT = 12
"""Default number of poses."""
RATE = 100.0
"""Control rate [Hz] of motors if the parameter file sets none."""
SIMULATED_RATE = 500.0
"""Control rate [Hz] of a simulated arm likewise."""
ENABLE_TIME = 0.5
"""Time [s] from torque on to the measurement: the loop restarts where torque came on."""
WARNING = """
Torque will be enabled: '{arm}' moves slowly (at most {speed:g} deg/s) through {count} poses, for
about {minutes:.0f} min. All joints move through their whole ranges. The floor and objects around
the arm are checked as far as --scene contains them. Stay clear of the arm. Torque is disabled at
the end (q, Ctrl-C, a trip), and an unsupported arm falls: support it.
Enable torque?"""


def run(arguments: Sequence[str]) -> int:
    """Measure the poses and write the calibrated URDF; return 0 if it is written, else 1."""
    args = command_parser().parse_args(arguments)
    scene = arm_options.scene_of(args)
    simulated = args.driver == SIMULATED
    arm = _simulated_arm(args) if simulated else _physical_arm(args)
    speed = pi / 180 * check_float("--speed", args.speed, above=0, upper=MAX_SPEED)
    least = least_pose_count(arm)
    count = check_int(f"--poses of arm '{arm.name}'", int(args.poses), lower=least)
    hardware_options.require_output_folder(args.output)
    file = parameter_file(args.arm)
    node = node_parameters(file, "hardware") if file else {}
    position = node.get("command_interface") == "position" and not simulated
    position = position or args.stiffness is not None
    controller = build_controller(arm, "position" if position else None, file, period=None)
    period = 1 / float(node.get("update_rate", SIMULATED_RATE if simulated else RATE))

    def legs_from(start: Vector) -> tuple[Leg, ...]:
        with waiting("choosing poses without self-collision"):
            here = arm.with_initial(np.clip(start, arm.lower, arm.upper))
            legs = plan_legs(here, choose_poses(here, count, args.seed, scene=scene), speed, scene)
            warm_up_controller(controller)
        return legs

    measure = _simulated_poses if simulated else _measured_poses
    measured = measure(args, arm, controller, period, legs_from)
    if len(measured) < 2 * count:
        return 1
    sources = [f"{count} static poses{' of a simulated arm' if simulated else ''}"]
    _write_calibration(args, arm, measured, sources)
    return 0


def _simulated_arm(args: argparse.Namespace) -> ArmModel:
    """Return the arm of --driver simulated, which accepts no options of motors."""
    given = {"--stiffness": args.stiffness, "--port": args.port, "--baud": args.baud}
    given["--set"] = args.set or None
    for option, value in given.items():
        if value is not None:
            raise ConfigError(f"{option} = {value}; expected without --driver {SIMULATED}")
    return arm_options.build_arm(args)


def _physical_arm(args: argparse.Namespace) -> ArmModel:
    """Return the arm with its motors; a person at a terminal has to confirm its motion."""
    require_terminal("calibrate-gravity")
    if args.payload:
        raise ConfigError(
            f"--payload = {args.payload:g} kg; expected with --driver {SIMULATED} only"
        )
    return hardware_options.arm_with_hardware(args)


def _write_calibration(
    args: argparse.Namespace,
    arm: ArmModel,
    measured: Sequence[StaticPose],
    sources: Sequence[str],
) -> None:
    """Write the measured poses, print the fit to them, and write the calibrated URDF."""
    table = _pose_table(args.output)
    write_poses(arm, measured, table)
    print(f"{table} is written: arm-dynamics identify gravity {args.arm} {table} reads it")
    fit = calibrate_gravity(arm, measured, sources)
    print_report(fit.report(args.stiffness))
    fit.write_urdf(args.output)
    print(f"{args.output} is written")


PlanLegs = Callable[[Vector], tuple[Leg, ...]]
"""Measured positions (nv,) -> motions through the poses."""


def _simulated_poses(
    args: argparse.Namespace,
    arm: ArmModel,
    controller: Controller,
    period: float,
    legs_from: PlanLegs,
) -> list[StaticPose]:
    """Return the poses of a simulated arm with the payload of --payload, as fast as possible."""
    accepted_interfaces(arm, controller.interface)
    if not _may_write(args.output):
        return []
    legs = legs_from(arm.configuration("initial"))
    dt = period / np.ceil(period / arm_options.DT)
    actual = arm_options.with_payload(arm, args)
    simulation = Simulation(actual, dt=float(dt), period=period, nominal=arm)
    scene, driver = arm_options.scene_of(args), SimulationDriver(arm, simulation)
    loop = ControlLoop(driver, controller, printed_events(), scene=scene)
    with waiting(f"simulating {arm.name} with a payload of {args.payload:g} kg"):
        return measure_poses(loop, legs)


def _measured_poses(
    args: argparse.Namespace,
    arm: ArmModel,
    controller: Controller,
    period: float,
    legs_from: PlanLegs,
) -> list[StaticPose]:
    """Return the poses of a physical arm, after a confirmation; fewer if it was stopped."""
    events = printed_events()
    driver = hardware_options.build_motor_driver(
        args, arm, interface=controller.interface, period=period, events=events
    )
    if not motors_are_healthy(driver):
        return []
    start = _measured_positions(driver)
    legs = legs_from(start)
    if not _may_write(args.output):
        return []
    count = sum(leg.side != 0 for leg in legs) // 2
    minutes = sum(leg.duration + SETTLING_TIME for leg in legs) / 60
    text = WARNING.format(arm=arm.name, speed=args.speed, count=count, minutes=max(minutes, 1))
    if not confirm_torque(text):
        return []
    if np.abs(_measured_positions(driver) - start).max() > MOVED_THRESHOLD:
        print("torque was not enabled: the arm moved during the question; start again")
        return []
    loop = ControlLoop(driver, controller, events, scene=arm_options.scene_of(args))
    measured: list[StaticPose] = []
    with torque_session({"": loop}, loop.step, period) as session:

        def step(text: str) -> bool:
            return session.step(lambda: f"{driver.status.value}  {text}")

        if all(step("torque enabled") for _ in range(round(ENABLE_TIME / period))):
            measured = measure_poses(loop, legs, step, stiffness=args.stiffness)
        session.line.end(f"{len(measured)} efforts measured")
    if session.trips or len(measured) < 2 * count:
        print("stopped: nothing is written", *session.trips, sep="\n  ")
        return []
    return measured


def _pose_table(output: Path) -> Path:
    """Return the path of the measured poses, next to the URDF."""
    return output.with_suffix(".poses.csv")


def _may_write(output: Path) -> bool:
    """Return whether the outputs do not exist, or the user allows to overwrite them."""
    for path in (output, _pose_table(output)):
        if path.exists():
            if not sys.stdin.isatty():
                raise ConfigError(
                    f"--output = {output}: {path} exists; expected a new file, or a terminal, where"
                    " the command asks before it overwrites"
                )
            if not confirm(f"{path} exists. Overwrite it?"):
                print("nothing was changed")
                return False
    return True


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = hardware_options.make_parser("calibrate-gravity", __doc__, others=(SIMULATED,))
    hardware_options.add_arm(parser)
    kg = Number("--payload", 0, MAX_NUMBER, "kg")
    text = f"point mass at the tool of the arm of --driver {SIMULATED} [kg] (default: 0)"
    parser.add_argument("--payload", type=kg, default=0.0, metavar="KG", help=text)
    arm_options.add_scene(parser)
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
