"""Report every modeling fault of a URDF with its line, value and remedy."""

from __future__ import annotations

from collections.abc import Sequence

from arm_dynamics.cli.arm_options import add_arm, add_options, path_argument, require_new_file
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.files import output_file
from arm_dynamics.core.number_option import MAX_NUMBER, Number
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.audit.fault import format_report
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.inertia_correction import with_consistent_inertia
from arm_dynamics.model.inertia_estimate import density_faults, with_estimated_inertia
from arm_dynamics.model.load import find_urdf
from arm_dynamics.model.tool_frame import tool_frames
from arm_dynamics.model.xml_source import parse_xml, read_text


def run(arguments: Sequence[str]) -> int:
    """Print the report; return 2 if a fault is an error, else 0.

    With --correct-inertia or --estimate-inertia the report is that of the written file.
    """
    parser = SuggestingParser(prog="arm-dynamics audit", description=__doc__)
    add_arm(parser)
    add_options(parser, only=("lock",))
    parser.add_argument(
        "--correct-inertia",
        type=path_argument,
        metavar="NEW",
        help="write a copy with the nearest physically consistent inertia tensors (masses and"
        " centers of mass do not change), and report its faults",
    )
    parser.add_argument(
        "--estimate-inertia",
        type=Number("--estimate-inertia", 0, MAX_NUMBER, "kg"),
        metavar="KG",
        help="mass of the arm with its base [kg]: write a copy to --output in which links without a"
        " mass have that of their shapes, visual ones first, with the same density; and report"
        " its faults",
    )
    text = "new URDF of --estimate-inertia"
    parser.add_argument("--output", type=path_argument, metavar="NEW", help=text)
    args = parser.parse_args(arguments)
    if (args.output is None) != (args.estimate_inertia is None):
        raise ConfigError("--estimate-inertia and --output are required together")
    if args.correct_inertia is not None and args.output is not None:
        raise ConfigError("--correct-inertia: not allowed with argument --estimate-inertia")
    path = find_urdf(args.arm)
    text = read_text(path)
    if args.correct_inertia is not None:
        require_new_file("--correct-inertia", args.correct_inertia)
        text, changed = with_consistent_inertia(text)
        with output_file(args.correct_inertia) as file:
            file.write_text(text, encoding="utf-8")
        path = args.correct_inertia
        print(f"written: {path}; corrected tensors of links: {', '.join(changed) or 'none'}")
    if args.output is not None:
        require_new_file("--output", args.output)
        text, estimates = with_estimated_inertia(text, path.parent, float(args.estimate_inertia))
        with output_file(args.output) as file:
            file.write_text(text, encoding="utf-8")
        path = args.output
        first = estimates[0]
        print(f"written: {path}; density = {first.mass / first.volume:.4g} kg/m³; masses:")
        for one in estimates:
            note = "" if one.written else " (root link, not written: it does not move)"
            print(f"  {one.link}: {one.mass:.4g} kg{note}")
    faults = audit_urdf(text, path.parent, args.lock)
    if any(fault.severity == "error" for fault in faults):
        print(format_report(str(path), faults))
        return 2
    robot = Robot(parse_xml(text), frozenset(args.lock))
    if args.output is None:  # estimated masses have one density by definition
        faults = (*faults, *density_faults(robot, path.parent))
    print(format_report(str(path), faults))
    tool, *others = tool_frames(robot, args.tool_frame)
    also = f"; of the other arms: {', '.join(others)}" if others else ""
    print(f"tool frame: {tool}{also}; --tool-frame selects another link")
    return 0
