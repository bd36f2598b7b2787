"""One publisher counts, where several would be obeyed in turn.

Whether a node is the only publisher of a topic that one node alone may publish.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from arm_dynamics.safety.events import Events

PUBLISHER_TIMEOUT = 2.0
"""Time [s] without a message after which the place of a publisher may be taken."""
LOOK = 0.1
"""Least time [s] between two looks at ROS's graph; most silence that one ``listen`` counts."""
NAMELESS = "_NODE_NAME_UNKNOWN_"
"""What ROS's graph calls a node of which it has an endpoint, and no name yet."""
UNKNOWN = "a publisher that is not known yet"
PREFIX = 12
"""Bytes of a GID that all publishers of one process share."""


class OnePublisher:
    """The publisher that came first counts until it is gone, or silent for ``PUBLISHER_TIMEOUT``.

    The publishers of one node on several topics are one. A process that was killed stays in ROS's
    graph for 20 s, so silence is enough; but a publisher whose place was taken does not come back
    while the other one exists: no two are obeyed in turn. ``report`` gets (kind, text).

    Silence is the time of ``listen``. An arm that stands still itself, or publishes no state to
    answer, silences its commander: that must not give the place to whoever sends unasked.

    Where the middleware gives no GID, nobody counts as long as there are several.
    """

    def __init__(
        self,
        node: Node,
        report: Callable[[str, str], None],
        restart: Callable[[], None] = lambda: None,
        *,
        kind: str = "publisher",
    ) -> None:
        """``restart`` is called when a publisher counts that was rejected before.

        ``kind`` begins the names of events: ``<kind>_rejected``, ``<kind>_changed``.
        """
        self._node, self._report, self._restart, self._kind = node, report, restart, kind
        self._first: dict[str, bytes] = {}
        self._looked, self._conflict = -LOOK, float("-inf")
        self._silence = self._listened = 0.0
        self._rejected: set[bytes] = set()
        self._displaced: set[bytes] = set()
        self._names: dict[bytes, str] = {}
        self._topics: list[str] = []

    @property
    def conflict(self) -> str:
        """Who sends although another one counts, if a message was rejected in the last seconds."""
        if time.monotonic() - self._conflict > 2 * PUBLISHER_TIMEOUT:
            return ""
        return f"several publishers on {', '.join(self._topics)}: {', '.join(self.publishers())}"

    def publishers(self) -> list[str]:
        """Nodes that publish at present."""
        return sorted(
            name for topic in list(self._topics) for name in publishers(self._node, topic).values()
        )

    def listen(self) -> None:
        """The one that counts is expected to send: what it does not, from now on, is silence.

        Called at each state that is to be answered, or at each look for messages.
        """
        now = time.monotonic()
        self._silence += min(now - self._listened, LOOK)
        self._listened = now

    def accept(self, topic: str, gid: bytes) -> bool:
        """Whether a message of this publisher on ``topic`` counts."""
        now = time.monotonic()
        if topic not in self._topics:
            self._topics.append(topic)
        if not gid:
            return self._alone(topic, now)
        if not self._first:
            self._first = {topic: gid}
        elif self._first.get(topic) != gid and not self._joins(topic, gid, now):
            self._conflict = now
            self._rejected.add(gid)
            self._report(
                f"{self._kind}_rejected",
                f"{topic}: {self._name(gid)} is rejected; {self._holder()} came first and counts"
                " until it ends: stop one of them",
            )
            return False
        self._silence = 0.0
        return True

    def _joins(self, topic: str, gid: bytes, now: float) -> bool:
        """Whether another publisher than the first counts, beside it or from now on."""
        if topic not in self._first and self._same_node(gid, now):
            self._first[topic] = gid
            return True
        gone = self._gone(now)
        if not gone and (self._silence < PUBLISHER_TIMEOUT or gid in self._displaced):
            return False
        why = "is gone" if gone else f"is silent for {self._silence:.1f} s"
        before = self._holder()
        self._displaced = set() if gone else {*self._displaced, *self._first.values()}
        self._first = {topic: gid}
        self._report(f"{self._kind}_changed", f"{topic}: {self._name(gid)} counts; {before} {why}")
        if gid in self._rejected:
            self._rejected.clear()
            self._restart()
        return True

    def _gone(self, now: float) -> bool:
        """Whether the first one has left the graph."""
        self._look(now)
        return not any(gid in self._names for gid in self._first.values())

    def _same_node(self, gid: bytes, now: float) -> bool:
        if not all(other[:PREFIX] == gid[:PREFIX] for other in self._first.values()):
            return False
        self._look(now)
        return self._name(gid) == self._holder() != UNKNOWN

    def _alone(self, topic: str, now: float) -> bool:
        self._look(now)
        if len(self._names) <= 1:
            return True
        self._conflict = now
        names = ", ".join(sorted(self._names.values()))
        self._report(
            f"{self._kind}_rejected", f"{topic} has several publishers ({names}): stop all but one"
        )
        return False

    def _look(self, now: float) -> None:
        """Learn who publishes, at most once in ``LOOK``."""
        if now - self._looked < LOOK:
            return
        self._looked = now
        self._names = {}
        for topic in self._topics:
            self._names |= publishers(self._node, topic)

    def _holder(self) -> str:
        return next((self._names[g] for g in self._first.values() if g in self._names), UNKNOWN)

    def _name(self, gid: bytes) -> str:
        return self._names.get(gid, UNKNOWN)


def publishers(node: Node, topic: str) -> dict[bytes, str]:
    """Name of the node of every publisher, by GID."""
    found: list[Any] = node.get_publishers_info_by_topic(topic)
    return {
        bytes(p.endpoint_gid)[:16]: UNKNOWN
        if NAMELESS in p.node_name
        else f"{p.node_namespace.rstrip('/')}/{p.node_name}"
        for p in found
    }


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
