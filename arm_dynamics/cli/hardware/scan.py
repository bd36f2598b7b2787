"""List the motors that reply on a port, at which baud rate. Nothing is changed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from arm_dynamics.cli.hardware.options import comma_list, make_parser, settings
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.hardware.build import bus_class
from arm_dynamics.hardware.motor_bus import CORRUPT, DiscoveredMotor

COLUMNS = ("id", "model", "firmware", "baud")
NO_MOTOR_FOUND = """no motor replies. Check, in this order:
  - power: do the lights of the motors blink when the supply is switched on?
  - the cable from the adapter to the first motor, and from each motor to the next
  - the port: is this the adapter of the motors?
  - the driver: do the motors use its protocol (Dynamixel: 2.0 only)?
  - two motors with one id: connect one only and change its id with the manufacturer's tool"""


def run(arguments: Sequence[str]) -> int:
    """Print a table of the motors; return 1 if none replies or two have one id, else 0."""
    parser = make_parser("scan", __doc__, "the driver's", "all rates of the driver")
    args = parser.parse_args(arguments)
    if not args.driver:
        raise ConfigError("--driver is required: the driver with the motors' protocol")
    values = settings(args)
    kind = bus_class(args.driver, values)
    baud = values.pop("baud", "all")
    bauds = [str(rate) for rate in kind.bauds] or [""] if baud == "all" else [baud]
    motors: list[DiscoveredMotor] = []
    for rate in bauds:  # "" for a bus without baud rates
        if rate:
            print(f"scanning at {rate} baud", file=sys.stderr, flush=True)
        motors += kind.scan({**values, **({"baud": rate} if rate else {})})
    if not motors:
        tried = f" at {comma_list([b for b in bauds if b])} baud" if any(bauds) else ""
        print(f"{args.port or args.driver}{tried}: {NO_MOTOR_FOUND}")
        return 1
    table = Table(*COLUMNS, box=SIMPLE_HEAD)
    for motor in motors:
        id = "?" if motor.id < 0 else str(motor.id)
        table.add_row(id, motor.model, motor.firmware, str(motor.baud or ""))
    Console().print(table)
    problems = _conflicts(motors)
    print("\n".join(problems) if problems else f"{len(motors)} motors with distinct ids")
    return 1 if problems else 0


def _conflicts(motors: Sequence[DiscoveredMotor]) -> list[str]:
    """Return one line for each id of two motors, for corrupt replies and for mixed baud rates."""
    count = Counter(motor.id for motor in motors)
    doubled = {m.id for m in motors if m.id >= 0 and (count[m.id] > 1 or m.model == CORRUPT)}
    lines = [
        f"id {id}: used by two motors, or the bus is disturbed; connect only one of them and"
        " change its id with the manufacturer's tool"
        for id in sorted(doubled)
    ]
    if count[-1]:
        lines.append("replies are corrupt: two motors with one id, or a disturbed bus")
    rates = sorted({motor.baud for motor in motors})
    if len(rates) > 1:
        lines.append(f"motors at {len(rates)} baud rates {rates}: a driver uses only one of them")
    return lines
