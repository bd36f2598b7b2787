"""Server of interactive markers, with the protocol of the package interactive_markers.

RViz gets all markers by the service ``~/get_interactive_markers``, with the number of the last
update, then subscribes to ``~/update``. After a gap in the numbers RViz calls the service again.
Actions of a user are published on ``~/feedback``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from geometry_msgs.msg import Pose
from rclpy.node import Node
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerFeedback,
    InteractiveMarkerPose,
    InteractiveMarkerUpdate,
)
from visualization_msgs.srv import GetInteractiveMarkers

from arm_dynamics.ros.decode import listen

DEPTH = 100
"""Queue size of the topics, equal to that of interactive_markers."""
HELD = 1.0
"""Time [s] after a client's feedback during which that of other clients is ignored."""


class MarkerServer:
    """Markers of one node by name; ``take`` receives feedback on existing ones."""

    def __init__(
        self,
        node: Node,
        take: Callable[[InteractiveMarkerFeedback], None],
        reject: Callable[[str], object],
    ) -> None:
        self._markers: dict[str, InteractiveMarker] = {}
        self._sequence, self._lock = 0, Lock()
        self._take, self._client, self._heard = take, "", -HELD
        self._id = node.get_fully_qualified_name()
        self._updates = node.create_publisher(InteractiveMarkerUpdate, "~/update", DEPTH)
        hear, kind = self._on_feedback, InteractiveMarkerFeedback
        self._feedback = listen(node, kind, "~/feedback", hear, DEPTH, reject)
        self._service = node.create_service(
            GetInteractiveMarkers, "~/get_interactive_markers", self._on_request
        )

    def put(self, markers: Sequence[InteractiveMarker]) -> None:
        """Set the markers; unchanged ones are not sent again."""
        with self._lock:
            before, self._markers = self._markers, {marker.name: marker for marker in markers}
            changed = [m for name, m in self._markers.items() if before.get(name) != m]
            erased = [name for name in before if name not in self._markers]
            if changed or erased:
                self._publish(InteractiveMarkerUpdate(markers=changed, erases=erased))

    def move(self, poses: Mapping[str, Pose]) -> None:
        """Move markers; unchanged poses are not sent again."""
        with self._lock:
            update = InteractiveMarkerUpdate()
            for name, pose in poses.items():
                marker = self._markers.get(name)
                if marker is not None and marker.pose != pose:
                    marker.pose = pose
                    update.poses.append(
                        InteractiveMarkerPose(header=marker.header, pose=pose, name=name)
                    )
            if update.poses:
                self._publish(update)

    def _publish(self, update: InteractiveMarkerUpdate) -> None:
        self._sequence += 1
        update.server_id, update.seq_num = self._id, self._sequence
        update.type = InteractiveMarkerUpdate.UPDATE
        self._updates.publish(update)

    def _on_request(
        self, _: GetInteractiveMarkers.Request, response: GetInteractiveMarkers.Response
    ) -> GetInteractiveMarkers.Response:
        with self._lock:
            response.sequence_number = self._sequence
            response.markers = list(self._markers.values())
        return response

    def _on_feedback(self, feedback: InteractiveMarkerFeedback) -> None:
        now = time.monotonic()
        if feedback.client_id != self._client and now - self._heard < HELD:
            return
        self._client, self._heard = feedback.client_id, now
        if feedback.marker_name in self._markers:
            self._take(feedback)
