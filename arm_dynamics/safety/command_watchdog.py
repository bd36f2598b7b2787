"""Validation of commands before they are written, and the command time-out.

An arm executes the last valid command until its time-out, then a controlled stop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import isfinite

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly, check_float
from arm_dynamics.core.compiled_math import VECTOR, compiled_for
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName
from arm_dynamics.core.state import INTERFACES, CheckedCommand, Command, State, check_command
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.controlled_stop import ControlledStop, StopMotion
from arm_dynamics.safety.events import Events

UNITS = {"effort": "N·m", "voltage": "V", "position": "rad", "velocity": "rad/s"}


class Guard:
    """Rejects non-finite commands and clamps those beyond the limits; counts both."""

    def __init__(
        self, arm: ArmModel, events: Events, extra_interfaces: Collection[str] = ()
    ) -> None:
        """``extra_interfaces`` are interfaces taken by other means than the arm's actuators."""
        self.arm = arm
        self.events = events
        self._limits = {
            interface: as_readonly(
                [a.command_limit(a.resolve_interface(interface)) for a in arm.actuators]
            )
            for interface in INTERFACES
            if interface in extra_interfaces
            or all(a.resolve_interface(interface) in a.interfaces for a in arm.actuators)
        }

    def check_state(self, state: State) -> bool:
        """Return whether a measured state has finite values for every joint; an event if not."""
        if not state.q.size == state.v.size == self.arm.nv:
            sizes = f"{state.q.size} positions and {state.v.size} velocities"
            self.events.report("state_rejected", f"{sizes} measured for {self.arm.nv} joints")
            return False
        if all(map(isfinite, state.q.tolist())) and all(map(isfinite, state.v.tolist())):
            return True
        bad = ~(np.isfinite(state.q) & np.isfinite(state.v))
        joint = self.arm.joint_names[int(np.flatnonzero(bad)[0])]
        self.events.report("state_rejected", f"joint '{joint}': measured state is not finite")
        return False

    def check_command(
        self, command: Command, source: Callable[[], str] | None = None
    ) -> CheckedCommand:
        """Return the command, checked and clamped to the motors' limits.

        Raises CommandRejected, after counting it, for a wrong size, a non-finite entry or an
        interface that a joint does not have; the message begins with ``source()``.
        """
        try:
            checked = check_command(command, self.arm.nv)
            if checked.interface not in self._limits:
                for actuator in self.arm.actuators:
                    if checked.interface not in actuator.interfaces:
                        kind = f"interface of joint '{actuator.joint}'"
                        raise UnknownName(kind, checked.interface, actuator.interfaces)
        except (InvalidValue, UnknownName) as error:
            text = str(error) if source is None else f"{source()}: {error}"
            self.events.report("command_rejected", text)
            raise CommandRejected(text) from error
        limit = self._limits[checked.interface]
        if is_within(checked.value, limit):
            return checked
        joint = int(np.argmax(np.abs(checked.value) - limit))
        interface = self.arm.actuators[joint].resolve_interface(checked.interface)
        self.events.report(
            f"{interface}_clamped",
            f"joint '{self.arm.joint_names[joint]}': {interface} {checked.value[joint]:.4g}"
            f" {UNITS[interface]} clamped to the limit {limit[joint]:.4g}",
        )
        value = np.minimum(np.maximum(checked.value, -limit), limit)
        return Command.checked(checked.interface, value, self.arm.nv, checked.stamp)


@compiled_for(VECTOR, VECTOR)
def is_within(x: Vector, limit: Vector) -> bool:
    """Return whether |x_i| <= limit_i for all entries, both (n,)."""
    outside = 0
    for i in range(x.size):
        outside += abs(x[i]) > limit[i]
    return outside == 0


class CommandWatchdog:
    """Accepts commands, rejects invalid ones, and stops the arm when no more arrive.

    A rejected command does not reset the time-out. Before the first command the arm is held at
    its position.
    """

    def __init__(
        self,
        arm: ArmModel,
        timeout: float = 0.1,
        events: Events | None = None,
        *,
        extra_interfaces: Collection[str] = (),
        stop: Callable[[State], StopMotion] | None = None,
    ) -> None:
        """``extra_interfaces`` as in Guard; ``stop`` starts a stop, by default a ControlledStop."""
        self.arm = arm
        self.timeout = check_float("command timeout [s]", timeout, above=0)
        self.events = events or Events()
        self.accepted = 0
        self._guard = Guard(arm, self.events, extra_interfaces)
        self._accepted: CheckedCommand | None = None
        self._since = 0.0
        self._stop: StopMotion | None = None
        self._begin = stop or (lambda state: ControlledStop(self.arm, state, state.tau))

    @property
    def stopping(self) -> bool:
        """Whether the arm follows the controlled stop instead of a command."""
        return self._stop is not None

    @property
    def commanded(self) -> bool:
        """Whether a command is active."""
        return self._accepted is not None

    def age(self, now: float) -> float:
        """Return the age [s] of the active command; 0 without one."""
        return 0.0 if self._accepted is None else now - self._since

    def submit(self, command: Command, now: float) -> bool:
        """Accept a command that arrived at ``now`` [s]; return False if it is rejected."""
        try:
            self._accepted = self._guard.check_command(command)
        except CommandRejected:
            return False
        self._since, self._stop = now, None
        self.accepted += 1
        return True

    def reject(self, message: str) -> None:
        """Count a command that could not be read."""
        self.events.report("command_rejected", message)

    def command(self, state: State) -> Command:
        """Return the command to the motors at ``state``."""
        if self._accepted is not None and state.time - self._since <= self.timeout:
            return self._accepted
        if self._stop is None:
            if self._accepted is not None:
                age = state.time - self._since
                self.events.report(
                    "command_timeout",
                    f"no command for {age:.3f} s (limit {self.timeout:g} s): stopping",
                )
            self._stop, self._accepted = self._begin(state), None
        return self._stop.command(state)

    def restart(self) -> None:
        """Discard command and stop, after a reset of the arm's state."""
        self._accepted = self._stop = None
