"""Control cycle that joint_controller and task_space_controller have in common."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from math import inf

from rclpy.node import Node

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.core.timing import LoopTiming, RateMeter
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.ros.parameters.arm_parameters import declared_model, declared_self_collision
from arm_dynamics.ros.parameters.controller_parameters import show_gains
from arm_dynamics.ros.topics.capability_topics import Capabilities, waiting
from arm_dynamics.ros.topics.diagnostics import ERROR, StatusReport, Throttle
from arm_dynamics.ros.topics.scene_topics import SceneSubscription
from arm_dynamics.ros.topics.topic_driver import TopicDriver
from arm_dynamics.safety.events import Events

COMMAND_AGE = 1.0
"""Time [s] without a command after which a controller is no longer active."""
MAX_WAIT = 0.1
"""Time [s] after which a loop without states checks the shutdown flag."""


class ControllerNode(Node):
    """Replies to each state of the arm with a command of its control loop.

    Subclasses set ``loop`` and ``_driver``, a TopicDriver unless the arm is in the same process.
    """

    loop: ControlLoop
    _driver: Driver

    def __init__(self, name: str, *, task_space: bool = False) -> None:
        super().__init__(name)
        self._nominal = declared_model(self)
        self.events = Events(Throttle(self.get_logger()).warn)
        self._capabilities = Capabilities(
            self, self.events, task_space=task_space, timed=self._fit_gains
        )
        self._self_collision = declared_self_collision(self)
        self._scene = SceneSubscription(self, self._use_scene, self._reject_scene)
        self._command_count, self._command_rate = 0, RateMeter()
        self._commanded = -inf  # monotonic time of the last command [s]

    def _new_loop(self, controller: Controller) -> ControlLoop:
        """Return the control loop of the driver, which checks collisions unless switched off."""
        return ControlLoop(
            self._driver,
            controller,
            self.events,
            self_collision=self._self_collision,
            scene=self._scene.initial,
        )

    def _use_scene(self, scene: Scene) -> None:
        """Check collisions with the objects of the topic ``scene`` from the next cycle on."""
        if self._self_collision:
            self.loop.use_scene(scene)

    @property
    def _checked(self) -> Scene:
        """Objects with which collisions are checked."""
        avoidance = self.loop.collision_avoidance
        return EMPTY_SCENE if avoidance is None else avoidance.scene

    def _reject_scene(self, reason: str) -> None:
        self.events.report("scene_rejected", f"{reason}; the scene before is still checked")

    @property
    def _topics(self) -> TopicDriver | None:
        """The driver, if the arm is behind topics."""
        return self._driver if isinstance(self._driver, TopicDriver) else None

    def run(self, stop: ShutdownFlag) -> None:
        """Reply to every state until ``stop`` is set."""
        assert isinstance(self._driver, TopicDriver)
        while not stop.is_set():
            if self._driver.wait(MAX_WAIT):
                self.run_cycle()
            self.events.report_lasting("states_missing", self._driver.missing)

    def run_cycle(self) -> bool:
        """Run one control cycle; return whether a command was written.

        The cycle is skipped before the capabilities of the arm are received, and if the arm does
        not accept the controller's command interface.
        """
        topics, awaited = self._topics, self._capabilities.awaited
        incompatibility = self._capabilities.incompatibility(type(self.loop.controller))
        if topics is not None and not awaited:
            self.events.report_lasting("controller_incompatible", incompatibility)
        if topics is not None and (awaited or incompatibility):
            topics.discard_state()
            return False
        commanded = not incompatibility and self.step()
        self._command_count += commanded
        if commanded:
            self._commanded = time.monotonic()
        return commanded

    @property
    def is_active(self) -> bool:
        """Whether the controller replies to states of an arm that executes its commands."""
        fresh = time.monotonic() - self._commanded < COMMAND_AGE
        tracks = self.loop.controller.tracks_reference
        return fresh and tracks and not self.loop.driver.inactive

    def step(self) -> bool:
        """Step the control loop; return whether a command was written."""
        return self.loop.step() is not None

    def _fit_gains(self, timing: LoopTiming | None) -> None:
        """Fit the gains to the arm's control period and delay; commands pause during the fit.

        A simulator publishes no delay: the gains are only checked.
        """
        if timing is None:
            self._capabilities.check_margins(self.loop.controller)
        if self._topics is not None:
            with self.loop.gain_scaling.under_way():
                self._topics.take_timing(timing)
        show_gains(self, self.loop.controller)

    @abstractmethod
    def values(self) -> dict[str, str]:
        """Return the diagnostics values of the controller."""

    def warnings(self) -> str:
        """Return the warnings of a running controller, "" without any."""
        return ""

    def _report(self) -> StatusReport:
        rate = self._command_rate.update(self._command_count)
        values: Mapping[str, str] = {
            "controller": type(self.loop.controller).__name__,
            "commands per second": f"{rate:.0f}",
            "scene": ", ".join(one.name for one in self._checked) or "none",
            **self.loop.controller.diagnostics,
            **self.values(),
        }
        incompatibility = self._capabilities.incompatibility(type(self.loop.controller))
        error = incompatibility or self.loop.gain_scaling.fault
        if error:
            return ERROR, error, values
        if self._topics is not None and self._topics.publisher.conflict:
            return False, self._topics.publisher.conflict, values
        if rate <= 0:
            missing = self._topics.missing if self._topics is not None else ""
            return False, missing or waiting(self._capabilities), values
        warnings = self.warnings()
        return not warnings, warnings or "running", values
