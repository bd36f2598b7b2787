"""``arm-dynamics``: one sub-command a task; errors are one line and exit code 2, Ctrl-C is 130."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, metadata
from typing import Any

from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.requirements import to_install

INTERRUPTED = 130
"""Exit code after Ctrl-C, as a shell has it."""
COMMANDS = {
    "audit": ("arm_dynamics.cli.audit", "report every fault of a URDF"),
    "demo": ("arm_dynamics.cli.demo", "show a system in figures"),
    "export": ("arm_dynamics.cli.export", "write a recording as CSV or Parquet"),
    "hardware": ("arm_dynamics.cli.hardware", "scan, check, calibrate and jog a physical arm"),
    "gain-table": ("arm_dynamics.cli.gain_table", "compute an LQR gain table"),
    "list": ("arm_dynamics.cli.list_arms", "show the bundled arms"),
    "montecarlo": ("arm_dynamics.cli.montecarlo", "spread a motion over an arm's tolerances"),
    "plot": ("arm_dynamics.cli.plot", "draw a recording"),
    "record": ("arm_dynamics.cli.record", "simulate an arm and record it"),
    "replay": ("arm_dynamics.cli.replay", "run the forward model over a recording"),
    "sim": ("arm_dynamics.ros.sim", "simulate an arm: two nodes and a browser page"),
    "stability": (
        "arm_dynamics.cli.stability",
        "compute the largest stable time step of a control loop",
    ),
    "tune": ("arm_dynamics.cli.tune", "search controller gains"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sub-command named first; exits with its code."""
    parser = argparse.ArgumentParser(prog="arm-dynamics", description=__doc__)
    version = f"%(prog)s {metadata.version('arm_dynamics')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, text) in COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    given, rest = parser.parse_known_args(arguments)
    try:
        sys.exit(_load(given.command).run(rest))
    except ArmDynamicsError as error:
        print(f"arm-dynamics {given.command}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"arm-dynamics {given.command}: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _load(command: str) -> Any:
    """The module of a sub-command; only the chosen one is imported."""
    module = COMMANDS[command][0]
    try:
        with _interruptible(command):
            return import_module(module)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(("rclpy", "diagnostic_msgs", "trajectory_msgs")):
            raise
        message = f"'{command}' needs rclpy: {to_install('ros')}, or source a ROS 2 installation"
        raise ArmDynamicsError(message) from error


@contextmanager
def _interruptible(command: str) -> Iterator[None]:
    """Ctrl-C ends the process at once, as an exception can be lost in an import of compiled code.

    The code is 0 for ``sim``, whose end Ctrl-C is.
    """

    def end(*_: object) -> None:
        print(f"arm-dynamics {command}: interrupted", file=sys.stderr, flush=True)
        os._exit(0 if command == "sim" else INTERRUPTED)

    try:
        before = signal.signal(signal.SIGINT, end)
    except ValueError:  # in another thread than the main one, which gets the signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    main()
