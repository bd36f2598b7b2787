"""Progress on a terminal: status line, bar, lines for log files, timer of long computations."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import isfinite
from shutil import get_terminal_size
from types import TracebackType

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.status import Status
from rich.table import Table

from arm_dynamics.core.signals import before_end

STATUS_PERIOD = 0.1
"""Shortest time [s] between two texts of a status line."""
LINE_PERIOD = 10.0
"""Period [s] of progress lines in a log file."""
FIRST_LINE_TIME = 2.0
"""Time [s] before the first line of ``waiting``."""
MIN_NAME_WIDTH = 8
"""Width of the first column of a table below which lines exceed the width of the terminal."""


def number_text(value: float, form: str) -> str:
    """Return ``value`` in the format ``form``; "?" for NaN, a value that is not measured."""
    return format(value, form) if isfinite(value) else "?"


def print_table(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    console: Console | None = None,
) -> None:
    """Print a table; names in its first column fold on a narrow terminal, numbers never do.

    A narrow terminal shows no borders. Output to a file or pipe has the width of its content.
    """
    console = console or Console()
    columns = list(zip(heads, *rows, strict=True))
    least = [max(len(word) for cell in column for word in _unbroken(cell)) for column in columns]
    full = [max(map(len, cells), default=0) for _, *cells in columns]
    widths = np.maximum(least, full).tolist()
    space = 3 * len(widths) + 1
    has_borders = not console.is_terminal or sum(widths) + space <= console.width
    if not has_borders:
        space = 2 * (len(widths) - 1)
        if sum(widths) + space > console.width:
            name = max(MIN_NAME_WIDTH, console.width - space - sum(least[1:]))
            widths = [min(widths[0], name), *least[1:]]
    table = Table(title=escape(title), title_justify="left")
    for head, width in zip(heads, widths, strict=True):
        table.add_column(escape(head), width=width, overflow="fold")
    if not has_borders:
        table.box, table.pad_edge, table.padding = None, False, (0, 2, 0, 0)
    for row in rows:
        table.add_row(*map(escape, row))
    console.width = max(console.width, sum(widths) + space)
    console.print(table)


def _unbroken(cell: str) -> list[str]:
    """Return the parts of a cell that stay on one line: words, or a number with its unit."""
    return [cell] if any(map(str.isdigit, cell)) else cell.split() or [""]


class StatusLine:
    """Line whose text is overwritten by each ``show``; the text of ``end`` stays."""

    def __init__(self) -> None:
        self._next, self._shown = 0.0, False

    def __enter__(self) -> StatusLine:
        """Return the line."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Start a new line after the last text."""
        if self._shown:
            print()

    def show(self, text: str) -> None:
        """Write ``text``, cut to the width, unless the last one is younger than STATUS_PERIOD."""
        now = time.monotonic()
        if now >= self._next:
            self._next, self._shown = now + STATUS_PERIOD, True
            sys.stdout.write(f"\r\x1b[K{text[: get_terminal_size().columns - 1]}")
            sys.stdout.flush()

    def end(self, text: str) -> None:
        """Write ``text`` in full and start a new line."""
        self._next, self._shown = 0.0, False
        print(f"\r\x1b[K{text}", flush=True)


class ProgressLines:
    """Progress lines for a log file; on a terminal, which has a progress bar, none."""

    def __init__(self, console: Console) -> None:
        self._console, self._next = console, time.monotonic() + LINE_PERIOD

    def update(self, text: str) -> None:
        """Print ``text``, unless the last line is younger than LINE_PERIOD."""
        if self._console.is_terminal or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINE_PERIOD
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)


def remaining_time(missing: int, done: int, duration: float) -> str:
    """Return the time that ``missing`` items take if ``done`` took ``duration`` [s]; "" if none."""
    if done <= 0:
        return ""
    seconds = missing * duration / done
    return f"{seconds:.0f} s left" if seconds < 100 else f"{seconds / 60:.0f} min left"


@contextmanager
def _until_the_end(shown: Progress | Status) -> Iterator[None]:
    """Show a bar or status; clear it and show the cursor also if the process ends immediately."""
    before_end.append(shown.stop)
    try:
        with shown:
            yield
    finally:
        before_end.remove(shown.stop)


@contextmanager
def progress_bar(items: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error while ``items`` are computed; in a log file, progress lines.

    Both show the remaining time, from the mean rate since the first update, which follows
    compilation.

    Yields
    ------
    callable
        ``update(done, total)`` shows the number of computed items.

    """
    console = Console(stderr=True)
    lines = ProgressLines(console)
    left = TextColumn("{task.fields[left]}")
    columns = TextColumn(items), BarColumn(), MofNCompleteColumn(), left
    shown = Progress(*columns, console=console, transient=True)
    with _until_the_end(shown):
        bar = shown.add_task(items, total=None, left="")
        first: tuple[int, float] | None = None

        def update(done: int, total: int) -> None:
            nonlocal first
            now = time.monotonic()
            first = first or (done, now)
            left = remaining_time(total - done, done - first[0], now - first[1])
            shown.update(bar, completed=done, total=total, left=left)
            lines.update(", ".join(filter(None, (f"{done} of {total} {items}", left))))

        yield update


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show ``text`` and the elapsed time on standard error, from FIRST_LINE_TIME on.

    A terminal shows one line that is cleared at the end, a log file one line per LINE_PERIOD.
    """
    console, ended = Console(stderr=True), threading.Event()
    start = time.monotonic()

    def show_time() -> None:
        if ended.wait(FIRST_LINE_TIME):
            return
        if console.is_terminal:
            status = console.status(text)
            with _until_the_end(status):
                while not ended.wait(1.0):
                    status.update(f"{text} ({time.monotonic() - start:.0f} s)")
            return
        while True:
            line = f"{text} ({time.monotonic() - start:.0f} s)"
            console.print(line, soft_wrap=True, markup=False, highlight=False)
            if ended.wait(LINE_PERIOD):
                return

    thread = threading.Thread(target=show_time, name="waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def waiting_stages() -> Iterator[Callable[[str], None]]:
    """Show each stage that the yielded function names as ``waiting`` does, until the next one."""
    with ExitStack() as current:

        def begin(text: str) -> None:
            current.close()
            current.enter_context(waiting(text))

        yield begin
