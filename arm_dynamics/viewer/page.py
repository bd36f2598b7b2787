"""Web page of an arm: start, show states, close."""

from __future__ import annotations

import logging
import threading
import time as clock
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from secrets import token_urlsafe
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.collision.scene import Scene
from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.viewer.canvas import Canvas, LinkDrag
from arm_dynamics.viewer.controls import (
    Accept,
    Controls,
    EmergencyPanel,
    Feedback,
    Numbers,
    ParameterFields,
)
from arm_dynamics.viewer.drawing import load_visuals
from arm_dynamics.viewer.plot import History, HistorySample
from arm_dynamics.viewer.server import open_server, quiet
from arm_dynamics.viewer.sliders import Target
from arm_dynamics.viewer.table import MotorStates

LOG = logging.getLogger(__name__)
CONTROL_HINT = "open the page with interactive=True"
PERIOD = 1 / 30
"""Time [s] between two drawings of the arm, independent of the rate of ``show``."""
START = clock.monotonic()
FRAME_HEIGHT = 560
"""Height [px] of the page in a notebook."""


class Shown(NamedTuple):
    """Last state, status and states of the motors of ``show``."""

    sample: HistorySample
    status: Mapping[str, str]
    motors: MotorStates


def check_reported(name: str, values: ArrayLike, size: int) -> Vector:
    """Return ``values`` (size,) read-only; NaN stands for a motor without this measurement."""
    vector = as_readonly(values)
    check_vector(name, np.where(np.isnan(vector), 0.0, vector), size)
    return vector


def check_limits(
    names: Sequence[str], limits: Sequence[tuple[float, float]]
) -> tuple[tuple[float, float], ...]:
    """Return one pair of limits per joint; raises InvalidValue unless lower <= upper."""
    ranges = tuple((float(lower), float(upper)) for lower, upper in limits)
    if len(ranges) != len(names):
        raise InvalidValue(f"limits: length = {len(ranges)}; expected {len(names)}, one per joint")
    for name, (lower, upper) in zip(names, ranges, strict=True):
        if not lower <= upper:
            raise InvalidValue(f"limits of {name}: lower = {lower}; expected at most {upper}")
    return ranges


class ArmPage:
    """Web page with the moving arm; by default it is reachable from this machine only.

    The page is view-only by default: it cannot move the arm, and a line on it states this. With
    ``control`` its address contains a random token, and requests without the token are rejected.
    ``interactive`` adds one slider per joint, whose values are passed to the callbacks of
    ``on_target``; they follow ``show``. An emergency stop can only stop the arm. A separate thread
    draws: ``show`` never waits for a browser, and costs almost nothing without one.

    Parameters
    ----------
    urdf : str
        Text of the URDF.
    joint_names : sequence of str
        Names of the n joints of q.
    limits : sequence of pairs of float
        Position limits (n, 2) [rad or m]; may be infinite.
    tool_frame : str
        Link whose path is drawn.
    folder : Path, optional
        Folder of the URDF, for its meshes.
    title : str
        Title of the page.
    port : int
        Port; the next free one if it is busy, 0 for any.
    host : str
        Address to which the server is bound.
    interactive : bool
        Whether the page has sliders; implies ``control``.
    control : bool
        Whether users of the page may move the arm, by ``interactive`` or ``add_controls``.
    control_hint : str
        Text of a view-only page: how to get a page with control.
    embedded : bool
        Whether notebooks on this machine may show the page in a frame.
    poses : mapping, optional
        Named configurations (n,) [rad or m] of the sliders; default: zero.
    initial : array_like, optional
        Initial configuration (n,) [rad or m]; zero by default.
    on_emergency_stop : callable, optional
        Function of the emergency stop button, called in a thread of the page; no button by
        default.

    Raises
    ------
    ConfigError
        If viser or yourdfpy is missing.
    InvalidValue, UnknownName
        If an argument cannot be drawn.

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
        control: bool = False,
        control_hint: str = CONTROL_HINT,
        embedded: bool = False,
        poses: Mapping[str, Sequence[float]] | None = None,
        initial: ArrayLike | None = None,
        on_emergency_stop: Callable[[], None] | None = None,
    ) -> None:
        self.joint_names = tuple(joint_names)
        self._size = size = len(self.joint_names)
        ranges = check_limits(self.joint_names, limits)
        start = check_vector("initial", [0.0] * size if initial is None else initial, size)
        visuals = load_visuals(urdf, folder)
        self._token = token_urlsafe(16) if control or interactive else ""
        self._server = open_server(title, host, port, self._token, embedded=embedded)
        self._host, self._embedded = host, embedded
        self._history = History()
        self._shown: Shown | None = None
        self._watched = False
        self._closing = False
        self._wake = threading.Event()
        self._logged: set[str] = set()
        self.parameters: ParameterFields | None = None
        """Fields of ``add_parameters``."""
        try:
            self._canvas = Canvas(
                self._server,
                visuals,
                names=self.joint_names,
                limits=ranges,
                tool_frame=tool_frame,
                initial=start,
                interactive=interactive,
                view_only=""
                if self._token
                else f"view only, the arm cannot be moved: {control_hint}",
                poses=poses or {"zero": [0.0] * size},
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
        """Address of the page, with the port in use and the token of a page with control."""
        name = f"[{self._host}]" if ":" in self._host else self._host
        token = f"/{self._token}" if self._token else ""
        return f"http://{name}:{self._server.get_port()}{token}"

    def _repr_html_(self) -> str:
        """Page in a frame, for notebooks; a link to it if it may not be framed."""
        address = escape(self.url)
        if not self._embedded:
            return f'<a href="{address}">{address}</a>'
        return f'<iframe src="{address}" width="100%" height="{FRAME_HEIGHT}"></iframe>'

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
        signals: Mapping[str, ArrayLike] | None = None,
        motors: MotorStates | None = None,
    ) -> None:
        """Show a state.

        Parameters
        ----------
        q, v, effort : array_like
            Positions [rad or m], velocities [rad/s or m/s] and efforts [N·m or N], each (n,).
        status : mapping of str to str, optional
            Names and texts of the panel.
        reference : array_like, optional
            Reference configuration (n,) [rad or m], drawn as a ghost.
        time : float, optional
            Time [s] of the plots; default: the elapsed time.
        voltage, temperature : array_like, optional
            Supply voltages [V] and temperatures [°C] of the motors, (n,); NaN for a motor without
            this measurement.
        signals : mapping of str to array_like, optional
            Further quantities of the plots, (n,) each, by name with unit.
        motors : mapping of str to (str, bool), optional
            State of the motor of a joint, such as its fault, and whether it is OK.

        Raises
        ------
        InvalidValue
            For a wrong length or another non-finite entry.

        """
        sample = HistorySample(
            clock.monotonic() - START if time is None else float(time),
            check_vector("q", q, self._size),
            None if v is None else check_vector("v", v, self._size),
            None if effort is None else check_vector("effort", effort, self._size),
            None if reference is None else check_vector("reference", reference, self._size),
            None if voltage is None else check_reported("voltage", voltage, self._size),
            None if temperature is None else check_reported("temperature", temperature, self._size),
            {name: check_reported(name, x, self._size) for name, x in (signals or {}).items()},
        )
        self._history.add(sample)
        self._shown = Shown(sample, dict(status or {}), dict(motors or {}))
        if self._watched:
            self._wake.set()

    def show_status(self, status: Mapping[str, str]) -> None:
        """Show names and texts of the panel with the last state, if there is one."""
        shown = self._shown
        if shown is not None and shown.status != status:
            self._shown = shown._replace(status=dict(status))
            if self._watched:
                self._wake.set()

    def on_target(self, callback: Callable[[Target], None]) -> None:
        """Call ``callback`` with the target (n,) [rad or m] whenever a user moves a slider.

        Raises
        ------
        InvalidValue
            If the page is view-only.

        """
        self._required("on_target").sliders.on_target(callback)

    def set_target(self, target: Sequence[float]) -> None:
        """Move the sliders to ``target`` (n,) [rad or m], clamped to their ranges; calls back.

        Raises
        ------
        InvalidValue
            If the page is view-only, or the length is wrong.

        """
        controls = self._required("set_target")
        controls.sliders.set(check_vector("target", target, self._size).tolist())

    def set_range(self, joint: str, lower: float, upper: float) -> None:
        """Set the limits of a joint [rad or m] on its slider and in the table.

        Raises
        ------
        UnknownName
            If the page has no such joint.
        InvalidValue
            If ``lower`` is above ``upper``.

        """
        if joint not in self.joint_names:
            raise UnknownName("joint of the page", joint, self.joint_names)
        ((low, high),) = check_limits((joint,), ((lower, upper),))
        self._canvas.set_range(self.joint_names.index(joint), low, high)

    def add_parameters(self, title: str, numbers: Numbers, accept: Accept) -> ParameterFields:
        """Add editable ``numbers`` to the panel, below the sliders.

        Parameters
        ----------
        title : str
            Title of the folder.
        numbers : mapping
            Owner to label to number.
        accept : callable
            ``accept(owner, label, number)`` applies an edit, or rejects it by an ArmDynamicsError.

        Raises
        ------
        InvalidValue
            If the page is view-only.

        """
        controls = self._required("add_parameters")
        self.parameters = controls.add_parameters(title, numbers, accept)
        return self.parameters

    def add_controls(self) -> Controls:
        """Add sliders and return the controls, which accept buttons and fields.

        Further calls return the same controls.

        Raises
        ------
        InvalidValue
            If the page is view-only.

        """
        self._require_control("add_controls")
        return self._canvas.add_controls()

    @property
    def scene(self) -> Any:
        """viser scene of the page."""
        return self._canvas.scene

    @property
    def gui(self) -> Any:
        """viser panel of the page."""
        return self._server.gui

    @property
    def reach(self) -> float:
        """Radius [m] of the sphere around the workspace."""
        return self._canvas.reach

    def show_target(self, q: Vector | None) -> None:
        """Show a target (n,) [rad or m] as the ghost and on the sliders; None: the reference."""
        self._canvas.target = q
        if q is not None and self._canvas.controls is not None:
            self._canvas.controls.sliders.show(q.tolist())

    def show_preview(self, q: Vector | None) -> None:
        """Show a configuration (n,) [rad or m] of a preview as the ghost; None ends the preview."""
        self._canvas.preview = q

    def on_link_drag(self, moved: LinkDrag) -> None:
        """Call ``moved(link, point, pointer)`` while a user drags a link, and at the end.

        Raises
        ------
        InvalidValue
            If the page is view-only.

        """
        self._require_control("on_link_drag")
        self._canvas.on_link_drag(moved)

    def show_pull(self, line: tuple[Vector, Vector] | None) -> None:
        """Show the line from a dragged point to the pointer, in base axes [m]; None hides it."""
        self._canvas.show_pull(line)

    def show_scene(self, scene: Scene) -> None:
        """Show the objects around the arm, in place of those shown before; from any thread."""
        self._canvas.show_scene(scene)

    @property
    def closed(self) -> bool:
        """Whether the page is closed."""
        return self._closing

    @property
    def emergency(self) -> EmergencyPanel | None:
        """Emergency stop of the page; None without ``on_emergency_stop``."""
        return self._canvas.emergency

    @property
    def feedback(self) -> Feedback:
        """Line with the result of the last action."""
        return self._canvas.feedback

    @property
    def watched(self) -> bool:
        """Whether a browser shows the page."""
        return self._watched

    def _require_control(self, what: str) -> None:
        if not self._token:
            raise InvalidValue(f"{what}: page = view-only; expected a page with control=True")

    def _required(self, what: str) -> Controls:
        if self._canvas.controls is None:
            raise InvalidValue(f"{what}: page = view-only; expected a page with interactive=True")
        return self._canvas.controls

    def close(self) -> None:
        """Stop the page and free its port; a second call has no effect."""
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
        """Draw the newest state after each change, at most once per ``PERIOD``."""
        wait: float | None = None
        while True:
            self._wake.wait(wait)
            self._wake.clear()
            if self._closing:
                return
            wait, shown = None, self._shown
            if self._watched and shown is not None:
                try:
                    wait = self._canvas.draw(*shown[:2], self._history, shown.motors)
                except Exception as error:  # an error of the page must not end the program
                    if not self._closing and repr(error) not in self._logged:
                        self._logged.add(repr(error))
                        LOG.warning("the page could not be drawn: %r", error)
            clock.sleep(PERIOD)
