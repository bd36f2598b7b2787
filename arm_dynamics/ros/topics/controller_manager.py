"""Services of a controller manager that list this controller, for the clients of ros2_control.

rqt_joint_trajectory_controller searches managers by all names in ``KINDS`` and selects active
controllers of TYPE with required position states. MoveIt's Ros2ControlManager takes the joints from
the claimed command interfaces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from controller_manager_msgs import srv
from controller_manager_msgs.msg import ControllerState
from rclpy.node import Node

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.ros.topics.pacing import wall_timer

TYPE = "joint_trajectory_controller/JointTrajectoryController"
BASE_CLASS = "controller_interface::ControllerInterface"
MANAGER = "controller_manager"
KINDS = {
    "list_controllers": srv.ListControllers,
    "list_controller_types": srv.ListControllerTypes,
    "load_controller": srv.LoadController,
    "unload_controller": srv.UnloadController,
    "switch_controller": srv.SwitchController,
    "reload_controller_libraries": srv.ReloadControllerLibraries,
}
READ_ONLY = (
    "this controller_manager is read-only; the controller is active while it receives states of an"
    " active arm"
)
PERIOD = 1.0
"""Time [s] between two searches for another manager."""
DISCOVERY = 2
"""Searches without another manager after which the services are offered."""


class ControllerManagerServices:
    """Serves ``controller_manager/...`` while no other node does; changes nothing.

    ``is_active`` returns whether the controller moves the arm.
    """

    def __init__(self, node: Node, loop: ControlLoop, is_active: Callable[[], bool]) -> None:
        self._node, self._loop, self._is_active = node, loop, is_active
        self._services: list[Any] = []
        self._unserved = 0
        self._timer = wall_timer(node, PERIOD, self._search)

    def _search(self) -> None:
        """Offer the services if no other node does, and withdraw them as soon as one does."""
        offered = self._node.count_services(f"{MANAGER}/list_controllers")
        others = offered - bool(self._services)
        self._unserved = 0 if others else self._unserved + 1
        if others:
            for service in self._services:
                self._node.destroy_service(service)
            self._services.clear()
        elif not self._services and self._unserved >= DISCOVERY:
            self._services = [
                self._node.create_service(kind, f"{MANAGER}/{name}", getattr(self, f"_{name}", _no))
                for name, kind in KINDS.items()
            ]

    def _list_controllers(self, _: Any, response: Any) -> Any:
        """Return the state of this controller."""
        joints, interface = self._loop.arm.joint_names, self._loop.controller.interface
        commands, active = [f"{joint}/{interface}" for joint in joints], self._is_active()
        response.controller = [
            ControllerState(
                name=self._node.get_name(),
                state="active" if active else "inactive",
                type=TYPE,
                claimed_interfaces=commands if active else [],
                required_command_interfaces=commands,
                required_state_interfaces=[f"{j}/{s}" for j in joints for s in STATES],
            )
        ]
        return response

    @staticmethod
    def _list_controller_types(_: Any, response: Any) -> Any:
        """Return the type of this controller."""
        response.types, response.base_classes = [TYPE], [BASE_CLASS]
        return response


STATES = ("position", "velocity")


def _no(_: Any, response: Any) -> Any:
    """Reject a request to change the controllers."""
    response.ok = False
    if hasattr(response, "message"):  # of switch_controller, since Jazzy
        response.message = READ_ONLY
    return response
