"""ROS domains of the tests: each is claimed by a lock file and has no other node."""

import fcntl
import os
import random
import tempfile
from pathlib import Path

DOMAINS = range(1, 60)
"""Domain ids below those that ``sim`` uses."""
FIRST_PORT, PORTS = 7400, 250
"""UDP port of domain 0, and ports per domain: DDSI-RTPS 2.2, section 9.6.1.1."""


def claim_domain():
    """Return the descriptor of a lock and the id of a domain that only its holder uses.

    A domain is skipped if another test holds its lock or if a program has one of its UDP ports:
    not every program locks.
    """
    for domain in random.SystemRandom().sample(DOMAINS, len(DOMAINS)):
        path = Path(tempfile.gettempdir(), f"arm_dynamics_test_domain_{domain}")
        claim = os.open(path, os.O_CREAT | os.O_WRONLY, 0o666)
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(claim)
            continue
        if not used_ports(domain):
            return claim, domain
        os.close(claim)
    raise RuntimeError(f"all domain ids from {DOMAINS[0]} to {DOMAINS[-1]} are in use")


def used_ports(domain):
    """Return the bound UDP ports of a domain; empty if Linux does not list them."""
    first = FIRST_PORT + PORTS * domain
    return bound_ports() & {*range(first, first + PORTS)}


def bound_ports():
    tables = [Path("/proc/net", name) for name in ("udp", "udp6")]
    lines = [line for t in tables if t.exists() for line in t.read_text().splitlines()[1:]]
    return {int(line.split()[1].rsplit(":", 1)[1], 16) for line in lines}
