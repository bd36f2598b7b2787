"""How the messages of what moves an arm travel: not through shared memory.

Fast DDS may stop every publisher of a process for 333 ms when a reader comes, to look after its
shared memory (eProsima/Fast-DDS, issue 6535): longer than a motor's watchdog waits. UDP does not.
"""

from __future__ import annotations

import os


def use_udp() -> None:
    """Have Fast DDS use UDP alone, unless the user has chosen; to be called before ROS starts."""
    os.environ.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
