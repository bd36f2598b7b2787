"""Identify the dynamic parameters of an arm from recorded motion, and write its URDF."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from arm_dynamics.cli.arm_options import add_arm, build_arm, path_argument, require_new_file
from arm_dynamics.cli.identification_tables import (
    print_gravity_fit,
    print_payload_fit,
    print_summary,
)
from arm_dynamics.cli.motion_options import (
    RECORDING,
    add_motion_options,
    add_servo_option,
    fits_positions,
    read_motions,
)
from arm_dynamics.cli.terminal import waiting, waiting_stages
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.files import output_file
from arm_dynamics.core.number_option import MAX_NUMBER, Number
from arm_dynamics.core.requirements import require_matplotlib
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.identification import (
    calibrate_gravity,
    identify,
    identify_payload,
    identify_servos,
    nominal_parameters,
)
from arm_dynamics.identification.efforts.drive_gain_fit import required_gains, with_efforts
from arm_dynamics.identification.efforts.fit_faults import fit_faults
from arm_dynamics.identification.gravity.gravity_calibration import StaticPose
from arm_dynamics.identification.gravity.recorded_poses import (
    is_pose_table,
    read_poses,
    static_poses,
)
from arm_dynamics.identification.parameters.identified_urdf import NO_DEVIATIONS, identified_urdf
from arm_dynamics.identification.parameters.uncertainty import uncertainty_yaml
from arm_dynamics.identification.results.fit_report import write_fit_report
from arm_dynamics.identification.servos.position_loops import with_servo_gains
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.audit.fault import UrdfRejected
from arm_dynamics.model.audit.proportion import mass_unit_faults
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.xml_source import parse_xml
from arm_dynamics.recording import MotionData
from arm_dynamics.recording.motions.motion_checks import effort_scale_warning


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of ``arm-dynamics identify``."""
    parser = SuggestingParser(prog="arm-dynamics identify", description=__doc__)
    add_arm(parser)
    add = parser.add_argument
    add("recordings", type=path_argument, nargs="+", metavar="RECORDING", help=RECORDING)
    text = "recorded motion that checks the result; repeat the option for each (default: the last"
    text += " 30 %% of each RECORDING, which then are not fitted)"
    add(
        "--held-out", type=path_argument, action="append", default=[], metavar="RECORDING",
        help=text,
    )  # fmt: skip
    text = "calibrate masses, Coulomb friction and offsets from the poses at which the arm rests"
    add("--gravity", action="store_true", help=text)
    text = "stiffness of the position servos; with --gravity, efforts are stiffness times target"
    text += " minus measured position [N·m/rad] (default: recorded efforts)"
    number = Number("--stiffness", 0, MAX_NUMBER, "N·m/rad")
    add("--stiffness", type=number, metavar="STIFFNESS", help=text)
    text = "identify the payload that the tool carries in the recordings; the arm counts as known"
    add("--payload", action="store_true", help=text)
    text = (
        "recorded motion without the payload, to which the arm is fitted first; repeat the option"
    )
    add(
        "--without", type=path_argument, action="append", default=[], metavar="RECORDING",
        help=text + " for each",
    )  # fmt: skip
    text = (
        "known mass of the payload in the recordings [kg], for drive gains from currents; the arm"
    )
    text += " is fitted to the recordings --without it"
    add("--payload-mass", type=Number("--payload-mass", 1e-3, 1e4, "kg"), metavar="KG", help=text)
    add_motion_options(parser)
    add_servo_option(parser)
    text = "motor that several joints turn: factors of their velocities, for example J5=1,J6=1;"
    text += " repeat the option for each motor"
    add(
        "--coupled", type=coupled_motor, action="append", default=[],
        metavar="JOINT=FACTOR,...", help=text,
    )  # fmt: skip
    text = "regression of the efforts only, without simulation of the motions"
    add("--no-simulation", action="store_true", help=text)
    add("--output", type=path_argument, metavar="FILE", help="URDF of the identified arm")
    text = "report with figures (HTML)"
    add("--report", type=path_argument, metavar="FILE", help=text)
    text = "tolerances for the option --tolerance-file of montecarlo and tune (YAML)"
    add("--tolerances", type=path_argument, metavar="FILE", help=text)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Fit the recordings, print the report and write the files.

    Returns
    -------
    int
        0; 1 if the fit does not predict the held-out motion, which the URDF then states.

    """
    args = command_parser().parse_args(arguments)
    for option in ("output", "report", "tolerances"):
        require_new_file(f"--{option}", getattr(args, option))
    if args.gravity and (args.held_out or args.servo or args.report is not None):
        raise ConfigError("--gravity: --held-out or --report or --servo = given; expected none")
    if args.stiffness is not None and (args.currents or not args.gravity):
        raise ConfigError(
            f"--stiffness = {args.stiffness:g} N·m/rad; expected with --gravity, and without"
            " --currents"
        )
    if args.payload and (args.gravity or args.servo or args.report or args.tolerances):
        raise ConfigError("--payload: --gravity, --servo, --report or --tolerances = given;"
                          " expected none")  # fmt: skip
    known = args.payload_mass is not None
    if known and (args.payload or args.gravity or args.servo or not args.without):
        raise ConfigError(
            f"--payload-mass = {args.payload_mass:g} kg; expected with recordings --without the"
            " payload, and without --payload, --gravity and --servo"
        )
    if args.without and not (args.payload or known):
        raise ConfigError("--without = given; expected with --payload or --payload-mass only")
    if args.coupled and (args.gravity or args.payload or known or args.servo):
        raise ConfigError(
            "--coupled = given; expected without --gravity, --payload, --payload-mass and --servo"
        )
    if args.report is not None:
        require_matplotlib("--report")
    arm, is_poor = build_arm(args), False
    if args.gravity:
        written = _calibrate(arm, args)
    elif args.payload:
        written = _payload(arm, args)
    else:
        with waiting(f"reading {len(args.recordings) + len(args.held_out)} recordings"):
            motions = read_motions(arm, args, args.recordings)
            held_out = read_motions(arm, args, args.held_out)
            without = read_motions(arm, args, args.without)
        loaded, motions = (motions, without) if known else ([], motions)
        written, is_poor = _fit(arm, motions, held_out, args, loaded)
    if written:
        print(f"written: {', '.join(map(str, written))}")
    return int(is_poor)


def _fit(
    arm: ArmModel,
    motions: Sequence[MotionData],
    held_out: Sequence[MotionData],
    args: argparse.Namespace,
    loaded: Sequence[MotionData],
) -> tuple[list[Path], bool]:
    """Identify the arm, print the report and write the files of the options.

    Returns
    -------
    tuple of list of Path and bool
        The files, and whether the fit does not predict the held-out motion.

    """
    gains: Vector | None = None
    remarks: list[str] = []
    constants: dict[str, float] = {}
    if fits_positions(args, motions):
        if args.coupled:
            raise ConfigError("--coupled = given; expected with recordings of efforts")
        with waiting("fitting the positions"):
            servos = identify_servos(arm, motions, held_out, servos=args.servo)
        summary = servos.summary(_today())
        changed, values, deviations = servos.identified, servos.parameters, servos.deviation
        gains = servos.loop_gain
        constants = {one.name: one.deviation for one in servos.quantities if one.is_determined}
    else:
        with waiting_stages() as begin:
            result = identify(
                arm, motions, held_out, cutoff=args.cutoff, loaded=loaded,
                payload_mass=args.payload_mass, coupled=args.coupled,
                simulate=not args.no_simulation, stage=begin,
            )  # fmt: skip
        summary = result.summary(_today())
        changed, values, deviations = result.identified, result.fit.simulated, result.fit.deviation
        remarks = result.fit.friction.coupled.notes(arm.joint_names)
        constants = result.constant_deviations
    print_summary(summary)
    with waiting("checking the fit"):
        poor = fit_faults(arm, motions, summary, args.cutoff)
    print(*poor, sep="\n", end="\n" if poor else "")
    if gains is None:
        curves = (
            np.column_stack([getattr(x, key) for x in summary.joints])
            for key in ("measured", "before")
        )
        warning = effort_scale_warning(arm.joint_names, *curves)
        if warning:
            print(warning)
    written = _write(
        changed, values, deviations, summary.sources, args, gains, [*remarks, *poor], constants,
        nominal_parameters(arm),
    )  # fmt: skip
    if args.report is not None:
        written.append(write_fit_report(summary, args.report))
    return written, bool(poor)


def coupled_motor(text: str) -> dict[str, float]:
    """Return the factors of the joint velocities of a motor, "J5=1,J6=1", by joint name."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, factor = (word.strip() for word in part.rpartition("="))
        if not name or name in found:
            raise ConfigError(
                f"--coupled = {text}; expected JOINT=FACTOR of each joint, for example J5=1,J6=1"
            )
        found[name] = Number(f"--coupled {name}", -1e3, 1e3)(factor)
    return found


def _calibrate(arm: ArmModel, args: argparse.Namespace) -> list[Path]:
    """Calibrate gravity, print the result and write the files of the options; return them."""
    poses: list[StaticPose] = []
    sources = []
    earlier: dict[bytes, Path] = {}  # positions and efforts of a pose
    for path in args.recordings:
        if is_pose_table(path):
            found = read_poses(arm, path, currents=args.currents, stiffness=args.stiffness)
        else:
            with waiting(f"reading {path}"):
                (motion,) = read_motions(arm, args, [path])
                print(*motion.notes, sep="\n", end="\n" if motion.notes else "")
                if args.stiffness is None and motion.effort is None and motion.current is not None:
                    motion = with_efforts(motion, required_gains(arm, motion.source))
                found = list(static_poses(motion, stiffness=args.stiffness))
        values = [pose.q.tobytes() + pose.effort.tobytes() for pose in found]
        repeated = [earlier[key] for key in values if key in earlier]
        if repeated:
            raise InvalidValue(
                f"{path}: {len(repeated)} poses = those of {repeated[0]}; expected other"
                " measurements, because repeated ones count twice; leave one out"
            )
        earlier |= dict.fromkeys(values, path)
        poses += found
        sources.append(f"{len(found)} static poses of {path}")
    with waiting("fitting the poses"):
        fit = calibrate_gravity(arm, poses)
    print_gravity_fit(fit, args.stiffness)
    return _write(arm, fit.parameters, fit.deviation, sources, args)


def _payload(arm: ArmModel, args: argparse.Namespace) -> list[Path]:
    """Identify the payload, print the result and write the file of --output; return it."""
    with waiting("reading the recordings"):
        motions = read_motions(arm, args, args.recordings)
        held_out = read_motions(arm, args, args.held_out)
        without = read_motions(arm, args, args.without)
    with waiting("fitting the payload"):
        fit = identify_payload(arm, motions, held_out, without=without, cutoff=args.cutoff)
    print_payload_fit(fit)
    sources = [motion.source for motion in (*motions, *without)]
    return _write(fit.loaded, fit.parameters, fit.parameter_deviation, sources, args)


def _write(
    arm: ArmModel,
    values: Vector,
    deviations: Vector,
    sources: Sequence[str],
    args: argparse.Namespace,
    servo_gains: Vector | None = None,
    remarks: Sequence[str] = (),
    constants: Mapping[str, float] = NO_DEVIATIONS,
    described: Vector | None = None,
) -> list[Path]:
    """Write --output and --tolerances; return the files."""
    texts: list[tuple[Path, str]] = []
    if args.output is not None:
        text = identified_urdf(
            arm, values, deviations=deviations, date=_today(), sources=sources, remarks=remarks,
            constant_deviations=constants,
        )  # fmt: skip
        if servo_gains is not None:
            text = with_servo_gains(text, arm, servo_gains)
        _check_written(arm, text, args)
        texts.append((args.output, text))
    if args.tolerances is not None:
        text = uncertainty_yaml(
            arm, values, deviations, described=described, constant_deviations=constants
        )
        texts.append((args.tolerances, text))
    for path, text in texts:
        with output_file(path) as file:
            file.write_text(text, encoding="utf-8")
    return [path for path, _ in texts]


def _check_written(arm: ArmModel, text: str, args: argparse.Namespace) -> None:
    """Raise UrdfRejected for an invalid URDF; warn of elements that were not warned of before.

    The unit of the masses is that of the nominal ones: a fit does not change it.
    """
    folder = arm.source.parent if arm.source else None
    known = {fault.element for fault in audit_urdf(arm.urdf, folder, args.lock)}
    faults = audit_urdf(text, args.output.parent, args.lock)
    if any(fault.severity == "error" for fault in faults):
        raise UrdfRejected(str(args.output), faults)
    units = {*mass_unit_faults(Robot(parse_xml(text), frozenset(args.lock)))}
    for fault in faults:
        if fault.element not in known and fault not in units:
            print(f"{args.output}: {fault}", file=sys.stderr)


def _today() -> datetime.date:
    return datetime.datetime.now(tz=datetime.timezone.utc).date()
