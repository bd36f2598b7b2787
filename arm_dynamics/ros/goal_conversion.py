"""From a FollowJointTrajectory goal to the package's own request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from arm_dynamics.errors import GoalRefused
from arm_dynamics.goals.goal import Code
from arm_dynamics.goals.goal_request import Request, refusing
from arm_dynamics.goals.tolerances import Given
from arm_dynamics.ros.conversions import to_seconds
from arm_dynamics.ros.decode import check_names
from arm_dynamics.ros.goal_limit import TooLarge


def read_goal(message: Any) -> Request:
    """The request; raises GoalRefused for what no joint here can do.

    Tolerances of acceleration are left alone: no acceleration is measured.
    """
    if isinstance(message, TooLarge):
        raise GoalRefused(Code.INVALID_GOAL, message.why)
    trajectory = message.trajectory
    with refusing(Code.INVALID_GOAL):
        check_names(len(trajectory.joint_names), max(map(len, trajectory.joint_names), default=0))
    _refuse_other_joints(message)
    return Request(
        names=list(trajectory.joint_names),
        times=[to_seconds(point.time_from_start) for point in trajectory.points],
        positions=[point.positions for point in trajectory.points],
        velocities=[point.velocities for point in trajectory.points],
        accelerations=[point.accelerations for point in trajectory.points],
        efforts=[point.effort for point in trajectory.points],
        start=to_seconds(trajectory.header.stamp),
        path=_tolerances(message.path_tolerance),
        goal=_tolerances(message.goal_tolerance),
        goal_time=to_seconds(message.goal_time_tolerance),
    )


def _refuse_other_joints(message: Any) -> None:
    """Joints of several axes, which arms here do not have."""
    other = (
        *message.multi_dof_trajectory.joint_names,
        *(t.joint_name for t in message.component_path_tolerance),
        *(t.joint_name for t in message.component_goal_tolerance),
    )
    if other:
        text = f"joint '{other[0]}' has several axes: joints of one axis are expected"
        raise GoalRefused(Code.INVALID_JOINTS, text)


def _tolerances(messages: Iterable[Any]) -> Given:
    return {t.name: (t.position, t.velocity) for t in messages}
