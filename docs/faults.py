"""The table of everything that is broken on purpose, and what came of it.

    python docs/faults.py           writes docs/faults.md
    python docs/faults.py --check   compares it with what comes of it now

Time is virtual and chance has a seed. Numbers are compared with TOLERANCE: rounding differs
between machines, and a lost packet more or less shifts what follows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "faults.md"
sys.path.insert(0, str(DOCS.parent / "test"))

from breaking.faults import FAULTS  # noqa: E402  # tests are no package that is installed
from breaking.outcome import Outcome, outcome  # noqa: E402
from emulators.makers import MAKERS  # noqa: E402

TOLERANCE = 0.3
"""Share by which a number may differ; FLOOR is always allowed."""
FLOOR = 3.0
COLUMNS = (
    "fault", "noticed by", "after, cycles", "moved, °", "torque, %", "wrong, °", "cycle, ms",
    "goes on",
)  # fmt: skip
HEAD = """# Broken on purpose

What comes of a fault on each driver. A small arm of three joints (0.12 m each, 0.3 kg) swings by
±7° at 200 cycles a second; emulated motors, written from the makers' data sheets and apart from the
drivers, move its simulation at the other end of a line that loses, changes and delays what is on
it. 0.23 s later something breaks, for 0.4 s where nothing else is said.

* **noticed by**: the trip or event that told of it; "age": some joint's value was older than
  a cycle and a half, and said so; "—": no value got old, the line's own checks or a second
  question in the same cycle saw to it.
* **moved**: the largest way of any joint meanwhile, its swing of up to 14° included; an arm whose
  motors stop by themselves falls.
* **torque**: the largest that a motor gave, of the joint's limit.
* **wrong**: how far a position that was told as fresh was from the arm's own.
* **cycle**: the longest cycle of the host.
* **goes on**: by itself, or what it takes without a restart; an arm that swings without torque is
  stopped by a hand before.

A test runs all of this again and compares; `python docs/faults.py` writes the page.

Random sequences of up to six of these faults and of what an operator may do, in any order and in
any state, are in `test/test_driver_sequences.py`: no error leaves the loop, no cycle hangs, the arm
stays within its limits and motors within their torque, and it comes back. The tests run a few;
`SEQUENCES=2000 pytest test/test_driver_sequences.py` runs 2000 new ones for each kind of motors.
The last 10 000 passed, in 9 to 13 minutes of one core for each kind.

An hour in real time (`python benchmarks/soak.py --rate 400 --seconds 3600`; three XM430 by current
in another process, one packet in a thousand lost, two cores of a virtual machine, AMD EPYC, that
other programs shared): 1 359 951 cycles, 378 a second, 2.5 % of them late. What tripped: commands
that were too old (2) and silent joints (3), which passed by themselves, and efforts that swung from
end to end (1), which took a reset and an activation; 9 readings were held back as implausible. No
error left the loop, memory grew by 0.3 MiB, and the arm was active in the end. A minute of it is
among the tests.
"""


def page() -> str:
    """The page's text."""
    return HEAD + "".join(f"\n{_section(name)}" for name in MAKERS)


def _section(name: str) -> str:
    maker = MAKERS[name]
    watch = "" if maker.watched else UNWATCHED
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    rows += [_row(fault.name, outcome(name, fault.name)) for fault in FAULTS]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"## {maker.title}\n\n{watch}{table}\n"


UNWATCHED = """These servos have no watchdog of commands: when the host is killed, a position is
held for ever, and a PWM goes on. By PWM they are activated with `allow_missing_watchdog: true` only.

"""


def _row(name: str, came: Outcome) -> tuple[str, ...]:
    seen, after = (came.seen, f"{came.after}") if came.after is not None else ("—", "—")
    numbers = (f"{came.moved:.0f}", f"{100 * came.torque:.0f}", f"{came.wrong:.1f}")
    return (name, seen, after, *numbers, f"{1e3 * came.longest:.0f}", came.went_on)


def differences(now: str, then: str) -> Iterator[str]:
    """Lines in which two pages differ by more than a number's tolerance."""
    for one, two in zip_longest(now.splitlines(), then.splitlines(), fillvalue=""):
        cells = list(zip_longest(one.split("|"), two.split("|"), fillvalue=""))
        if not all(_alike(a.strip(), b.strip()) for a, b in cells):
            yield f"now: {one}\nthere: {two}"


def _alike(one: str, two: str) -> bool:
    try:
        a, b = float(one), float(two)
    except ValueError:
        return one == two
    return abs(a - b) <= FLOOR + TOLERANCE * max(abs(a), abs(b))


def main() -> int:
    """Write, or check: exit code 1 and the lines that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args().check:
        PAGE.write_text(page(), "utf-8")
        return 0
    found = list(differences(page(), PAGE.read_text("utf-8")))
    print("\n".join(found) or "the page is current")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
