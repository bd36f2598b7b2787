"""Keys of the terminal: single keys, hold-to-run keys, and questions that need a typed yes."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import tty
from contextlib import suppress
from types import TracebackType

from arm_dynamics.core.errors import ConfigError

HOLD = 0.12
"""Time [s] for which one press is valid; keyboards repeat every 0.03 to 0.1 s."""
ARROWS = {b"\x1b[C": "right", b"\x1bOC": "right", b"\x1b[D": "left", b"\x1bOD": "left"}
KEY = re.compile(b"|".join([*map(re.escape, ARROWS), b"."]), re.DOTALL)
QUIT, CLOSED = "q", "closed"
"""The key that ends a command, and the key of a terminal that was closed."""
ENDS = {QUIT, CLOSED}


class HoldToRunKey:
    """Direction (-1, 0 or 1) of the key pressed last, valid for HOLD after each press."""

    def __init__(self, directions: dict[str, float]) -> None:
        self._directions = directions
        self._direction, self._until = 0.0, 0.0

    def press(self, key: str, now: float) -> None:
        """Register a key pressed at ``now`` [s]; a key without a direction stops immediately."""
        self._direction, self._until = self._directions.get(key, 0.0), now + HOLD

    def direction(self, now: float) -> float:
        """Return the direction at ``now`` [s]."""
        return self._direction if now < self._until else 0.0


def require_terminal(command: str) -> None:
    """Raise ConfigError if standard input is not a terminal."""
    if not sys.stdin.isatty():
        raise ConfigError(
            f"{command}: standard input = not a terminal; expected a terminal, because the command"
            " reads keys"
        )


def confirm(question: str) -> bool:
    """Return whether the user types yes after the question is printed."""
    sys.stdout.flush()
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    try:
        return input(f"{question} Type yes: ").strip() == "yes"
    except EOFError:
        return False


class Keyboard:
    """Context in which keys are read one by one without echo; Ctrl-C stays a signal."""

    def __enter__(self) -> Keyboard:
        """Start to read; keys that were pressed before are read too: one may be the end."""
        self._fd = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd, termios.TCSANOW)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore the settings of the terminal."""
        with suppress(termios.error):  # a terminal that was closed
            termios.tcsetattr(self._fd, termios.TCSANOW, self._before)

    def pressed(self, wait: float = 0.0) -> list[str]:
        """Return the keys pressed since the last call, in their order.

        Parameters
        ----------
        wait : float
            Longest time [s] to wait for a key.

        Returns
        -------
        list of str
            The keys; "left" and "right" for the arrows, CLOSED for a terminal that was closed.

        """
        if not select.select([self._fd], [], [], wait)[0]:
            return []
        try:
            data = os.read(self._fd, 4096)
        except OSError:
            return [CLOSED]
        keys = (ARROWS.get(key) or key.decode("ascii", "replace") for key in KEY.findall(data))
        return [*keys] or [CLOSED]
