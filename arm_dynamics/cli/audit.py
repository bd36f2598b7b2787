"""Report every modeling fault of a URDF with its line, value and remedy."""

from __future__ import annotations

from collections.abc import Sequence

from arm_dynamics.cli.arm_options import add_arm, add_options, path_argument, require_new_file
from arm_dynamics.core.files import output_file
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.audit import audit_urdf, format_report
from arm_dynamics.model.inertia_correction import with_consistent_inertia
from arm_dynamics.model.load import find_urdf
from arm_dynamics.model.xml_source import read_text


def run(arguments: Sequence[str]) -> int:
    """Print the report; return 2 if a fault is an error, else 0.

    With --correct-inertia the report is that of the written file.
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
    args = parser.parse_args(arguments)
    path = find_urdf(args.arm)
    text = read_text(path)
    if args.correct_inertia is not None:
        require_new_file("--correct-inertia", args.correct_inertia)
        text, changed = with_consistent_inertia(text)
        with output_file(args.correct_inertia) as file:
            file.write_text(text, encoding="utf-8")
        path = args.correct_inertia
        print(f"written: {path}; corrected tensors of links: {', '.join(changed) or 'none'}")
    faults = audit_urdf(text, path.parent, args.lock)
    print(format_report(str(path), faults))
    return 2 if any(fault.severity == "error" for fault in faults) else 0
