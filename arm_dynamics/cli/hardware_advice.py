"""What to do about a port that cannot be opened."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

from arm_dynamics.errors import DriverFault

PORTS = ("ttyUSB*", "ttyACM*", "serial/by-id/*")
DENIED = "allow it to your user: sudo usermod -aG dialout $USER, then log in anew"
BUSY = "another program has it open (a hardware node?): end that one first"


def advised(error: DriverFault) -> DriverFault:
    """The same fault, followed by advice where its cause is known."""
    advice = next((words for number in _numbers(error) if (words := _advice(number))), "")
    return DriverFault(f"{error}; {advice}") if advice else error


def ports() -> list[str]:
    """The serial adapters of this machine."""
    return [str(found) for name in PORTS for found in sorted(Path("/dev").glob(name))]


def _numbers(error: BaseException | None) -> Iterator[int]:
    """Numbers of the system's errors that led to this one."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        first = error.args[0] if error.args else None  # termios.error has no errno
        number = getattr(error, "errno", first)
        if isinstance(number, int):
            yield number
        error = error.__cause__ or error.__context__


def _advice(number: int) -> str:
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"serial ports of this machine: {', '.join(ports()) or 'none; is it plugged in?'}"
    if number in (errno.EACCES, errno.EPERM):
        return DENIED
    if number in (errno.EAGAIN, errno.EBUSY):
        return BUSY
    return "that is no serial port" if number in (errno.ENOTTY, errno.EINVAL, errno.EISDIR) else ""
