"""Contents of the page: the 3D scene and the panel, created once and then updated."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.viewer.controls import (
    NARROW_PANEL,
    Controls,
    EmergencyPanel,
    Feedback,
    Order,
)
from arm_dynamics.viewer.drawing import ArmDrawing, ToolPathLine, draw_object, place_object
from arm_dynamics.viewer.plot import History, HistorySample, JointPlot
from arm_dynamics.viewer.scene_stage import THEMES, Stage, page_reach
from arm_dynamics.viewer.skeleton import Skeleton, rotation_matrix
from arm_dynamics.viewer.table import MotorStates, motors_html, status_html, table_html

PANEL_PERIOD = 0.15
"""Time [s] between updates of table, plot and path."""
PULL_COLOR = np.array([255, 90, 90], dtype=np.uint8)
"""Color of the line from a dragged point to the pointer."""
LinkDrag = Callable[[str, Vector, Vector | None], None]
"""Gets the dragged link, the grabbed point in its axes (3,) [m], and the pointer in base axes (3,)
[m]; None at the end."""
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
        view_only: str,
        poses: Mapping[str, Sequence[float]],
        on_emergency: Callable[[], None] | None = None,
    ) -> None:
        skeleton = Skeleton(urdf, names)
        chain = skeleton.chain(tool_frame)
        sphere = page_reach(skeleton, limits, initial, urdf)
        self._names, self._limits = names, list(limits)
        joints = urdf.joint_map
        self._units = ["m" if joints[n].type == "prismatic" else "rad" for n in names]
        self.stage = Stage(server, sphere)
        self._arm = ArmDrawing(server.scene, "/arm", urdf, skeleton)
        self._ghost = ArmDrawing(server.scene, "/reference", urdf, skeleton, ghost=True)
        self.trace = ToolPathLine(server.scene, chain, sphere.radius / 500)
        self._gui, self._initial, self._poses = server.gui, initial, poses
        if view_only:
            Feedback(server.gui, order=Order.EMERGENCY - 0.5).note(view_only)
        server.gui.add_html(NARROW_PANEL, order=Order.PATH)
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
        self._motors = server.gui.add_html("", order=Order.TABLE + 0.1)
        self._plot = JointPlot(server.gui, self._names, self._units, chain, order=Order.PLOT)
        clear = server.gui.add_button("Clear path", order=Order.PATH)
        clear.on_click(lambda _: self.trace.clear())
        theme = server.gui.add_dropdown("Theme", tuple(THEMES), order=Order.PATH)
        theme.on_update(lambda _: self.stage.set_theme(theme.value))
        server.gui.add_html(status_html({"tool frame": tool_frame}), order=Order.PATH)
        self._panel_due = 0.0
        self._arm.show(initial.tolist())
        self.scene, self.reach = server.scene, sphere.radius
        self.target: Vector | None = None
        """Configuration that the ghost shows instead of the reference."""
        self.preview: Vector | None = None
        """Configuration that the ghost shows instead of all others."""
        self._skeleton, self._q = skeleton, initial
        self._objects: list[Any] = []
        self._shown_scene = EMPTY_SCENE
        self._objects_lock = Lock()
        none = np.zeros((1, 2, 3))
        self._pull = server.scene.add_line_segments(
            "/pull", none, PULL_COLOR, thickness=4.0, thickness_units="screen", visible=False
        )

    def on_link_drag(self, moved: LinkDrag) -> None:
        """Call ``moved`` while a user drags a link of the arm, and at the end."""
        for link, shape in self._arm.shapes:
            shape.on_drag("left")(self._link_drag(link, moved))

    def _link_drag(self, link: str, moved: LinkDrag) -> Callable[[Any], Awaitable[None]]:
        grabbed = as_readonly(np.zeros(3))

        async def drag(event: Any) -> None:  # awaited in order, unlike a callback in a thread
            nonlocal grabbed
            if event.phase == "start":
                pose = self._skeleton.poses(self._q.tolist())[link]
                at = np.subtract(event.start_position, pose.position)
                grabbed = as_readonly(rotation_matrix(pose.wxyz).T @ at)
            moved(link, grabbed, None if event.phase == "end" else as_readonly(event.end_position))

        return drag

    def show_pull(self, line: tuple[Vector, Vector] | None) -> None:
        """Show the line of a pull in base axes [m]; None hides it."""
        if line is not None:
            self._pull.points = np.array([line], dtype=np.float32)
        if self._pull.visible != (line is not None):
            self._pull.visible = line is not None

    def show_scene(self, scene: Scene) -> None:
        """Show objects in place of those shown before; objects with other poses only move."""
        with self._objects_lock:
            if not self._objects or not scene.differs_in_poses_only(self._shown_scene):
                for shape in self._objects:
                    shape.remove()
                self._objects = [
                    draw_object(self.scene, f"/scene/{number}", one)
                    for number, one in enumerate(scene)
                ]
            else:
                for shape, one in zip(self._objects, scene, strict=True):
                    if not one.is_fixed:
                        place_object(shape, one)
            self._shown_scene = scene

    def draw(
        self,
        sample: HistorySample,
        status: Mapping[str, str],
        history: History,
        motors: MotorStates = MappingProxyType({}),
    ) -> float | None:
        """Show ``sample``; return the time [s] until the panel can be updated, None if it was."""
        self._arm.show(sample.q.tolist())
        self._q, reference = sample.q, sample.reference
        if self._sliders_follow and self.controls is not None:
            self.controls.sliders.follow((sample.q if reference is None else reference).tolist())
        ghost = next((q for q in (self.preview, self.target) if q is not None), reference)
        distance = 0.0 if ghost is None else np.abs(ghost - sample.q).max(initial=0.0)
        if ghost is not None and distance > MIN_GHOST_DISTANCE:
            self._ghost.show(ghost.tolist())
        self._ghost.visible = bool(distance > MIN_GHOST_DISTANCE)
        wait = self._panel_due - time.monotonic()
        if wait > 0:
            return wait
        self._panel_due = time.monotonic() + PANEL_PERIOD
        self._status.content = status_html(status)
        self._table.content = table_html(self._names, self._limits, sample, self._units)
        self._motors.content = motors_html(self._names, sample, motors)
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
                self._gui, self._names, self._limits, self._units, self._initial,
                self.feedback, self._poses,
            )  # fmt: skip
        return self.controls
