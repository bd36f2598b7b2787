"""Report every modeling fault of a URDF with its line, value and remedy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from arm_dynamics.cli.arm_options import add_arm, add_options, path_argument, require_new_file
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.files import output_file
from arm_dynamics.core.number_option import MAX_NUMBER, Number
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.audit.fault import format_report
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.description_file import read_urdf
from arm_dynamics.model.inertia_correction import with_consistent_inertia
from arm_dynamics.model.inertia_estimate import density_faults, with_estimated_inertia
from arm_dynamics.model.load import find_urdf, with_gripper
from arm_dynamics.model.tool_frame import tool_frames
from arm_dynamics.model.xml_source import parse_xml


def run(arguments: Sequence[str]) -> int:
    """Print the report; return 2 if a fault is an error, else 0.

    With --correct-inertia or --estimate-inertia the report is that of the written file.
    """
    args = command_parser().parse_args(arguments)
    if (args.output is None) != (args.estimate_inertia is None):
        raise ConfigError("--estimate-inertia and --output are required together")
    if args.correct_inertia is not None and args.output is not None:
        raise ConfigError("--correct-inertia: not allowed with argument --estimate-inertia")
    path = find_urdf(args.arm)
    text = read_urdf(path)
    if args.correct_inertia is not None:
        path, text = args.correct_inertia, write_corrected_inertia(text, args.correct_inertia)
    if args.output is not None:
        mass = float(args.estimate_inertia)
        path, text = args.output, write_estimated_inertia(text, path.parent, mass, args.output)
    lock = with_gripper(args.arm, args.lock)
    faults = audit_urdf(text, path.parent, lock)
    if any(fault.severity == "error" for fault in faults):
        print(format_report(str(path), faults))
        return 2
    robot = Robot(parse_xml(text), frozenset(lock))
    if args.output is None:  # estimated masses have one density by definition
        faults = (*faults, *density_faults(robot, path.parent))
    print(format_report(str(path), faults))
    tool, *others = tool_frames(robot, args.tool_frame)
    also = f"; of the other arms: {', '.join(others)}" if others else ""
    print(f"tool frame: {tool}{also}; --tool-frame selects another link")
    return 0


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics audit", description=__doc__)
    add = parser.add_argument
    add_arm(parser)
    add_options(parser, only=("lock",))
    text = (
        "write a copy with the nearest physically consistent inertia tensors (masses and"
        " centers of mass do not change), and report its faults"
    )
    add("--correct-inertia", type=path_argument, metavar="NEW", help=text)
    text = (
        "mass of the arm with its base [kg]: write a copy to --output in which links without a"
        " mass have that of their shapes, visual ones first, with the same density; and report"
        " its faults"
    )
    number = Number("--estimate-inertia", 0, MAX_NUMBER, "kg")
    add("--estimate-inertia", type=number, metavar="KG", help=text)
    add("--output", type=path_argument, metavar="NEW", help="new URDF of --estimate-inertia")
    return parser


def write_corrected_inertia(text: str, new: Path) -> str:
    """Write and return the URDF ``text`` with physically consistent inertia tensors."""
    require_new_file("--correct-inertia", new)
    text, changed = with_consistent_inertia(text)
    with output_file(new) as file:
        file.write_text(text, encoding="utf-8")
    print(f"written: {new}; corrected tensors of links: {', '.join(changed) or 'none'}")
    return text


def write_estimated_inertia(text: str, folder: Path, mass: float, new: Path) -> str:
    """Write and return the URDF ``text`` with masses of its shapes.

    Parameters
    ----------
    text : str
        URDF.
    folder : Path
        Folder to which mesh paths are relative.
    mass : float
        Mass of the arm with its base [kg].
    new : Path
        New URDF.

    """
    require_new_file("--output", new)
    text, estimates = with_estimated_inertia(text, folder, mass)
    with output_file(new) as file:
        file.write_text(text, encoding="utf-8")
    first = estimates[0]
    print(f"written: {new}; density = {first.mass / first.volume:.4g} kg/m³; masses:")
    for one in estimates:
        note = "" if one.written else " (root link, not written: it does not move)"
        print(f"  {one.link}: {one.mass:.4g} kg{note}")
    return text
