"""From one control law to another without a step of what goes to the motors."""

from __future__ import annotations

from arm_dynamics.arrays import frozen
from arm_dynamics.controllers.base import Controller
from arm_dynamics.errors import ControllerFault
from arm_dynamics.following.controller_call import blendable
from arm_dynamics.state import Command, Reference, State

LENGTH = 0.5
"""Time [s] in which one law fades into the other."""


class Handover:
    """u = w u_before + (1 - w) u_after,  w = 1 - t / LENGTH from 1 to 0.

    Both laws run meanwhile, on the same states and references. At the change itself the law
    before it speaks alone, so that no start of the other law is felt as a step.
    """

    def __init__(self, before: Controller, time: float) -> None:
        self._before, self._start = before, time

    def share(self, time: float) -> float:
        """Weight w of the law before, at ``time`` [s]."""
        return max(0.0, 1.0 - max(0.0, time - self._start) / LENGTH)

    def blended(self, after: Command, state: State, reference: Reference, dt: float) -> Command:
        """Both laws' command; ``after`` itself once the other is over, or has failed."""
        w = self.share(state.time)
        if w == 0.0:
            return after
        try:
            before = blendable(self._before, state, reference, dt)
        except ControllerFault:
            return after
        value = frozen(w * before.value + (1 - w) * after.value)
        return Command(after.interface, value, after.stamp)
