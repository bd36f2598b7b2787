"""Everything on the page, put there once and then kept up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.viewer.drawing import ArmDrawing
from arm_dynamics.viewer.history import History, Sample
from arm_dynamics.viewer.plot import JointPlot
from arm_dynamics.viewer.skeleton import Skeleton
from arm_dynamics.viewer.sliders import JointSliders
from arm_dynamics.viewer.stage import reach, set_stage
from arm_dynamics.viewer.table import status_html, table_html
from arm_dynamics.viewer.trace import ToolTrace

PANEL_PERIOD = 0.15  # [s] between updates of table, plot and trace
APART = 0.02  # [rad] below which the ghost would only flicker inside the arm


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
        sphere = reach(skeleton, limits)
        self._names, self._limits = names, list(limits)
        set_stage(server, sphere)
        self._arm = ArmDrawing(server.scene, "/arm", urdf, skeleton)
        self._ghost = ArmDrawing(server.scene, "/reference", urdf, skeleton, ghost=True)
        self.trace = ToolTrace(server.scene, chain, sphere.radius / 500)
        if on_emergency is not None:
            button = server.gui.add_button("EMERGENCY STOP", color="red", order=-1)
            button.on_click(lambda _: on_emergency())
        self._add_panel(server.gui, initial, interactive)
        self._panel_due = 0.0
        self._arm.show(initial.tolist())

    def draw(self, sample: Sample, status: Mapping[str, str], history: History) -> float | None:
        """Show ``sample``; return the seconds until the panel may follow, None if it did."""
        self._arm.show(sample.q.tolist())
        self._show_ghost(sample)
        wait = self._panel_due - time.monotonic()
        if wait > 0:
            return wait
        self._panel_due = time.monotonic() + PANEL_PERIOD
        self._status.content = status_html(status)
        self._table.content = table_html(self._names, self._limits, sample)
        self._plot.draw(history)
        self.trace.extend(history)
        self.trace.draw()
        return None

    def set_range(self, index: int, lower: float, upper: float) -> None:
        """Let joint ``index`` run from ``lower`` to ``upper`` in the table and on its slider."""
        self._limits[index] = lower, upper
        if self.sliders is not None:
            self.sliders.set_range(index, lower, upper)

    def _show_ghost(self, sample: Sample) -> None:
        reference = sample.reference
        apart = reference is not None and np.abs(reference - sample.q).max(initial=0.0) > APART
        if reference is not None and apart:
            self._ghost.show(reference.tolist())
        self._ghost.visible = bool(apart)

    def _add_panel(self, gui: Any, initial: Vector, interactive: bool) -> None:
        self._status = gui.add_html("")
        self.sliders = (
            JointSliders(gui, self._names, self._limits, initial.tolist()) if interactive else None
        )
        self._table = gui.add_html("")
        self._plot = JointPlot(gui, self._names)
        gui.add_button("Clear trace").on_click(lambda _: self.trace.clear())
