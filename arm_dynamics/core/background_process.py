"""Work in another process of low priority, so that a control loop keeps its interpreter."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from arm_dynamics.core.errors import ArmDynamicsError, ConfigError

ResultT = TypeVar("ResultT")
Report = Callable[[str], None]
"""Receives texts of the progress."""
NICENESS = 10


class BackgroundProcess(Generic[ResultT]):
    """Runs ``work(report, *arguments)`` in another process; ``poll`` never waits for it.

    Function, arguments and result are pickled. The process ends with this one.
    """

    def __init__(self, work: Callable[..., ResultT], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._messages, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(sender, work, arguments), daemon=True)
        self._process.start()
        sender.close()
        self.progress = ""
        """Newest text of ``report``."""

    def poll(self) -> tuple[ResultT] | None:
        """Return the result in a tuple, None before the end; raise the error of the work."""
        try:
            while self._messages.poll():
                kind, value = self._messages.recv()
                if kind == "progress":
                    self.progress = value
                    continue
                self.cancel()
                if kind == "error":
                    raise value
                return (value,)
        except (EOFError, OSError):
            self.cancel()
            raise ConfigError(
                f"background process: exit code = {self._process.exitcode}; expected a result"
            ) from None
        return None

    def cancel(self) -> None:
        """End the process; a second call has no effect."""
        self._process.kill()
        self._process.join()


def _run(messages: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Send progress and result of the work; in the new process."""
    for number in (signal.SIGINT, signal.SIGQUIT):  # of the terminal: the parent ends this process
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICENESS)
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):  # the terminal is that of the parent
        os.dup2(null, descriptor)
    try:
        message = "result", work(lambda text: messages.send(("progress", text)), *arguments)
    except ArmDynamicsError as error:
        message = "error", type(error)(*error.args)
    except Exception as error:  # any other failure is a message of the page too
        message = "error", ConfigError(f"background process: {error!r}; expected a result")
    messages.send(message)
