"""``arm-dynamics audit FILE``: one report of all faults."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from arm_dynamics.model.audit import audit, report
from arm_dynamics.model.load import find_urdf
from arm_dynamics.model.source import read_text

LOCK_HELP = "a joint held still; give it once for each (--lock J1 --lock J2)"


def run(arguments: Sequence[str]) -> int:
    """Print the report; 2 when there is an error among the faults, else 0."""
    parser = argparse.ArgumentParser(prog="arm-dynamics audit", description=__doc__)
    parser.add_argument("file", help="a URDF file or the name of a bundled arm")
    parser.add_argument("--lock", action="append", default=[], metavar="JOINT", help=LOCK_HELP)
    given = parser.parse_args(arguments)
    path = find_urdf(given.file)
    faults = audit(read_text(path), path.parent, given.lock)
    print(report(str(path), faults))
    return 2 if any(fault.severity == "error" for fault in faults) else 0
