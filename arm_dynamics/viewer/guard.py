"""Messages of a browser: one that no control of the page sends is ignored, with a warning."""

from __future__ import annotations

import logging
from importlib import import_module
from math import isfinite
from typing import Any

LOG = logging.getLogger(__name__)
LONGEST = 100
"""Characters of a text field."""


def guard_inputs(server: Any) -> None:
    """Let viser have those updates of its inputs only that ``fault`` finds nothing wrong with.

    viser itself sets whatever attribute of a control a browser names to whatever value it sends.
    """
    update: Any = import_module("viser._messages").GuiUpdateMessage
    gui, interface = server.gui, server.gui._websock_interface
    (handle,) = interface._incoming_handlers[update]

    async def checked(client: Any, message: Any) -> None:
        known = gui._gui_input_handle_from_uuid.get(message.uuid)
        if known is None:
            return  # one of a dialog, which has a handler of its own, or no longer there
        found = fault(known._impl, message.updates)
        if found:
            LOG.warning("a browser sent a value that is rejected: %s", found)
        else:
            await handle(client, message)

    interface.unregister_handler(update, handle)
    interface.register_handler(update, checked)


def fault(control: Any, updates: Any) -> str:
    """Return what is wrong with ``updates`` of viser's ``control``; "" for nothing.

    Numbers must be finite; a text is at most LONGEST characters; an option is one of those
    offered. A number beyond a slider's range passes, and is clamped where it is read.
    """
    if not isinstance(updates, dict) or set(updates) != {"value"}:
        return "expected the value of a control and nothing else"
    value, present = updates["value"], control.value
    options = getattr(control.props, "options", None)
    if options is not None and value not in options:
        return "not one of the options"
    if isinstance(present, tuple):
        if not isinstance(value, list | tuple) or len(value) != len(present):
            return f"expected {len(present)} values"
        return next(filter(None, map(_fault, value, present)), "")
    return _fault(value, present)


def _fault(value: Any, present: Any) -> str:
    if isinstance(present, bool):
        return "" if isinstance(value, bool) else "expected true or false"
    if isinstance(present, int | float):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if number and isfinite(value) else "expected a finite number"
    if isinstance(present, str):
        text = isinstance(value, str) and len(value) <= LONGEST
        return "" if text else f"expected a text of at most {LONGEST} characters"
    return "this control has no value to set"
