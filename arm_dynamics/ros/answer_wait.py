"""How long a simulator that is faster than real time waits for the answer to a state."""

from __future__ import annotations

import time

from arm_dynamics.ros.command_topics import CommandTopics
from arm_dynamics.simulation import Simulation

FASTER = 1.1
"""Real-time factor above which simulated time waits for answers."""
SLICE = 0.005
"""Time [s] between two looks for a command that is no answer: voltages, or stamps of one's own."""


class AnswerWait:
    """Gives the controller ``command_timeout`` of wall-clock time, not of simulated time alone.

    Simulated time stands while a controller that answered the last state has not answered this
    one, or while its command is about to time out; at most ``command_timeout`` [s] by the wall
    clock after its last command. A command thus ends only once both clocks have passed that.
    """

    def __init__(self, simulation: Simulation, commands: CommandTopics) -> None:
        self._simulation, self._commands = simulation, commands
        self._accepted, self._since, self._answers = 0, 0.0, False

    def wait(self, factor: float, answered: bool) -> None:
        """Wait for the answer to the present state at the real-time ``factor``, if it is due.

        ``answered`` says that it came already.
        """
        watch = self._simulation.watch
        self._note()
        while factor > FASTER and not answered and watch.commanded and self._is_due():
            answered = self._take()
            self._note()
        self._answers = answered

    def _take(self) -> bool:
        """Take commands for SLICE; whether one answers the present state."""
        until = time.monotonic() + SLICE
        return self._commands.take_until_answered(lambda: max(0.0, until - time.monotonic()))

    def _is_due(self) -> bool:
        """Whether the controller may still answer, and did so before or is about to time out."""
        watch = self._simulation.watch
        age = watch.age(self._simulation.state.time) + self._simulation.period
        allowed = time.monotonic() - self._since < watch.timeout
        return allowed and (self._answers or age > watch.timeout)

    def _note(self) -> None:
        """Note the wall-clock time of the newest command."""
        accepted = self._simulation.watch.accepted
        if accepted != self._accepted:
            self._accepted, self._since = accepted, time.monotonic()
