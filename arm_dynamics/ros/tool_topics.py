"""Targets of the tool: poses, twists, wrenches, paths and timed trajectories."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from trajectory_msgs.msg import MultiDOFJointTrajectory

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.effort_check import check_path, check_wrench
from arm_dynamics.control.reference_generator import RESTART_THRESHOLD, CartesianReferenceGenerator
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.online_trajectory import (
    CartesianTarget,
    OnlineCartesianTrajectory,
    TargetPose,
    TargetTwist,
)
from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.control.trajectories.tool_splines import spline_through, timed_spline
from arm_dynamics.core.errors import ArmDynamicsError, TrajectoryRejected
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Reference
from arm_dynamics.ros import qos, tool_messages
from arm_dynamics.ros.background_task import BackgroundTask, Pause
from arm_dynamics.ros.decode import listen
from arm_dynamics.ros.frames import Frames
from arm_dynamics.ros.ros_parameters import declare_number

LIMITS = (
    Parameter(
        "max_linear_velocity", 0.25, "m/s", "velocity limit of the tool", lower=1e-6, upper=100
    ),
    Parameter(
        "max_linear_acceleration",
        1.0,
        "m/s²",
        "acceleration limit of the tool",
        lower=1e-6,
        upper=1e4,
    ),
    Parameter(
        "max_angular_velocity",
        1.0,
        "rad/s",
        "angular velocity limit of the tool",
        lower=1e-6,
        upper=1e3,
    ),
    Parameter(
        "max_angular_acceleration",
        4.0,
        "rad/s²",
        "angular acceleration limit of the tool",
        lower=1e-6,
        upper=1e5,
    ),
)
TIMEOUT = Parameter(
    "command_timeout", 0.25, "s", "time after which a twist or wrench expires", above=0, upper=10
)


class ToolMotionParameters:
    """Live limits of tool motions, and the timeout of twists and wrenches."""

    def __init__(self, node: Node) -> None:
        self._values = {
            spec.name: declare_number(node, spec.name, spec, spec.default or 0.0)
            for spec in (*LIMITS, TIMEOUT)
        }

    @property
    def limits(self) -> ToolLimits:
        """Limits of the next motion."""
        return ToolLimits(**{spec.name: self._values[spec.name] for spec in LIMITS})

    @property
    def timeout(self) -> float:
        """Time [s] of the states after which a twist or wrench expires."""
        return self._values[TIMEOUT.name]

    def changed(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Return the ``values`` of these parameters; raise InvalidValue for one out of range."""
        specs = [spec for spec in (*LIMITS, TIMEOUT) if spec.name in values]
        return {spec.name: spec.check("tool", values[spec.name]) for spec in specs}

    def take(self, changed: Mapping[str, float]) -> None:
        """Apply changed values."""
        self._values |= changed


ATTEMPTS = 3
"""Maximum number of feasibility checks of a path while the tool moves."""


class ToolTopics:
    """Passes feasible targets to the loop; a rejection is an event, and the old motion continues.

    Paths and timed trajectories are checked in a background thread. A pose or twist received during
    the check replaces them. Messages of a topic with several publishers are ignored, because
    commands from several sources conflict.
    """

    def __init__(
        self,
        node: Node,
        frames: Frames,
        loop: ControlLoop,
        controller: TaskSpaceController,
        motion: ToolMotionParameters,
    ) -> None:
        self._node, self._frames = node, frames
        self._loop, self._controller, self._motion = loop, controller, motion
        self._following = CartesianReferenceGenerator(controller)
        loop.reference_generator = self._following
        effort = controller.interface == "effort"
        self._limit = loop.arm.effort_limit if effort else np.full(loop.arm.nv, np.inf)
        self._task = BackgroundTask(self._reject)
        self._subscriptions: dict[str, Any] = {}
        # A display must not subscribe to ~/target_pose: `ros2 topic pub --once` waits for only one
        # subscriber.
        self._target = node.create_publisher(PoseStamped, "~/current_target", qos.LATCHED)
        self._listen(PoseStamped, "target_pose", self._pose)
        self._listen(TwistStamped, "target_twist", self._twist)
        self._listen(WrenchStamped, "target_wrench", self._wrench)
        self._listen(Path, "path", self._path)
        self._listen(MultiDOFJointTrajectory, "trajectory", self._timed_poses)

    def _listen(self, kind: type, topic: str, take: Callable[[Any], None]) -> None:
        self._subscriptions[topic] = listen(
            self._node,
            kind,
            f"~/{topic}",
            partial(self._receive, topic, take),
            qos.STREAM,
            lambda text: self._loop.events.report("target_rejected", f"~/{topic}: {text}"),
        )

    def _receive(self, topic: str, take: Callable[[Any], None], message: Any) -> None:
        subscription = self._subscriptions[topic]
        if subscription.get_publisher_count() > 1:
            self._report_publishers(subscription.topic_name)
        else:
            take(message)

    def _reject(self, topic: str, error: ArmDynamicsError) -> None:
        self._loop.events.report("target_rejected", f"~/{topic}: {error}")

    def end(self) -> None:
        """Cancel the current check."""
        self._task.cancel()

    def _report_publishers(self, topic: str) -> None:
        found = self._node.get_publishers_info_by_topic(topic)
        names = sorted(f"{p.node_namespace.rstrip('/')}/{p.node_name}" for p in found)
        self._loop.events.report(
            "target_ignored",
            f"{topic} has several publishers ({', '.join(names)}): one is expected",
        )

    def _pose(self, message: PoseStamped) -> None:
        position, rotation = tool_messages.read_pose(self._frames, message)
        self._go(TargetPose.of(self._loop.arm, position, rotation, self._motion.limits))
        self._target.publish(message)

    def _twist(self, message: TwistStamped) -> None:
        twist, motion = tool_messages.read_twist(self._frames, message), self._motion
        self._go(TargetTwist.of(self._loop.arm, twist, motion.timeout, motion.limits))

    def _wrench(self, message: WrenchStamped) -> None:
        wrench, (now, reference) = (
            tool_messages.read_wrench(self._frames, message),
            self._present(),
        )
        check_wrench(self._loop.arm, reference.q, wrench)
        self._following.set_wrench(wrench, now + self._motion.timeout)

    def _path(self, message: Path) -> None:
        poses, limits = tool_messages.read_path(self._frames, message), self._motion.limits
        self._present()
        self._follow_if_feasible("path", lambda: spline_through(self._rest(), poses, limits), None)

    def _timed_poses(self, message: MultiDOFJointTrajectory) -> None:
        times, poses, twists, start = tool_messages.read_timed_poses(self._frames, message)
        self._present()

        def build() -> CartesianTrajectory:
            return timed_spline(self._rest(start), times, poses, twists)

        self._follow_if_feasible("trajectory", build, start)

    def _go(self, goal: CartesianTarget) -> None:
        """Start in the next control cycle; unreachable targets are not rejected."""
        glide = OnlineCartesianTrajectory.toward(self._loop.arm, goal, *self._present())
        self._task.run_now(lambda: self._following.queue(glide))

    def _rest(self, start: float | None = None) -> CartesianTrajectory:
        """Return the current reference configuration as a trajectory at rest."""
        now, _ = self._present()
        return CartesianTrajectory.from_configuration(
            self._loop.arm, self._controller.clik.q, start or now
        )

    def _follow_if_feasible(
        self, topic: str, build: Callable[[], CartesianTrajectory], start: float | None
    ) -> None:
        """Follow a trajectory if it is feasible; without a start time, after the check."""

        def work(pause: Pause) -> Callable[[], None]:
            possible = self._feasible(build, pause)
            return lambda: self._loop.follow(
                possible if start is not None else replace(possible, start_time=self._present()[0])
            )

        self._task.start(topic, work)

    def _feasible(
        self, build: Callable[[], CartesianTrajectory], pause: Pause
    ) -> CartesianTrajectory:
        """Return a feasible trajectory from the reference at the end of its check."""
        for _ in range(ATTEMPTS):
            trajectory = build()
            entered = trajectory.starting_from(
                self._present()[0], Reference.hold(trajectory.posture)
            )
            found = check_path(self._controller.arm, entered, self._limit, pause)
            if math.dist(self._rest().position, trajectory.position) <= RESTART_THRESHOLD:
                return replace(found, entry=None)  # the loop computes the blend
        raise TrajectoryRejected(
            "path rejected: the tool moved during the feasibility check; send the path when the"
            " tool is at rest"
        )

    def _present(self) -> tuple[float, Reference]:
        """Return time and reference of the latest control cycle."""
        latest = self._loop.latest
        if latest is None:
            raise TrajectoryRejected("received states = 0; expected at least 1 before a target")
        return latest[0].time, latest[1]
