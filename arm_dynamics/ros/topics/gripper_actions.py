"""Actions of the gripper: ``~/gripper_cmd`` and ``~/gripper_action``.

The first is control_msgs/ParallelGripperCommand, as of parallel_gripper_action_controller; the
second control_msgs/GripperCommand, with one position for all gripper joints. The action of each is
served only where its definition is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import control_msgs.action
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.gripper import (
    ABORTED,
    CANCELED,
    PARAMETERS,
    SUCCEEDED,
    GripperCommand,
    GripperGoal,
    GripperResult,
)
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.core.state import State
from arm_dynamics.ros.messages.conversions import header
from arm_dynamics.ros.messages.serialization import check_names
from arm_dynamics.ros.parameters.ros_parameters import declare_live, declare_number
from arm_dynamics.ros.topics.action_goals import ActionGoals, limited_action

PREFIX = "gripper."
STALLING = f"{PREFIX}allow_stalling"


class _Goals(ActionGoals):
    """Goals of one gripper action."""

    def __init__(
        self,
        node: Node,
        loop: ControlLoop,
        action: Any,
        name: str,
        interruption: Callable[[], str],
        frame: str,
    ) -> None:
        self.action, self._frame = action, frame
        limited = limited_action(action, self.require_in_limits)
        super().__init__(node, loop, limited, name, interruption)

    @staticmethod
    def require_in_limits(goal: Any) -> None:
        """Raise InvalidValue for a goal in C with too many names or values."""
        for field in ("name", "position", "velocity", "effort"):
            check_names(getattr(goal.command, field).size, 0)

    def accept(self, message: Any) -> GripperGoal:
        """Return the goal of a message."""
        if reason := getattr(message, "reason", ""):
            raise InvalidValue(reason)
        return self._loop.grip(self.command(message.command))

    def command(self, message: Any) -> GripperCommand:
        """Return the command of a JointState."""
        rows = (message.name, message.position, message.velocity, message.effort)
        return GripperCommand(*(list(row) for row in rows))

    def cancel(self, goal: GripperGoal) -> None:
        """Hold the measured position."""
        self._loop.gripper.cancel(goal)

    def end(self, goal: GripperGoal, text: str, *, canceled: bool) -> None:
        """End a goal without the loop."""
        goal.finish(GripperResult(CANCELED if canceled else ABORTED, text))

    def report(self, goal: GripperGoal) -> None:
        """Report ``goal_aborted`` for an aborted goal."""
        if goal.result is not None and goal.result.outcome == ABORTED:
            self._loop.events.report("goal_aborted", f"gripper: {goal.result.text}")

    def feedback(self, goal: GripperGoal) -> Any:
        """Return the measured state of the gripper."""
        return self.action.Feedback(**self.measured(), **self.flags(goal))

    def conclude(self, handle: Any, goal: GripperGoal) -> Any:
        """Set the status of ``handle``; return measured state and flags."""
        result = goal.result
        assert result is not None
        if result.outcome == CANCELED:
            handle.canceled()
        elif result.outcome == SUCCEEDED:
            handle.succeed()
        else:
            handle.abort()
        flags = {"stalled": result.stalled, "reached_goal": result.reached_goal}
        return self.action.Result(**self.measured(), **flags)

    def flags(self, goal: GripperGoal) -> dict[str, bool]:
        """Return the fields of the feedback in addition to the state: none."""
        del goal
        return {}

    def measured(self) -> dict[str, Any]:
        """Return the fields of the state in result and feedback: a JointState."""
        q, v, tau, state = self.rows()
        message = JointState(header=header(self._frame, 0.0 if state is None else state.time))
        message.name = list(self._loop.gripper.joints)
        message.position, message.velocity = q.tolist(), v.tolist()
        message.effort = tau.tolist() if np.isfinite(tau).all() else []
        return {"state": message}

    def rows(self) -> tuple[Vector, Vector, Vector, State | None]:
        """Return q, v and tau of the gripper joints, and the state; NaN before the first one."""
        state, at = self._loop.state, self._loop.gripper.indices
        if state is None:
            unknown = np.full(len(at), np.nan)
            return unknown, unknown, unknown, None
        return state.q[at], state.v[at], state.tau[at], state


class _SingleGoals(_Goals):
    """Goals of control_msgs/GripperCommand."""

    @staticmethod
    def require_in_limits(goal: Any) -> None:
        """Accept any size: a goal has two numbers."""

    def command(self, message: Any) -> GripperCommand:
        """Return the command of one position for all gripper joints; an effort of 0 is not one."""
        return GripperCommand((), [message.position], effort=[message.max_effort])

    def flags(self, goal: GripperGoal) -> dict[str, bool]:
        """Return that the goal is neither stalled nor reached: it would have ended."""
        del goal
        return {"stalled": False, "reached_goal": False}

    def measured(self) -> dict[str, Any]:
        """Return position and effort of the first gripper joint; 0 for an unknown effort."""
        q, _, tau, _ = self.rows()
        effort = float(tau[0]) if isfinite(tau[0]) else 0.0
        return {"position": float(q[0]), "effort": effort}


ACTIONS = (
    ("ParallelGripperCommand", "~/gripper_cmd", _Goals),
    ("GripperCommand", "~/gripper_action", _SingleGoals),
)
"""Definition in control_msgs, name and server of each action."""


class GripperActions:
    """Actions and parameters of the gripper of an arm; none for an arm without one."""

    def __init__(
        self, node: Node, frame: str, loop: ControlLoop, interruption: Callable[[], str]
    ) -> None:
        self._gripper = loop.gripper
        self._values: dict[str, Any] = {}
        self._servers = []
        if not self._gripper.joints:
            return
        text = "whether a goal that stalls has succeeded; false: it is aborted"
        self._values[STALLING] = declare_live(node, STALLING, False, text)
        for parameter in PARAMETERS:
            name = f"{PREFIX}{parameter.name}"
            default = parameter.default or 0.0
            if parameter.name == "stiffness" and loop.controller.interface == "position":
                default = servo_stiffness(loop)
            self._values[name] = declare_number(node, name, parameter, default)
        self.configure({})
        for kind, name, server in ACTIONS:
            action = getattr(control_msgs.action, kind, None)
            if action is not None:
                self._servers.append(server(node, loop, action, name, interruption, frame))

    def configure(self, values: Mapping[str, Any]) -> None:
        """Apply changed parameters; raise InvalidValue for one out of its range."""
        if not self._values:
            return
        merged = self._values | {n: v for n, v in values.items() if n in self._values}
        numbers = {n.removeprefix(PREFIX): v for n, v in merged.items() if n != STALLING}
        self._gripper.configure(numbers, allow_stalling=bool(merged[STALLING]))
        self._values = merged


def servo_stiffness(loop: ControlLoop) -> float:
    """Return the largest stiffness [N·m/rad] of the gripper's servos; 0 if it is not known."""
    from arm_dynamics.identification.servos.position_loops import servo_loops  # noqa: PLC0415

    try:
        stiffness = servo_loops(loop.arm).stiffness(loop.arm)
    except ArmDynamicsError:
        return 0.0
    return float(stiffness[loop.gripper.indices].max())
