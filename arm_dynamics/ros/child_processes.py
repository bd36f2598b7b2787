"""Processes that live no longer than the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

EXIT_TIMEOUT = 5.0
"""Time [s] that processes have to end by themselves before they are made to."""
PARENT = "ARM_DYNAMICS_PARENT"
"""Environment variable that tells a child whose end is its own."""


class ChildProcesses:
    """Starts nodes as processes of their own and ends them together."""

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, module: str, arguments: Sequence[str]) -> None:
        """Run ``python -m module`` in a session of its own: Ctrl-C reaches only this process."""
        self._processes[name] = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            start_new_session=True,
            env={**os.environ, PARENT: str(os.getpid())},
        )

    def exited_process(self) -> tuple[str, int] | None:
        """Name and exit code of a process that has ended, or None."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None:
                return name, code
        return None

    def stop(self) -> None:
        """End all of them; none is left."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            left = [p for p in self._processes.values() if p.poll() is None]
            for process in left:
                process.send_signal(number)
            _wait(left)


def exit_with_parent() -> None:
    """Have Linux end this process should the one that started it be killed."""
    parent = os.environ.get(PARENT)
    if parent is None or sys.platform != "linux":
        return
    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGTERM)
    if os.getppid() != int(parent):  # it was killed before we could ask
        sys.exit(1)


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + EXIT_TIMEOUT
    while any(p.poll() is None for p in processes) and time.monotonic() < until:
        time.sleep(0.02)
