"""Report every modeling fault of a URDF with its line, value and remedy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from arm_dynamics.cli.arm_options import add_arm, add_options
from arm_dynamics.model.audit import audit_urdf, format_report
from arm_dynamics.model.load import find_urdf
from arm_dynamics.model.xml_source import read_text


def run(arguments: Sequence[str]) -> int:
    """Print the report; return 2 if a fault is an error, else 0."""
    parser = argparse.ArgumentParser(prog="arm-dynamics audit", description=__doc__)
    add_arm(parser)
    add_options(parser, only=("lock",))
    args = parser.parse_args(arguments)
    path = find_urdf(args.arm)
    faults = audit_urdf(read_text(path), path.parent, args.lock)
    print(format_report(str(path), faults))
    return 2 if any(fault.severity == "error" for fault in faults) else 0
