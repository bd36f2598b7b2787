"""Action servers whose goals are followed and ended by a control loop in another thread.

rclpy's action server provides no serialized goals. A goal with 10^6 values would block the services
for half a minute, so that sizes are checked in C first.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.ros.messages.c_message import derived, from_c, guarded, is_known, structure
from arm_dynamics.ros.topics.pacing import wall_timer
from arm_dynamics.ros.topics.topic_driver import STATE_TIMEOUT

PERIOD = 0.05
"""Time [s] between two feedbacks, and maximum delay of a result."""


def limited_action(action: Any, require_in_limits: Callable[[Any], None]) -> Any:
    """Return an action whose server receives a goal with a ``reason`` for one beyond the limits.

    ``require_in_limits`` receives the goal in C and raises InvalidValue. Return ``action`` itself
    if the layout of the C structure is unknown.
    """
    send: Any = action.Impl.SendGoalService.Request
    if not is_known(send):
        return action
    too_large = type("TooLarge", (action.Goal,), {"reason": ""})

    def converted(address: int) -> Any:
        request: Any = structure(send).from_address(address)
        try:
            require_in_limits(request.goal)
        except InvalidValue as error:
            rejected = too_large()
            rejected.reason = str(error)
            result = send(goal=rejected)
            result.goal_id.uuid = list(request.goal_id.uuid)
            return result
        return from_c(send, address)

    service = derived(action.Impl.SendGoalService, {"Request": guarded(send, converted)})
    return derived(action, {"Impl": type("Impl", (action.Impl,), {"SendGoalService": service})})


@dataclass(eq=False)
class _Running:
    """Goal handle, its goal, and the future of its result."""

    handle: Any
    goal: Any
    future: Any


class ActionGoals(ABC):
    """Action server in the services' thread; the loop's thread gives the goals their results.

    A goal has the attributes ``result``, None until it ends, and ``canceling``. ``interruption``
    returns why no state of the arm can come, "" if time is only paused.
    """

    def __init__(
        self, node: Node, loop: ControlLoop, action: Any, name: str, interruption: Callable[[], str]
    ) -> None:
        self._loop, self._interruption = loop, interruption
        self._accepted: Any = None
        self._running: dict[bytes, _Running] = {}
        self._last_state = (-1.0, 0.0)  # its time, and when it was first seen [s]
        self._timer = wall_timer(node, PERIOD, self._update_goals)
        self._timer.cancel()
        self._server = ActionServer(
            node,
            action,
            name,
            execute_callback=self._execute,
            handle_accepted_callback=self._begin,
            goal_callback=self._accept,
            cancel_callback=self._cancel,
        )

    @abstractmethod
    def accept(self, message: Any) -> Any:
        """Return the goal of a message; raise an error of the package to reject it."""

    @abstractmethod
    def cancel(self, goal: Any) -> None:
        """Request that the loop ends a goal."""

    @abstractmethod
    def end(self, goal: Any, text: str, *, canceled: bool) -> None:
        """Give a goal a result without the loop."""

    @abstractmethod
    def report(self, goal: Any) -> None:
        """Report an event for a goal that was aborted."""

    @abstractmethod
    def feedback(self, goal: Any) -> Any:
        """Return the feedback of a goal after the first control cycle."""

    @abstractmethod
    def conclude(self, handle: Any, goal: Any) -> Any:
        """Set the status of ``handle`` by the result of a goal; return its message."""

    def _accept(self, message: Any) -> GoalResponse:
        try:
            self._accepted = self.accept(message)
        except ArmDynamicsError as error:
            self._loop.events.report("goal_rejected", str(error))
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _begin(self, handle: Any) -> None:
        """Store the handle of the goal that was accepted last, before any other goal."""
        running = _Running(handle, self._accepted, Future())
        self._running[bytes(handle.goal_id.uuid)] = running
        if running.goal.result is None:
            self._timer.reset()
        else:
            running.future.set_result(None)
        handle.execute()

    async def _execute(self, handle: Any) -> Any:
        """Wait for the result; the executor serves other callbacks during this time."""
        key = bytes(handle.goal_id.uuid)
        await self._running[key].future
        return self.conclude(handle, self._running.pop(key).goal)

    def _cancel(self, handle: Any) -> CancelResponse:
        running = self._running.get(bytes(handle.goal_id.uuid))
        if running is None or running.goal.result is not None:
            return CancelResponse.REJECT
        self.cancel(running.goal)
        return CancelResponse.ACCEPT

    def _update_goals(self) -> None:
        """Publish feedback and the results from the loop's thread."""
        state, now = self._loop.state, time.monotonic()
        if state is not None and state.time != self._last_state[0]:
            self._last_state = (state.time, now)
        missing = now - self._last_state[1] > STATE_TIMEOUT
        waiting = [running for running in self._running.values() if not running.future.done()]
        for running in waiting:
            self._update(running, missing=missing)
        if not waiting:
            self._timer.cancel()

    def _update(self, running: _Running, *, missing: bool) -> None:
        """Publish feedback on one goal or set its result; ``missing``: no states are received."""
        loop, goal = self._loop, running.goal
        if goal.result is None and missing and goal.canceling:
            self.end(goal, f"canceled; no joint state for {STATE_TIMEOUT:g} s", canceled=True)
        elif goal.result is None and loop.driver.inactive:  # perhaps without any further state
            self.end(goal, f"interrupted: {loop.driver.inactive}", canceled=False)
        elif goal.result is None and missing and (reason := self._interruption()):
            self.cancel(goal)
            self.end(goal, f"interrupted: {reason}", canceled=False)
        if goal.result is not None:
            self.report(goal)
            running.future.set_result(None)
        elif loop.latest is not None:
            running.handle.publish_feedback(self.feedback(goal))
