"""Controls of a simulated arm on a page: sliders, buttons, payload, push and gains."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from arm_dynamics.control.joint_motions import JointTargets, MotionOutput
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.status_summary import StatusSummary
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns
from arm_dynamics.viewer.controls import ActionRow, Controls, Field, ParameterFields
from arm_dynamics.viewer.page import ArmPage

SEARCH_PERIOD = 0.5
"""Time [s] between two searches for the simulator."""
FOLLOW_PERIOD = 0.15
"""Time [s] between two updates of the sliders from the reference."""
PAUSE, CONTINUE, RESET, PUSH = "Pause", "Continue", "Reset", "Push"
STOP_DEMO, START_DEMO = "Stop demo", "Start demo"


class Setting(NamedTuple):
    """Number of a simulation, and the function that sets it or raises an ArmDynamicsError."""

    number: float
    set: Callable[[float], object]


Settings = Mapping[Field, Setting]


class SimulatedArm(Protocol):
    """Simulated arm in this process or behind topics, as a page controls it.

    The actions return a message about their result or raise an ArmDynamicsError. They may wait:
    threads of the page call them.
    """

    @property
    def ready(self) -> bool:
        """Whether the simulation accepts all actions."""

    @property
    def demo_running(self) -> bool | None:
        """Whether the demo motion runs; None without one."""

    def output(self) -> MotionOutput:
        """Return the output of joint targets."""

    def pause(self, paused: bool) -> str:
        """Pause or continue the simulation."""

    def reset(self) -> str:
        """Set the arm to rest at its initial configuration."""

    def push(self) -> str:
        """Apply an impulse to the tool."""

    def release(self) -> str:
        """Reset the emergency stop."""

    def set_demo(self, running: bool) -> str:
        """Start or stop the demo motion."""

    def end_demo(self) -> bool:
        """Request the end of the demo motion; return whether it has ended. Does not wait."""

    def show_settings(self, controls: Controls) -> Callable[[], None]:
        """Add payload, push and gains; return the function that updates them."""


class SimulationControls:
    """Sliders, pause, reset, push, demo motion, payload, gains, and reset of the emergency stop.

    They are added to the page once the simulated arm is ready. ``update`` is for the page's loop.
    """

    def __init__(
        self, simulated: SimulatedArm, arm: ArmModel, page: ArmPage, status: StatusSummary
    ) -> None:
        self._simulated, self._arm, self._page, self._status = simulated, arm, page, status
        self._targets: JointTargets | None = None
        self._update_settings: Callable[[], None] = lambda: None
        self._row: ActionRow | None = None
        self._paused = False
        self._paused_until = 0  # first status update that is valid again
        self._next_search = self._next_follow = 0.0

    def update(self, reference: Vector | None) -> None:
        """Find the simulator, or update the controls; at every cycle of the page."""
        if self._row is None or self._targets is None:
            self._find()
            return
        self._targets.update(reference)
        self._update_settings()
        if self._status.updates > self._paused_until:
            self._paused = self._status.values.get("paused") == "true"
        demo = {True: (STOP_DEMO,), False: (START_DEMO,), None: ()}[self._simulated.demo_running]
        self._row.offer(CONTINUE if self._paused else PAUSE, RESET, PUSH, *demo)
        now = time.monotonic()
        if reference is not None and now >= self._next_follow and not self._targets.under_way:
            self._next_follow = now + FOLLOW_PERIOD
            first_turn = reference + whole_turns(self._arm, reference, 0 * reference)
            self._page.add_controls().sliders.show(first_turn.tolist())

    def _find(self) -> None:
        """Add the controls once the simulated arm is ready."""
        if time.monotonic() < self._next_search:
            return
        self._next_search = time.monotonic() + SEARCH_PERIOD
        simulated = self._simulated
        if not simulated.ready:
            return
        controls = self._page.add_controls()
        sliders = controls.sliders
        targets = JointTargets(
            simulated.output(), self._arm, self._status, simulated.end_demo, controls.feedback,
            sliders.send_again,
        )  # fmt: skip
        sliders.on_target(targets.go)
        self._update_settings = simulated.show_settings(controls)
        self._row = controls.add_actions("Simulation", self._actions(targets), (PAUSE, RESET, PUSH))
        self._targets = targets
        if self._page.emergency is not None:
            self._page.emergency.allow_release(simulated.release)

    def _actions(self, targets: JointTargets) -> dict[str, Callable[[], str]]:
        """Return what each button does; a reset and the demo motion discard the targets."""
        simulated = self._simulated

        def reset() -> str:
            targets.reset()
            return f"reset: {simulated.reset()}"

        def start_demo() -> str:
            targets.reset()
            return simulated.set_demo(True)

        return {
            PAUSE: lambda: self._set_paused(True),
            CONTINUE: lambda: self._set_paused(False),
            RESET: reset,
            PUSH: simulated.push,
            STOP_DEMO: lambda: simulated.set_demo(False),
            START_DEMO: start_demo,
        }

    def _set_paused(self, paused: bool) -> str:
        message = self._simulated.pause(paused)
        self._paused, self._paused_until = paused, self._status.updates + 1
        return message


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
