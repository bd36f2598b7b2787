"""``arm-dynamics replay FOLDER``: the forward model run over a recording, and compared."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.recording.replay import replay


def run(arguments: Sequence[str]) -> int:
    """Print the largest differences; 0 when there are none, 1 when there are."""
    parser = argparse.ArgumentParser(prog="arm-dynamics replay", description=__doc__)
    parser.add_argument(
        "folder", type=path_argument, help="a recording of 'arm-dynamics record' or 'sim --record'"
    )
    folder = parser.parse_args(arguments).folder
    with waiting(f"replaying {folder}"):
        report = replay(folder)
    changes = report.segments - 1 - len(report.gaps)
    print(
        f"{report.seconds:.3f} s of {report.arm} in {report.periods} periods,"
        f" {changes} change{'' if changes == 1 else 's'} of arm or state\n"
        f"largest difference: q {report.largest['q']:g}, v {report.largest['v']:g} (rad or m, s),"
        f" actuators' own states {report.largest['act']:g}"
    )
    for gap in report.gaps:
        first, last = gap.first * 1e-9, gap.last * 1e-9
        print(f"GAP: {gap.dropped} periods were not recorded, t = {first:.6f} s to {last:.6f} s")
    if not report.finished:
        print("CUT OFF: the recording was not closed; its last periods may be missing")
    same = report.first is None
    print("the same to the last bit" if same else f"NOT THE SAME, first at {report.first}")
    return 0 if same else 1
