"""Controls of a simulated arm on a page: sliders, time, motion, controller, gains, payload."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Thread
from typing import NamedTuple, Protocol

import numpy as np

from arm_dynamics.control.controller_choice import joint_controller_classes
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.joint_motions import MotionOutput
from arm_dynamics.control.stability_margins import margin_text
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.status_summary import StatusSummary
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.viewer.controls import ActionRow, Choice, Controls, Field, Order, ParameterFields
from arm_dynamics.viewer.page import ArmPage
from arm_dynamics.viewer.scene_drags import ArmPush
from arm_dynamics.viewer.target_controls import TargetControls

SEARCH_PERIOD = 0.5
"""Time [s] between two searches for the simulator."""
PAUSE, CONTINUE, RESET, PUSH = "Pause", "Continue", "Reset", "Push"
STEP, LONG_STEP = "Step", "Step 0.1 s"
STEPS = {STEP: 0.0, LONG_STEP: 0.1}
"""Duration [s] of each step, at least one control period."""
STOP_DEMO, START_DEMO = "Stop demo", "Start demo"
NO_WRENCH = as_readonly(np.zeros(6))
SPEEDS = ("0.02", "0.1", "0.25", "0.5", "1", "2", "5")
"""Offered real-time factors: simulated seconds per second."""


class Setting(NamedTuple):
    """Number of a simulation, and the function that sets it or raises an ArmDynamicsError."""

    number: float
    set: Callable[[float], object]


Settings = Mapping[Field, Setting]


class SimulatedArm(Protocol):
    """Simulated arm in this process or behind topics, as a page controls it.

    The actions return a message about their result or raise an ArmDynamicsError. They and the
    settings may wait: threads of the page call them.
    """

    @property
    def ready(self) -> bool:
        """Whether the simulation accepts all actions."""

    @property
    def demo_running(self) -> bool | None:
        """Whether the demo motion runs; None without one."""

    @property
    def changes(self) -> int:
        """Number of changes of the settings; does not wait."""

    def output(self) -> MotionOutput:
        """Return the output of joint targets."""

    def pause(self, paused: bool) -> str:
        """Pause or continue the simulation."""

    def step(self, duration: float) -> str:
        """Simulate ``duration`` [s], at least one control period, while paused."""

    def reset(self) -> str:
        """Set the arm to rest at its initial configuration."""

    def push(self) -> str:
        """Apply an impulse to the tool."""

    def pull(self, link: str, wrench: Vector) -> None:
        """Apply a wrench (6,) [N, N·m] along the axes of a link at its origin; does not wait.

        It acts until the next call, at most for PULL_TIME.
        """

    def release(self) -> str:
        """Reset the emergency stop."""

    def set_demo(self, running: bool) -> str:
        """Start or stop the demo motion."""

    def end_demo(self) -> bool:
        """Request the end of the demo motion; return whether it has ended. Does not wait."""

    def loads(self) -> Settings:
        """Return payload and push."""

    def gains(self) -> Settings:
        """Return the gains of the active controller."""

    def speed(self) -> Setting:
        """Return the real-time factor."""

    def controller(self) -> tuple[Controller, ArmModel, float]:
        """Return the active controller, the simulated arm, and the control period [s]."""

    def set_controller(self, name: str) -> str:
        """Switch to another controller."""


class SimulationControls:
    """Sliders, time, motion, payload, controller, gains, and reset of the emergency stop.

    They are added to the page once the simulated arm is ready. ``update`` is for the page's loop.
    ``on_motion`` is called before a target, the demo motion or a reset moves the arm.
    """

    def __init__(
        self,
        simulated: SimulatedArm,
        arm: ArmModel,
        page: ArmPage,
        status: StatusSummary,
        on_motion: Callable[[], object] = lambda: None,
    ) -> None:
        self._simulated, self._arm, self._page, self._status = simulated, arm, page, status
        self._on_motion = on_motion
        self._targets: TargetControls | None = None
        self._settings: SimulationSettings | None = None
        self._time: ActionRow | None = None
        self._motion: ActionRow | None = None
        self._push: ArmPush | None = None
        self._pulled = ""
        self._paused = False
        self._paused_until = 0  # first status update that is valid again
        self._next_search = 0.0

    @property
    def ready(self) -> bool:
        """Whether the controls are on the page."""
        return self._targets is not None

    def end_motions(self) -> None:
        """Discard the target and end the demo motion; may wait."""
        if self._targets is not None:
            self._targets.reset()
        if self._simulated.demo_running:
            self._simulated.set_demo(False)

    def update(self, reference: Vector | None, q: Vector | None) -> None:
        """Find the simulator, or update the controls; at every cycle of the page.

        ``reference`` and measured configuration ``q`` (nv,) [rad or m], as far as known.
        """
        if self._time is None or self._motion is None or self._targets is None:
            self._find()
            return
        self._targets.update(reference)
        if self._settings is not None:
            self._settings.update()
        if self._status.updates > self._paused_until:
            self._paused = self._status.values.get("paused") == "true"
        self._time.offer(*((CONTINUE, *STEPS) if self._paused else (PAUSE,)), RESET)
        demo = {True: (STOP_DEMO,), False: (START_DEMO,), None: ()}[self._simulated.demo_running]
        self._motion.offer(PUSH, *demo)
        if q is not None:
            self._pull(q)

    def _pull(self, q: Vector) -> None:
        """Apply the force of a drag, and none at its end."""
        found = None if self._push is None else self._push.wrench(q)
        if found is not None:
            self._pulled = found[0]
            self._simulated.pull(*found)
        elif self._pulled:
            self._simulated.pull(self._pulled, NO_WRENCH)
            self._pulled = ""

    def _find(self) -> None:
        """Add the controls once the simulated arm is ready."""
        if time.monotonic() < self._next_search:
            return
        self._next_search = time.monotonic() + SEARCH_PERIOD
        simulated = self._simulated
        if not simulated.ready:
            return
        controls = self._page.add_controls()
        targets = TargetControls(
            self._page, self._arm, simulated.output(), self._status, self._clear
        )
        self._settings = SimulationSettings(simulated, controls)
        actions = self._actions(targets)
        self._time = controls.add_actions("Time", actions, (PAUSE, RESET), order=Order.TIME)
        self._motion = controls.add_actions("Motion", actions, (PUSH,))
        self._push = ArmPush(self._page, self._arm)
        self._targets = targets
        if self._page.emergency is not None:
            self._page.emergency.allow_release(simulated.release)

    def _clear(self) -> bool:
        """Request the end of other motions; return whether they have ended."""
        self._on_motion()
        return self._simulated.end_demo()

    def _actions(self, targets: TargetControls) -> dict[str, Callable[[], str]]:
        """Return what each button does; a reset and the demo motion discard the targets."""
        simulated = self._simulated

        def reset() -> str:
            targets.reset()
            self._on_motion()
            return f"reset: {simulated.reset()}"

        def start_demo() -> str:
            targets.reset()
            self._on_motion()
            return simulated.set_demo(True)

        steps = {
            name: (lambda duration=duration: f"step: {simulated.step(duration)}")
            for name, duration in STEPS.items()
        }
        return {
            PAUSE: lambda: self._set_paused(True),
            CONTINUE: lambda: self._set_paused(False),
            **steps,
            RESET: reset,
            PUSH: simulated.push,
            STOP_DEMO: lambda: simulated.set_demo(False),
            START_DEMO: start_demo,
        }

    def _set_paused(self, paused: bool) -> str:
        message = self._simulated.pause(paused)
        self._paused, self._paused_until = paused, self._status.updates + 1
        return message


class SimulationSettings:
    """Speed, controller with its stability margins, payload, push and gains.

    A thread that may wait reads them after each change.
    """

    def __init__(self, simulated: SimulatedArm, controls: Controls) -> None:
        self._simulated, self._controls = simulated, controls
        self._folders = (
            SettingFields(controls, LOADS, simulated.loads),
            SettingFields(controls, GAINS, simulated.gains),
        )
        self._speed = controls.add_choice("Speed", SPEEDS, self._set_speed, order=Order.TIME)
        self._controller: Choice | None = None
        self._margins = controls.add_text(order=Order.CONTROLLER + 0.1)
        self._seen, self._thread = -1, Thread()

    def update(self) -> None:
        """Read the settings again if they changed."""
        changes = self._simulated.changes
        if changes != self._seen and not self._thread.is_alive():
            self._seen = changes
            self._thread = Thread(target=self._read, name="settings", daemon=True)
            self._thread.start()

    def _read(self) -> None:
        try:
            for folder in self._folders:
                folder.read()
            self._speed.show(f"{self._simulated.speed().number:g}")
            self._show_controller(*self._simulated.controller())
        except ArmDynamicsError:
            self._seen = -1  # a node is busy or ending: try again

    def _show_controller(self, controller: Controller, arm: ArmModel, period: float) -> None:
        names = {
            kind: name for name, kind in joint_controller_classes(controller.interface).items()
        }
        if self._controller is None:
            self._controller = self._controls.add_choice(
                "Controller",
                tuple(names.values()),
                self._simulated.set_controller,
                order=Order.CONTROLLER,
            )
        self._controller.show(names[type(controller)])
        self._margins.note(margin_text(controller, arm, period))

    def _set_speed(self, option: str) -> str:
        self._simulated.speed().set(float(option))
        return f"speed: {option} x real time"


LOADS, GAINS = "Payload and push", "Gains"
"""Titles of the fields."""


def load_settings(
    push: Mapping[str, Setting], payload_of_arm: Setting | None, payload_of_model: Setting | None
) -> Settings:
    """Return the fields of the impulse along each axis, and of the payloads that exist."""
    fields = {("push", f"{axis} [N·s]"): setting for axis, setting in push.items()}
    owners = {"simulated arm": payload_of_arm, "controller's model": payload_of_model}
    payloads = {
        ("payload", f"{owner} [kg]"): setting for owner, setting in owners.items() if setting
    }
    return dict(sorted((fields | payloads).items()))


class SettingFields:
    """Folder of the settings that ``find`` returns; its fields are created again if they change."""

    def __init__(self, controls: Controls, title: str, find: Callable[[], Settings]) -> None:
        self._controls, self._title, self._find = controls, title, find
        self._settings: Settings = {}
        self._fields: ParameterFields | None = None

    def read(self) -> None:
        """Show the current numbers."""
        before, self._settings = self._settings, self._find()
        numbers: dict[str, dict[str, float]] = {}
        for (owner, label), setting in self._settings.items():
            numbers.setdefault(owner, {})[label] = setting.number
        if self._fields is not None and self._settings.keys() == before.keys():
            self._fields.show(numbers)
            return
        if self._fields is not None:
            self._fields.remove()
        add = self._controls.add_parameters
        self._fields = add(self._title, numbers, self._accept, folded=True) if numbers else None

    def _accept(self, owner: str, label: str, number: float) -> None:
        self._settings[owner, label].set(number)
