"""Contacts of a simulated scene: arrows of force ``~/contacts``, and ``~/tool_wrench``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from geometry_msgs.msg import Point, Vector3, Wrench, WrenchStamped
from rclpy.node import Node
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from arm_dynamics.ros.messages.conversions import Frames, header
from arm_dynamics.simulation.simulation import Simulation

if TYPE_CHECKING:
    from arm_dynamics.simulation.contact.contact_dynamics import Contacts

RATE = 50.0
"""Largest rate [Hz] of both topics."""
MIN_FORCE = 1e-3
"""Force [N] that a component of a shown one reaches."""
LENGTH = 0.01
"""Length of an arrow per force [m/N]."""
WIDTH = Vector3(x=0.003, y=0.007, z=0.0)
"""Diameters [m] of shaft and head of an arrow."""
COLOR = ColorRGBA(r=0.85, g=0.15, b=0.10, a=1.0)


class ContactTopics:
    """Publishes contacts and the wrench at the tool while they are subscribed to.

    Parameters
    ----------
    node : Node
        Node of the simulator.
    frames : Frames
        Names of the frames.
    simulation : Simulation
        Simulation with the contacts.
    stamp : Callable[[], float]
        Returns the time stamp [s] of the present state.

    """

    def __init__(
        self, node: Node, frames: Frames, simulation: Simulation, stamp: Callable[[], float]
    ) -> None:
        self._frames, self._simulation, self._stamp = frames, simulation, stamp
        self._markers = node.create_publisher(MarkerArray, "~/contacts", 1)
        self._wrench = node.create_publisher(WrenchStamped, "~/tool_wrench", 1)
        self._due = 0.0  # monotonic time [s] of the next messages

    def publish(self) -> None:
        """Publish the contacts of the last step at RATE; from the simulation's thread."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + 1 / RATE
        now = self._stamp()
        if self._markers.get_subscription_count():
            head = header(self._frames.base, now)
            markers = contact_markers(self._simulation.contacts, head)
            self._markers.publish(MarkerArray(markers=[*markers]))
        if self._wrench.get_subscription_count():
            x, y, z, a, b, c = self._simulation.tool_wrench().tolist()
            wrench = Wrench(force=Vector3(x=x, y=y, z=z), torque=Vector3(x=a, y=b, z=c))
            message = WrenchStamped(header=header(self._frames.tool, now), wrench=wrench)
            self._wrench.publish(message)


def contact_markers(contacts: Contacts | None, head: Header) -> Iterator[Marker]:
    """Yield one arrow from each point along the force on the second body, LENGTH per newton.

    The namespace of a marker is "FIRST SECOND", the names of both bodies. The first marker deletes
    those of the message before.
    """
    yield Marker(header=head, action=Marker.DELETEALL)
    if contacts is None:
        return
    rows = zip(contacts.first, contacts.second, contacts.point, contacts.force, strict=True)
    shown = [row for row in rows if abs(row[3]).max() >= MIN_FORCE]
    for number, (first, second, point, force) in enumerate(shown):
        marker = Marker(header=head, ns=f"{first} {second}", id=number, type=Marker.ARROW)
        marker.pose.orientation.w = 1.0
        marker.scale, marker.color = WIDTH, COLOR
        for x, y, z in (point.tolist(), (point + LENGTH * force).tolist()):
            marker.points.append(Point(x=x, y=y, z=z))
        yield marker
