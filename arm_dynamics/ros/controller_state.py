"""How well a controller follows: ``~/tracking``, ``~/controller_state``, the worst error."""

from __future__ import annotations

from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.monitors import MaxErrorTracker
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.model.whole_turns import position_error
from arm_dynamics.ros.conversions import header, to_double_array, to_duration

PERIOD = 0.02


class ControllerStatePublisher:
    """Publishes reference, feedback, error (positions, velocities) and output.

    ``~/tracking`` has them as the four points of a JointTrajectory; ``~/controller_state`` is of
    the ``kind`` control_msgs/JointTrajectoryControllerState, where that is installed.
    """

    def __init__(self, node: Node, frame: str, loop: ControlLoop, kind: Any = None) -> None:
        self._frame, self._loop, self._kind = frame, loop, kind
        self._worst = MaxErrorTracker(loop.arm.joint_names)
        self._tracking = node.create_publisher(JointTrajectory, "~/tracking", 10)
        self._state = kind and node.create_publisher(kind, "~/controller_state", 10)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PERIOD, self._publish, clock=steady)

    def observe(self) -> None:
        """Note the error of the tick that just ended."""
        if self._loop.state is not None and self._loop.reference is not None:
            self._worst.observe(self._loop.reference.q, self._loop.state.q)

    def max_error(self) -> tuple[float, str]:
        """Largest |reference - position| [rad] since the last call, and its joint."""
        return self._worst.read()

    def _publish(self) -> None:
        if self._loop.latest is None:
            return
        tracked = self._tracking.get_subscription_count() > 0
        watched = self._state is not None and self._state.get_subscription_count() > 0
        if not (tracked or watched):
            return
        state, reference, command = self._loop.latest
        points = [*state_points(self._loop, state, reference), _output(command)]
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
    """Reference, feedback and error as points.

    ``time_from_start`` of the reference is trajectory time; of the others it is time, which goes
    on while the speed scaling slows the trajectory down. So does joint_trajectory_controller.
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


def _output(command: Command) -> JointTrajectoryPoint:
    field = "positions" if command.interface == "position" else "effort"
    return JointTrajectoryPoint(**{field: to_double_array(command.value)})
