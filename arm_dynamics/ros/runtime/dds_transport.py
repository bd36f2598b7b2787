"""Transport of messages: UDP instead of Fast DDS's shared memory.

Fast DDS may stop every publisher of a process for 333 ms when a subscriber appears, to check its
shared memory (eProsima/Fast-DDS, issue 6535): longer than a motor's watchdog waits. UDP does not.
The discovery range LOCALHOST adds shared memory to any configuration (rmw_fastrtps).
"""

from __future__ import annotations

import os
from pathlib import Path

from rclpy.utilities import get_rmw_implementation_identifier

from arm_dynamics.core import resources

RANGE, LOCALHOST_ONLY = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY"
BUILTIN = "FASTDDS_BUILTIN_TRANSPORTS"
PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
"""Environment variables with Fast DDS's configuration: of Jazzy, and from Kilted on."""
IN_FOLDER = ("DEFAULT_FASTRTPS_PROFILES.xml", "DEFAULT_FASTDDS_PROFILES.xml")
"""Files that Fast DDS reads if the variables are not set."""
STALL = "messages of this node may stop for 333 ms whenever a subscriber appears"
UDP = ("UDPv4", "UDPv6")


def avoid_shared_memory() -> str:
    """Configure Fast DDS for UDP only; call it before ROS starts.

    LOCALHOST becomes an equivalent profile, UDP on 127.0.0.1. A different choice of the user is
    kept. Return a warning with the problem and the remedy of that choice, or "".
    """
    if not get_rmw_implementation_identifier().startswith("rmw_fastrtps"):
        return ""
    chosen = os.environ.setdefault(BUILTIN, "UDPv4")
    only = os.environ.get(LOCALHOST_ONLY) == "1"
    if only or os.environ.get(RANGE) == "LOCALHOST":
        return _stay_on_this_machine(f"{LOCALHOST_ONLY}=1" if only else f"{RANGE}=LOCALHOST")
    if chosen not in UDP and not any(map(os.environ.get, PROFILES)):
        return f"{BUILTIN}={chosen}: {STALL}; expected UDPv4: unset {BUILTIN}"
    return ""


def _stay_on_this_machine(setting: str) -> str:
    """Replace the range LOCALHOST, unless another setting of the user is present."""
    profile = resources.resource_folder("config") / "loopback.xml"
    names = (*PROFILES, "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")
    environment = {name: os.environ[name] for name in names if os.environ.get(name)}
    conflicting = [
        f"{name}={value}"
        for name, value in environment.items()
        # The profile may be installed in another prefix.
        if not (Path(value).is_file() and Path(value).read_bytes() == profile.read_bytes())
    ]
    conflicting += [name for name in IN_FOLDER if Path(name).exists()]
    if conflicting:
        return (
            f"{setting} adds shared memory, and {conflicting[0]} keeps this node from replacing it:"
            f" {STALL}; set {RANGE}=SYSTEM_DEFAULT and {PROFILES[0]}={profile}"
            f" ({PROFILES[1]} from Kilted on), or unset the other"
        )
    os.environ.pop(LOCALHOST_ONLY, None)
    os.environ[RANGE] = "SYSTEM_DEFAULT"
    os.environ.update(dict.fromkeys(PROFILES, str(profile)))
    return ""
