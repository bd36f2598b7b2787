"""Node excitation: an active arm runs an excitation trajectory as a goal of its controller."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import GetState
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from arm_dynamics.control.goals.goal import ErrorCode
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError, GoalRejected
from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.identification.excitation.excitation import Excitation
from arm_dynamics.identification.excitation.excitation_start import (
    checked_excitation,
    excitation_motion,
)
from arm_dynamics.ros.parameters.arm_parameters import declared_model
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.runtime.process import run_node
from arm_dynamics.ros.topics.controller_clients import (
    Tracked,
    TrackingSubscription,
    trajectory_message,
)

ACTION = "joint_controller/follow_joint_trajectory"
HARDWARE = "hardware"
PERIOD = 0.05
"""Time [s] between two checks of the arm's state, and of the goal."""
SETTLING_TIME = 0.5
"""Time [s] from the activation to the goal: the controller restarts where torque was enabled."""
CANCEL_TIMEOUT = 2.0
"""Maximum time [s] for the controller to confirm the end of a canceled goal."""


class ExcitationNode(Node):
    """Sends one goal: the motion to the start configuration, then the excitation trajectory.

    The goal waits until the node ``hardware`` is active and the controller runs.
    """

    def __init__(self) -> None:
        super().__init__("excitation")
        self._arm = declared_model(self)
        file = declare_fixed(self, "file", "", "YAML file of arm-dynamics excite")
        waits = declare_fixed(
            self, "wait_for_activation", True, "start once the node hardware is active"
        )
        if not file:
            raise ConfigError("file = ''; expected the YAML file of an excitation trajectory")
        self._file = file
        self._excitation = checked_excitation(self._arm, Excitation.load(file))
        try:
            from control_msgs.action import FollowJointTrajectory  # noqa: PLC0415 - may be missing
        except ImportError as error:
            raise ConfigError(f"control_msgs = missing; expected 5.3 or newer ({error})") from error
        self._goal_type: Any = FollowJointTrajectory.Goal
        self._action: Any = ActionClient(self, FollowJointTrajectory, ACTION)
        self._state: Any = self.create_client(GetState, f"{HARDWARE}/get_state") if waits else None
        self._tracking = TrackingSubscription(self, self._arm)

    def run(self, stop: ShutdownFlag) -> None:
        """Send the goal and wait for its end, or cancel it when ``stop`` is set.

        Raise GoalRejected if the controller rejects or aborts the goal.
        """
        reference = self._reference_once_active(stop)
        if reference is None:
            return
        motion = excitation_motion(self._arm, self._excitation, reference, 0.0)
        handle = self._send_goal(trajectory_message(self._arm.joint_names, motion.waypoints), stop)
        if handle is None:
            return
        duration = motion.waypoints[-1].time
        self.get_logger().info(f"moving to the start, then {self._file}: {duration:.1f} s in all")
        result = self._request(handle.get_result_async)
        while not result.done():
            if stop.wait(PERIOD):
                canceled = self._request(handle.cancel_goal_async)
                self._result_of(canceled, CANCEL_TIMEOUT)
                self._result_of(result, CANCEL_TIMEOUT)
                return
        outcome = result.result().result
        if outcome.error_code != ErrorCode.SUCCESSFUL:
            raise GoalRejected(
                outcome.error_code,
                f"excitation = {self._file}: aborted by joint_controller: {outcome.error_string}",
            )
        self.get_logger().info(f"{self._file}: completed; the arm holds its configuration")

    def _send_goal(self, trajectory: JointTrajectory, stop: ShutdownFlag) -> Any:
        """Return the handle of the accepted goal, or None if ``stop`` was set before.

        Raise GoalRejected if the controller rejects it.
        """
        request = self._request(
            self._action.send_goal_async, self._goal_type(trajectory=trajectory)
        )
        while not request.done():
            if stop.wait(PERIOD):
                break
        handle = self._result_of(request, CANCEL_TIMEOUT)
        if handle is not None and not handle.accepted:
            raise GoalRejected(
                int(ErrorCode.INVALID_GOAL),
                f"excitation = {self._file}: rejected by joint_controller; expected a motion within"
                " its limits; the log of joint_controller has the reason",
            )
        return handle

    def _reference_once_active(self, stop: ShutdownFlag) -> Vector | None:
        """Wait for the arm and its controller; return the controller's reference (nv,).

        Return None if ``stop`` was set before.
        """
        active = self._state is None
        if not active:
            self.get_logger().info(f"{self._file}: waits until {HARDWARE} is active")
        while not active and not stop.wait(PERIOD):
            if not self._state.service_is_ready():
                continue
            request = self._state.call_async(GetState.Request())
            response = self._result_of(request, CANCEL_TIMEOUT)
            if response is None:
                self._state.remove_pending_request(request)
            elif response.current_state.id == State.PRIMARY_STATE_ACTIVE:
                active = not stop.wait(SETTLING_TIME)
        self._tracking.newest = None  # the controller restarted
        while active and not stop.wait(PERIOD):
            tracked: Tracked | None = self._tracking.newest
            if tracked is not None and self._action.server_is_ready():
                return tracked.reference
        return None

    def _request(self, send: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a request of the action, which the executor's thread sends.

        rclpy stores the request after it has sent it, and discards a reply that its executor
        receives in between.
        """
        reply = Future()

        def forward(done: Any) -> None:
            if done.exception() is None:
                reply.set_result(done.result())
            else:
                reply.set_exception(done.exception())

        executor: Any = self.executor
        executor.create_task(lambda: send(*arguments).add_done_callback(forward))
        return reply

    @staticmethod
    def _result_of(future: Any, timeout: float) -> Any:
        """Return the result of a future, or None without one within ``timeout`` [s]."""
        until = time.monotonic() + timeout
        while not future.done() and time.monotonic() < until:
            time.sleep(PERIOD / 10)
        return future.result() if future.done() else None


def main() -> None:
    """Run the node until the end of the trajectory, SIGINT or SIGTERM."""
    sys.exit(run_node(ExcitationNode))


if __name__ == "__main__":
    main()
