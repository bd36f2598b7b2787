"""Client of interactive markers, like InteractiveMarkerClient of interactive_markers."""

from geometry_msgs.msg import Pose
from visualization_msgs.msg import InteractiveMarkerFeedback, InteractiveMarkerUpdate
from visualization_msgs.srv import GetInteractiveMarkers

DOWN, UP = InteractiveMarkerFeedback.MOUSE_DOWN, InteractiveMarkerFeedback.MOUSE_UP
MOVED, CHOSEN = InteractiveMarkerFeedback.POSE_UPDATE, InteractiveMarkerFeedback.MENU_SELECT
GO, BACK, STOP, EMERGENCY, RESET = range(1, 6)


class Client:
    """Markers read from the service, then updated in the order of the sequence numbers."""

    def __init__(self, ros, server="rviz_controls"):
        self._ros, self._server = ros, server
        self._updates = ros.record(InteractiveMarkerUpdate, f"{server}/update")
        self._seen, self._number, self.markers = 0, None, {}
        response = ros.call(GetInteractiveMarkers, f"{server}/get_interactive_markers")
        self._initial = response.sequence_number
        self.markers = {marker.name: marker for marker in response.markers}

    def look(self):
        """Apply the received updates; fail where RViz would restart its client."""
        fresh = self._updates.messages(self._seen)
        self._seen += len(fresh)
        for update in fresh:
            assert update.type == InteractiveMarkerUpdate.UPDATE
            assert update.server_id.endswith("rviz_controls")
            assert self._number is None or update.seq_num == self._number + 1
            self._number = update.seq_num
            if update.seq_num <= self._initial:
                continue
            self.markers |= {marker.name: marker for marker in update.markers}
            for moved in update.poses:
                self.markers[moved.name].pose = moved.pose
            for name in update.erases:
                del self.markers[name]
        return self.markers

    def wait(self, predicate, otherwise):
        return self._ros.wait_for(lambda: predicate(self.look()), otherwise)

    def send(self, name, kind, at=None, entry=0):
        feedback = InteractiveMarkerFeedback(
            client_id="rviz", marker_name=name, event_type=kind, menu_entry_id=entry
        )
        feedback.header.frame_id = "base_link"
        feedback.pose = at or self.markers[name].pose if name in self.markers else Pose()
        self._ros.publish(feedback, f"{self._server}/feedback")
