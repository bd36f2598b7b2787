"""Run benchmarks and write their tables and curves into the pages of the documentation.

    python benchmarks/write_tables.py [NAME ...]

NAME is a benchmark of BENCHMARKS (default: all). Text outside of the tables stays as it is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from plan_curves import draw
from tables import replaced

BENCHMARKS = (
    "step", "rollout", "operations", "environments", "planning", "reaching", "gain_search",
    "control", "collisions", "contact", "inverse_kinematics", "identification", "drivers",
    "streams", "ros_loop",
)  # fmt: skip
HERE = Path(__file__).parent
PAGES = sorted(HERE.parent.glob("docs/*.md"))


def output(name: str) -> str:
    """Return what a benchmark prints, and print it."""
    command = [sys.executable, "-u", HERE / f"{name}.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        sys.exit(process.returncode)
    return "".join(lines)


def main() -> None:
    """Run the benchmarks one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmark (default: all)")
    for name in parser.parse_args().names or BENCHMARKS:
        text = output(name)
        for page in PAGES:
            page.write_text(replaced(page.read_text("utf-8"), text), "utf-8")
    draw()


if __name__ == "__main__":
    main()
