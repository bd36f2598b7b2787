"""How fast a tool is moved, and how long a word of a stream holds, as live parameters.

What a tool is asked to do: poses, twists, wrenches, paths and timetables.
"""

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
from arm_dynamics.control.reference_generator import RESTART_THRESHOLD, CartesianReferenceGenerator
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.effort_check import check_path, check_wrench
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
    Parameter("speed", 0.25, "m/s", "of the tool", lower=1e-6, upper=100),
    Parameter("acceleration", 1.0, "m/s²", "of the tool", lower=1e-6, upper=1e4),
    Parameter("turning", 1.0, "rad/s", "of the tool", lower=1e-6, upper=1e3),
    Parameter("turning_acceleration", 4.0, "rad/s²", "of the tool", lower=1e-6, upper=1e5),
)
TIMEOUT = Parameter("timeout", 0.25, "s", "a twist or wrench holds this long", above=0, upper=10)


class ToolMotionParameters:
    """The limits and the timeout in force."""

    def __init__(self, node: Node) -> None:
        self._values = {
            spec.name: declare_number(node, spec.name, spec, spec.default or 0.0)
            for spec in (*LIMITS, TIMEOUT)
        }

    @property
    def limits(self) -> ToolLimits:
        """For the next motion."""
        return ToolLimits(**{spec.name: self._values[spec.name] for spec in LIMITS})

    @property
    def timeout(self) -> float:
        """Time [s] of states after which a twist or wrench counts no longer."""
        return self._values[TIMEOUT.name]

    def changed(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Those of ``values`` that are among these; raises InvalidValue for one out of range."""
        specs = [spec for spec in (*LIMITS, TIMEOUT) if spec.name in values]
        return {spec.name: spec.check("tool", values[spec.name]) for spec in specs}

    def take(self, changed: Mapping[str, float]) -> None:
        """Put them in force."""
        self._values |= changed


ATTEMPTS = 3
"""Checks of a way of an arm in motion."""


class ToolTopics:
    """Hands checked goals to the loop; a refusal is told, and the old motion goes on.

    Paths and timetables are checked aside; a pose or twist that comes meanwhile counts instead.
    A topic with several publishers is not listened to: nobody could tell whose word counts.
    """

    def __init__(
        self,
        node: Node,
        frames: Frames,
        loop: ControlLoop,
        law: TaskSpaceController,
        motion: ToolMotionParameters,
    ) -> None:
        self._node, self._frames = node, frames
        self._loop, self._law, self._motion = loop, law, motion
        self._following = CartesianReferenceGenerator(law)
        loop.reference_generator = self._following
        effort = law.interface == "effort"
        self._limit = loop.arm.effort_limit if effort else np.full(loop.arm.nv, np.inf)
        self._aside = BackgroundTask(self._refused)
        self._subscriptions: dict[str, Any] = {}
        # A display that subscribed to ~/target_pose itself would be the one subscriber that
        # `ros2 topic pub --once` waits for.
        self._target = node.create_publisher(PoseStamped, "~/current_target", qos.LATCHED)
        self._listen(PoseStamped, "target_pose", self._pose)
        self._listen(TwistStamped, "target_twist", self._twist)
        self._listen(WrenchStamped, "target_wrench", self._wrench)
        self._listen(Path, "path", self._path)
        self._listen(MultiDOFJointTrajectory, "trajectory", self._timetable)

    def _listen(self, kind: type, topic: str, take: Callable[[Any], None]) -> None:
        self._subscriptions[topic] = listen(
            self._node,
            kind,
            f"~/{topic}",
            partial(self._hear, topic, take),
            qos.STREAM,
            lambda text: self._loop.events.report("target_refused", f"~/{topic}: {text}"),
        )

    def _hear(self, topic: str, take: Callable[[Any], None], message: Any) -> None:
        subscription = self._subscriptions[topic]
        if subscription.get_publisher_count() > 1:
            self._tell_publishers(subscription.topic_name)
        else:
            take(message)

    def _refused(self, topic: str, error: ArmDynamicsError) -> None:
        self._loop.events.report("target_refused", f"~/{topic}: {error}")

    def end(self) -> None:
        """Give up the check under way."""
        self._aside.cancel()

    def _tell_publishers(self, topic: str) -> None:
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
        self._consider("path", lambda: spline_through(self._rest(), poses, limits), None)

    def _timetable(self, message: MultiDOFJointTrajectory) -> None:
        times, poses, twists, start = tool_messages.read_timed_poses(self._frames, message)
        self._present()

        def build() -> CartesianTrajectory:
            return timed_spline(self._rest(start), times, poses, twists)

        self._consider("trajectory", build, start)

    def _go(self, goal: CartesianTarget) -> None:
        """Set out at the next tick: no goal is refused for where the arm can not follow."""
        glide = OnlineCartesianTrajectory.toward(self._loop.arm, goal, *self._present())
        self._aside.run_now(lambda: self._following.queue(glide))

    def _rest(self, start: float | None = None) -> CartesianTrajectory:
        """Where the arm is led at present."""
        now, _ = self._present()
        return CartesianTrajectory.from_configuration(
            self._loop.arm, self._law.clik.q, start or now
        )

    def _consider(
        self, topic: str, build: Callable[[], CartesianTrajectory], start: float | None
    ) -> None:
        """Have a motion followed once it was found possible; without a start, from then on."""

        def work(pause: Pause) -> Callable[[], None]:
            possible = self._possible(build, pause)
            return lambda: self._loop.follow(
                possible if start is not None else replace(possible, start_time=self._present()[0])
            )

        self._aside.start(topic, work)

    def _possible(
        self, build: Callable[[], CartesianTrajectory], pause: Pause
    ) -> CartesianTrajectory:
        """A motion from where the arm is by the end of its check: one in motion moves on."""
        for _ in range(ATTEMPTS):
            trajectory = build()
            entered = trajectory.starting_from(
                self._present()[0], Reference.hold(trajectory.posture)
            )
            found = check_path(self._law.arm, entered, self._limit, pause)
            if math.dist(self._rest().position, trajectory.position) <= RESTART_THRESHOLD:
                return replace(found, entry=None)  # the loop enters it anew
        raise TrajectoryRejected(
            "the tool moved on each time while this way was checked from where it was: send it"
            " once the tool rests"
        )

    def _present(self) -> tuple[float, Reference]:
        """Time and reference of the latest tick."""
        latest = self._loop.latest
        if latest is None:
            raise TrajectoryRejected("no state of the arm has come yet: nothing to start from")
        return latest[0].time, latest[1]
