"""Write a recording as a table in a CSV or Parquet file."""

from __future__ import annotations

from collections.abc import Sequence

from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.recording import Recording


def run(arguments: Sequence[str]) -> int:
    """Write one row per state: time [s], then position, velocity, effort and command by joint."""
    parser = SuggestingParser(prog="arm-dynamics export", description=__doc__)
    parser.add_argument("folder", type=path_argument, metavar="FOLDER", help="recording")
    text = "new .csv or .parquet file (default: FOLDER.csv)"
    parser.add_argument("--output", type=path_argument, metavar="FILE", help=text)
    args = parser.parse_args(arguments)
    file = args.output or args.folder.with_name(f"{args.folder.name}.csv")
    with waiting(f"reading {args.folder}"):
        recording = Recording.load(args.folder)
        recording.write(file)
    print(f"{file}: {recording.time.size} rows, {len(recording.columns())} columns")
    return 0
