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
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.topics.diagnostics import OK, status
from arm_dynamics.safety.events import Events

TOPIC = "capabilities"
AVAILABLE, SUPPORTED, EFFORT = "available_interfaces", "supported_interfaces", "effort_source"
EPOCH, HOLD_GOAL = "begun", "goal"
"""Activation count of position servos; goal that holds a servo without commands."""
PERIOD, DELAY = "control period [s]", "delay [periods]"
INACTIVE = "inactive"
"""Why the arm executes no commands; absent while it executes them."""
REPLY_TIME = 2e-3
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
        inactive: str = "",
    ) -> None:
        """``available`` are the available interfaces, by default all that a joint supports.

        ``servos`` are EPOCH and the GOALs (nv,) of position servos. ``timing`` is that of the
        driver; replies over the topics arrive REPLY_TIME later. A simulator has a ``period`` [s].
        ``inactive`` is why the arm executes no commands, "" while it does.
        """
        shared = _timing_values(timing, period)
        if inactive:
            shared[INACTIVE] = inactive
        epoch, goals = (None, None) if servos is None else servos
        message = DiagnosticArray()
        for i, capability in enumerate(capabilities):
            values = {
                AVAILABLE: ", ".join(available or capability.interfaces),
                SUPPORTED: ", ".join(capability.interfaces),
                EFFORT: capability.effort_source,
                **shared,
            }
            if epoch is not None:
                values[EPOCH] = str(epoch)
            if goals is not None:
                values[HOLD_GOAL] = repr(float(goals[i]))
            text = f"available: {values[AVAILABLE]}; effort: {capability.effort_source}"
            message.status.append(status(capability.joint, OK, text, values))
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)


def _timing_values(timing: LoopTiming | None, period: float | None) -> dict[str, str]:
    """Return control period and delay of a driver, or only the ``period`` [s] of a simulator."""
    if timing is None:
        return {} if period is None else {PERIOD: f"{period:.6g}"}
    delay = min(timing.delay + min(1.0, REPLY_TIME / timing.period), LATEST)
    return {PERIOD: f"{timing.period:.6g}", DELAY: f"{delay:.4g}"}


def simulated_capabilities(arm: ArmModel) -> tuple[Capability, ...]:
    """Return the capabilities of a simulated arm: interfaces of its actuators, measured efforts."""
    return tuple(Capability(a.joint, a.interfaces, MEASURED) for a in arm.actuators)


def read_available(message: DiagnosticArray) -> dict[str, tuple[str, ...]]:
    """Return the available interfaces of each joint."""
    available = {}
    for joint in message.status:
        values = {pair.key: pair.value for pair in joint.values}
        if AVAILABLE in values:
            available[joint.name] = tuple(values[AVAILABLE].split(", "))
    return available


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
        self.inactive = ""
        """Received reason why the arm executes no commands; "" while it does, and before."""
        self.activity_changes = 0
        """Number of times that the arm stopped or began to execute commands."""
        self.period: float | None = None
        """Control period [s] of the arm; None before it is received."""
        self.physical = False
        """Whether the arm has motors: only a driver publishes its delay."""
        reject = partial(events.report, "capabilities_rejected")
        self._topic = listen(
            node, DiagnosticArray, TOPIC, self._take, qos.LATCHED, reject
        ).topic_name

    def _take(self, message: DiagnosticArray) -> None:
        epoch, goals, inactive = "", dict[str, float](), ""
        timing: LoopTiming | None = None
        for joint in message.status:
            values = {pair.key: pair.value for pair in joint.values}
            epoch = values.get(EPOCH, epoch)
            inactive = values.get(INACTIVE, inactive)
            with suppress(ValueError):
                goals[joint.name] = float(values.get(HOLD_GOAL, ""))
            with suppress(ValueError, InvalidValue):
                published = LoopTiming(float(values.get(PERIOD, "")), float(values.get(DELAY, "0")))
                self.period = published.period
                timing = published if DELAY in values else timing
        self._available = read_available(message)
        self.physical = timing is not None
        self._timed(timing)
        self.activity_changes += bool(inactive) != bool(self.inactive)
        self.inactive = inactive
        self.servos = (epoch, goals)

    @property
    def awaited(self) -> bool:
        """Whether an arm publishes capabilities that are not received yet."""
        return self.servos is None and self._node.count_publishers(self._topic) > 0

    def incompatibility(self, controller: type[Controller]) -> str:
        """Return why the arm does not accept ``controller``, and accepted ones; else ""."""
        for joint, available in self._available.items():
            if controller.interface not in (*available, MIXED):
                accepted = [
                    name
                    for name, other in plugins.loadable_classes("controllers").items()
                    if other.interface in available
                    and issubclass(other, TaskSpaceController) == self._task_space
                ]
                return (
                    f"command interface of {controller.__name__} = {controller.interface};"
                    f" joint '{joint}' accepts {', '.join(available)};"
                    f" accepted controllers: {', '.join(accepted) or 'none'}"
                )
        return ""

    def check_margins(self, controller: Controller) -> None:
        """Log a small stability margin at the published period, that of a simulator."""
        warning = thin_margin(controller, controller.arm, self.period) if self.period else ""
        if warning:
            self._node.get_logger().warning(warning)

    def require(self, controller: type[Controller]) -> None:
        """Raise ConfigError if the arm does not accept the controller's command interface."""
        reason = self.incompatibility(controller)
        if reason:
            raise ConfigError(reason)


def waiting(capabilities: Capabilities) -> str:
    """Return the status of a controller before its first state."""
    return f"waiting for {TOPIC if capabilities.awaited else 'joint_states'}"
