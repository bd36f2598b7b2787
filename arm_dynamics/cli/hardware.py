"""``arm-dynamics hardware``: a physical arm, from the box to its first move."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from arm_dynamics.cli.hardware_options import with_advice
from arm_dynamics.core.errors import DriverFault

COMMANDS = {
    "scan": "list the motors that answer on a port; reads only",
    "check": "look at every joint of an arm; reads only",
    "calibrate": "find signs and offsets of an arm that is led by hand, torque off",
    "jog": "move one joint slowly while a key is held",
    "run": "hold an arm with a controller, and show it on a page",
}


def run(arguments: Sequence[str]) -> int:
    """Run the sub-command named first; a DriverFault comes with what to do about it."""
    parser = argparse.ArgumentParser(prog="arm-dynamics hardware", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    given, rest = parser.parse_known_args(arguments)
    command = import_module(f"arm_dynamics.cli.hardware_{given.command}")
    try:
        return int(command.run(rest))
    except DriverFault as error:
        raise with_advice(error) from error
