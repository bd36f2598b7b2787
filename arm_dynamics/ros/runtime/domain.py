"""ROS domain of one run, claimed by a lock file and checked for other nodes first."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import rclpy
from rclpy.node import Node

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.files import try_locked
from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.ros.runtime.process import start_ros
from arm_dynamics.ros.topics.publisher_checks import UNKNOWN, publishers

VARIABLE = "ROS_DOMAIN_ID"
FREE_DOMAINS = range(60, 102)
"""Domains for automatic selection: upper ones outside of the systems' ephemeral ports, because
users choose lower ones."""
MAX_DOMAIN_ID = 232
"""Largest domain id that has ports."""
DISCOVERY_TIME = 1.0
"""Time [s] in which the nodes of a domain are discovered."""
NAMING_TIME = 5.0
"""Time [s] in which the name of a discovered node becomes known."""
HIDDEN = "_"
"""First character of nodes that ROS's tools hide: their daemon runs in every domain."""
ARM_TOPICS = ("joint_states", "joint_commands")
"""Topics that only one arm and one controller publish."""


@contextmanager
def own_domain(
    name: str, domain_id: int | None, holder: str, stop: ShutdownFlag
) -> Iterator[tuple[int, Node]]:
    """Start ROS in a domain that no other run of this user has; yield the domain and a node in it.

    Without ``domain_id``, and without ROS_DOMAIN_ID in the environment, the domain is one of
    FREE_DOMAINS without other nodes. A given domain may have other nodes, but neither another run
    nor another arm or controller. Children inherit it by ROS_DOMAIN_ID.

    Parameters
    ----------
    name : str
        Name of the node.
    domain_id : int or None
        Domain id.
    holder : str
        Description of this run in the error of another run that is given the same domain.
    stop : ShutdownFlag
        Ends the check.

    Yields
    ------
    domain, node : tuple of int and Node

    Raises
    ------
    ConfigError
        For a domain in use, with its user.

    """
    requested = _environment_domain() if domain_id is None else domain_id
    folder = Path(tempfile.gettempdir(), f"arm_dynamics_{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as stack:
        for domain in _free_domains() if requested is None else (requested,):
            lock = try_locked(folder / f"domain_{domain}", holder)
            with ExitStack() as attempt:
                other = attempt.enter_context(lock)
                if not other:
                    os.environ[VARIABLE] = str(domain)
                    node = attempt.enter_context(_node(name, domain))
                    other = _others(node, stop, arms=requested is not None)
                if not other:
                    stack.push(attempt.pop_all())
                    break
            if requested is not None:
                raise ConfigError(
                    f"ROS domain {domain}: {other} is running; expected no other arm or controller;"
                    f" stop it, or set another --domain (or none, without {VARIABLE})"
                )
        else:
            raise ConfigError(
                f"free ROS domains = 0; expected one of {FREE_DOMAINS[0]} to {FREE_DOMAINS[-1]};"
                " set --domain"
            )
        yield domain, node


def _free_domains() -> Sequence[int]:
    """Return FREE_DOMAINS in an order that depends on the user."""
    first = os.getuid() % len(FREE_DOMAINS)
    return *FREE_DOMAINS[first:], *FREE_DOMAINS[:first]


def _environment_domain() -> int | None:
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and int(text) <= MAX_DOMAIN_ID):
        raise ConfigError(f"{VARIABLE} = {text}; expected a whole number from 0 to {MAX_DOMAIN_ID}")
    return int(text)


@contextmanager
def _node(name: str, domain: int) -> Iterator[Node]:
    start_ros(domain=domain)
    node = rclpy.create_node(name)
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def require_alone(node: Node) -> None:
    """Raise ConfigError with their names if several nodes publish a topic of ARM_TOPICS."""
    for topic in ARM_TOPICS:
        names = sorted(publishers(node, topic).values())
        if len(names) > 1:
            raise ConfigError(
                f"several publishers on /{topic}: {', '.join(names)}; expected no other arm or"
                " controller in this ROS domain; stop it, or set another --domain"
            )


def _others(node: Node, stop: ShutdownFlag, *, arms: bool) -> str:
    """Return the names of discovered nodes, "" for none; with ``arms`` only of arms."""
    nodes: list[str] = []
    started = time.monotonic()
    end = started + DISCOVERY_TIME
    while time.monotonic() < end and not stop.wait(0.05):
        if arms:
            nodes = [
                f"{name} (publishes /{topic})"
                for topic in ARM_TOPICS
                for name in publishers(node, topic).values()
            ]
        else:
            nodes = [
                f"{space.rstrip('/')}/{name}"
                for name, space in node.get_node_names_and_namespaces()
                if not name.startswith(HIDDEN)
            ]
            with suppress(ValueError):  # another node of the same name remains
                nodes.remove(node.get_fully_qualified_name())
        if nodes and UNKNOWN not in " ".join(nodes):
            break
        if nodes:  # no name yet
            end = min(end + 0.05, started + NAMING_TIME)
    return ", ".join(sorted(nodes))
