"""A key that must be held: it counts while its repetitions keep coming.

Keys of the terminal, one by one; and questions that only a typed yes answers.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from contextlib import suppress
from types import TracebackType

from arm_dynamics.core.errors import ConfigError

HOLD = 0.12
"""Time [s] that one press counts for; keyboards repeat every 0.03 to 0.1 s."""


class HoldToRunKey:
    """The way (-1, 0 or 1) that the key pressed last stands for, for HOLD after each press."""

    def __init__(self, ways: dict[str, float]) -> None:
        self._ways = ways
        self._way, self._until = 0.0, 0.0

    def press(self, key: str, now: float) -> None:
        """A key at ``now`` [s]; any other than those of the ways stops at once."""
        self._way, self._until = self._ways.get(key, 0.0), now + HOLD

    def direction(self, now: float) -> float:
        """The way at ``now`` [s]."""
        return self._way if now < self._until else 0.0


ARROWS = {b"\x1b[C": "right", b"\x1bOC": "right", b"\x1b[D": "left", b"\x1bOD": "left"}
GONE = "gone"
"""The key of a terminal that was closed."""


def require_terminal(command: str) -> None:
    """Raises ConfigError where keys cannot be read."""
    if not sys.stdin.isatty():
        raise ConfigError(f"{command} asks and reads keys: standard input must be a terminal")


def confirm(question: str) -> bool:
    """Whether ``question`` is answered by the word yes, typed after it was asked."""
    sys.stdout.flush()
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    try:
        return input(f"{question} Type yes: ").strip() == "yes"
    except EOFError:
        return False


class Keyboard:
    """Keys without echo while it is open; Ctrl-C stays a signal."""

    def __enter__(self) -> Keyboard:
        """From now on; keys that were pressed before do not count."""
        self._fd = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd, termios.TCSANOW)
        termios.tcflush(self._fd, termios.TCIFLUSH)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The terminal as it was."""
        with suppress(termios.error):  # a terminal that was closed
            termios.tcsetattr(self._fd, termios.TCSANOW, self._before)

    def latest_key(self, wait: float = 0.0) -> str:
        """The last key pressed since the last call, "" for none; waits [s] for the first.

        "left" and "right" for the arrows, GONE for a terminal that was closed.
        """
        if not select.select([self._fd], [], [], wait)[0]:
            return ""
        try:
            data = os.read(self._fd, 4096)
        except OSError:
            return GONE
        if not data:
            return GONE
        last = max(ARROWS, key=data.rfind)
        if data.endswith(last):
            return ARROWS[last]
        return data[-1:].decode("ascii", "replace")
