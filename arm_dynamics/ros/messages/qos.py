"""Quality of service of each kind of topic."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""robot_description and other latched topics: late subscribers receive the last message."""

STREAM = QoSProfile(depth=10)
"""States and commands, reliable so that recordings are complete."""

TRANSFORMS = QoSProfile(depth=100)
"""/tf, as of tf2_ros."""

INCOMING = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
"""States and commands into a loop, which takes all waiting messages and uses the newest.

With a depth of 1 a second publisher would replace the messages of the first one.
"""

VIEW = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Displays: the newest message, without retransmission."""
