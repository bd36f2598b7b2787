"""Scan, check, calibrate, jog and run a physical arm, or emulate its motors."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from arm_dynamics.cli.hardware.options import with_advice
from arm_dynamics.cli.interrupt import interruption
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.signals import INTERRUPTS, STOP_SIGNALS, Interrupt, handling
from arm_dynamics.core.suggesting_parser import SuggestingParser

COMMANDS = {
    "scan": "list the motors that reply on a port (read only)",
    "check": "check every joint of an arm (read only)",
    "emulate": "emulate the motors of an arm at a pseudo terminal, to rehearse without hardware",
    "calibrate": "measure signs and offsets of the joints with torque disabled",
    "calibrate-gravity": "calibrate masses and friction from efforts at static poses",
    "jog": "move one joint slowly while a key is held",
    "run": "run a controller on an arm and show the arm in the viewer",
}


def run(arguments: Sequence[str]) -> int:
    """Run a sub-command of ``arm-dynamics hardware``, or print the help without one.

    Every signal ends it as Ctrl-C does: the terminal is restored and the port closed. With enabled
    torque ``torque_guard`` handles the signals. Append advice to a DriverFault.

    Parameters
    ----------
    arguments : sequence of str
        The name of the sub-command and its arguments.

    Returns
    -------
    int
        Exit code of the sub-command.

    """
    parser = SuggestingParser(prog="arm-dynamics hardware", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    args, rest = parser.parse_known_args(arguments or ["--help"])
    command = import_module(f"arm_dynamics.cli.hardware.{args.command.replace('-', '_')}")
    ending = handling(Interrupt(interruption("hardware")), *STOP_SIGNALS, *INTERRUPTS)
    try:
        with ending:
            return int(command.run(rest))
    except DriverFault as error:
        raise with_advice(error) from error
