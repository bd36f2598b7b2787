"""Checks of publishers: one accepted sender per topic, one node per arm and clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from arm_dynamics.safety.events import Events

PUBLISHER_TIMEOUT = 2.0
"""Time [s] without a message after which another publisher may replace the accepted one."""
QUERY_PERIOD = 0.1
"""Minimum time [s] between two queries of ROS's graph; maximum silence added by one ``listen``."""
NAMELESS = "_NODE_NAME_UNKNOWN_"
"""Name in ROS's graph of a node with a known endpoint and no known name."""
UNKNOWN = "a publisher without a known name"
PREFIX = 12
"""Bytes of a GID that are equal for all publishers of one process."""


class OnePublisher:
    """Accepts the first publisher until it is gone, or silent for ``PUBLISHER_TIMEOUT``.

    The publishers of one node on several topics are one. A killed process stays in ROS's graph
    for 20 s, so silence suffices. A replaced publisher is not accepted again while the other one
    exists, so that no two alternate. ``report`` receives (kind, text).

    Silence counts only while ``listen`` is called. An arm whose time stops, or that publishes no
    state, silences its controller: that must not let another publisher replace it.

    If the middleware provides no GID, no publisher is accepted while there are several.
    """

    def __init__(
        self,
        node: Node,
        report: Callable[[str, str], None],
        restart: Callable[[], None] = lambda: None,
        *,
        kind: str = "publisher",
    ) -> None:
        """``restart`` is called when a publisher is accepted that was rejected before.

        ``kind`` is the prefix of the events ``<kind>_rejected`` and ``<kind>_changed``.
        """
        self._node, self._report, self._restart, self._kind = node, report, restart, kind
        self._first: dict[str, bytes] = {}
        self._queried, self._conflict = -QUERY_PERIOD, float("-inf")
        self._silence = self._listened = 0.0
        self._rejected: set[bytes] = set()
        self._displaced: set[bytes] = set()
        self._names: dict[bytes, str] = {}
        self._topics: list[str] = []

    @property
    def conflict(self) -> str:
        """Conflicting publishers if a message was rejected in the last seconds, else ""."""
        if time.monotonic() - self._conflict > 2 * PUBLISHER_TIMEOUT:
            return ""
        return f"several publishers on {', '.join(self._topics)}: {', '.join(self.publishers())}"

    def publishers(self) -> list[str]:
        """Return the names of the nodes that publish."""
        return sorted(
            name for topic in list(self._topics) for name in publishers(self._node, topic).values()
        )

    def listen(self) -> None:
        """Count the time until the next call as silence if no message is accepted.

        Call it for each published state, or at each poll for messages.
        """
        now = time.monotonic()
        self._silence += min(now - self._listened, QUERY_PERIOD)
        self._listened = now

    def accept(self, topic: str, gid: bytes) -> bool:
        """Return whether to accept a message of this publisher on ``topic``."""
        now = time.monotonic()
        if topic not in self._topics:
            self._topics.append(topic)
        if not gid:
            return self._is_alone(topic, now)
        if not self._first:
            self._first = {topic: gid}
        elif self._first.get(topic) != gid and not self._admits(topic, gid, now):
            self._conflict = now
            self._rejected.add(gid)
            self._report(
                f"{self._kind}_rejected",
                f"{topic}: {self._name(gid)} is rejected; {self._accepted_name()} is the accepted"
                " publisher until it ends; stop one of them",
            )
            return False
        self._silence = 0.0
        return True

    def _admits(self, topic: str, gid: bytes, now: float) -> bool:
        """Return whether to accept another publisher than the first, in addition or instead."""
        same_process = all(other[:PREFIX] == gid[:PREFIX] for other in self._first.values())
        if topic not in self._first and same_process:
            self._query(now)
            if self._name(gid) == self._accepted_name() != UNKNOWN:  # the same node
                self._first[topic] = gid
                return True
        self._query(now)
        gone = not any(first in self._names for first in self._first.values())
        if not gone and (self._silence < PUBLISHER_TIMEOUT or gid in self._displaced):
            return False
        cause = "is gone" if gone else f"is silent for {self._silence:.1f} s"
        before = self._accepted_name()
        self._displaced = set() if gone else {*self._displaced, *self._first.values()}
        self._first = {topic: gid}
        self._report(
            f"{self._kind}_changed", f"{topic}: {self._name(gid)} is accepted; {before} {cause}"
        )
        if gid in self._rejected:
            self._rejected.clear()
            self._restart()
        return True

    def _is_alone(self, topic: str, now: float) -> bool:
        """Return whether the topic has one publisher; for a middleware without GIDs."""
        self._query(now)
        if len(self._names) <= 1:
            return True
        self._conflict = now
        names = ", ".join(sorted(self._names.values()))
        self._report(
            f"{self._kind}_rejected", f"several publishers on {topic}: {names}; stop all but one"
        )
        return False

    def _query(self, now: float) -> None:
        """Query the publishers, at most once in ``QUERY_PERIOD``."""
        if now - self._queried < QUERY_PERIOD:
            return
        self._queried = now
        self._names = {}
        for topic in self._topics:
            self._names |= publishers(self._node, topic)

    def _accepted_name(self) -> str:
        return next((self._names[g] for g in self._first.values() if g in self._names), UNKNOWN)

    def _name(self, gid: bytes) -> str:
        return self._names.get(gid, UNKNOWN)


def publishers(node: Node, topic: str) -> dict[bytes, str]:
    """Return the name of the node of every publisher, by GID."""
    endpoints: list[Any] = node.get_publishers_info_by_topic(topic)
    return {
        bytes(p.endpoint_gid)[:16]: UNKNOWN
        if NAMELESS in p.node_name
        else f"{p.node_namespace.rstrip('/')}/{p.node_name}"
        for p in endpoints
    }


LEASE = 20
"""Time [s] for which ROS's graph lists a killed node: the default lease of Fast DDS."""


class SolePublisher:
    """Checks that a topic has one publisher: two clocks or two arms would alternate."""

    def __init__(self, node: Node, topic: str, kind: str, remedy: str, events: Events) -> None:
        """``kind`` is the prefix of the event ``<kind>_conflict``; ``remedy`` ends its text."""
        self._node, self._topic, self._events = node, node.resolve_topic_name(topic), events
        self._event, self._remedy = f"{kind}_conflict", remedy

    def conflict(self) -> str:
        """Return the publishers of the topic if there are several; also reports an event."""
        names = sorted(publishers(self._node, self._topic).values())
        if len(names) <= 1:
            return ""
        text = (
            f"several publishers on {self._topic}: {', '.join(names)}; {self._remedy}"
            f"; a node that was killed is listed for up to {LEASE} s"
        )
        self._events.report(self._event, text)
        return text


def sole_clock(node: Node, events: Events) -> SolePublisher:
    """Return the check of /clock, which has no namespace."""
    return SolePublisher(node, "/clock", "clock", "set publish_clock false in one", events)


def sole_arm(node: Node, events: Events) -> SolePublisher:
    """Return the check of joint_states: one arm per namespace."""
    return SolePublisher(node, "joint_states", "arm", "stop one, or use a namespace", events)
