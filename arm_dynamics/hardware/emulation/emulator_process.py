"""Emulated motors of an arm in a process of ``arm-dynamics hardware emulate``."""

from __future__ import annotations

import subprocess
import sys
from types import MappingProxyType

from arm_dynamics.core.errors import DriverFault

STOP_TIMEOUT = 5.0
"""Time [s] in which the emulator ends."""
SERIAL_CAN = "mit_can"
"""Driver whose CAN bus is emulated behind a serial adapter."""


class EmulatorProcess:
    """Process that emulates the motors of an arm at a pseudo terminal, until ``close``.

    Parameters
    ----------
    arm : str
        Bundled arm or path of a URDF.

    Raises
    ------
    DriverFault
        If the emulator does not start; its message is on standard error.

    Attributes
    ----------
    settings : Mapping[str, str]
        Settings of the arm's driver: the port, and the interface of a CAN adapter.

    """

    def __init__(self, arm: str) -> None:
        command = [sys.executable, "-m", "arm_dynamics.cli.main", "hardware", "emulate", arm]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C must not end it before the arm is stopped
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            motors, _, port = line.strip().rpartition(" at ")
            if port.startswith("/dev/"):
                can = {"interface": "slcan"} if f"({SERIAL_CAN})" in motors else {}
                self.settings = MappingProxyType({"port": port, **can})
                return
        self.close()
        raise DriverFault(
            f"emulator: port = none; expected one; run arm-dynamics hardware emulate {arm}"
        )

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process; may be called twice."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
