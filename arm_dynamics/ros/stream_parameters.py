"""What trajectories and streams may do, as parameters named as joint_trajectory_controller's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from arm_dynamics.errors import InvalidValue
from arm_dynamics.goals.streams import CommandSettings
from arm_dynamics.parameters import Parameter
from arm_dynamics.ros.parameters import declare_live, declare_number

FROM_DESIRED = "interpolate_from_desired_state"
INTEGRATE = "allow_integration_in_goal_trajectories"
END_IN_MOTION = "allow_nonzero_velocity_at_trajectory_end"
INTERFACE = "commands.interface"
SWITCHES = {
    FROM_DESIRED: (
        True,
        "whether a new trajectory begins at the reference; false: at the measured state",
    ),
    INTEGRATE: (
        False,
        "whether waypoints may give velocities or accelerations alone, which are integrated",
    ),
    END_IN_MOTION: (
        False,
        "whether a goal may end in motion: the reference then comes to rest and holds;"
        " ~/joint_trajectory always may",
    ),
}
NUMBERS = {
    "cmd_timeout": Parameter(
        "cmd_timeout", 0.0, "s", "time after the last waypoint of a stream, then hold; 0: none",
        lower=0,
    ),
    "commands.timeout": Parameter(
        "commands.timeout", 0.25, "s", "time after which velocities of ~/commands end", above=0,
        upper=10,
    ),
}  # fmt: skip
INTERFACES = ("position", "velocity")


class StreamParameters:
    """Declares them, and holds those in force; all are live."""

    def __init__(self, node: Node) -> None:
        self.values: dict[str, Any] = {
            name: declare_live(node, name, default, text)
            for name, (default, text) in SWITCHES.items()
        }
        for name, number in NUMBERS.items():
            self.values[name] = declare_number(node, name, number, number.default or 0.0)
        text = f"what ~/commands holds: {' or '.join(INTERFACES)}"
        self.values[INTERFACE] = declare_live(node, INTERFACE, INTERFACES[0], text)
        self.changed({})

    def changed(self, values: Mapping[str, Any]) -> CommandSettings:
        """Take what concerns them; raises InvalidValue, and nothing changed."""
        merged = self.values | {name: v for name, v in values.items() if name in self.values}
        for name, number in NUMBERS.items():
            merged[name] = number.check("joint_controller", merged[name])
        if merged[INTERFACE] not in INTERFACES:
            raise InvalidValue(
                f"{INTERFACE} = {merged[INTERFACE]}; expected one of {', '.join(INTERFACES)}"
            )
        self.values = merged
        return CommandSettings(merged[INTERFACE], merged["commands.timeout"])
