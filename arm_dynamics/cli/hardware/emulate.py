"""Emulate the motors of an arm at a pseudo terminal; the simulated arm moves with them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from math import radians

import numpy as np

from arm_dynamics.cli import arm_options
from arm_dynamics.cli.hardware import options as hardware_options
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.number_option import Number
from arm_dynamics.core.signals import STOP_SIGNALS, ShutdownFlag, handling
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.hardware.emulation.arm_hardware import (
    different_arm,
    emulated_arm,
    emulated_motors,
)
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.emulation.serial_terminal import SerialTerminal
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import read_hardware_info

BAUD = 1e6
"""Rate of the simulated wire [bit/s] if the URDF names none."""
HINT = (
    "hold and Enter: support the arm; JOINT DEGREES: guide a joint (mm if prismatic); Ctrl-C: end"
)


def run(arguments: Sequence[str]) -> int:
    """Serve the motors until Ctrl-C or ``quit``; return 0."""
    args = command_parser().parse_args(arguments)
    link = args.link
    if link is not None and ((link.exists() and not link.is_symlink()) or link.is_dir()):
        raise ConfigError(f"--link = {link}; expected a new path or a symbolic link")
    arm = hardware_options.arm_with_hardware(args)
    driver = hardware_options.driver_name(args, arm)
    body = build_emulated_arm(args, arm, driver)
    count, settings = len(body.motors.shafts), read_hardware_info(arm).settings
    stop = ShutdownFlag()
    with handling(stop, *STOP_SIGNALS):
        baud = float(settings.get("baud", settings.get("bitrate", BAUD)))
        terminal = SerialTerminal(body.motors, body, link, baud)
        try:
            port = str(link or terminal.path)
            more = " --set interface=slcan" if driver == "mit_can" else ""
            print(f"{count} motors of '{arm.name}' ({driver}) at {port}")
            print(f"next: arm-dynamics hardware check {args.arm} --port {port}{more}")
            print(HINT, flush=True)
            _serve(terminal, body, stop)
        finally:
            terminal.unplug()
        print("stopped", flush=True)
    return 0


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics hardware emulate", description=__doc__)
    hardware_options.add_arm(parser)
    arm_options.add_options(parser, only=("configuration",))
    add = parser.add_argument
    text = "symbolic link to the pseudo terminal (default: none)"
    add("--link", type=arm_options.path_argument, metavar="FILE", help=text)
    add("--driver", metavar="NAME", help="driver of the motors (default: the URDF's)")
    text = "point mass at the tool that the URDF lacks [kg] (default: 0)"
    add("--payload", type=Number("--payload", 0, 1e3, "kg"), default=0.0, metavar="KG", help=text)
    text = "factor on the Coulomb friction of the motors (default: 1)"
    add("--friction", type=Number("--friction", 0, 1e3), default=1.0, metavar="FACTOR", help=text)
    return parser


def build_emulated_arm(args: argparse.Namespace, arm: ArmModel, driver: str) -> EmulatedArm:
    """Return the simulated arm of the options with its motors, supported until these hold it."""
    motors = emulated_motors(arm, driver)
    with waiting(f"compiling the simulated arm {arm.name}"):
        simulated = different_arm(arm, args.payload, args.friction)
        return emulated_arm(simulated, motors, arm.configuration("initial"))


def _serve(terminal: SerialTerminal, body: EmulatedArm, stop: ShutdownFlag) -> None:
    """Serve until the flag is set or ``quit`` is typed; print each change of the torque."""
    enabled, motors, typed = 0, terminal.motors, ""
    inputs: list[int] = [] if sys.stdin is None or sys.stdin.closed else [sys.stdin.fileno()]
    while not stop.is_set():
        for end in terminal.serve(*inputs):
            received = os.read(end, 4096).decode(errors="replace")
            if not received:
                inputs = []  # input has ended: Ctrl-C or a signal ends the emulation
            *lines, typed = (typed + received).split("\n")
            for line in lines:
                if line.strip() == "quit":
                    return
                _obey(line.strip(), body)
        count = sum(motors.torque_is_on(shaft.id) for shaft in motors.shafts)
        if count != enabled:
            enabled = count
            print(f"torque enabled: {count} of {len(motors.shafts)} motors", flush=True)


def _obey(line: str, body: EmulatedArm) -> None:
    """Execute a line that the user has typed."""
    joint, _, number = line.partition(" ")
    if line == "hold":
        body.hold_at(body.state.q)
    elif joint in body.plant.arm.joint_names:
        try:
            body.hold_at(_guided(body, joint, float(number)))
        except (InvalidValue, ValueError) as error:
            print(error, flush=True)
            return
    else:
        if line:
            print(f"'{line}' is unknown; {HINT}", flush=True)
        return
    positions = ", ".join(f"{q:.3f}" for q in np.asarray(body.state.q).tolist())
    print(f"supported at {positions} until all motors apply torque", flush=True)


def _guided(body: EmulatedArm, joint: str, position: float) -> Vector:
    """Return the configuration (nv,) with a joint at ``position`` [deg or mm], moved by a hand.

    Raises InvalidValue outside of the joint's range, and while a motor applies torque.
    """
    arm, motors = body.plant.arm, body.motors
    if any(motors.torque_is_on(shaft.id) for shaft in motors.shafts):
        raise InvalidValue("torque = enabled; expected disabled, so that a hand can guide the arm")
    i, q = arm.index(joint), np.clip(body.state.q, arm.lower, arm.upper)
    q[i] = (radians(1.0) if arm.joints[i].unit == "rad" else 1e-3) * position
    return arm.check_position("position", q)
