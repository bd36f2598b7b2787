"""Topics of joint_controller, and parameters of its goals and streams."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.goals.goal import OF_GOAL, OF_JOINT, Constraints, default_values
from arm_dynamics.control.goals.streams import CommandSettings, Streams
from arm_dynamics.control.monitors import MaxErrorTracker
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Reference, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import position_error
from arm_dynamics.ros.messages import conversions, qos
from arm_dynamics.ros.messages.conversions import header, to_double_array, to_duration
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.parameters.ros_parameters import by_joint, declare_live, declare_number
from arm_dynamics.ros.topics.pacing import wall_timer

REJECT = "reject_invalid_goals"


class ConstraintParameters:
    """Constraints of goals as live parameters, named as in joint_trajectory_controller."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._arm = arm
        self._values: dict[str, Any] = {
            f"constraints.{spec.name}": declare_number(
                node, f"constraints.{spec.name}", spec, spec.default or 0.0
            )
            for spec in OF_GOAL
        }
        for joint, row in default_values(arm).items():
            for spec in OF_JOINT:
                name = f"constraints.{joint}.{spec.name}"
                self._values[name] = declare_number(node, name, spec, row[spec.name])
        self.reject = bool(
            declare_live(
                node,
                REJECT,
                True,
                "reject an invalid goal without a result, with the reason in the log; false: accept"
                " and abort it immediately, with error code and string",
            )
        )

    def changed(self, values: Mapping[str, Any]) -> Constraints:
        """Apply changed parameters; return the constraints. Raise InvalidValue out of range."""
        merged = self._values | {n: v for n, v in values.items() if n in self._values}
        joints = by_joint(merged, "constraints")
        general = {spec.name: merged[f"constraints.{spec.name}"] for spec in OF_GOAL}
        constraints = Constraints.of(self._arm, joints, general)
        self._values = merged
        self.reject = bool(values.get(REJECT, self.reject))
        return constraints


PARTIAL = "allow_partial_joints_goal"
FROM_DESIRED = "interpolate_from_desired_state"
INTEGRATE = "allow_integration_in_goal_trajectories"
END_IN_MOTION = "allow_nonzero_velocity_at_trajectory_end"
STREAM_INTERFACE = "commands.interface"
STREAM_SWITCHES = {
    PARTIAL: (
        False,
        "accept goals and trajectories that omit joints; these are stopped and held",
    ),
    FROM_DESIRED: (
        True,
        "start a new trajectory at the reference; false: at the measured state",
    ),
    INTEGRATE: (
        False,
        "accept waypoints with only velocities or accelerations, which are integrated",
    ),
    END_IN_MOTION: (
        False,
        "accept goals that end in motion: the reference then comes to rest and holds;"
        " ~/joint_trajectory always may",
    ),
}
STREAM_NUMBERS = {
    "cmd_timeout": Parameter(
        "cmd_timeout", 0.0, "s", "time after the last waypoint of a stream until it holds; 0, or up"
        " to constraints.goal_time: none", lower=0,
    ),
    "commands.timeout": Parameter(
        "commands.timeout", 0.25, "s", "time after which velocities of ~/commands expire", above=0,
        upper=10,
    ),
}  # fmt: skip
STREAM_INTERFACES = ("position", "velocity")


class StreamParameters:
    """Live parameters of trajectories and streams, named as in joint_trajectory_controller."""

    def __init__(self, node: Node) -> None:
        self.values: dict[str, Any] = {
            name: declare_live(node, name, default, text)
            for name, (default, text) in STREAM_SWITCHES.items()
        }
        for name, number in STREAM_NUMBERS.items():
            self.values[name] = declare_number(node, name, number, number.default or 0.0)
        text = f"values in ~/commands: {' or '.join(STREAM_INTERFACES)}"
        self.values[STREAM_INTERFACE] = declare_live(
            node, STREAM_INTERFACE, STREAM_INTERFACES[0], text
        )
        self.changed({})

    def changed(self, values: Mapping[str, Any]) -> CommandSettings:
        """Apply changed parameters; on InvalidValue nothing changes."""
        merged = self.values | {name: v for name, v in values.items() if name in self.values}
        for name, number in STREAM_NUMBERS.items():
            merged[name] = number.check("joint_controller", merged[name])
        if merged[STREAM_INTERFACE] not in STREAM_INTERFACES:
            raise InvalidValue(
                f"{STREAM_INTERFACE} = {merged[STREAM_INTERFACE]};"
                f" expected one of {', '.join(STREAM_INTERFACES)}"
            )
        self.values = merged
        return CommandSettings(merged[STREAM_INTERFACE], merged["commands.timeout"])


class ReferenceTopics:
    """Passes validated references to the loop; a rejection is logged, and the old one continues."""

    def __init__(self, node: Node, loop: ControlLoop, goal_time: float) -> None:
        """``goal_time``: constraint of the time to the goal [s]."""
        self._loop, self._streams = loop, Streams(loop)
        self.parameters = StreamParameters(node)
        self.configure({}, goal_time)
        report = loop.events.report
        for kind, topic, take, event in (
            (
                JointTrajectory,
                "joint_trajectory",
                self.take_trajectory,
                "trajectory_rejected",
            ),
            (
                Float64MultiArray,
                "commands",
                lambda message: self._streams.command(message.data),
                "command_rejected",
            ),
            (JointState, "reference", self.take_reference, "reference_rejected"),
        ):
            listen(node, kind, f"~/{topic}", take, qos.STREAM, partial(report, event))

    def configure(self, values: Mapping[str, Any], goal_time: float) -> None:
        """Apply changed parameters; raise InvalidValue for one out of its range."""
        self._streams.commands = self.parameters.changed(values)
        parameters = self.parameters.values
        timeout, ignored = parameters["cmd_timeout"], ""
        if 0 < timeout <= goal_time:  # as in joint_trajectory_controller
            ignored = (
                f"cmd_timeout = {timeout:g} s; expected more than constraints.goal_time"
                f" ({goal_time:g} s); the time-out is disabled"
            )
            timeout = 0.0
        self._loop.events.report_lasting("cmd_timeout_ignored", ignored)
        self._streams.timeout = timeout
        self._loop.reference_generator.from_desired = parameters[FROM_DESIRED]

    def observe(self) -> None:
        """Check the stream after a control cycle."""
        self._streams.observe()

    def take_trajectory(self, message: JointTrajectory) -> None:
        """Follow the trajectory; raise TrajectoryRejected if the arm cannot."""
        loop, parameters = self._loop, self.parameters.values
        options = loop.options(
            integrate=parameters[INTEGRATE], end_in_motion=True, partial=parameters[PARTIAL]
        )
        trajectory = conversions.read_trajectory(loop.arm, message, options.now, options)
        velocities = any(len(point.velocities) for point in message.points)
        positions = any(len(point.positions) for point in message.points)
        self._streams.take(trajectory, integrated=velocities and not positions)

    def take_reference(self, message: JointState) -> None:
        """Step the references of the named joints to the positions."""
        names, positions = message.name, message.position
        if len(names) != len(positions) or not names:
            raise InvalidValue(
                f"reference: positions = {len(positions)}; expected {len(names)}, one per name"
            )
        self._loop.hold(dict(zip(names, positions, strict=True)))


PERIOD = 0.02
"""Time [s] between two messages of the controller's state."""


class ControllerStatePublisher:
    """Publishes reference, feedback, error (positions, velocities) and output.

    ``~/tracking`` contains them as the four points of a JointTrajectory. ``~/controller_state`` has
    the type ``kind``, control_msgs/JointTrajectoryControllerState, if that is installed.
    """

    def __init__(self, node: Node, frame: str, loop: ControlLoop, kind: Any = None) -> None:
        self._frame, self._loop, self._kind = frame, loop, kind
        self._max_error = MaxErrorTracker(loop.arm.joint_names)
        self._tracking = node.create_publisher(JointTrajectory, "~/tracking", 10)
        self._state = kind and node.create_publisher(kind, "~/controller_state", 10)
        self._timer = wall_timer(node, PERIOD, self.publish)

    def observe(self) -> None:
        """Record the error of the last control cycle."""
        if self._loop.state is not None and self._loop.reference is not None:
            self._max_error.observe(self._loop.reference.q, self._loop.state.q)

    def max_error(self) -> tuple[float, str]:
        """Return the maximum |reference - position| [rad] since the last call, and its joint."""
        return self._max_error.read()

    def publish(self) -> None:
        """Publish the last control cycle, if subscribed."""
        if self._loop.latest is None:
            return
        tracked = self._tracking.get_subscription_count() > 0
        watched = self._state is not None and self._state.get_subscription_count() > 0
        if not (tracked or watched):
            return
        state, reference, command = self._loop.latest
        field = "positions" if command.interface == "position" else "effort"
        output = JointTrajectoryPoint(**{field: to_double_array(command.value)})
        points = [*state_points(self._loop, state, reference), output]
        names, head = list(self._loop.arm.joint_names), header(self._frame, state.time)
        if tracked:
            self._tracking.publish(JointTrajectory(header=head, joint_names=names, points=points))
        if watched:
            fields = dict(zip(("reference", "feedback", "error", "output"), points, strict=True))
            factor = self._loop.reference_generator.clock.factor
            self._state.publish(
                self._kind(header=head, joint_names=names, speed_scaling_factor=factor, **fields)
            )


def state_points(
    loop: ControlLoop, state: State, reference: Reference
) -> list[JointTrajectoryPoint]:
    """Return reference, feedback and error as points.

    ``time_from_start`` of the reference is trajectory time. That of the others is time, which
    continues while the speed scaling slows the trajectory down, as in joint_trajectory_controller.
    """
    desired, actual = loop.reference_generator.elapsed
    return [
        JointTrajectoryPoint(
            positions=to_double_array(reference.q),
            velocities=to_double_array(reference.v),
            accelerations=to_double_array(reference.a),
            time_from_start=to_duration(desired),
        ),
        JointTrajectoryPoint(
            positions=to_double_array(state.q),
            velocities=to_double_array(state.v),
            time_from_start=to_duration(actual),
        ),
        JointTrajectoryPoint(
            positions=to_double_array(position_error(loop.arm, reference.q, state.q)),
            velocities=to_double_array(reference.v - state.v),
            time_from_start=to_duration(actual),
        ),
    ]
