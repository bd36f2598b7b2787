"""Whether a node is the only publisher of a topic that one node alone may publish."""

from __future__ import annotations

from rclpy.node import Node

from arm_dynamics.ros.one_publisher import publishers
from arm_dynamics.safety.events import Events

LEASE = 20
"""Time [s] for which ROS's graph lists a node that was killed: the usual lease of Fast DDS."""


class SolePublisher:
    """Two clocks make time jump to and fro; two arms on one topic share one controller."""

    def __init__(self, node: Node, topic: str, kind: str, remedy: str, events: Events) -> None:
        """``kind`` begins the name of the event ``<kind>_conflict``; ``remedy`` ends its text."""
        self._node, self._topic, self._events = node, topic, events
        self._event, self._remedy = f"{kind}_conflict", remedy

    def conflict(self) -> str:
        """Who publishes the topic, if several do; reported as an event too."""
        names = sorted(publishers(self._node, self._topic).values())
        if len(names) <= 1:
            return ""
        topic = self._node.resolve_topic_name(self._topic)
        text = (
            f"several publishers on {topic}: {', '.join(names)}; {self._remedy}"
            f"; a node that was killed is listed for up to {LEASE} s"
        )
        self._events.report(self._event, text)
        return text


def sole_clock(node: Node, events: Events) -> SolePublisher:
    """Of /clock, whatever the namespace."""
    return SolePublisher(node, "/clock", "clock", "set publish_clock false in one", events)


def sole_arm(node: Node, events: Events) -> SolePublisher:
    """Of joint_states: one arm on a set of topics."""
    return SolePublisher(node, "joint_states", "arm", "stop one, or use a namespace", events)
