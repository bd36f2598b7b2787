"""Demo motion of ``arm-dynamics sim``: its service, and its remote control."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.control.joint_motions import DemoMotion
from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.topics.controller_clients import TrackingSubscription, TrajectoryPublisher
from arm_dynamics.ros.topics.services import Remote, serve


class DemoService:
    """Demo motion of ``joint_controller``.

    ``~/demo`` starts and stops the motion; the latched ``~/demo_running`` reports its state.
    """

    def __init__(
        self, node: Node, arm: ArmModel, *, running: bool, scene: Scene = EMPTY_SCENE
    ) -> None:
        self._node, self._arm = node, arm
        self._tracking: TrackingSubscription | None = None
        self.motion = DemoMotion(arm, TrajectoryPublisher(node, arm), self._reference, scene)
        self._state = node.create_publisher(Bool, "~/demo_running", qos.LATCHED)
        self.set_running(running)
        serve(node, SetBool, "~/demo", lambda request: self.set_running(request.data))

    def set_running(self, running: bool) -> str:
        """Start or stop the motion; return its state as text."""
        text = self.motion.set_running(running)
        self._state.publish(Bool(data=running))
        return text

    def _reference(self) -> tuple[Vector, Vector] | None:
        """Subscribe to the reference; return the newest one."""
        if self._tracking is None:
            self._tracking = TrackingSubscription(self._node, self._arm)
        newest = self._tracking.newest
        return None if newest is None else (newest.reference, newest.velocity)


class RemoteDemo:
    """Remote control of the demo motion of ``arm-dynamics sim``, if this run has one."""

    def __init__(self, node: Node) -> None:
        self.running: bool | None = None
        """Whether the motion runs; None without one."""
        self._remote = Remote(node, SetBool, "sim/demo")
        self._end_request: Any = None

        def take(message: Bool) -> None:
            self.running = message.data

        listen(node, Bool, "sim/demo_running", take, qos.LATCHED, lambda _: None)

    def set(self, running: bool) -> str:
        """Start or stop the motion; return the response."""
        return self._remote.do(SetBool.Request(data=running))

    def end(self) -> bool:
        """Request its end; return whether it has ended. Does not wait: call it repeatedly.

        Before its state is received it counts as running if its service exists.
        """
        if not (self._remote.ready if self.running is None else self.running):
            self._end_request = None
            return True
        if self._end_request is None or self._end_request.done():
            self._end_request = self._remote.call_async(SetBool.Request(data=False))
        return False
