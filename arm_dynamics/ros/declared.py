"""Parameters given at the start that a node does not have: misspelt ones are rejected."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from rclpy.node import Node

from arm_dynamics.config import NEAR, is_gain
from arm_dynamics.errors import ConfigError
from arm_dynamics.model.audit.fault import suggest

FOREIGN = ("qos_overrides",)
"""Groups that rclpy declares as it needs them."""


def require_declared(node: Node, *only: str) -> None:
    """Raise ConfigError for a parameter that was given at the start and is nearly one of the node.

    That is one of a group that the node has (``gains``, ``safety`` ...) or one like another name.
    Gains of other registered controllers wait for those, and those of locked joints are ignored.
    The rest is of other nodes: ROS gives a node what stands under ``/**``, or on the command line
    of a process, for all. ``only``: groups.
    """
    given = getattr(node, "_parameter_overrides", {})  # rclpy shows them nowhere else
    declared = node._parameters
    groups = {name.partition(".")[0] for name in declared if "." in name} - {*FOREIGN}
    locked = declared["lock"].value if "lock" in declared else ()
    for name in given:
        head, _, rest = name.partition(".")
        if (
            (only and head not in only)
            or name in declared
            or head in FOREIGN
            or ("." in rest and rest.rpartition(".")[0] in locked)
            or (head == "gains" and _waits(rest, declared))
        ):
            continue
        if rest and head in groups:
            siblings = [other for other in declared if other.startswith(f"{head}.")]
            raise ConfigError(
                f"{node.get_name()}: {name} is not a parameter; {suggest(name, siblings, 'known')}"
            )
        near = get_close_matches(name, declared, n=1, cutoff=NEAR)
        if near:
            raise ConfigError(
                f"{node.get_name()}: {name} is not a parameter; did you mean '{near[0]}'?"
            )


def _waits(rest: str, declared: Collection[str]) -> bool:
    """Whether ``<group>.<gain>`` is another controller's, of a group that the node has or may."""
    group, _, gain = rest.rpartition(".")
    groups = {name.split(".", 1)[1].rpartition(".")[0] for name in declared if name[:6] == "gains."}
    return (group in groups or group == "law") and is_gain(group, gain)
