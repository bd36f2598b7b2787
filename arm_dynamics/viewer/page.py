"""The page of an arm: start it, show it states, close it."""

from __future__ import annotations

import logging
import threading
import time as clock
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import check_vector
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.viewer.canvas import Canvas
from arm_dynamics.viewer.controls import Controls
from arm_dynamics.viewer.drawing import load_visuals
from arm_dynamics.viewer.emergency import EmergencyPanel
from arm_dynamics.viewer.feedback import Feedback
from arm_dynamics.viewer.given import checked_limits, reported
from arm_dynamics.viewer.parameter_fields import Accept, Numbers, ParameterFields
from arm_dynamics.viewer.plot import History, HistorySample
from arm_dynamics.viewer.server import open_server, quiet
from arm_dynamics.viewer.sliders import Target

LOG = logging.getLogger(__name__)
PERIOD = 1 / 30  # [s] between drawings of the arm, whatever the rate of show()
START = clock.monotonic()


class Shown(NamedTuple):
    """What show() was last given."""

    sample: HistorySample
    status: Mapping[str, str]


class ArmPage:
    """A web page with the moving arm, on this machine only.

    View-only: nothing on the page can move the arm, unless ``interactive`` puts a slider a joint
    on it, whose values go to the callbacks given to ``on_target``; an emergency stop, where it is
    wired, only stops it. Drawing happens in a thread of its own: ``show`` never waits for a
    browser, and costs next to nothing while none is there.
    Raises ConfigError without viser, InvalidValue or UnknownName for arguments that cannot be
    drawn.
    """

    def __init__(
        self,
        urdf: str,
        joint_names: Sequence[str],
        *,
        limits: Sequence[tuple[float, float]],
        tool_frame: str,
        folder: Path | None = None,
        title: str = "arm",
        port: int = 8080,
        host: str = "127.0.0.1",
        interactive: bool = False,
        initial: ArrayLike | None = None,
        on_emergency_stop: Callable[[], None] | None = None,
    ) -> None:
        """Start the page; ``limits`` [rad or m] may be infinite, ``folder`` holds meshes.

        Where ``on_emergency_stop`` is given, a red button calls it, in a thread of the page.
        """
        self.joint_names = tuple(joint_names)
        self._size = size = len(self.joint_names)
        ranges = checked_limits(self.joint_names, limits)
        start = check_vector("initial", [0.0] * size if initial is None else initial, size)
        visuals = load_visuals(urdf, folder)
        self._server = open_server(title, host, port)
        self._host = host
        self._history = History()
        self._shown: Shown | None = None
        self._watched = False
        self._closing = False
        self._wake = threading.Event()
        self._told: set[str] = set()
        self.parameters: ParameterFields | None = None
        """What ``add_parameters`` put on the page."""
        try:
            self._canvas = Canvas(
                self._server,
                visuals,
                names=self.joint_names,
                limits=ranges,
                tool_frame=tool_frame,
                initial=start,
                interactive=interactive,
                on_emergency=on_emergency_stop,
            )
        except BaseException:
            self.close()
            raise
        self._server.on_client_connect(lambda _: self._watch())
        self._server.on_client_disconnect(lambda _: self._watch())
        self._thread = threading.Thread(target=self._run, name="arm page", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page, with the port that is really in use."""
        name = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{name}:{self._server.get_port()}"

    def show(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        effort: ArrayLike | None = None,
        status: Mapping[str, str] | None = None,
        reference: ArrayLike | None = None,
        *,
        time: float | None = None,
        voltage: ArrayLike | None = None,
        temperature: ArrayLike | None = None,
    ) -> None:
        """Show a state: q [rad or m], v [1/s], effort [N m or N], each of shape (n,).

        ``reference`` is drawn as a ghost; ``status`` is any pairs of name and text; ``time``
        [s] is the plots' axis (default: the wall clock). ``voltage`` [V] and ``temperature`` [°C]
        of the motors can be plotted; NaN stands for a motor that reports none. Raises InvalidValue
        for a wrong length or another non-finite entry, and nothing else.
        """
        sample = HistorySample(
            clock.monotonic() - START if time is None else float(time),
            check_vector("q", q, self._size),
            None if v is None else check_vector("v", v, self._size),
            None if effort is None else check_vector("effort", effort, self._size),
            None if reference is None else check_vector("reference", reference, self._size),
            None if voltage is None else reported("voltage", voltage, self._size),
            None if temperature is None else reported("temperature", temperature, self._size),
        )
        self._history.add(sample)
        self._shown = Shown(sample, dict(status or {}))
        if self._watched:
            self._wake.set()

    def on_target(self, callback: Callable[[Target], None]) -> None:
        """Call ``callback`` with the sliders' values [rad or m] whenever a user moves one.

        Raises InvalidValue on a page that is view-only.
        """
        self._required("on_target").sliders.on_target(callback)

    def set_target(self, target: Sequence[float]) -> None:
        """Move the sliders to ``target`` [rad or m], as a user would; clamped into their ranges.

        Raises InvalidValue on a page that is view-only, and for a wrong length.
        """
        controls = self._required("set_target")
        controls.sliders.set(check_vector("target", target, self._size).tolist())

    def set_range(self, joint: str, lower: float, upper: float) -> None:
        """Let a joint's slider and the table's bar run from ``lower`` to ``upper`` [rad or m].

        Raises UnknownName for another joint, InvalidValue for lower above upper.
        """
        if joint not in self.joint_names:
            raise UnknownName("joint of the page", joint, self.joint_names)
        ((low, high),) = checked_limits((joint,), ((lower, upper),))
        self._canvas.set_range(self.joint_names.index(joint), low, high)

    def add_parameters(self, title: str, numbers: Numbers, accept: Accept) -> ParameterFields:
        """Put ``numbers`` on the panel, behind the sliders, for a user to edit.

        ``accept(owner, label, number)`` takes an edit or raises an ArmDynamicsError.
        Raises InvalidValue on a page that is view-only.
        """
        controls = self._required("add_parameters")
        self.parameters = controls.add_parameters(title, numbers, accept)
        return self.parameters

    def add_controls(self) -> Controls:
        """Let a user act on the arm: sliders now, and whatever is added to what this returns.

        What is there already is returned again.
        """
        return self._canvas.add_controls()

    @property
    def emergency(self) -> EmergencyPanel | None:
        """The emergency stop on the page, where ``on_emergency_stop`` was given."""
        return self._canvas.emergency

    @property
    def feedback(self) -> Feedback:
        """The line that reports what came of a user's actions."""
        return self._canvas.feedback

    @property
    def watched(self) -> bool:
        """Whether a browser shows the page now."""
        return self._watched

    def _required(self, what: str) -> Controls:
        if self._canvas.controls is None:
            raise InvalidValue(f"{what}: the page is view-only; use interactive=True")
        return self._canvas.controls

    def close(self) -> None:
        """Stop the page and free its port; a second call does nothing."""
        if self._closing:
            return
        self._closing = True
        self._wake.set()
        with quiet():
            self._server.stop()

    def __enter__(self) -> ArmPage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _watch(self) -> None:
        self._watched = bool(self._server.get_clients())
        if self._watched:
            self._wake.set()

    def _run(self) -> None:
        """Draw the newest state whenever there is one, at most once a ``PERIOD``."""
        wait: float | None = None
        while True:
            self._wake.wait(wait)
            self._wake.clear()
            if self._closing:
                return
            wait = self._draw() if self._watched else None
            clock.sleep(PERIOD)

    def _draw(self) -> float | None:
        """Draw; return the time [s] after which a part left out should follow, or None."""
        shown = self._shown
        if shown is None:
            return None
        try:
            return self._canvas.draw(shown.sample, shown.status, self._history)
        except Exception as error:  # drawing must never end what it watches
            if not self._closing and repr(error) not in self._told:
                self._told.add(repr(error))
                LOG.warning("the page could not be drawn: %r", error)
            return None
