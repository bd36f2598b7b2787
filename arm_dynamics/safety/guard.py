"""The last look at a command before it is written."""

from __future__ import annotations

import numpy as np

from arm_dynamics.errors import CommandRefused, UnknownName
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.events import Events
from arm_dynamics.state import Command, State


class Guard:
    """Refuses what is not finite, clamps what is beyond the limits, counts both."""

    def __init__(self, arm: ArmModel, events: Events) -> None:
        self.arm = arm
        self.events = events
        self._effort = arm.effort_limit
        self._interfaces = frozenset.intersection(
            *(frozenset(actuator.interfaces) for actuator in arm.actuators)
        )

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

    def check_command(self, command: Command) -> Command:
        """The command within the effort limits.

        Raises CommandRefused, after counting it, for a wrong size, a non-finite entry or an
        interface that a joint does not take.
        """
        if not self._passes(command):
            self._refuse(command)
        return self._within_limits(command) if command.interface == "effort" else command

    def _passes(self, command: Command) -> bool:
        value = command.value
        return bool(
            command.interface in self._interfaces
            and value.shape == self._effort.shape
            and np.isfinite(value).all()
        )

    def _refuse(self, command: Command) -> None:
        """Count the command and raise with the words of whatever is wrong with it."""
        try:
            Command.checked(command.interface, command.value, self.arm.nv, command.stamp)
            self._require_taken(command.interface)
        except (CommandRefused, UnknownName) as error:
            self.events.report("command_refused", str(error))
            raise CommandRefused(str(error)) from error

    def _require_taken(self, interface: str) -> None:
        for actuator in self.arm.actuators:
            if interface not in actuator.interfaces:
                kind = f"interface of joint '{actuator.joint}'"
                raise UnknownName(kind, interface, actuator.interfaces)

    def _within_limits(self, command: Command) -> Command:
        if not (np.abs(command.value) > self._effort).any():
            return command
        excess = np.abs(command.value) - self._effort
        joint = int(np.argmax(excess))
        self.events.report(
            "effort_clamped",
            f"joint '{self.arm.joint_names[joint]}': effort {command.value[joint]:.4g} N·m"
            f" clamped to the limit {self._effort[joint]:.4g}",
        )
        value = np.minimum(np.maximum(command.value, -self._effort), self._effort)
        return Command.checked("effort", value, self.arm.nv, command.stamp)
