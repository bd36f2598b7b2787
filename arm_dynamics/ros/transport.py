"""How the messages of an arm that moves travel: not through shared memory.

Fast DDS may stop every publisher of a process for 333 ms when a reader comes, to look after its
shared memory (eProsima/Fast-DDS, issue 6535): longer than a motor's watchdog waits. UDP does not.
"""

from __future__ import annotations

import os

UDP = {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4"}


def by_udp() -> dict[str, str]:
    """Environment in which Fast DDS uses UDP alone; empty where the user has chosen already."""
    return {name: value for name, value in UDP.items() if name not in os.environ}


def use_udp() -> None:
    """Put it in force; to be called before ROS starts."""
    os.environ.update(by_udp())
