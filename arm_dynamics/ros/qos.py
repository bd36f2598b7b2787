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

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""States and commands into a loop, which has no use for old ones."""

VIEW = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""A display: the newest, and no resending."""
