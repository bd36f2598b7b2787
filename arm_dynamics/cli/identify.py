"""Identify the dynamic parameters of an arm from recorded motion, and write its URDF.

Without a sub-command the content of the recordings selects one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from arm_dynamics.cli.arm_options import add_arm, build_arm, path_argument, require_new_file
from arm_dynamics.cli.identification_tables import print_report
from arm_dynamics.cli.motion_options import (
    RECORDING,
    add_currents_option,
    add_cutoff_option,
    add_motion_options,
    add_servo_option,
    has_loads,
    read_motions,
)
from arm_dynamics.cli.terminal import waiting, waiting_stages
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.number_option import MAX_NUMBER, Number
from arm_dynamics.core.requirements import require_matplotlib
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.identification import (
    calibrate_gravity,
    identify,
    identify_payload,
    identify_servos,
)
from arm_dynamics.identification.gravity.recorded_poses import (
    different_poses,
    is_pose_table,
    read_poses,
    recorded_poses,
)
from arm_dynamics.identification.results.identification_result import (
    IdentificationResult,
    PredictedResult,
    Report,
)
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording import MotionData

COMMANDS = {
    "efforts": "bodies, friction and rotor inertia from joint efforts or motor currents",
    "servos": "position servos from positions and target positions",
    "gravity": "masses, Coulomb friction and offsets from poses at which the arm rests",
    "payload": "mass, center of mass and inertia of a payload at the tool",
}


def command_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of ``arm-dynamics identify``, or of a sub-command."""
    listed = "; ".join(f"{name}: {text}" for name, text in COMMANDS.items())
    parser = SuggestingParser(
        prog=" ".join(filter(None, ("arm-dynamics identify", command))),
        description=__doc__ if command is None else f"Identify {COMMANDS[command]}.",
        epilog=f"sub-commands with further options: {listed}" if command is None else None,
    )
    add_arm(parser)
    add = parser.add_argument
    add("recordings", type=path_argument, nargs="+", metavar="RECORDING", help=RECORDING)
    add_motion_options(parser)
    if command != "gravity":
        text = "recorded motion that checks the result; repeat the option for each (default: the"
        text += " last 30 %% of each RECORDING, which then are not fitted)"
        _add_recordings(parser, "--held-out", text)
    if command in ("efforts", "payload"):
        text = "recorded motion without the payload, to which the arm is fitted; repeat for each"
        _add_recordings(parser, "--without", text)
        add_cutoff_option(parser)
    if command != "servos":
        loads = parser.add_mutually_exclusive_group()
        add_currents_option(loads)
    if command == "efforts":
        _add_effort_options(parser)
    elif command == "servos":
        add_servo_option(parser)
    elif command == "gravity":
        text = "stiffness of position servos, whose efforts are stiffness times target minus"
        text += " measured position [N·m/rad] (default: recorded efforts)"
        number = Number("--stiffness", 0, MAX_NUMBER, "N·m/rad")
        loads.add_argument("--stiffness", type=number, metavar="STIFFNESS", help=text)
    add("--output", type=path_argument, metavar="FILE", help="URDF of the identified arm")
    text = "tolerances for the option --tolerance-file of montecarlo and tune (YAML)"
    add("--tolerances", type=path_argument, metavar="FILE", help=text)
    if command not in ("gravity", "payload"):
        text = "report with figures (HTML)"
        add("--report", type=path_argument, metavar="FILE", help=text)
    return parser


def _add_recordings(parser: argparse.ArgumentParser, option: str, text: str) -> None:
    parser.add_argument(
        option, type=path_argument, action="append", default=[], metavar="RECORDING", help=text
    )


def _add_effort_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    text = "known mass of the payload in the recordings [kg], for drive gains from currents; the"
    text += " arm is fitted to the recordings --without it"
    mass = Number("--payload-mass", 1e-3, 1e4, "kg")
    group.add_argument("--payload-mass", type=mass, metavar="KG", help=text)
    text = "motor that several joints turn: factors of their velocities, for example J5=1,J6=1;"
    text += " repeat the option for each motor"
    group.add_argument(
        "--coupled", type=coupled_motor, action="append", default=[],
        metavar="JOINT=FACTOR,...", help=text,
    )  # fmt: skip
    text = "regression of the efforts only, without simulation of the motions"
    parser.add_argument("--no-simulation", action="store_true", help=text)


def run(arguments: Sequence[str]) -> int:
    """Fit the recordings, print the report and write the files.

    Returns
    -------
    int
        0; 1 if the fit does not predict the held-out motion, which the URDF then states.

    """
    words = list(arguments)
    command = words.pop(0) if words and words[0] in COMMANDS else None
    args = command_parser(command).parse_args(words)
    if command is None and all(map(is_pose_table, args.recordings)):
        command = _selected("gravity", "static poses")
        args = command_parser(command).parse_args(words)
    for option in ("output", "tolerances", "report"):
        require_new_file(f"--{option}", getattr(args, option, None))
    if getattr(args, "report", None) is not None:
        require_matplotlib("--report")
    arm = build_arm(args)
    if command == "gravity":
        return _gravity(arm, args)
    with waiting(f"reading {len(args.recordings) + len(args.held_out)} recordings"):
        motions = read_motions(arm, args, args.recordings)
        held_out = read_motions(arm, args, args.held_out)
        without = read_motions(arm, args, getattr(args, "without", []))
    if command is None and has_loads(motions):
        command = _selected("efforts", "joint efforts or motor currents")
    command = command or _selected("servos", "no joint efforts")
    if command == "efforts":
        return _efforts(arm, args, motions, held_out, without)
    if command == "servos":
        with waiting("fitting the positions"):
            result = identify_servos(arm, motions, held_out, servos=getattr(args, "servo", ()))
        return _finish(result, result.report(), args)
    with waiting("fitting the payload"):
        fit = identify_payload(arm, motions, held_out, without=without, cutoff=args.cutoff)
    return _finish(fit, fit.report(), args)


def _selected(command: str, content: str) -> str:
    """Return the sub-command that the ``content`` of the recordings selects; print it."""
    print(f"{content} in the recordings: arm-dynamics identify {command}")
    return command


def _efforts(
    arm: ArmModel,
    args: argparse.Namespace,
    motions: list[MotionData],
    held_out: list[MotionData],
    without: list[MotionData],
) -> int:
    """Fit the efforts; with a known payload the recordings without it are the training data."""
    mass = getattr(args, "payload_mass", None)
    if (mass is None) != (not without):
        raise ConfigError(
            "--payload-mass KG and recordings --without the payload are required together"
        )
    training, loaded = (motions, []) if mass is None else (without, motions)
    with waiting_stages() as begin:
        result = identify(
            arm, training, held_out, cutoff=getattr(args, "cutoff", None), loaded=loaded,
            payload_mass=mass, coupled=getattr(args, "coupled", ()),
            simulate=not getattr(args, "no_simulation", False), stage=begin,
        )  # fmt: skip
    return _finish(result, result.report(), args)


def _gravity(arm: ArmModel, args: argparse.Namespace) -> int:
    """Calibrate gravity from tables of poses, and from recordings in which the arm rests."""
    groups = []
    for path in args.recordings:
        if is_pose_table(path):
            poses = read_poses(arm, path, currents=args.currents, stiffness=args.stiffness)
        else:
            with waiting(f"reading {path}"):
                (motion,) = read_motions(arm, args, [path])
                print(*motion.notes, sep="\n", end="\n" if motion.notes else "")
                poses = list(recorded_poses(arm, motion, stiffness=args.stiffness))
        groups.append((str(path), poses))
    sources = [f"{len(poses)} static poses of {source}" for source, poses in groups]
    with waiting("fitting the poses"):
        fit = calibrate_gravity(arm, different_poses(groups), sources)
    return _finish(fit, fit.report(args.stiffness), args)


def _finish(result: IdentificationResult, report: Report, args: argparse.Namespace) -> int:
    """Print the report, write the files of the options, and return the exit code."""
    print_report(report)
    if args.output is not None:
        for fault in result.write_urdf(args.output):
            print(f"{args.output}: {fault}", file=sys.stderr)
    if args.tolerances is not None:
        result.write_tolerances(args.tolerances)
    files = [args.output, args.tolerances, getattr(args, "report", None)]
    if files[-1] is not None and isinstance(result, PredictedResult):
        result.write_report(files[-1])
    if any(files):
        print(f"written: {', '.join(str(file) for file in files if file)}")
    return int(not result.is_usable)


def coupled_motor(text: str) -> dict[str, float]:
    """Return the factors of the joint velocities of a motor, "J5=1,J6=1", by joint name."""
    factors: dict[str, float] = {}
    for word in text.split(","):
        name, _, factor = (x.strip() for x in word.rpartition("="))
        if not name or name in factors:
            raise ConfigError(
                f"--coupled = {text}; expected JOINT=FACTOR of each joint, for example J5=1,J6=1"
            )
        factors[name] = Number(f"--coupled {name}", -1e3, 1e3)(factor)
    return factors
