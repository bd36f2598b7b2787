"""Scene in RViz: references, targets and stops, in addition to the arm."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
from nav_msgs.msg import Path
from rclpy.node import Node
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.dynamics.kinematics import link_poses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.visuals import visuals
from arm_dynamics.ros import markers, qos
from arm_dynamics.ros.diagnostics import STOPPED, DiagnosticsSummary
from arm_dynamics.viewer.scene_stage import BoundingSphere

MIN_GHOST_DISTANCE = 0.02
"""Distance [rad or m] from the arm below which a ghost is hidden: it would flicker."""
MESSAGE_TIME = 6.0
"""Time [s] for which the result of an action is shown."""
NODES = ("simulator", "hardware", "joint_controller", "task_space_controller")
"""Nodes whose status is shown if it is not OK."""


class Words:
    """Result of the last action, in the log and in the scene."""

    def __init__(self, node: Node) -> None:
        self._log, self._text, self._until = node.get_logger(), "", 0.0

    @property
    def text(self) -> str:
        """Message of the last seconds, or ""."""
        return self._text if time.monotonic() < self._until else ""

    def done(self, text: str) -> None:
        """Report a completed action."""
        self._log.info(text)

    def rejected(self, reason: object) -> None:
        """Report a rejected action."""
        self._log.warn(f"rejected: {reason}")
        self._text, self._until = f"rejected: {reason}", time.monotonic() + MESSAGE_TIME

    def note(self, text: str) -> None:
        """Report anything else, such as the progress of an action."""
        self._log.info(text)


class Scene:
    """Publishes ``~/markers`` and ``~/planned_path``, latched, if they change."""

    def __init__(self, node: Node, arm: ArmModel, header: Header, reach: BoundingSphere) -> None:
        self._arm, self._header = arm, header
        moved = set(link_poses(arm, arm.configuration("initial"))) - {arm.base_frame}
        self._shapes = [shape for shape in visuals(arm) if shape.link in moved]
        self._at = reach.center + np.array([0.0, 0.0, 0.7 * reach.radius])
        self._height = reach.radius / 14
        self._markers = node.create_publisher(MarkerArray, "~/markers", qos.LATCHED)
        self._path = node.create_publisher(Path, "~/planned_path", qos.LATCHED)
        self._last: tuple[MarkerArray, Path] | None = None

    def show(
        self,
        q: Vector | None,
        reference: Vector | None,
        target: Vector | None,
        path: Matrix | None,
        words: tuple[str, bool],
    ) -> None:
        """Show ghosts of ``reference`` and ``target`` (nv,) that differ from the arm at ``q``.

        ``path`` (n, 3) [m] is that of the tool; ``words`` are the text above the arm and whether it
        reports an emergency stop.
        """
        at = markers.words(words[0], self._at, self._height, words[1], self._header)
        ghosts = [
            ("reference", self._placed(reference, q), markers.REFERENCE),
            ("target", self._placed(target, q), markers.TARGET),
        ]
        scene = [at]
        for name, placed, color in ghosts:
            scene += markers.ghost(name, self._shapes, placed, self._header, color)
        new = MarkerArray(markers=scene), markers.path(path, self._header)
        last = self._last or (None, None)
        for publisher, message, before in zip((self._markers, self._path), new, last, strict=True):
            if message != before:
                publisher.publish(message)
        self._last = new

    def _placed(
        self, q: Vector | None, real: Vector | None
    ) -> Mapping[str, tuple[Vector, Matrix]] | None:
        if q is None or (
            real is not None and np.abs(q - real).max(initial=0.0) < MIN_GHOST_DISTANCE
        ):
            return None
        return link_poses(self._arm, q)


def status_words(status: DiagnosticsSummary) -> tuple[str, bool]:
    """Return the messages of nodes that are not OK, and whether an emergency stop is engaged."""
    if status.stopped:
        return f"EMERGENCY STOP: {status.emergency.removeprefix(STOPPED).strip()}", True
    troubles = [
        f"{name}: {status.messages[name]}"
        for name in NODES
        if name in status.messages and not status.ok[name]
    ]
    return "; ".join(troubles), False
