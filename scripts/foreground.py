"""Run a command as the terminal's foreground job: ``foreground.py COMMAND [ARGUMENT ...]``.

Ctrl-C interrupts make itself, whatever exit code its recipe returns, because both are in one
process group. Here the command has a separate group: only the command is interrupted, and make
returns its exit code. Without a terminal or in the background the command replaces this process.
"""

import os
import signal
import sys

FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def main(command: list) -> int:
    """Run ``command`` and return its exit code."""
    terminal = _terminal()
    if terminal is None:
        os.execvp(command[0], command)
    child = os.fork()
    if child == 0:
        _become_foreground(terminal, os.getpid())
        os.execvp(command[0], command)
    for number in FORWARDED:
        signal.signal(number, lambda received, _frame: os.killpg(child, received))
    return _wait(child, terminal)


def _terminal() -> "int | None":
    """Return the controlling terminal if this process group is its foreground group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    if os.tcgetpgrp(terminal) == os.getpgrp():
        return terminal
    os.close(terminal)
    return None


def _become_foreground(terminal: int, group: int) -> None:
    """Move this process into a new ``group`` and make it the foreground group."""
    os.setpgid(0, group)
    _give(terminal, group)


def _give(terminal: int, group: int) -> None:
    """Make ``group`` the terminal's foreground group; a background process may do this too."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(terminal, group)
    signal.signal(signal.SIGTTOU, before)


def _wait(child: int, terminal: int) -> int:
    """Wait for ``child``, stopping and continuing with it (Ctrl-Z, fg); return its exit code."""
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        _give(terminal, os.getpgrp())
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        if os.tcgetpgrp(terminal) == os.getpgrp():
            _give(terminal, child)
        os.killpg(child, signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
