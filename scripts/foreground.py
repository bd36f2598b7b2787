"""Run a command as the terminal's foreground job: ``foreground.py COMMAND [ARGUMENT ...]``.

make dies of the interrupt that Ctrl-C sends to its process group, whatever its recipe returned.
Here the command has a group of its own: Ctrl-C reaches it alone, and its exit code is make's.
Without a terminal, or in the background, the command simply takes this process's place.
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
    """The controlling terminal, when this process group is its foreground one."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    if os.tcgetpgrp(terminal) == os.getpgrp():
        return terminal
    os.close(terminal)
    return None


def _become_foreground(terminal: int, group: int) -> None:
    """Move this process into ``group`` (its own) and give that group the terminal."""
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
