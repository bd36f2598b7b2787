"""Quality of service of each kind of topic."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""robot_description: whoever comes later still gets it."""

STREAM = QoSProfile(depth=10)
"""States and commands that others may record."""

INCOMING = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
"""States and commands into a loop, which takes all that wait and uses the newest of one publisher.

With a depth of 1 a second publisher would replace what the first one sent.
"""

VIEW = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""A display: the newest, and no resending."""
