"""Requests of services that are too large are rejected before they become Python objects.

The loop of an arm and its services share one interpreter, and rclpy keeps it while it takes a
request and makes objects of it: a request with 10^6 names stopped the loop for 3 s. Here rcl takes
a request while the interpreter is free, and its sizes are looked at in C.

Counts what a goal holds before rclpy makes Python objects of it.

rclpy's action server offers no serialized goals, and 25 µs a waypoint keep the services of a node
for half a minute where somebody sends 10^6 of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from control_msgs.action import FollowJointTrajectory
from rclpy.executors import SingleThreadedExecutor, await_or_execute

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.ros.c_message import (
    Part,
    derived,
    from_c,
    guarded,
    is_known,
    new,
    parts,
    structure,
    to_c,
)
from arm_dynamics.ros.decode import check_names, check_points
from arm_dynamics.safety.events import Events

ITEMS = 10_000
"""Texts, parameters and numbers in the sequences of a request."""
TEXT = 2**16
"""Characters in all texts of a request."""
DONE = 0
"""rcl's return code RCL_RET_OK."""


class _Info(ctypes.Structure):
    """rmw_service_info_t, and room for what a later version may append."""

    _fields_ = (
        ("source_timestamp", ctypes.c_int64),
        ("received_timestamp", ctypes.c_int64),
        ("writer", ctypes.c_uint8 * 16),
        ("sequence_number", ctypes.c_int64),
        ("more", ctypes.c_uint8 * 64),
    )


REQUEST_ID: int = _Info.writer.offset
"""Where rmw_request_id_t, of writer and sequence_number, begins."""


class LimitedExecutor(SingleThreadedExecutor):
    """Rejects requests beyond ``ITEMS`` and ``TEXT``, with the event ``request_rejected``.

    The reply is the type's default one, with the reason where it has a text for it. A type whose
    layout in C is not known is left to rclpy.
    """

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def _take_service(self, service: Any) -> Any:
        """Take a request; return what executes it, as rclpy's own method."""
        if _rcl() is None or not is_known(service.srv_type.Request):
            return super()._take_service(service)
        kind, info = service.srv_type, _Info()
        with service.handle, new(kind.Request) as address:
            code = _rcl().rcl_take_request_with_info(
                service.handle.pointer, ctypes.byref(info), address
            )
            if code != DONE:
                _rcl().rcutils_reset_error()
                return _nothing
            try:
                check_request(kind.Request, address)
                request = from_c(kind.Request, address)
                answer = service.callback
            except InvalidValue as error:
                why = f"{service.srv_name}: {error}"
                self._events.report("request_rejected", why)
                request, answer = None, _rejection(why)

        async def execute() -> None:
            response = await await_or_execute(answer, request, kind.Response())
            with service.handle, new(kind.Response) as address:
                to_c(response, address)
                request_id = ctypes.addressof(info) + REQUEST_ID
                if _rcl().rcl_send_response(service.handle.pointer, request_id, address) != DONE:
                    _rcl().rcutils_reset_error()  # the client is gone

        return execute


async def _nothing() -> None:
    """What is done where no request waits any more."""


def check_request(request: type, address: int) -> None:
    """Raise InvalidValue for a request in C that is too large."""
    _count(parts(request, address), [0, 0])


def _count(found: Iterable[Part], sums: list[int]) -> None:
    """Add up items and characters; of what is too many nothing more is looked at."""
    for part in found:
        sums[part.is_text] += part.size
        limit, what = ((ITEMS, "items"), (TEXT, "characters"))[part.is_text]
        if sums[part.is_text] > limit:
            total = sums[part.is_text]
            raise InvalidValue(f"{part.name}: {what} = {total}; expected at most {limit}")
        _count(part.inner(), sums)


def _rejection(why: str) -> Callable[[Any, Any], Any]:
    """Return what answers a request that is too large."""

    def answer(_: Any, response: Any) -> Any:
        for told, text in ((response, "message"), (getattr(response, "result", None), "reason")):
            if hasattr(told, text):
                setattr(told, text, why)
        return response

    return answer


@cache
def _rcl() -> Any:
    """rcl as this process has it loaded, or None where it is not found."""
    try:
        rcl: Any = ctypes.CDLL("librcl.so")
        rcl.rcl_take_request_with_info.argtypes = (ctypes.c_void_p,) * 3
        rcl.rcl_send_response.argtypes = (ctypes.c_void_p,) * 3
    except (OSError, AttributeError):
        return None
    return rcl


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
