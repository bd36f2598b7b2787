"""Whether a simulator is the only source of /clock."""

from __future__ import annotations

from rclpy.node import Node

from arm_dynamics.safety.events import Events

TOPIC = "/clock"


class ClockWatch:
    """Two clocks make time jump to and fro in every node that follows it."""

    def __init__(self, node: Node, events: Events) -> None:
        self._node, self._events = node, events

    def conflict(self) -> str:
        """Who publishes /clock, if several do; reported as an event too."""
        found = self._node.get_publishers_info_by_topic(TOPIC)
        if len(found) <= 1:
            return ""
        names = sorted(f"{p.node_namespace.rstrip('/')}/{p.node_name}" for p in found)
        text = f"several publishers on {TOPIC}: {', '.join(names)}; set publish_clock false in one"
        self._events.report("clock_conflict", text)
        return text
