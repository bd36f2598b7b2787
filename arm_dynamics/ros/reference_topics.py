"""What trajectories and streams may do, as parameters named as joint_trajectory_controller's.

References of a controller: ``~/joint_trajectory``, ``~/commands`` and ``~/reference``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.goals.streams import CommandSettings, Streams
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.decode import listen
from arm_dynamics.ros.ros_parameters import declare_live, declare_number

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


class ReferenceTopics:
    """Hands checked references to the loop; a rejection is logged, and the old one continues."""

    def __init__(self, node: Node, loop: ControlLoop) -> None:
        self._loop, self._streams = loop, Streams(loop)
        self.parameters = StreamParameters(node)
        self.configure({})
        report = loop.events.report
        for kind, topic, take, event in (
            (JointTrajectoryMessage, "joint_trajectory", self._follow, "trajectory_refused"),
            (Float64MultiArray, "commands", self._command, "command_refused"),
            (JointState, "reference", self._hold, "reference_refused"),
        ):
            listen(node, kind, f"~/{topic}", take, qos.STREAM, partial(report, event))

    def configure(self, values: Mapping[str, Any]) -> None:
        """Take changed parameters; raises InvalidValue for one out of its range."""
        self._streams.commands = self.parameters.changed(values)
        given = self.parameters.values
        self._streams.timeout = given["cmd_timeout"]
        self._loop.reference_generator.from_desired = given[FROM_DESIRED]

    def observe(self) -> None:
        """Look at the stream after a control cycle."""
        self._streams.observe()

    def _follow(self, message: JointTrajectoryMessage) -> None:
        loop, integrate = self._loop, self.parameters.values[INTEGRATE]
        options = loop.options(integrate=integrate, end_in_motion=True)
        trajectory = conversions.read_trajectory(loop.arm, message, options.now, options)
        velocities = any(len(point.velocities) for point in message.points)
        positions = any(len(point.positions) for point in message.points)
        self._streams.take(trajectory, integrated=velocities and not positions)

    def _command(self, message: Float64MultiArray) -> None:
        self._streams.command(message.data)

    def _hold(self, message: JointState) -> None:
        names, positions = message.name, message.position
        if len(names) != len(positions) or not names:
            raise InvalidValue(f"reference: {len(positions)} positions for {len(names)} names")
        self._loop.hold(dict(zip(names, positions, strict=True)))
