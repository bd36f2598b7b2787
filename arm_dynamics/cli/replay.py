"""Simulate a recording again with the forward model and compare the states bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.recording.replay import replay


def run(arguments: Sequence[str]) -> int:
    """Print the largest differences; return 0 if the states are identical, else 1."""
    parser = SuggestingParser(prog="arm-dynamics replay", description=__doc__)
    text = "recording of 'arm-dynamics record' or 'sim --record'"
    parser.add_argument("folder", type=path_argument, metavar="FOLDER", help=text)
    folder = parser.parse_args(arguments).folder
    with waiting(f"replaying {folder}"):
        report = replay(folder)
    changes = report.segments - 1 - len(report.gaps)
    print(
        f"{report.seconds:.3f} s of {report.arm} in {report.periods} periods,"
        f" {changes} change{'' if changes == 1 else 's'} of arm or state\n"
        f"largest difference: q {report.largest['q']:g}, v {report.largest['v']:g} (rad or m, s),"
        f" actuator state {report.largest['act']:g}"
    )
    for gap in report.gaps:
        first, last = gap.first * 1e-9, gap.last * 1e-9
        print(f"GAP: {gap.dropped} periods were not recorded, t = {first:.6f} s to {last:.6f} s")
    if not report.finished:
        print("CUT OFF: the recording was not closed; its last periods may be missing")
    same = report.first is None
    print("identical to the last bit" if same else f"NOT IDENTICAL, first at {report.first}")
    return 0 if same else 1
