"""Write an arm as URDF or MJCF, and print the values that the format lacks.

The input is a bundled arm, or a URDF, xacro or MJCF file. MuJoCo simulates the written MJCF with
the same mass matrix and bias forces.
"""

from __future__ import annotations

from collections.abc import Sequence

from arm_dynamics.cli.arm_options import add_arm, add_options, path_argument, require_new_file
from arm_dynamics.collision.link_pairs import collision_matrix
from arm_dynamics.core.files import output_file
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.load import load_arm
from arm_dynamics.model.mjcf.writer import mjcf_of_arm
from arm_dynamics.model.robot_description import with_fixed_joints, with_resolvable_uris

SAMPLES = 200
"""Random configurations at which links are always in contact."""


def run(arguments: Sequence[str]) -> int:
    """Write the file; return 0."""
    parser = SuggestingParser(prog="arm-dynamics convert", description=__doc__)
    add_arm(parser)
    add_options(parser, only=("lock",))
    parser.add_argument("--to", choices=("urdf", "mjcf"), required=True, help="format of the file")
    parser.add_argument(
        "--output",
        type=path_argument,
        metavar="FILE",
        help="new file (default: <arm>.urdf, or <arm>.xml for MJCF)",
    )
    args = parser.parse_args(arguments)
    arm = load_arm(args.arm, args.lock, tool_frame=args.tool_frame)
    file = args.output or path_argument(f"{arm.name}.{'xml' if args.to == 'mjcf' else 'urdf'}")
    require_new_file("--output", file)
    notes: tuple[str, ...] = ()
    if args.to == "urdf":
        folder = arm.source.parent if arm.source else None
        text = with_resolvable_uris(with_fixed_joints(arm), folder)
    else:
        pairs = collision_matrix(arm, SAMPLES)
        written = mjcf_of_arm(arm, [(p.first, p.second) for p in pairs if p.reason != "Never"])
        text, notes = written.text, written.notes
    with output_file(file) as partial:
        partial.write_text(text, encoding="utf-8")
    print(f"{file}: {arm.nv} joints")
    for note in notes:
        print(f"  {note}")
    return 0
