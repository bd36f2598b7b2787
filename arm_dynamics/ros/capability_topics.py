"""What an arm's joints take and tell, latched: published by the arm, read by controllers."""

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
TAKES, INTERFACES, EFFORT = "takes", "interfaces", "effort"
BEGUN, GOAL = "begun", "goal"
"""How often position servos were taken up; the goal that holds one while nobody commands it."""
PERIOD, DELAY = "control period [s]", "delay [periods]"
ANSWER = 2e-3
"""Time [s] from a state on joint_states to the command that answers it."""


class CapabilityPublisher:
    """One status a joint: what it ``takes`` now, its motor's ``interfaces``, its ``effort``."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publisher = node.create_publisher(DiagnosticArray, TOPIC, qos.LATCHED)

    def publish(
        self,
        capabilities: Sequence[Capability],
        takes: Sequence[str] = (),
        servos: tuple[int, Vector | None] | None = None,
        timing: LoopTiming | None = None,
        period: float | None = None,
    ) -> None:
        """``takes`` are the interfaces open now, by default all that a joint has.

        ``servos`` are BEGUN and the GOALs (nv,) of position servos. ``timing`` is that of the
        driver; the answer over the topics comes ANSWER later. A simulator has a ``period`` [s].
        """
        shared = {} if period is None else {PERIOD: f"{period:.6g}"}
        shared |= {} if timing is None else _timed(timing)
        extra = [dict(shared) for _ in capabilities]
        if servos is not None:
            begun, goals = servos
            for values in extra:
                values[BEGUN] = str(begun)
            for values, goal in zip(extra, [] if goals is None else goals.tolist(), strict=False):
                values[GOAL] = repr(goal)
        each = zip(capabilities, extra, strict=True)
        message = DiagnosticArray(status=[_status(c, takes, more) for c, more in each])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)


def simulated_capabilities(arm: ArmModel) -> tuple[Capability, ...]:
    """Those of a simulated arm: its actuators' interfaces, and every effort told."""
    return tuple(Capability(a.joint, a.interfaces, MEASURED) for a in arm.actuators)


def read_takes(message: DiagnosticArray) -> dict[str, tuple[str, ...]]:
    """The interfaces that each joint takes."""
    found = {}
    for joint in message.status:
        values = {pair.key: pair.value for pair in joint.values}
        if TAKES in values:
            found[joint.name] = tuple(values[TAKES].split(", "))
    return found


def _timed(timing: LoopTiming) -> dict[str, str]:
    late = min(timing.delay + min(1.0, ANSWER / timing.period), LATEST)
    return {PERIOD: f"{timing.period:.6g}", DELAY: f"{late:.4g}"}


def _status(capability: Capability, takes: Sequence[str], more: Mapping[str, str]) -> object:
    values = {
        TAKES: ", ".join(takes or capability.interfaces),
        INTERFACES: ", ".join(capability.interfaces),
        EFFORT: capability.effort_source,
        **more,
    }
    words = f"takes {values[TAKES]}; effort: {capability.effort_source}"
    return status(capability.joint, OK, words, values)


def _timing(period: str, delay: str) -> LoopTiming | None:
    """The two numbers; None where they are none."""
    try:
        return LoopTiming(float(period), float(delay))
    except (ValueError, InvalidValue):
        return None


class Capabilities:
    """What the arm behind the topics takes, once it said so; anything until then."""

    def __init__(
        self,
        node: Node,
        events: Events,
        *,
        task_space: bool = False,
        timed: Callable[[LoopTiming | None], None] = lambda _: None,
    ) -> None:
        """``task_space``: whether laws of the tool or those of the joints are named instead.

        ``timed`` is called with the timing of the arm's loop whenever it is published.
        """
        self._node, self._of_the_tool, self._timed = node, task_space, timed
        self._takes: Mapping[str, tuple[str, ...]] = {}
        self.servos: tuple[str, Mapping[str, float]] | None = None
        """BEGUN and the GOALs [rad or m] by joint as the arm said last; None before."""
        self.period: float | None = None
        """Control period [s] of the arm; None before it is published."""
        refuse = partial(events.report, "capabilities_refused")
        listen(node, DiagnosticArray, TOPIC, self._note, qos.LATCHED, refuse)

    def _note(self, message: DiagnosticArray) -> None:
        begun, goals = "", dict[str, float]()
        timing: LoopTiming | None = None
        for joint in message.status:
            values = {pair.key: pair.value for pair in joint.values}
            begun = values.get(BEGUN, begun)
            with suppress(ValueError):
                goals[joint.name] = float(values.get(GOAL, ""))
            found = _timing(values.get(PERIOD, ""), values.get(DELAY, "0"))
            if found is not None:
                self.period = found.period
                timing = found if DELAY in values else timing
        self._takes = read_takes(message)
        self._timed(timing)
        self.servos = (begun, goals)

    @property
    def awaited(self) -> bool:
        """Whether an arm publishes them, and they have not come yet."""
        return self.servos is None and self._node.count_publishers(TOPIC) > 0

    def incompatibility(self, law: type[Controller]) -> str:
        """Why the arm cannot follow ``law``, and the laws that it could; "" where it can."""
        for joint, takes in self._takes.items():
            if law.interface not in (*takes, MIXED):
                return (
                    f"{law.__name__} commands {law.interface}; joint '{joint}' takes"
                    f" {', '.join(takes)}: {self._able(takes)}"
                )
        return ""

    def check_margins(self, controller: Controller) -> None:
        """Log a thin stability margin at the published period, which is a simulator's."""
        thin = thin_margin(controller, controller.arm, self.period) if self.period else ""
        if thin:
            self._node.get_logger().warning(thin)

    def require(self, law: type[Controller]) -> None:
        """Raise ConfigError where the arm cannot follow ``law``."""
        refusal = self.incompatibility(law)
        if refusal:
            raise ConfigError(refusal)

    def _able(self, takes: tuple[str, ...]) -> str:
        laws = plugins.sound("controllers")
        able = [
            name
            for name, law in laws.items()
            if law.interface in takes and issubclass(law, TaskSpaceController) == self._of_the_tool
        ]
        return f"laws that work here: {', '.join(able) or 'none'}"


def waiting(capabilities: Capabilities) -> str:
    """What a controller waits for that has nothing to command yet."""
    return f"waiting for {TOPIC if capabilities.awaited else 'joint_states'}"
