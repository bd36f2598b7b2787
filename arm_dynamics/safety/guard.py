"""The last look at a command before it is written."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from arm_dynamics.arrays import frozen
from arm_dynamics.errors import CommandRefused, InvalidValue, UnknownName
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.events import Events
from arm_dynamics.state import INTERFACES, Command, State, require_command

UNITS = {"effort": "N·m", "voltage": "V", "position": "rad", "velocity": "rad/s"}


class Guard:
    """Refuses what is not finite, clamps what is beyond the limits, counts both."""

    def __init__(self, arm: ArmModel, events: Events, also: Collection[str] = ()) -> None:
        """``also`` are interfaces taken by other means than the arm's actuators."""
        self.arm = arm
        self.events = events
        self._limits = {
            interface: frozen([a.command_limit(a.taken(interface)) for a in arm.actuators])
            for interface in INTERFACES
            if interface in also or all(a.taken(interface) in a.interfaces for a in arm.actuators)
        }

    def check_state(self, state: State) -> bool:
        """Whether a measured state has a finite number for every joint; an event if not."""
        if not state.q.size == state.v.size == self.arm.nv:
            sizes = f"{state.q.size} positions and {state.v.size} velocities"
            self.events.report("state_refused", f"{sizes} measured for {self.arm.nv} joints")
            return False
        bad = ~(np.isfinite(state.q) & np.isfinite(state.v))
        if bad.any():
            joint = self.arm.joint_names[int(np.flatnonzero(bad)[0])]
            self.events.report("state_refused", f"joint '{joint}': measured state is not finite")
        return not bad.any()

    def check_command(self, command: Command, source: Callable[[], str] | None = None) -> Command:
        """The command within the motors' limits, never to change again.

        Raises CommandRefused, after counting it, for a wrong size, a non-finite entry or an
        interface that a joint does not take; the message begins with ``source()``.
        """
        try:
            command = require_command(command)
            checked = Command.checked(command.interface, command.value, self.arm.nv, command.stamp)
            self._require_taken(command.interface)
        except (InvalidValue, UnknownName) as error:
            text = str(error) if source is None else f"{source()}: {error}"
            self.events.report("command_refused", text)
            raise CommandRefused(text) from error
        return self._within_limits(checked)

    def _require_taken(self, interface: str) -> None:
        if interface in self._limits:
            return
        for actuator in self.arm.actuators:
            if interface not in actuator.interfaces:
                kind = f"interface of joint '{actuator.joint}'"
                raise UnknownName(kind, interface, actuator.interfaces)

    def _within_limits(self, command: Command) -> Command:
        limit = self._limits[command.interface]
        if not (np.abs(command.value) > limit).any():
            return command
        joint = int(np.argmax(np.abs(command.value) - limit))
        interface = self.arm.actuators[joint].taken(command.interface)
        self.events.report(
            f"{interface}_clamped",
            f"joint '{self.arm.joint_names[joint]}': {interface} {command.value[joint]:.4g}"
            f" {UNITS[interface]} clamped to the limit {limit[joint]:.4g}",
        )
        value = np.minimum(np.maximum(command.value, -limit), limit)
        return Command.checked(command.interface, value, self.arm.nv, command.stamp)
