"""The law in force, and the one that is to follow it."""

from __future__ import annotations

from arm_dynamics.controllers.base import Controller
from arm_dynamics.errors import InvalidValue
from arm_dynamics.expect import expect
from arm_dynamics.following.controller_call import blendable, reset, updated
from arm_dynamics.following.handover import Handover
from arm_dynamics.state import Command, Reference, State


class LawInForce:
    """Updates one law, or two while one fades into the other.

    Another thread than the loop's may ``use`` a law.
    """

    def __init__(self, controller: Controller) -> None:
        self.law = _checked(controller)
        self._next: Controller | None = None
        self._handover: Handover | None = None

    @property
    def newest(self) -> Controller:
        """The controller that waits for a switch; without one the active controller."""
        return self._next or self.law

    def due(self, time: float) -> bool:
        """Whether another law is to take over at ``time`` [s]: not while one still fades."""
        fading = self._handover is not None and self._handover.share(time) > 0.0
        return self._next is not None and not fading

    def use(self, controller: Controller) -> None:
        """Have another law take over, the newest where several are told before one can.

        Raises InvalidValue for another command interface.
        """
        law = _checked(controller)
        if law.interface != self.law.interface:
            raise InvalidValue(
                f"the law in force commands {self.law.interface}, {type(law).__name__}"
                f" {law.interface}: the interface stays while the loop runs"
            )
        self._next = law

    def change(self, state: State) -> None:
        """Take up the law that is pending, to fade in from now on.

        Raises ControllerFault where its reset fails; the law before then stays active.
        """
        law, self._next = self._next, None
        if law is not None:
            reset(law, state)
            self._handover, self.law = Handover(self.law, state.time), law

    def restart(self, state: State) -> None:
        """Begin anew from ``state``, without a law before; raises ControllerFault."""
        self._handover = None
        reset(self.law, state)

    def command(self, state: State, reference: Reference, dt: float) -> Command:
        """The law's command, blended with that of the law before it while they change.

        Raises ControllerFault where the law fails.
        """
        if self._handover is None:
            return updated(self.law, state, reference, dt)
        first = self._handover.share(state.time) == 1.0
        after = blendable(self.law, state, reference, 0.0 if first else dt)
        blended = self._handover.blended(after, state, reference, dt)
        if blended is after:
            self._handover = None
        return blended


def _checked(controller: Controller) -> Controller:
    law: Controller = expect(Controller, "controller", controller)  # type: ignore[type-abstract]
    return law
