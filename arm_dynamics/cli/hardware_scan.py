"""``arm-dynamics hardware scan``: who answers on a line, at which rate; nothing is changed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from arm_dynamics.cli import hardware_options
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.hardware.build import bus_class
from arm_dynamics.hardware.motor_bus import CORRUPT, DiscoveredMotor, MotorBus

ALL = "all"
COLUMNS = ("id", "model", "firmware", "baud")
NO_MOTOR_FOUND = """nobody answers. Look for, in this order:
  - power: do the motors' lights blink when it is switched on?
  - the cable from the adapter to the first motor, and from each motor to the next
  - the port: is this the adapter of the motors?
  - the driver: do these motors speak its protocol (Dynamixel: 2.0 alone)?
  - two motors with one id: connect one alone, give it another id with the maker's tool"""


def run(arguments: Sequence[str]) -> int:
    """Print a table of the motors; 1 where none answers or two have one id, else 0."""
    parser = hardware_options.make_parser("scan", __doc__, "the driver's; all rates")
    given = parser.parse_args(arguments)
    if not given.driver:
        raise ConfigError("--driver is missing: it says which protocol the motors speak")
    asked = hardware_options.settings(given)
    kind = bus_class(given.driver, asked)
    bauds = _bauds(kind, asked.pop("baud", ALL))
    found = [motor for baud in bauds for motor in _at(kind, asked, baud)]
    if not found:
        tried = (
            f" at {hardware_options.comma_list([b for b in bauds if b])} baud" if any(bauds) else ""
        )
        print(f"{given.port or given.driver}{tried}: {NO_MOTOR_FOUND}")
        return 1
    Console().print(_table(found))
    doubts = list(_doubts(found))
    print("\n".join(doubts) if doubts else f"{len(found)} motors, each with an id of its own")
    return 1 if doubts else 0


def _bauds(kind: type[MotorBus], given: str) -> list[str]:
    """The rates to look at; one without a number where that is no matter."""
    return [given] if given != ALL else [str(baud) for baud in kind.bauds] or [""]


def _at(kind: type[MotorBus], asked: dict[str, str], baud: str) -> Sequence[DiscoveredMotor]:
    if baud:
        print(f"looking at {baud} baud", file=sys.stderr, flush=True)
    return kind.scan({**asked, **({"baud": baud} if baud else {})})


def _table(found: Sequence[DiscoveredMotor]) -> Table:
    table = Table(*COLUMNS, box=SIMPLE_HEAD)
    for motor in found:
        id = "?" if motor.id < 0 else str(motor.id)
        table.add_row(id, motor.model, motor.firmware, str(motor.baud or ""))
    return table


def _doubts(found: Sequence[DiscoveredMotor]) -> list[str]:
    """Ids that more than one motor has, and rates that differ, in words."""
    count = Counter(motor.id for motor in found)
    doubled = {m.id for m in found if m.id >= 0 and (count[m.id] > 1 or m.model == CORRUPT)}
    said = [
        f"id {id}: two motors have it, or the line is disturbed; connect one of them alone and"
        " give it another id with the maker's tool"
        for id in sorted(doubled)
    ]
    if count[-1]:
        said.append("something answers in pieces: two motors with one id, or a disturbed line")
    rates = sorted({motor.baud for motor in found})
    if len(rates) > 1:
        said.append(f"motors at {len(rates)} rates {rates}: a driver speaks at one of them")
    return said
