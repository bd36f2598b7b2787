"""Numbers that a user can edit on the page: one tab per owner, one field per number."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.viewer.feedback import Feedback
from arm_dynamics.viewer.table import short

Field = tuple[str, str]
"""Owner and label."""
Numbers = Mapping[str, Mapping[str, float]]
"""Owner to label to number."""
Accept = Callable[[str, str, float], None]
"""Applies an edit (owner, label, number), or rejects it by an ArmDynamicsError."""
SETTLED = 0.7
"""Time [s] without another key after which an edit is complete."""


class ParameterFields:
    """Fields of a page; a completed edit is passed to ``accept(owner, label, number)``.

    ``accept`` rejects an edit by an ArmDynamicsError; a text that is not a finite number is also
    rejected. The page then shows the reason in red, and the field returns to its last accepted
    text. ``accept`` is called in threads of the page, one call at a time.
    """

    def __init__(
        self,
        gui: Any,
        title: str,
        numbers: Numbers,
        accept: Accept,
        *,
        order: float | None = None,
        settled: float = SETTLED,
        folded: bool = False,
    ) -> None:
        """Create the fields; with ``folded`` only the title is visible until a user opens it."""
        self.settled = settled
        self._accept = accept
        self._lock = threading.RLock()  # a change of a field by the program calls back immediately
        self._timers: dict[Field, threading.Timer] = {}
        self._fields: dict[Field, Any] = {}
        self._folder = gui.add_folder(title, order=order, expand_by_default=not folded)
        with self._folder:
            tabs = gui.add_tab_group()
            for owner, row in numbers.items():
                with tabs.add_tab(short(owner)):
                    for label, number in row.items():
                        self._fields[owner, label] = gui.add_text(
                            label, _text(number), hint=f"{owner}: {label}"
                        )
            self._feedback = Feedback(gui)
        self._accepted = {field: str(handle.value) for field, handle in self._fields.items()}
        for field, handle in self._fields.items():
            handle.on_update(lambda _, field=field: self._edited(field))

    @property
    def message(self) -> str:
        """Message about the last edit, as HTML."""
        return self._feedback.html

    def text(self, owner: str, label: str) -> str:
        """Return the text of a field."""
        return str(self._fields[owner, label].value)

    def show(self, numbers: Numbers) -> None:
        """Show other numbers without a call of ``accept``.

        A field that a user edits keeps its text; if the edit is rejected, it shows the number.
        """
        with self._lock:
            for (owner, label), handle in self._fields.items():
                number = numbers.get(owner, {}).get(label)
                before = self._accepted[owner, label]
                if number is None or _read(before) == number:
                    continue
                self._accepted[owner, label] = _text(number)
                if handle.value == before:
                    handle.value = _text(number)

    def remove(self) -> None:
        """Remove the fields from the panel."""
        self._folder.remove()

    def _edited(self, field: Field) -> None:
        """Restart the timer after which the edit is complete."""
        timer = threading.Timer(self.settled, self._submit, (field,))
        timer.daemon = True
        with self._lock:
            before, self._timers[field] = self._timers.get(field), timer
        if before is not None:
            before.cancel()
        timer.start()

    def _submit(self, field: Field) -> None:
        """Pass a completed edit to ``accept`` and show the result."""
        with self._lock:
            handle, (owner, label) = self._fields[field], field
            text = handle.value
            if text == self._accepted[field]:
                return
            try:
                number = check_float(f"{owner}: {label}", _read(text))
                self._accept(owner, label, number)
            except ArmDynamicsError as error:
                self._feedback.rejected(error)
                handle.value = self._accepted[field]
            else:
                self._accepted[field] = text
                self._feedback.done(f"{owner}: {label} = {number:g}")


def _text(number: float) -> str:
    return f"{number:.10g}"


def _read(text: str) -> Any:
    """Return the number of ``text``; the text itself if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return text
