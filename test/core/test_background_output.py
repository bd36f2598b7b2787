"""Output in the background: a terminal or pipe that accepts nothing causes no delay."""

import fcntl
import os
import pty
import struct
import sys
import termios
import threading

import pytest

from arm_dynamics.core.background_output import output_in_background

LINE = 1000 * "x"


@pytest.fixture
def stdout(monkeypatch):
    """A function that makes a descriptor the standard output."""
    streams = []

    def use(descriptor):
        streams.append(os.fdopen(descriptor, "w"))
        monkeypatch.setattr(sys, "stdout", streams[-1])
        return streams[-1]

    yield use
    for stream in streams:
        stream.close()


def reading(descriptor):
    """Return a thread that reads to the end, and what it has read."""
    found = bytearray()

    def read():
        try:
            while data := os.read(descriptor, 1 << 20):
                found.extend(data)
        except OSError:  # the end of a pseudo terminal
            pass

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread, found


def test_an_unread_pipe_delays_nothing_and_gets_the_latest_lines(stdout):
    ours, theirs = os.pipe()
    stream = stdout(theirs)
    with output_in_background():
        for _ in range(40_000):
            print(LINE)
        os.write(theirs, b"from a library\n")
        print("the last line", flush=True)
    thread, found = reading(ours)
    stream.close()
    thread.join(60)
    assert not thread.is_alive()
    os.close(ours)
    assert len(found) < 40_000 * len(LINE)
    assert found.endswith(b"the last line\n")
    assert b"from a library\n" in found


def test_a_terminal_stays_one_of_its_size(stdout):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 33, 133, 0, 0))
    stream = stdout(theirs)
    with output_in_background():
        assert stream.isatty()
        assert os.get_terminal_size(theirs) == (133, 33)
        print("\r\x1b[Kstatus °C")
    assert os.read(ours, 100).decode() == "\r\x1b[Kstatus °C\r\n"
    os.close(ours)


def test_output_continues_directly_afterwards_and_in_memory(stdout, monkeypatch):
    ours, theirs = os.pipe()
    stream = stdout(theirs)
    with output_in_background():
        print("before")
    print("after", flush=True)
    assert os.read(ours, 100) == b"before\nafter\n"
    os.close(ours)
    with output_in_background():
        print("this is not read", flush=True)
    monkeypatch.setattr(sys, "stdout", None)
    with output_in_background():
        pass
    monkeypatch.setattr(sys, "stdout", stream)
