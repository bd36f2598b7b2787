"""A lifecycle node whose transitions are work for its loop."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.ros.loop_requests import LoopRequests

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
INACTIVE, ACTIVE = "inactive", "active"


class LoopLifecycleNode(LifecycleNode):
    """Each transition asks the loop to do it; one that is refused leaves the state as it was.

    Subclasses do ``configure``, ``activate``, ``deactivate`` and ``clean_up``, in the loop's
    thread, and raise an ArmDynamicsError to refuse.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.requests = LoopRequests()
        self.refusal = ""
        """Why the last transition that was asked for did not happen."""
        self._told_once = False
        service: Any = self._service_change_state
        self._change, service.callback = service.callback, self._on_change

    @property
    def lifecycle_state(self) -> str:
        """The state's name: unconfigured, inactive, active or finalized."""
        return str(self._state_machine.current_state[1])

    def configure(self) -> None:
        """Make ready to read."""

    def activate(self) -> None:
        """Begin to act."""

    def deactivate(self) -> None:
        """Cease to act."""

    def clean_up(self) -> None:
        """Release everything."""

    def on_configure(self, _: LifecycleState) -> TransitionCallbackReturn:
        """From unconfigured to inactive."""
        return self._ask("configure", self.configure)

    def on_activate(self, _: LifecycleState) -> TransitionCallbackReturn:
        """From inactive to active."""
        return self._ask("activate", self.activate)

    def on_deactivate(self, _: LifecycleState) -> TransitionCallbackReturn:
        """From active to inactive, whatever the hardware says of it."""
        self._ask("deactivate", self.deactivate)
        return SUCCESS

    def on_cleanup(self, _: LifecycleState) -> TransitionCallbackReturn:
        """From inactive to unconfigured."""
        self._ask("clean up", self.clean_up)
        return SUCCESS

    def on_shutdown(self, _: LifecycleState) -> TransitionCallbackReturn:
        """To finalized, from any state."""
        self._ask("shut down", self.clean_up)
        return SUCCESS

    def on_error(self, _: LifecycleState) -> TransitionCallbackReturn:
        """After a failure of this package: released, and unconfigured."""
        self._ask("clean up", self.clean_up)
        return SUCCESS

    @contextmanager
    def log_rejection_once(self) -> Iterator[None]:
        """Transitions that are tried again and again: a refusal is told when it is another one."""
        self._told_once = True
        try:
            yield
        finally:
            self._told_once = False

    def _ask(self, what: str, work: Callable[[], None]) -> TransitionCallbackReturn:
        try:
            self.requests.ask(work)
        except ArmDynamicsError as error:
            before, self.refusal = self.refusal, f"{what}: {error}"
            if not self._told_once or self.refusal != before:
                self.get_logger().error(self.refusal)
            return FAILURE
        except Exception:  # rclpy would swallow it, and goes on with on_error
            self.get_logger().fatal(traceback.format_exc())
            raise
        self.refusal = ""
        return SUCCESS

    def _on_change(
        self, request: ChangeState.Request, response: ChangeState.Response
    ) -> ChangeState.Response:
        """A transition that the present state does not have is refused, and no end of the node."""
        try:
            return self._change(request, response)
        except Exception:  # rclpy's own, of a private module
            self.refusal = f"a node that is {self.lifecycle_state} has no such transition"
            self.get_logger().error(self.refusal)
            response.success = False
            return response
