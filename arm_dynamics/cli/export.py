"""``arm-dynamics export FOLDER``: a recording as a table, CSV or Parquet."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.recording import Recording


def run(arguments: Sequence[str]) -> int:
    """Write one row for each state: time [s], then position, velocity, effort, command by joint."""
    parser = argparse.ArgumentParser(prog="arm-dynamics export", description=__doc__)
    parser.add_argument("folder", type=path_argument, metavar="FOLDER", help="a recording")
    text = "new file that ends with .csv or .parquet (default: FOLDER.csv)"
    parser.add_argument("--output", type=path_argument, metavar="FILE", help=text)
    given = parser.parse_args(arguments)
    file = given.output or given.folder.with_name(f"{given.folder.name}.csv")
    with waiting(f"reading {given.folder}"):
        recording = Recording.load(given.folder)
        recording.write(file)
    print(f"{file}: {recording.time.size} rows, {len(recording.columns())} columns")
    return 0
