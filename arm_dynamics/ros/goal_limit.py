"""Counts what a goal holds before rclpy makes Python objects of it.

rclpy's action server offers no serialized goals, and 25 µs a waypoint keep the services of a node
for half a minute where somebody sends 10^6 of them. A type support has its conversion from C as a
capsule, in which this one puts its own: it looks at the sizes in the C structure first.
"""

from __future__ import annotations

import ctypes
from typing import Any

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointComponentTolerance, JointTolerance
from trajectory_msgs.msg import JointTrajectoryPoint, MultiDOFJointTrajectoryPoint

from arm_dynamics.errors import InvalidValue
from arm_dynamics.ros.decode import check_names, check_points

SendGoal: Any = FollowJointTrajectory.Impl.SendGoalService.Request

Convert = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
ConvertBack = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.py_object, ctypes.c_void_p)
_python: Any = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


class _Sequence(ctypes.Structure):
    """A sequence or string of rosidl_runtime_c."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
    )


class _Trajectory(ctypes.Structure):
    """JointTrajectory, and MultiDOFJointTrajectory too."""

    _fields_ = (
        ("stamp", ctypes.c_int32 * 2),
        ("frame_id", _Sequence),
        ("joint_names", _Sequence),
        ("points", _Sequence),
    )


class _SendGoal(ctypes.Structure):
    """FollowJointTrajectory_SendGoal_Request."""

    _fields_ = (
        ("goal_id", ctypes.c_uint8 * 16),
        ("trajectory", _Trajectory),
        ("multi_dof_trajectory", _Trajectory),
        ("tolerances", _Sequence * 4),
    )


class TooLarge(FollowJointTrajectory.Goal):
    """A goal that was not converted; ``why`` says what it has too many of."""

    why = ""


def _check(request: Any) -> None:
    """Raise InvalidValue for more than the limits of a message."""
    for trajectory in (request.trajectory, request.multi_dof_trajectory):
        check_names(trajectory.joint_names.size, 0)
        check_points(trajectory.points.size)
    for tolerances in request.tolerances:
        check_names(tolerances.size, 0)


def _pointer(kind: type, name: str) -> int:
    """The C function of a message type that rclpy calls by this name."""
    return int(_python.PyCapsule_GetPointer(getattr(type(kind), name), None))


def limited_action() -> Any:
    """FollowJointTrajectory, whose server gets a TooLarge for a goal beyond the limits.

    It is FollowJointTrajectory itself where the structure's layout is another one.
    """
    type(SendGoal).__import_type_support__()
    if not _layout_is_known():
        return FollowJointTrajectory
    request = _derived(SendGoal, {}, {"_CONVERT_TO_PY": _capsule()})
    service = _derived(FollowJointTrajectory.Impl.SendGoalService, {"Request": request})
    impl = type("Impl", (FollowJointTrajectory.Impl,), {"SendGoalService": service})
    return _derived(FollowJointTrajectory, {"Impl": impl})


def _guarded(address: int) -> Any:
    """The request in C as an object."""
    request = _SendGoal.from_address(address)
    try:
        _check(request)
    except InvalidValue as error:
        goal = TooLarge()
        goal.why = str(error)
        found = SendGoal(goal=goal)
        found.goal_id.uuid = list(request.goal_id)
        return found
    return Convert(_pointer(SendGoal, "_CONVERT_TO_PY"))(address)


_guarded_in_c = Convert(_guarded)  # for as long as rclpy may call it


def _capsule() -> Any:
    """The conversion from C as rclpy takes it."""
    return _python.PyCapsule_New(ctypes.cast(_guarded_in_c, ctypes.c_void_p), None, None)


def _derived(kind: type, own: dict[str, Any], of_type: dict[str, Any] | None = None) -> Any:
    """A subclass with its own attributes, and its type's: those of rclpy's are inherited."""
    metaclass = type("Limited", (type(kind),), of_type or {})
    return metaclass(kind.__name__, (kind,), own)


def _layout_is_known() -> bool:
    """Whether the sizes of a request stand where they are looked for."""
    message, sizes = SendGoal(), (1, 2, 3, 4, 5, 6, 7, 8)
    message.goal_id.uuid, goal = list(range(16)), message.goal
    goal.trajectory.joint_names, goal.multi_dof_trajectory.joint_names = ["a"], ["a"] * 3
    goal.trajectory.points = [JointTrajectoryPoint()] * 2
    goal.multi_dof_trajectory.points = [MultiDOFJointTrajectoryPoint()] * 4
    goal.path_tolerance, goal.goal_tolerance = [JointTolerance()] * 5, [JointTolerance()] * 7
    goal.component_path_tolerance = [JointComponentTolerance()] * 6
    goal.component_goal_tolerance = [JointComponentTolerance()] * 8
    address = ctypes.CFUNCTYPE(ctypes.c_void_p)(_pointer(SendGoal, "_CREATE_ROS_MESSAGE"))()
    try:
        ConvertBack(_pointer(SendGoal, "_CONVERT_FROM_PY"))(message, address)
        request = _SendGoal.from_address(address)
        ways = request.trajectory, request.multi_dof_trajectory
        found = [size for w in ways for size in (w.joint_names.size, w.points.size)]
        found += [tolerances.size for tolerances in request.tolerances]
        return bytes(request.goal_id) == bytes(range(16)) and tuple(found) == sizes
    finally:
        free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        free(_pointer(SendGoal, "_DESTROY_ROS_MESSAGE"))(address)
