"""Output through threads, so that a control loop never waits for a terminal or a pipe."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import sys
import termios
import tty
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread

from arm_dynamics.core.signals import FLUSH_TIMEOUT, before_end

MAX_CHUNKS = 256
"""Pieces of output that are kept for a terminal that does not accept any; older ones are lost."""
WINDOW_SIZE = bytes(8)


@contextmanager
def output_in_background() -> Iterator[None]:
    """Have threads write standard output and error, also that of libraries, until the block ends.

    A stopped terminal (Ctrl-S), a connection that hangs and an unread pipe then delay no
    thread of the program; what they do not accept is lost. Files are written directly.
    """
    with ExitStack() as channels:
        for descriptor in sorted(_descriptors()):
            channel = _Channel(descriptor)
            before_end.append(channel.close)
            channels.callback(before_end.remove, channel.close)
            channels.callback(channel.close)
        yield


def _descriptors() -> set[int]:
    """Return the descriptors of standard output and error that may block."""
    found = {1, 2}
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # none, closed, or in memory
            stream.flush()
            found.add(stream.fileno())
    return {descriptor for descriptor in found if _may_block(descriptor)}


def _may_block(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


class _Channel:
    """Takes the place of a descriptor: one thread reads what is written to it, one writes it on.

    A terminal is replaced by a pseudo terminal of its size, any other descriptor by a pipe.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._target = descriptor, os.dup(descriptor)
        if os.isatty(descriptor):
            self._source, entrance = os.openpty()
            tty.setraw(entrance)
            size = fcntl.ioctl(descriptor, termios.TIOCGWINSZ, WINDOW_SIZE)
            fcntl.ioctl(entrance, termios.TIOCSWINSZ, size)
        else:
            self._source, entrance = os.pipe()
        self._chunks: deque[bytes] = deque(maxlen=MAX_CHUNKS)
        self._changed, self._ended, self._closed = Event(), False, False
        os.dup2(entrance, descriptor, inheritable=os.get_inheritable(descriptor))
        os.close(entrance)
        self._threads = [Thread(target=run, daemon=True) for run in (self._read, self._write)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Restore the descriptor; wait until the output is written, at most FLUSH_TIMEOUT."""
        if self._closed:
            return
        self._closed = True
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):
                stream.flush()
        os.dup2(self._target, self._descriptor, inheritable=os.get_inheritable(self._descriptor))
        for thread in self._threads:
            thread.join(FLUSH_TIMEOUT / 2)

    def _read(self) -> None:
        with suppress(OSError):  # the end of a pseudo terminal
            while chunk := os.read(self._source, 65536):
                self._chunks.append(chunk)
                self._changed.set()
        os.close(self._source)
        self._ended = True
        self._changed.set()

    def _write(self) -> None:
        while not self._ended or self._chunks:
            self._changed.wait()
            self._changed.clear()
            while self._chunks:
                self._write_chunk(self._chunks.popleft())
        os.close(self._target)

    def _write_chunk(self, chunk: bytes) -> None:
        while chunk:
            try:
                chunk = chunk[os.write(self._target, chunk) :]
            except BlockingIOError:
                select.select([], [self._target], [])
            except OSError:  # a terminal or pipe that was closed
                return
