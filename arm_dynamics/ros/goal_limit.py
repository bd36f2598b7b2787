"""Counts what a goal holds before rclpy makes Python objects of it.

rclpy's action server offers no serialized goals, and 25 µs a waypoint keep the services of a node
for half a minute where somebody sends 10^6 of them.
"""

from __future__ import annotations

from typing import Any

from control_msgs.action import FollowJointTrajectory

from arm_dynamics.errors import InvalidValue
from arm_dynamics.ros.c_message import derived, from_c, guarded, is_known, structure
from arm_dynamics.ros.decode import check_names, check_points

SendGoal: Any = FollowJointTrajectory.Impl.SendGoalService.Request
TOLERANCES = (
    *("path_tolerance", "component_path_tolerance"),
    *("goal_tolerance", "component_goal_tolerance"),
)


class TooLarge(FollowJointTrajectory.Goal):
    """A goal that was not converted; ``why`` says what it has too many of."""

    why = ""


def _check(goal: Any) -> None:
    """Raise InvalidValue for more than the limits of a message."""
    for trajectory in (goal.trajectory, goal.multi_dof_trajectory):
        check_names(trajectory.joint_names.size, 0)
        check_points(trajectory.points.size)
    for tolerances in TOLERANCES:
        check_names(getattr(goal, tolerances).size, 0)


def limited_action() -> Any:
    """FollowJointTrajectory, whose server gets a TooLarge for a goal beyond the limits.

    It is FollowJointTrajectory itself where the structure's layout is another one.
    """
    if not is_known(SendGoal):
        return FollowJointTrajectory
    request = guarded(SendGoal, _guarded)
    service = derived(FollowJointTrajectory.Impl.SendGoalService, {"Request": request})
    impl = type("Impl", (FollowJointTrajectory.Impl,), {"SendGoalService": service})
    return derived(FollowJointTrajectory, {"Impl": impl})


def _guarded(address: int) -> Any:
    """The request in C as an object."""
    request: Any = structure(SendGoal).from_address(address)
    try:
        _check(request.goal)
    except InvalidValue as error:
        goal = TooLarge()
        goal.why = str(error)
        found = SendGoal(goal=goal)
        found.goal_id.uuid = list(request.goal_id.uuid)
        return found
    return from_c(SendGoal, address)
