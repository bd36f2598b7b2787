"""From one control law to another without a step of what goes to the motors."""

from __future__ import annotations

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.state import Command

LENGTH = 0.5
"""Time [s] in which the difference between two laws fades away."""


class Handover:
    """u(t) = u_law(t) + (u_before - u_law(0)) (1 - t / LENGTH)₊.

    The first command of the new law is then the last one of the old law, u_before (nv,), and
    what is added is a disturbance that ends: the new law's stability is its own.
    """

    def __init__(self, before: Vector) -> None:
        self._before = before
        self._offset: Vector | None = None
        self._start = 0.0

    def blended(self, command: Command) -> Command:
        """The command of the new law with what remains of the old one."""
        if self._offset is None:
            self._offset, self._start = self._before - command.value, command.stamp
        share = self.share(command.stamp)
        if share == 0.0:
            return command
        value = frozen(command.value + share * self._offset)
        return Command(command.interface, value, command.stamp)

    def share(self, time: float) -> float:
        """What remains at ``time`` [s], from 1 to 0."""
        return max(0.0, 1.0 - max(0.0, time - self._start) / LENGTH)
