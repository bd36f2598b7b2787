"""Dynamics, simulation and control of robot arms."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module, metadata
from importlib.util import find_spec

from arm_dynamics.cli.interrupt import interruption
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.requirements import ros_missing
from arm_dynamics.core.signals import INTERRUPTS, Interrupt, handling
from arm_dynamics.core.suggesting_parser import SuggestingParser

COMMANDS = {
    "audit": ("arm_dynamics.cli.audit", "report every fault of a URDF"),
    "compare": (
        "arm_dynamics.cli.compare",
        "compare the efforts of a model with those of a recording",
    ),
    "compile": ("arm_dynamics.cli.compile", "compile the functions of all arms for this machine"),
    "convert": ("arm_dynamics.cli.convert", "write an arm as URDF or MJCF"),
    "demo": ("arm_dynamics.cli.demo", "show a demonstration in figures"),
    "excite": (
        "arm_dynamics.cli.excite",
        "compute an excitation trajectory for the parameters of an arm",
    ),
    "export": ("arm_dynamics.cli.export", "write a recording as CSV or Parquet"),
    "hardware": (
        "arm_dynamics.cli.hardware.command",
        "scan, check, calibrate, jog and run a physical arm",
    ),
    "gain-table": ("arm_dynamics.cli.gain_table", "compute an LQR gain table"),
    "identify": (
        "arm_dynamics.cli.identify",
        "identify inertia and friction from recorded motion",
    ),
    "layout": (
        "arm_dynamics.cli.layout",
        "write layouts of Foxglove and PlotJuggler for an arm",
    ),
    "list": ("arm_dynamics.cli.list_arms", "list the bundled arms"),
    "montecarlo": (
        "arm_dynamics.cli.montecarlo",
        "simulate a motion for random parameters within tolerances",
    ),
    "moveit": ("arm_dynamics.cli.moveit", "write a configuration package of MoveIt"),
    "plot": ("arm_dynamics.cli.plot", "plot a recording"),
    "record": ("arm_dynamics.cli.record", "simulate an arm and record it"),
    "replay": ("arm_dynamics.cli.replay", "simulate a recording again and compare the states"),
    "ros2-control": (
        "arm_dynamics.cli.ros2_control",
        "write block, controllers and launch file of ros2_control",
    ),
    "sim": ("arm_dynamics.cli.sim", "start a simulator, a controller and the viewer"),
    "stability": (
        "arm_dynamics.cli.stability",
        "compute the largest stable time step of a control loop",
    ),
    "teleop": ("arm_dynamics.cli.teleop", "have an arm follow a leader arm"),
    "tune": ("arm_dynamics.cli.tune", "optimize the gains of a controller"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a sub-command of ``arm-dynamics`` and exit with its code; without one print the help.

    An ArmDynamicsError is one line on standard error and exit code 2; Ctrl-C is exit code 130.

    Parameters
    ----------
    arguments : sequence of str, optional
        The name of the sub-command and its arguments; those of the process by default.

    """
    for stream in (sys.stdout, sys.stderr):
        # A ° on an ASCII terminal must not end a command while an arm moves.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    parser = SuggestingParser(prog="arm-dynamics", description=__doc__)
    version = f"%(prog)s {metadata.version('arm_dynamics')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, text) in COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    words = sys.argv[1:] if arguments is None else arguments
    args, rest = parser.parse_known_args(words or ["--help"])
    with_location = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: (
        f"arm-dynamics {args.command}: warning: {message}\n"
    )
    end = interruption(args.command)
    try:
        try:
            with handling(end, *INTERRUPTS), _loading(args.command):
                # An import can lose KeyboardInterrupt.
                command = import_module(_module(args.command, rest))  # only that of the command
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith(("rclpy", "diagnostic_msgs", "trajectory_msgs")):
                raise
            raise ArmDynamicsError(ros_missing()) from error
        with handling(Interrupt(end), *INTERRUPTS):
            code = command.run(rest)
        sys.exit(code)
    except ArmDynamicsError as error:
        print(f"arm-dynamics {args.command}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(end.report())
    finally:
        warnings.formatwarning = with_location


def _loading(command: str) -> AbstractContextManager[None]:
    """Return a context that shows on a terminal that imports take seconds."""
    if not sys.stderr.isatty():
        return nullcontext()
    from arm_dynamics.cli.terminal import waiting  # noqa: PLC0415 - not for --help

    return waiting(f"loading arm-dynamics {command}")


def _module(command: str, arguments: Sequence[str]) -> str:
    """Return the module of a command.

    Where rclpy is installed, ``sim`` runs its parts as nodes, and ``teleop`` reaches other nodes.
    """
    over_topics = command == "sim" or (command == "teleop" and "ros:" in " ".join(arguments))
    if over_topics and find_spec("rclpy") is not None:
        return f"arm_dynamics.ros.nodes.{command}"
    return COMMANDS[command][0]


if __name__ == "__main__":
    main()
