"""Which command an arm obeys: the last good one while it is young, else a safe stop."""

from __future__ import annotations

from collections.abc import Callable, Collection

from arm_dynamics.arrays import scalar
from arm_dynamics.errors import CommandRefused
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.events import Events
from arm_dynamics.safety.guard import Guard
from arm_dynamics.safety.safe_stop import SafeStop
from arm_dynamics.safety.stop_policy import Stop
from arm_dynamics.state import Command, State


class CommandWatch:
    """Accepts commands, refuses bad ones, and stops the arm when they no longer come.

    A refused command does not renew the watch: the last good one decays as if nothing had
    arrived. Before the first command the arm is held where it is.
    """

    def __init__(
        self,
        arm: ArmModel,
        timeout: float = 0.1,
        events: Events | None = None,
        *,
        also: Collection[str] = (),
        stop: Callable[[State], Stop] | None = None,
    ) -> None:
        """``also`` as in Guard; ``stop`` begins a stop, by default a SafeStop."""
        self.arm = arm
        self.timeout = scalar("command timeout [s]", timeout, above=0)
        self.events = events or Events()
        self.accepted = 0
        self._guard = Guard(arm, self.events, also)
        self._accepted: Command | None = None
        self._since = 0.0
        self._stop: Stop | None = None
        self._begin = stop or (lambda state: SafeStop(self.arm, state, state.tau))

    @property
    def stopping(self) -> bool:
        """Whether the arm is under the safe stop instead of a command."""
        return self._stop is not None

    @property
    def commanded(self) -> bool:
        """Whether a command is in force."""
        return self._accepted is not None

    def age(self, now: float) -> float:
        """How long ago [s] the command in force came; 0 without one."""
        return 0.0 if self._accepted is None else now - self._since

    def offer(self, command: Command, now: float) -> bool:
        """Take a command that arrived at ``now`` [s]; False when it was refused."""
        try:
            self._accepted = self._guard.check_command(command)
        except CommandRefused:
            return False
        self._since, self._stop = now, None
        self.accepted += 1
        return True

    def refuse(self, message: str) -> None:
        """Count a command that could not even be read."""
        self.events.report("command_refused", message)

    def command(self, state: State) -> Command:
        """What the motors get at this state."""
        if self._accepted is not None and state.time - self._since <= self.timeout:
            return self._accepted
        if self._stop is None:
            self._begin_stop(state)
        assert self._stop is not None
        return self._stop.command(state)

    def restart(self) -> None:
        """Forget commands and stop, as after a reset of the arm's state."""
        self._accepted = self._stop = None

    def _begin_stop(self, state: State) -> None:
        if self._accepted is not None:
            age = state.time - self._since
            self.events.report(
                "command_timeout",
                f"no command for {age:.3f} s (limit {self.timeout:g} s): stopping",
            )
        self._stop = self._begin(state)
        self._accepted = None
