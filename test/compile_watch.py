"""Detection of compilations, loads of compiled code and imports while motors may have torque."""

from __future__ import annotations

import sys
import threading
from typing import Any

from numba.core import event
from numba.core.dispatcher import Dispatcher


class CompileWatch(event.Listener):
    """Records compilations, loads of compiled code and imports while ``armed``.

    ``found`` has a line for each. All dispatchers and imports of the process are observed.
    """

    def __init__(self, armed: bool = False) -> None:
        self.armed, self.found = armed, list[str]()
        self._add = add = Dispatcher.add_overload
        watch = self

        def add_overload(self: Any, result: Any) -> None:
            watch.note(f"compiled or loaded: {self.py_func.__name__}{result.signature.args}")
            add(self, result)

        Dispatcher.add_overload = add_overload
        event.register("numba:compile", self)
        sys.meta_path.insert(0, self)  # type: ignore[arg-type]

    def end(self) -> None:
        """Stop recording."""
        Dispatcher.add_overload = self._add
        event.unregister("numba:compile", self)
        sys.meta_path.remove(self)  # type: ignore[arg-type]

    def note(self, what: str) -> None:
        """Record an event if a motor may have torque."""
        if self.armed:
            self.found.append(f"{what} in {threading.current_thread().name}")

    def on_start(self, happened: event.Event) -> None:
        """Record the start of a compilation."""
        self.note(f"compiling: {happened.data['dispatcher'].py_func.__name__}")

    def on_end(self, happened: event.Event) -> None:
        """Ignore the end of a compilation."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Record an import; leave the search to the other finders."""
        self.note(f"imported: {name}")

    def follow(self, bus: Any) -> None:
        """Arm the watch while a motor of ``bus`` may have torque."""
        on: set[int] = set()
        enable, disable = bus.enable, bus.disable

        def switch_on(ids: Any) -> Any:
            on.update(ids)
            self.armed = True
            return enable(ids)

        def switch_off(ids: Any) -> Any:
            confirmed = disable(ids)
            on.difference_update(confirmed)
            self.armed = bool(on)
            return confirmed

        self.armed = False
        bus.enable, bus.disable = switch_on, switch_off
