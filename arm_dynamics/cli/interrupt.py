"""Ctrl-C in a command: one line and an exit code; imports only the standard library."""

from __future__ import annotations

from arm_dynamics.core.signals import EndProcess

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT, the convention of shells."""


def interruption(command: str) -> EndProcess:
    """Return the end of ``command`` after Ctrl-C.

    The exit code is 0 for ``sim``, which always ends by Ctrl-C.
    """
    code = 0 if command == "sim" else INTERRUPTED
    return EndProcess(code, f"arm-dynamics {command}: interrupted")
