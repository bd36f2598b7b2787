"""Folder of a page: numbered steps, buttons, a line of progress, and a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from arm_dynamics.core.background_process import BackgroundProcess
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.core.files import output_file
from arm_dynamics.identification.page.work import ShownMotion
from arm_dynamics.viewer.controls import Action, ActionRow, Feedback
from arm_dynamics.viewer.page import ArmPage
from arm_dynamics.viewer.table import DIM, STYLE

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,59}")
"""Name of a folder or file in the working directory."""
CANCEL = "Cancel"


def free_name(stem: str) -> str:
    """Return ``stem`` with the first number that no file of the working directory uses."""
    stem, number = re.sub(r"[^\w.-]", "_", stem)[:40], 1
    while any(Path.cwd().glob(f"{stem}_{number}*")):
        number += 1
    return f"{stem}_{number}"


def new_path(name: str, suffix: str = "") -> Path:
    """Return the path of a new file or folder of the working directory; raise InvalidValue."""
    if not NAME.fullmatch(name):
        raise InvalidValue(
            f"name = '{name}'; expected letters, digits, '_', '-' and '.', at most 60, without a"
            " folder"
        )
    path = Path.cwd() / f"{name}{suffix}"
    if path.exists():
        raise InvalidValue(f"name = '{path.name}'; expected a new one: it exists in {path.parent}")
    return path


def write_new(path: Path, text: str) -> None:
    """Write ``text`` to a new file; raise ConfigError if it exists or cannot be written."""
    with output_file(path) as file, file.open("x", encoding="utf-8") as stream:
        stream.write(text)


class Steps:
    """Folder with the current one of several steps in bold.

    ``add_fields`` of a subclass adds its fields, ``offered`` returns its present buttons and
    ``current`` its present step. Actions run in threads of the page, ``update`` in its loop.
    """

    def __init__(
        self,
        page: ArmPage,
        title: str,
        order: float,
        steps: Sequence[str],
        actions: Mapping[str, Action],
    ) -> None:
        self._page, self._names = page, tuple(steps)
        self._process: BackgroundProcess[Any] | None = None
        self._finish: Callable[[Any], str] = str
        self._shown = ""
        gui = page.gui
        with gui.add_folder(title, order=order, expand_by_default=False):
            self._list = gui.add_html("")
            self.add_fields(gui)
            self._line = Feedback(gui)
            actions = {**actions, CANCEL: self._cancel}
            self._row = ActionRow(gui, "", actions, self._line, offered=self.offered())
            self._report = gui.add_html("")

    def add_fields(self, gui: Any) -> None:
        """Add fields below the list of the steps."""

    def offered(self) -> tuple[str, ...]:
        """Return the names of the present buttons."""
        return ()

    def current(self) -> int:
        """Return the index of the present step."""
        return 0

    def progress(self) -> str:
        """Return the progress of a motion; "" without one."""
        return ""

    @property
    def message(self) -> str:
        """HTML of the last message."""
        return self._line.html

    @property
    def report(self) -> str:
        """HTML of the report."""
        return str(self._report.content)

    def press(self, name: str) -> None:
        """Run the action of a button in the caller's thread."""
        self._row.press(name)

    def update(self) -> None:
        """Show step, buttons and progress; accept the result of the background process."""
        process = self._process
        if process is not None:
            try:
                result = process.poll()
                if result is not None:
                    self._process = None
                    self._line.done(self._finish(result[0]))
            except ArmDynamicsError as error:
                self._process = None
                self._line.rejected(error)
        self._row.offer(*((CANCEL,) if self._process is not None else self.offered()))
        text = self._process.progress if self._process is not None else self.progress()
        if text and text != self._shown:
            self._line.note(text)
        self._shown = text
        html = _steps_html(self._names, self.current())
        if self._list.content != html:
            self._list.content = html

    def close(self) -> None:
        """End the background process."""
        process, self._process = self._process, None
        if process is not None:
            process.cancel()

    def _run(self, work: Callable[..., Any], *arguments: Any, finish: Callable[[Any], str]) -> str:
        """Start work in another process; ``finish`` gets its result and returns a message."""
        self._finish = finish
        self._process = BackgroundProcess(work, *arguments)
        return "started"

    def _cancel(self) -> str:
        self.close()
        return "canceled"


def _steps_html(names: Sequence[str], current: int) -> str:
    parts = (
        f"<b>{i + 1} {escape(name)}</b>"
        if i == current
        else f"<span style='{DIM}'>{i + 1} {escape(name)}</span>"
        for i, name in enumerate(names)
    )
    return f'<div style="{STYLE}">{" · ".join(parts)}</div>' if names else ""


class GhostPlayer:
    """Shows a motion once by the ghost of a page."""

    def __init__(self, page: ArmPage) -> None:
        self._page = page
        self._motion: ShownMotion | None = None
        self._begin = 0.0

    def play(self, motion: ShownMotion | None, now: float) -> None:
        """Start to show a motion at ``now`` [s]; None ends it."""
        self._motion, self._begin = motion, now

    def update(self, now: float) -> None:
        """Show the configuration at ``now`` [s]."""
        motion = self._motion
        if motion is None:
            self._page.show_preview(None)
            return
        index = int((motion.times <= now - self._begin).sum()) - 1
        if index >= len(motion.times) - 1:
            self._motion = None
        self._page.show_preview(motion.q[max(index, 0)])
