"""Replay of a recorded motion on a page, with a timeline."""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.viewer.controls import Order
from arm_dynamics.viewer.page import PERIOD, ArmPage
from arm_dynamics.viewer.plot import RATE, WINDOW
from arm_dynamics.viewer.show import PORT, open_page

SPEEDS = {"0.1": 0.1, "0.25": 0.25, "0.5": 0.5, "1": 1.0, "2": 2.0, "5": 5.0}
PLAY, PAUSE, START = "Play", "Pause", "To the start"
SLIDER_PERIOD = 0.2
"""Time [s] between two updates of the timeline while the recording plays."""


class RecordedMotion(Protocol):
    """Recorded states of an arm, such as ``arm_dynamics.recording.Recording``."""

    @property
    def arm(self) -> ArmModel | None:
        """The recorded arm."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints of the columns."""

    @property
    def time(self) -> Vector:
        """Times (n,) [s]."""

    @property
    def q(self) -> Vector:
        """Positions (n, nv) [rad or m]."""

    @property
    def v(self) -> Vector:
        """Velocities (n, nv) [rad/s or m/s]."""

    @property
    def tau(self) -> Vector:
        """Efforts (n, nv) [N·m or N]."""

    @property
    def references(self) -> Mapping[str, Vector]:
        """References, "position" (n, nv) [rad or m] among them."""


class Player:
    """Page that replays a motion: play, pause, speed, and a timeline to go to any time.

    Parameters
    ----------
    motion : RecordedMotion
        The motion; it must describe its arm, and contain all positions of each shown state.
    port : int
        Port of the page; the next free one if it is busy, 0 for any.

    Raises
    ------
    InvalidValue
        If the recording does not describe its arm, or has no complete state.
    ConfigError
        If viser or yourdfpy is missing.

    """

    def __init__(self, motion: RecordedMotion, port: int = PORT) -> None:
        arm = motion.arm
        if arm is None:
            raise InvalidValue("recording: arm = none; expected a recording that describes its arm")
        columns = [motion.joint_names.index(name) for name in arm.joint_names]
        complete = np.isfinite(motion.q[:, columns]).all(axis=1)
        if not complete.any():
            raise InvalidValue("recording: complete states = 0; expected at least one")

        def rows(values: Vector | None) -> Vector | None:
            return None if values is None else values[complete][:, columns]

        self._times = motion.time[complete]
        self._q = motion.q[complete][:, columns]
        self._others = rows(motion.v), rows(motion.tau), rows(motion.references.get("position"))
        self._now, self._shown = float(self._times[0]), -1
        self._speed, self._slider_due = 1.0, 0.0
        self._lock = threading.Lock()  # of the present time
        self.playing = True
        """Whether time passes."""
        self.page: ArmPage = open_page(arm, port, control_hint="this page replays a recording")
        """The page."""
        gui = self.page.gui
        first, last = float(self._times[0]), float(self._times[-1])
        self._slider = gui.add_slider(
            "Time [s]", first, max(last, first + 1e-3), 1e-3, first, order=Order.TIME
        )
        self._slider.on_update(self._moved)
        self._row = gui.add_button_group("Replay", (PAUSE, START), order=Order.TIME + 0.1)
        self._row.on_click(self._pressed)
        speed = gui.add_dropdown("Speed", tuple(SPEEDS), initial_value="1", order=Order.TIME + 0.2)
        speed.on_update(lambda _: self._set_speed(SPEEDS[speed.value]))
        self._show()

    @property
    def time(self) -> float:
        """Time [s] of the recording that is shown."""
        with self._lock:
            return self._now

    def go_to(self, time: float) -> None:
        """Go to ``time`` [s] of the recording; the plots show the motion before it."""
        first, last = float(self._times[0]), float(self._times[-1])
        with self._lock:
            self._now = min(max(float(time), first), last)
            index, begin = self._index(), self._now - WINDOW
            earlier = np.arange(np.searchsorted(self._times, begin), index)
            every = max(1, int(earlier.size / (WINDOW * RATE)))
            for i in earlier[::every]:
                self._show_state(int(i))
            self._show()

    def advance(self, elapsed: float) -> None:
        """Let ``elapsed`` [s] of wall-clock time pass; playing ends at the end of the motion."""
        if not self.playing:
            return
        last = float(self._times[-1])
        with self._lock:
            self._now = min(self._now + elapsed * self._speed, last)
            self._show()
        if self._now == last:
            self._set_playing(False)
        if clock.monotonic() >= self._slider_due or not self.playing:
            self._slider_due = clock.monotonic() + SLIDER_PERIOD
            self._slider.value = round(self._now, 3)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Play until ``stopped()`` is true."""
        before = clock.monotonic()
        while not stopped():
            clock.sleep(PERIOD)
            now = clock.monotonic()
            self.advance(now - before)
            before = now

    def close(self) -> None:
        """Close the page."""
        self.page.close()

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _index(self) -> int:
        """Return the index of the last state at or before the present time."""
        return max(int(np.searchsorted(self._times, self._now, side="right")) - 1, 0)

    def _show(self) -> None:
        index = self._index()
        if index != self._shown:
            self._show_state(index)

    def _show_state(self, i: int) -> None:
        self._shown = i
        v, effort, reference = (
            None if rows is None or not np.isfinite(rows[i]).all() else rows[i]
            for rows in self._others
        )
        total = f"{self._times[-1]:.3f} s"
        status = {"time": f"{self._times[i]:.3f} s of {total}"}
        time = float(self._times[i])
        self.page.show(self._q[i], v, effort, status, reference, time=time)

    def _moved(self, event: Any) -> None:
        if event.client is not None:  # a user moved it
            self.go_to(float(self._slider.value))

    def _set_playing(self, playing: bool) -> None:
        self.playing = playing
        self._row.options = (PAUSE if playing else PLAY, START)

    def _set_speed(self, speed: float) -> None:
        self._speed = speed

    def _pressed(self, event: Any) -> None:
        name = event.target.value
        if name == START:
            self.go_to(float(self._times[0]))
            self._slider.value = round(self._now, 3)
        elif name == PLAY and self._now == float(self._times[-1]):
            self.go_to(float(self._times[0]))
        self._set_playing(name == PLAY or (name == START and self.playing))
