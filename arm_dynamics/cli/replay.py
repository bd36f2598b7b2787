"""Simulate a recording again and compare the states bit for bit, or show it on a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.core.number_option import port
from arm_dynamics.core.signals import stop_on_signals
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.recording.replay import replay
from arm_dynamics.recording.table import Recording


def run(arguments: Sequence[str]) -> int:
    """Print the largest differences; return 0 if the states are identical, else 1.

    With --page show the recording instead, and return 0 after Ctrl-C.
    """
    parser = SuggestingParser(prog="arm-dynamics replay", description=__doc__)
    text = "recording of 'arm-dynamics record' or 'sim --record'"
    parser.add_argument("folder", type=path_argument, metavar="FOLDER", help=text)
    text = "show the recorded motion on a page with a timeline, until Ctrl-C"
    parser.add_argument("--page", action="store_true", help=text)
    text = "port of the page; 0 for any free one (default: 8080)"
    parser.add_argument("--port", type=port("--port"), default=8080, help=text)
    options = parser.parse_args(arguments)
    folder = options.folder
    if options.page:
        return show(folder, options.port)
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


def show(folder: Path, number: int) -> int:
    """Replay a recording on a page until Ctrl-C; return 0."""
    from arm_dynamics.viewer.player import Player  # noqa: PLC0415 - a slow start

    stop = stop_on_signals()
    with waiting(f"reading {folder}"):
        recording = Recording.load(folder)
    with Player(recording, number) as player:
        print(f"{folder} is shown at {player.page.url} (Ctrl-C to stop)", flush=True)
        player.run(stop.is_set)
    print("stopped", flush=True)
    return 0
