"""Option --excitation of commands that move an arm."""

from __future__ import annotations

import argparse

from arm_dynamics.cli.arm_options import path_argument


def add_excitation(parser: argparse.ArgumentParser) -> None:
    """Add the option --excitation."""
    text = "excitation trajectory: a file of arm-dynamics excite; the arm moves to its start first"
    parser.add_argument("--excitation", type=path_argument, metavar="FILE", help=text)
