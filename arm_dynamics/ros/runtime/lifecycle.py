"""Lifecycle node whose transitions run in the thread of its loop."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.loop_requests import LoopRequests

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
INACTIVE, ACTIVE = "inactive", "active"


class LoopLifecycleNode(LifecycleNode):
    """Runs each transition in the loop's thread; a rejected one does not change the state.

    Subclasses implement ``configure``, ``activate``, ``deactivate`` and ``clean_up``, and raise an
    ArmDynamicsError to reject.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.requests = LoopRequests()
        self.rejection = ""
        """Reason why the last requested transition was rejected, or ""."""
        self._logs_changes_only = False
        service: Any = self._service_change_state
        self._change, service.callback = service.callback, self._on_change

    @property
    def lifecycle_state(self) -> str:
        """Lifecycle state: unconfigured, inactive, active or finalized."""
        return str(self._state_machine.current_state[1])

    def configure(self) -> None:
        """Prepare reading."""

    def activate(self) -> None:
        """Accept commands."""

    def deactivate(self) -> None:
        """Accept no more commands."""

    def clean_up(self) -> None:
        """Release everything."""

    def on_configure(self, _: LifecycleState) -> TransitionCallbackReturn:
        """Go from unconfigured to inactive."""
        return self._transition("configure", self.configure)

    def on_activate(self, _: LifecycleState) -> TransitionCallbackReturn:
        """Go from inactive to active."""
        return self._transition("activate", self.activate)

    def on_deactivate(self, _: LifecycleState) -> TransitionCallbackReturn:
        """Go from active to inactive, even if the hardware reports an error."""
        self._transition("deactivate", self.deactivate)
        return SUCCESS

    def on_cleanup(self, _: LifecycleState) -> TransitionCallbackReturn:
        """Go from inactive to unconfigured."""
        self._transition("clean up", self.clean_up)
        return SUCCESS

    def on_shutdown(self, _: LifecycleState) -> TransitionCallbackReturn:
        """Go to finalized, from any state."""
        self._transition("shut down", self.clean_up)
        return SUCCESS

    def on_error(self, _: LifecycleState) -> TransitionCallbackReturn:
        """Release everything and go to unconfigured after an unexpected error."""
        self._transition("clean up", self.clean_up)
        return SUCCESS

    @contextmanager
    def log_rejection_once(self) -> Iterator[None]:
        """Log rejections of repeated transitions only if the reason changes."""
        self._logs_changes_only = True
        try:
            yield
        finally:
            self._logs_changes_only = False

    def _transition(self, transition: str, work: Callable[[], None]) -> TransitionCallbackReturn:
        try:
            self.requests.call(work)
        except ArmDynamicsError as error:
            before, self.rejection = self.rejection, f"{transition}: {error}"
            if not self._logs_changes_only or self.rejection != before:
                self.get_logger().error(self.rejection)
            return FAILURE
        except Exception:  # rclpy would hide it, and continues with on_error
            self.get_logger().fatal(traceback.format_exc())
            raise
        self.rejection = ""
        return SUCCESS

    def _on_change(
        self, request: ChangeState.Request, response: ChangeState.Response
    ) -> ChangeState.Response:
        """Reject a transition that the current state does not have, instead of ending the node."""
        try:
            return self._change(request, response)
        except Exception:  # of a private module of rclpy
            self.rejection = (
                f"lifecycle state = {self.lifecycle_state}; expected a state with this transition"
            )
            self.get_logger().error(self.rejection)
            response.success = False
            return response
