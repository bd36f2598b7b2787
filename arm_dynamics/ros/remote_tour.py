"""The tour of ``arm-dynamics sim`` as another node sees it."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from arm_dynamics.ros import qos
from arm_dynamics.ros.listen import listen
from arm_dynamics.ros.remote import Remote


class RemoteTour:
    """The tour of ``arm-dynamics sim``, where this run has one."""

    def __init__(self, node: Node) -> None:
        self.running: bool | None = None
        """Whether it runs; None where there is none."""
        self._remote = Remote(node, SetBool, "sim/tour")
        self._asked: Any = None
        listen(node, Bool, "sim/tour_running", self._note, qos.LATCHED, lambda _: None)

    def set(self, running: bool) -> str:
        """Start or stop it; its answer."""
        return self._remote.do(SetBool.Request(data=running))

    def end(self) -> bool:
        """Have it stopped; whether it is. Never waits: ask again.

        Before its state is known it counts as running where its service is there.
        """
        if not (self._remote.ready if self.running is None else self.running):
            self._asked = None
            return True
        if self._asked is None or self._asked.done():
            self._asked = self._remote.ask(SetBool.Request(data=False))
        return False

    def _note(self, message: Bool) -> None:
        self.running = message.data
