"""Executable ``arm-dynamics``, which Ctrl-C ends at any time with one line.

Importing a command takes seconds, and an interrupt during the import would print a traceback.
Therefore this module imports the commands after the signal handler is installed.
"""

from __future__ import annotations

import sys
from importlib import import_module

from arm_dynamics.cli.interrupt import interruption
from arm_dynamics.core.signals import INTERRUPTS, handling


def main() -> None:
    """Run ``arm-dynamics`` with the arguments of the process; exit with the command's code."""
    end = interruption(next(iter(sys.argv[1:]), ""))
    try:
        with handling(end, *INTERRUPTS):
            run = import_module("arm_dynamics.cli.main").main
        run()
    except KeyboardInterrupt:  # between the handler above and those of the command
        sys.exit(end.report())
