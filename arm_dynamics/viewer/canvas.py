"""Contents of the page: the 3D scene and the panel, created once and then updated."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.viewer.controls import Controls, EmergencyPanel, Feedback, Order
from arm_dynamics.viewer.drawing import ArmDrawing, ToolPathLine
from arm_dynamics.viewer.plot import History, HistorySample, JointPlot
from arm_dynamics.viewer.scene_stage import page_reach, set_stage
from arm_dynamics.viewer.skeleton import Skeleton
from arm_dynamics.viewer.table import status_html, table_html

PANEL_PERIOD = 0.15
"""Time [s] between updates of table, plot and path."""
MIN_GHOST_DISTANCE = 0.02
"""Error [rad or m] below which the ghost is hidden, because it would flicker inside the arm."""


class Canvas:
    """The scene and the panel of a page."""

    def __init__(
        self,
        server: Any,
        urdf: Any,
        *,
        names: Sequence[str],
        limits: Sequence[tuple[float, float]],
        tool_frame: str,
        initial: Vector,
        interactive: bool,
        on_emergency: Callable[[], None] | None = None,
    ) -> None:
        skeleton = Skeleton(urdf, names)
        chain = skeleton.chain(tool_frame)
        sphere = page_reach(skeleton, limits, initial, urdf)
        self._names, self._limits = names, list(limits)
        joints = urdf.joint_map
        self._units = ["m" if joints[n].type == "prismatic" else "rad" for n in names]
        set_stage(server, sphere)
        self._arm = ArmDrawing(server.scene, "/arm", urdf, skeleton)
        self._ghost = ArmDrawing(server.scene, "/reference", urdf, skeleton, ghost=True)
        self.trace = ToolPathLine(server.scene, chain, sphere.radius / 500)
        self._gui, self._initial = server.gui, initial
        self.feedback = Feedback(server.gui, order=Order.STATUS - 0.5)
        self.emergency = on_emergency and EmergencyPanel(
            server.gui, on_emergency, self.feedback, order=Order.EMERGENCY
        )
        """The emergency stop, if the page has one."""
        self.controls: Controls | None = None
        """Sliders and buttons that move the arm, after ``add_controls``."""
        self._sliders_follow = interactive
        if interactive:
            self.add_controls()
        self._status = server.gui.add_html("", order=Order.STATUS)
        self._table = server.gui.add_html("", order=Order.TABLE)
        self._plot = JointPlot(server.gui, self._names, self._units, order=Order.PLOT)
        clear = server.gui.add_button("Clear path", order=Order.PATH)
        clear.on_click(lambda _: self.trace.clear())
        server.gui.add_html(status_html({"tool frame": tool_frame}), order=Order.PATH)
        self._panel_due = 0.0
        self._arm.show(initial.tolist())

    def draw(
        self, sample: HistorySample, status: Mapping[str, str], history: History
    ) -> float | None:
        """Show ``sample``; return the time [s] until the panel can be updated, None if it was."""
        self._arm.show(sample.q.tolist())
        reference = sample.reference
        if self._sliders_follow and self.controls is not None:
            self.controls.sliders.follow((sample.q if reference is None else reference).tolist())
        distance = 0.0 if reference is None else np.abs(reference - sample.q).max(initial=0.0)
        if reference is not None and distance > MIN_GHOST_DISTANCE:
            self._ghost.show(reference.tolist())
        self._ghost.visible = bool(distance > MIN_GHOST_DISTANCE)
        wait = self._panel_due - time.monotonic()
        if wait > 0:
            return wait
        self._panel_due = time.monotonic() + PANEL_PERIOD
        self._status.content = status_html(status)
        self._table.content = table_html(self._names, self._limits, sample, self._units)
        self._plot.draw(history)
        self.trace.extend(history)
        self.trace.draw()
        return None

    def set_range(self, index: int, lower: float, upper: float) -> None:
        """Set the limits of joint ``index`` in the table and on its slider."""
        self._limits[index] = lower, upper
        if self.controls is not None:
            self.controls.sliders.set_range(index, lower, upper)

    def add_controls(self) -> Controls:
        """Add one slider per joint and return the controls, which accept buttons and fields."""
        if self.controls is None:
            self.controls = Controls(
                self._gui, self._names, self._limits, self._units, self._initial, self.feedback
            )
        return self.controls
