"""Size limits of service requests, checked before a request becomes Python objects.

The loop of an arm and its services run in one interpreter, and rclpy holds it while it converts a
request: a request with 10^6 names stopped the loop for 3 s. Here rcl takes a request while the
interpreter is free, and its sizes are checked in C.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from rclpy.executors import SingleThreadedExecutor, await_or_execute

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.ros.messages.c_message import Part, from_c, is_known, new, parts, to_c
from arm_dynamics.safety.events import Events

ITEMS = 10_000
"""Maximum number of texts, parameters and numbers in the sequences of a request."""
TEXT = 2**16
"""Maximum number of characters in all texts of a request."""
RET_OK = 0
"""rcl's return code RCL_RET_OK."""


class _Info(ctypes.Structure):
    """rmw_service_info_t, with space for fields of later versions."""

    _fields_ = (
        ("source_timestamp", ctypes.c_int64),
        ("received_timestamp", ctypes.c_int64),
        ("writer", ctypes.c_uint8 * 16),
        ("sequence_number", ctypes.c_int64),
        ("more", ctypes.c_uint8 * 64),
    )


REQUEST_ID: int = _Info.writer.offset
"""Offset of rmw_request_id_t: writer and sequence_number."""


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
            if code != RET_OK:
                _rcl().rcutils_reset_error()
                return _nothing
            try:
                check_request(kind.Request, address)
                request = from_c(kind.Request, address)
                callback = service.callback
            except InvalidValue as error:
                reason = f"{service.srv_name}: {error}"
                self._events.report("request_rejected", reason)
                request, callback = None, _rejection(reason)

        async def execute() -> None:
            response = await await_or_execute(callback, request, kind.Response())
            with service.handle, new(kind.Response) as address:
                to_c(response, address)
                request_id = ctypes.addressof(info) + REQUEST_ID
                if _rcl().rcl_send_response(service.handle.pointer, request_id, address) != RET_OK:
                    _rcl().rcutils_reset_error()  # the client is gone

        return execute


async def _nothing() -> None:
    """Do nothing, without a waiting request."""


def check_request(request: type, address: int) -> None:
    """Raise InvalidValue for a request in C that is too large."""
    _count(parts(request, address), [0, 0])


def _count(sequences: Iterable[Part], sums: list[int]) -> None:
    """Count items and characters; raise InvalidValue at the first excess."""
    for part in sequences:
        sums[part.is_text] += part.size
        limit, unit = ((ITEMS, "items"), (TEXT, "characters"))[part.is_text]
        if sums[part.is_text] > limit:
            total = sums[part.is_text]
            raise InvalidValue(f"{part.name}: {unit} = {total}; expected at most {limit}")
        _count(part.inner(), sums)


def _rejection(reason: str) -> Callable[[Any, Any], Any]:
    """Return what answers a request that is too large."""

    def respond(_: Any, response: Any) -> Any:
        for part, text in ((response, "message"), (getattr(response, "result", None), "reason")):
            if hasattr(part, text):
                setattr(part, text, reason)
        return response

    return respond


@cache
def _rcl() -> Any:
    """Return the rcl library loaded in this process, or None."""
    try:
        rcl: Any = ctypes.CDLL("librcl.so")
        rcl.rcl_take_request_with_info.argtypes = (ctypes.c_void_p,) * 3
        rcl.rcl_send_response.argtypes = (ctypes.c_void_p,) * 3
    except (OSError, AttributeError):
        return None
    return rcl
