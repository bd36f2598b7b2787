"""Drags in the scene of a page: a handle moves the tool, a drag of a link pushes the arm."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.dynamics.kinematics.frames import link_poses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.viewer.drag import DragTarget
from arm_dynamics.viewer.page import ArmPage
from arm_dynamics.viewer.skeleton import pose_of, rotation_matrix

HANDLE_SIZE = 0.2
"""Size of the handle as a fraction of the radius of the workspace."""
WEIGHTS = 10.0
"""Weights of the arm that a pull by the radius of the workspace applies."""


class ToolHandle:
    """Handle at the tool: its target is the ghost of the page, and ``go(q)`` gets it at the end.

    The inverse kinematics run in a separate thread, for the newest pose only.
    """

    def __init__(self, page: ArmPage, arm: ArmModel, go: Callable[[Sequence[float]], None]) -> None:
        self._page, self._go = page, go
        self._target = DragTarget(arm)
        turns = all(self._target.axes[3:])
        self._turns = turns
        self._lock = threading.Lock()  # of the target
        self._wake = threading.Event()
        self._newest: tuple[Vector, Matrix] | None = None
        self._ended = False
        self.dragging = False
        """Whether a user drags the handle."""
        self._handle = page.scene.add_transform_controls(
            "/target", scale=HANDLE_SIZE * page.reach, active_axes=tuple(self._target.axes[:3]),
            disable_rotations=not turns, disable_sliders=True, depth_test=False,
        )  # fmt: skip
        self._handle.on_update(self._moved)
        self._place()
        threading.Thread(target=self._run, name="tool handle", daemon=True).start()

    def follow(self, q: Vector) -> None:
        """Place the handle at the tool in the configuration ``q`` (nv,)."""
        if not self.dragging:
            with self._lock:
                self._target.set(q)
            self._place()

    async def _moved(self, event: Any) -> None:
        """Store the pose of a drag; awaited in order, unlike a callback in a thread."""
        if event.phase == "start":
            self.dragging = True
        elif event.phase == "update":
            turned = rotation_matrix(self._handle.wxyz) if self._turns else self._target.rotation
            self._newest = as_readonly(self._handle.position), as_readonly(turned)
        else:
            self._ended = True
        self._wake.set()

    def _run(self) -> None:
        while not self._page.closed:
            self._wake.wait(1.0)
            self._wake.clear()
            ended, newest = self._ended, self._newest
            self._newest = None
            try:
                with self._lock:
                    if newest is not None:
                        self._target.drag_tool(*newest)
                        self._page.show_target(self._target.q)
                    if ended:
                        self._target.settle()
            except ArmDynamicsError as error:
                self._page.feedback.rejected(error)
            if ended:
                self._go(self._target.q.tolist())
                self._ended = self.dragging = False
                self._place()

    def _place(self) -> None:
        """Move the handle to the tool of the target."""
        self._handle.position = self._target.position
        if self._turns:
            transform = np.eye(4)
            transform[:3, :3] = self._target.rotation
            self._handle.wxyz = pose_of(transform).wxyz


class ArmPush:
    """Force of a spring between the grabbed point of a link and the pointer of a user.

    ``wrench(q)`` returns the link and the wrench (6,) [N, N·m] on it, along the axes of the link at
    its origin; None without a drag.
    """

    def __init__(self, page: ArmPage, arm: ArmModel) -> None:
        self._page, self._arm = page, arm
        weight = 9.81 * sum(inertia.mass for inertia in list(arm.links.inertias)[1:])
        self._stiffness = WEIGHTS * weight / page.reach
        self._drag: tuple[str, Vector, Vector] | None = None
        """Link, grabbed point in its axes (3,) [m], and pointer in base axes (3,) [m]."""
        page.on_link_drag(self._moved)

    def _moved(self, link: str, grabbed: Vector, pointer: Vector | None) -> None:
        self._drag = None if pointer is None else (link, grabbed, pointer)

    def wrench(self, q: Vector) -> tuple[str, Vector] | None:
        """Return the wrench in the configuration ``q`` (nv,) [rad or m]."""
        drag = self._drag
        if drag is None:
            self._page.show_pull(None)
            return None
        link, grabbed, pointer = drag
        position, rotation = link_poses(self._arm, q)[link]
        point = position + rotation @ grabbed
        self._page.show_pull((point, pointer))
        force = rotation.T @ (self._stiffness * (pointer - point))
        return link, as_readonly([*force, *np.cross(grabbed, force)])
