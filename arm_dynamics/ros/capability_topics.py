"""Topic capabilities: command interfaces of an arm's joints, published by the arm's node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.stability_margins import thin_margin
from arm_dynamics.core import plugins
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.state import MIXED
from arm_dynamics.core.timing import LATEST, LoopTiming
from arm_dynamics.hardware.driver import MEASURED, Capability
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.decode import listen
from arm_dynamics.ros.diagnostics import OK, status
from arm_dynamics.safety.events import Events

TOPIC = "capabilities"
AVAILABLE, SUPPORTED, EFFORT = "available_interfaces", "supported_interfaces", "effort_source"
EPOCH, HOLD_GOAL = "begun", "goal"
"""Activation count of position servos; goal that holds a servo without commands."""
PERIOD, DELAY = "control period [s]", "delay [periods]"
ANSWER = 2e-3
"""Time [s] from a state on joint_states to the command that replies to it."""


class CapabilityPublisher:
    """Publishes available interfaces, supported interfaces and effort source of each joint."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publisher = node.create_publisher(DiagnosticArray, TOPIC, qos.LATCHED)

    def publish(
        self,
        capabilities: Sequence[Capability],
        available: Sequence[str] = (),
        servos: tuple[int, Vector | None] | None = None,
        timing: LoopTiming | None = None,
        period: float | None = None,
    ) -> None:
        """``available`` are the available interfaces, by default all that a joint supports.

        ``servos`` are EPOCH and the GOALs (nv,) of position servos. ``timing`` is that of the
        driver; replies over the topics arrive ANSWER later. A simulator has a ``period`` [s].
        """
        shared = {} if period is None else {PERIOD: f"{period:.6g}"}
        shared |= {} if timing is None else _timed(timing)
        extra = [dict(shared) for _ in capabilities]
        if servos is not None:
            epoch, goals = servos
            for values in extra:
                values[EPOCH] = str(epoch)
            for values, goal in zip(extra, [] if goals is None else goals.tolist(), strict=False):
                values[HOLD_GOAL] = repr(goal)
        each = zip(capabilities, extra, strict=True)
        message = DiagnosticArray(status=[_status(c, available, more) for c, more in each])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)


def simulated_capabilities(arm: ArmModel) -> tuple[Capability, ...]:
    """Return the capabilities of a simulated arm: interfaces of its actuators, measured efforts."""
    return tuple(Capability(a.joint, a.interfaces, MEASURED) for a in arm.actuators)


def read_available(message: DiagnosticArray) -> dict[str, tuple[str, ...]]:
    """Return the available interfaces of each joint."""
    found = {}
    for joint in message.status:
        values = {pair.key: pair.value for pair in joint.values}
        if AVAILABLE in values:
            found[joint.name] = tuple(values[AVAILABLE].split(", "))
    return found


def _timed(timing: LoopTiming) -> dict[str, str]:
    late = min(timing.delay + min(1.0, ANSWER / timing.period), LATEST)
    return {PERIOD: f"{timing.period:.6g}", DELAY: f"{late:.4g}"}


def _status(capability: Capability, available: Sequence[str], more: Mapping[str, str]) -> object:
    values = {
        AVAILABLE: ", ".join(available or capability.interfaces),
        SUPPORTED: ", ".join(capability.interfaces),
        EFFORT: capability.effort_source,
        **more,
    }
    words = f"available: {values[AVAILABLE]}; effort: {capability.effort_source}"
    return status(capability.joint, OK, words, values)


def _timing(period: str, delay: str) -> LoopTiming | None:
    """Return the timing of two numbers; None for invalid ones."""
    try:
        return LoopTiming(float(period), float(delay))
    except (ValueError, InvalidValue):
        return None


class Capabilities:
    """Command interfaces of the arm behind the topics; no restriction before they are received."""

    def __init__(
        self,
        node: Node,
        events: Events,
        *,
        task_space: bool = False,
        timed: Callable[[LoopTiming | None], None] = lambda _: None,
    ) -> None:
        """``task_space``: whether messages list task-space or joint-space controllers.

        ``timed`` is called with the timing of the arm's loop whenever it is published.
        """
        self._node, self._task_space, self._timed = node, task_space, timed
        self._available: Mapping[str, tuple[str, ...]] = {}
        self.servos: tuple[str, Mapping[str, float]] | None = None
        """Received EPOCH and GOALs [rad or m] by joint; None before."""
        self.period: float | None = None
        """Control period [s] of the arm; None before it is received."""
        refuse = partial(events.report, "capabilities_rejected")
        listen(node, DiagnosticArray, TOPIC, self._note, qos.LATCHED, refuse)

    def _note(self, message: DiagnosticArray) -> None:
        epoch, goals = "", dict[str, float]()
        timing: LoopTiming | None = None
        for joint in message.status:
            values = {pair.key: pair.value for pair in joint.values}
            epoch = values.get(EPOCH, epoch)
            with suppress(ValueError):
                goals[joint.name] = float(values.get(HOLD_GOAL, ""))
            found = _timing(values.get(PERIOD, ""), values.get(DELAY, "0"))
            if found is not None:
                self.period = found.period
                timing = found if DELAY in values else timing
        self._available = read_available(message)
        self._timed(timing)
        self.servos = (epoch, goals)

    @property
    def awaited(self) -> bool:
        """Whether an arm publishes capabilities that are not received yet."""
        return self.servos is None and self._node.count_publishers(TOPIC) > 0

    def incompatibility(self, controller: type[Controller]) -> str:
        """Return why the arm does not accept ``controller``, and accepted ones; else ""."""
        for joint, available in self._available.items():
            if controller.interface not in (*available, MIXED):
                return (
                    f"command interface of {controller.__name__} = {controller.interface};"
                    f" joint '{joint}' accepts {', '.join(available)}; {self._accepted(available)}"
                )
        return ""

    def check_margins(self, controller: Controller) -> None:
        """Log a small stability margin at the published period, that of a simulator."""
        thin = thin_margin(controller, controller.arm, self.period) if self.period else ""
        if thin:
            self._node.get_logger().warning(thin)

    def require(self, controller: type[Controller]) -> None:
        """Raise ConfigError if the arm does not accept the controller's command interface."""
        reason = self.incompatibility(controller)
        if reason:
            raise ConfigError(reason)

    def _accepted(self, available: tuple[str, ...]) -> str:
        controllers = plugins.sound("controllers")
        accepted = [
            name
            for name, controller in controllers.items()
            if controller.interface in available
            and issubclass(controller, TaskSpaceController) == self._task_space
        ]
        return f"accepted controllers: {', '.join(accepted) or 'none'}"


def waiting(capabilities: Capabilities) -> str:
    """Return the status of a controller before its first state."""
    return f"waiting for {TOPIC if capabilities.awaited else 'joint_states'}"
