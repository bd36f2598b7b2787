"""``arm-dynamics hardware check ARM``: is every motor there and well? Nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from arm_dynamics.cli import hardware_line
from arm_dynamics.cli.hardware_health import Health
from arm_dynamics.cli.hardware_look import look
from arm_dynamics.drivers.motor_bus import MotorBus
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.number_option import Number

SECONDS = 1.0
WIDEST = 132
"""Letters a line where no terminal sets a width."""


def run(arguments: Sequence[str]) -> int:
    """Print a table of the joints and what is wrong; 0 where all is well, else 1."""
    parser = hardware_line.parser("check", __doc__)
    hardware_line.add_arm(parser)
    parser.add_argument(
        "--seconds",
        type=Number("--seconds", 0, 3600, "s"),
        default=SECONDS,
        metavar="S",
        help="of reading",
    )
    given = parser.parse_args(arguments)
    arm = hardware_line.wired_arm(given)
    return 0 if all_well(arm, hardware_line.motors(given, arm), given.seconds) else 1


def all_well(arm: ArmModel, bus: MotorBus, seconds: float = SECONDS, led_back: float = 0.0) -> bool:
    """Look at the joints, print what is seen; whether nothing is wrong.

    Joints may be ``led_back`` [rad or m] beyond a position limit.
    """
    seen = look(bus, seconds)
    health = Health(arm, bus, seen, led_back)
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDEST)
    console.print(health.table())
    print(f"{seen.cycles} cycles of reading, {seen.rate:.0f} a second")
    problems = health.problems()
    print("\n".join(problems) if problems else "all is well")
    return not problems
