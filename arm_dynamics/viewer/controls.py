"""Controls of a page: joint sliders, buttons, parameter fields, emergency stop, their messages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.viewer.sliders import JointSliders
from arm_dynamics.viewer.table import STYLE, short


class Order:
    """Order of the parts of the panel, from the top."""

    (
        EMERGENCY, STATUS, TIME, ACTIONS, TARGETS, OPEN_FIELDS, TABLE, PLOT, CONTROLLER,
        FOLDED_FIELDS, RECORDING, IDENTIFICATION, GRAVITY, PATH,
    ) = map(float, range(14))  # fmt: skip


GOOD, BAD, PLAIN = (
    "var(--mantine-color-green-text, #69db7c)",
    "var(--mantine-color-red-text, #ff8787)",
    "inherit",
)
"""Colors of texts, which follow the theme of the page."""


class Feedback:
    """Line of text: green for a completed action, red for a rejected one, else without color."""

    def __init__(self, gui: Any, *, order: float | None = None) -> None:
        self._line = gui.add_html("", order=order)

    @property
    def html(self) -> str:
        """HTML text of the line."""
        return str(self._line.content)

    def done(self, text: str) -> None:
        """Show the result of a completed action."""
        self._show(GOOD, text)

    def rejected(self, reason: object) -> None:
        """Show the reason of a rejected action."""
        self._show(BAD, f"rejected: {reason}")

    def note(self, text: str) -> None:
        """Show another message, such as that of a running action."""
        self._show(PLAIN, text)

    def _show(self, color: str, text: str) -> None:
        self._line.content = (
            f'<div role="status" style="{STYLE};color:{color};overflow-wrap:anywhere">'
            f"{escape(text)}</div>"
        )


Action = Callable[[], str]
"""Returns a message about the action, or raises an ArmDynamicsError that rejects it."""


class ActionRow:
    """Row of buttons, one for each action; only those ``offered`` are visible until ``offer``."""

    def __init__(
        self,
        gui: Any,
        label: str,
        actions: Mapping[str, Action],
        feedback: Feedback,
        *,
        offered: Sequence[str] = (),
        order: float | None = None,
    ) -> None:
        self._actions, self._feedback = dict(actions), feedback
        self._busy = threading.Lock()
        self._row = gui.add_button_group(label, tuple(offered or actions), order=order)
        self._row.on_click(lambda event: self.press(event.target.value))

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of the visible buttons."""
        return tuple(self._row.options)

    def offer(self, *names: str) -> None:
        """Show these buttons, in this order."""
        if names != self.offered:
            self._row.options = names

    def press(self, name: str) -> None:
        """Run the action ``name`` in the caller's thread, and report its result.

        It is rejected while another action runs.
        """
        if not self._busy.acquire(blocking=False):
            self._feedback.rejected(f"{name}: another action is running")
            return
        try:
            self._feedback.note(f"{name} ...")
            self._feedback.done(self._actions[name]())
        except ArmDynamicsError as error:
            self._feedback.rejected(error)
        finally:
            self._busy.release()


class Choice:
    """Menu of a page; ``choose(option)`` applies an option, or rejects it by an ArmDynamicsError.

    After a rejection the menu shows the last accepted option.
    """

    def __init__(
        self,
        gui: Any,
        label: str,
        options: Sequence[str],
        choose: Callable[[str], str],
        feedback: Feedback,
        *,
        order: float | None = None,
    ) -> None:
        self._choose, self._feedback = choose, feedback
        self._busy = threading.Lock()
        self._menu = gui.add_dropdown(label, tuple(options), order=order)
        self._accepted = str(self._menu.value)
        self._menu.on_update(self._changed)

    def show(self, option: str) -> None:
        """Show ``option``, which is added if the menu does not have it."""
        if option not in self._menu.options:
            self._menu.options = (*self._menu.options, option)
        if option != self._accepted:
            self._accepted = option
            self._menu.value = option

    def _changed(self, event: Any) -> None:
        if event.client is None:  # the program has set it
            return
        with self._busy:
            option = str(self._menu.value)
            if option == self._accepted:
                return
            before, self._accepted = self._accepted, option
            try:
                self._feedback.note(f"{option} ...")
                self._feedback.done(self._choose(option))
            except ArmDynamicsError as error:
                self._feedback.rejected(error)
                self._accepted = before
                self._menu.value = before


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


class Controls:
    """Joint sliders, and the buttons and parameter fields added to them."""

    def __init__(
        self,
        gui: Any,
        names: Sequence[str],
        limits: Sequence[tuple[float, float]],
        units: Sequence[str],
        initial: Vector,
        feedback: Feedback,
        poses: Mapping[str, Sequence[float]],
    ) -> None:
        self._gui, self.feedback = gui, feedback
        self.sliders = JointSliders(
            gui, names, limits, initial.tolist(), units, poses=poses, order=Order.TARGETS
        )

    def add_actions(
        self,
        label: str,
        actions: Mapping[str, Action],
        offered: Sequence[str] = (),
        *,
        order: float = Order.ACTIONS,
    ) -> ActionRow:
        """Add a row of buttons above the sliders; ``offered`` are visible first, by default all."""
        return ActionRow(self._gui, label, actions, self.feedback, offered=offered, order=order)

    def add_choice(
        self, label: str, options: Sequence[str], choose: Callable[[str], str], *, order: float
    ) -> Choice:
        """Add a menu; ``choose(option)`` applies an option or raises an ArmDynamicsError."""
        return Choice(self._gui, label, options, choose, self.feedback, order=order)

    def add_text(self, *, order: float) -> Feedback:
        """Add a line of text."""
        return Feedback(self._gui, order=order)

    def add_parameters(
        self, title: str, numbers: Numbers, accept: Accept, *, folded: bool = False
    ) -> ParameterFields:
        """Add a folder of editable ``numbers`` to the panel, open or ``folded``.

        ``accept(owner, label, number)`` applies an edit or raises an ArmDynamicsError.
        """
        order = Order.FOLDED_FIELDS if folded else Order.OPEN_FIELDS
        return ParameterFields(self._gui, title, numbers, accept, order=order, folded=folded)


RELEASED = "emergency stop released"
QUESTION = "The arm may move again as soon as the emergency stop is released."


NARROW_PANEL = """<style>@media (max-width: 36em) {
  [style*="max-height: 60%"] {max-height: 45% !important}
}</style>"""
"""Lowers the panel of a narrow screen, so that the arm has more than half of it."""
STICKY = """<style>
div:has(> div > div > div > button[id="ID"]) {overflow: clip !important; min-width: 0}
div:has(> button[id="ID"]) {position: sticky; top: 0; z-index: 6;
  background: var(--mantine-color-body); padding-top: 0.4em; margin-top: -0.4em}
.fold {display: none}
@media (max-width: 36em) {
  .fold {display: block; text-align: right; padding: 0 10px; font-size: 12px}
  [style*="max-height: 60%"]:has(.fold input:checked) {max-height: 8em !important}
  [style*="max-height: 60%"] [style*="cursor: pointer"][style*="3.5em"] {pointer-events: none}
  [style*="max-height: 60%"] [style*="3.5em"] button {pointer-events: auto}
}
</style><label class="fold"><input type="checkbox"> small panel</label>"""
"""Keeps the button ID visible while the panel scrolls. The title of the sheet of a narrow screen
folds it no longer, because the browser ignores clicks into a folded sheet; a check box instead
makes the sheet small, down to the button."""


WINDOW = """<style>
body:has(button[id="PANEL"]) [class*="Paper"][style*="absolute"]:has(button[id="ID"]),
[class*="Tabs-root"]:has(button[id="ID"]),
[class*="Paper"][style*="absolute"]:has(button[id="ID"])
  *:not(:has(button[id="ID"]), button[id="ID"], button[id="ID"] *) {display: none !important}
[class*="Paper"][style*="absolute"]:has(button[id="ID"]) {padding-top: 0.4em}
[class*="Notifications-root"][data-position="top-left"] {top: 5em !important}
</style>"""
"""Hides the window of the button ID while the button PANEL exists, and always its title, by which
a user could minimize it. In the sheet of a narrow screen PANEL always exists. Notifications leave
the corner of the window free."""
WINDOW_WIDTH, WINDOW_DISTANCE = 220.0, 15.0
"""Width of this window, and distance from the corner of the scene [px]."""


class EmergencyPanel:
    """A red button, a line with the state, and a button "Release" while the stop is engaged.

    The button stays visible while the panel scrolls. While the panel is minimized a second one is
    visible in a corner of the scene.
    """

    def __init__(
        self, gui: Any, press: Callable[[], None], feedback: Feedback, *, order: float
    ) -> None:
        self._feedback = feedback
        self._release: Action | None = None
        button = gui.add_button("EMERGENCY STOP", color="red", order=order)
        button.on_click(lambda _: press())
        panel_id = button._impl.uuid
        gui.add_html(STICKY.replace("ID", panel_id), order=order + 0.05)
        window = gui.add_panel()
        with window.add_tab("Stop"):
            fixed = gui.add_button("EMERGENCY STOP", color="red")
            fixed.on_click(lambda _: press())
            gui.add_html(WINDOW.replace("ID", fixed._impl.uuid).replace("PANEL", panel_id))
        window.float(x=WINDOW_DISTANCE, y=WINDOW_DISTANCE, width=WINDOW_WIDTH)
        self._state = gui.add_html("", order=order + 0.1)
        self._button = gui.add_button("Release", visible=False, order=order + 0.2)
        self._button.on_click(lambda event: self._confirm(event.client))
        self._engaged: str | None = None

    def allow_release(self, release: Action | None) -> None:
        """Set the action of the release, called after confirmation; None disables the release."""
        self._release = release
        self._update_button()

    def show(self, engaged: str) -> None:
        """Show the source of the emergency stop; "" if it is released."""
        if engaged != self._engaged:
            self._engaged = engaged
            text, color = (engaged, BAD) if engaged else (RELEASED, GOOD)
            self._state.content = (
                f'<div role="status" style="{STYLE};color:{color}">{escape(text)}</div>'
            )
            self._update_button()

    def _update_button(self) -> None:
        self._button.visible = bool(self._engaged) and self._release is not None

    def _confirm(self, client: Any) -> None:
        """Open a dialog on the page of the browser that pressed "Release"."""
        dialog = client.gui.add_modal("Release the emergency stop?")
        with dialog:
            client.gui.add_markdown(QUESTION)
            yes, no = client.gui.add_button("Release now"), client.gui.add_button("Cancel")

        def confirmed(_: Any) -> None:
            dialog.close()
            if self._release is None:
                return
            try:
                self._feedback.done(self._release())
            except ArmDynamicsError as error:
                self._feedback.rejected(error)

        yes.on_click(confirmed)
        no.on_click(lambda _: dialog.close())
