"""Calls into a controller: whatever it raises names its class and the line of its file.

From one control law to another without a step of what goes to the motors.

The law in force, and the one that is to follow it.
"""

from __future__ import annotations

import dis
import traceback
from pathlib import Path

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.errors import ArmDynamicsError, ControllerFault, InvalidValue, UnknownName
from arm_dynamics.core.state import Command, Reference, State, require_command


def updated(controller: Controller, state: State, reference: Reference, dt: float) -> Command:
    """Return ``controller.update(state, reference, dt)``.

    Raises ControllerFault where the controller raises, or returns another thing than a Command.
    """
    try:
        command = controller.update(state, reference, dt)
    except Exception as error:
        raise _fault(controller, error) from error
    try:
        return require_command(command)
    except InvalidValue as error:
        raise ControllerFault(f"{returned_by(controller)}: {error}") from error


def blendable(controller: Controller, state: State, reference: Reference, dt: float) -> Command:
    """Return ``updated`` with one finite value for each joint; raises ControllerFault as there."""
    command = updated(controller, state, reference, dt)
    try:
        return Command.checked(command.interface, command.value, state.nv, command.stamp)
    except (InvalidValue, UnknownName) as error:
        raise ControllerFault(f"{returned_by(controller)}: {error}") from error


def reset(controller: Controller, state: State) -> None:
    """Call ``controller.reset(state)``; raises ControllerFault where that raises."""
    try:
        controller.reset(state)
    except Exception as error:
        raise _fault(controller, error) from error


def returned_by(controller: Controller) -> str:
    """Return the class of a controller and the line at which its ``update`` returns.

    The line of its ``def`` where it returns at several.
    """
    code = getattr(controller.update, "__code__", None)
    if code is None:  # of a compiled extension
        return _origin(controller, None)
    lines = {
        line
        for instruction in dis.get_instructions(code)
        if instruction.opname.startswith("RETURN")
        for start, end, line in code.co_lines()
        if start <= instruction.offset < end and line is not None
    }
    line = lines.pop() if len(lines) == 1 else code.co_firstlineno
    return _origin(controller, (code.co_filename, line))


def _fault(controller: Controller, error: Exception) -> ControllerFault:
    """``error`` with the innermost line of the package or program that defines the class."""
    package = type(controller).__module__.partition(".")[0]
    lines = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] == package
    ]
    kind = "" if isinstance(error, ArmDynamicsError) else f"{type(error).__name__}: "
    return ControllerFault(f"{_origin(controller, lines[-1] if lines else None)}: {kind}{error}")


def _origin(controller: Controller, place: tuple[str, int] | None) -> str:
    name = f"controller {type(controller).__name__}"
    return name if place is None else f"{name} ({Path(place[0]).name}:{place[1]})"


LENGTH = 0.5
"""Time [s] in which one law fades into the other."""


class CommandBlend:
    """u = w u_before + (1 - w) u_after,  w = 1 - t / LENGTH from 1 to 0.

    Both laws run meanwhile, on the same states and references. At the change itself the law
    before it speaks alone, so that no start of the other law is felt as a step.
    """

    def __init__(self, before: Controller, time: float) -> None:
        self._before, self._start = before, time

    def weight(self, time: float) -> float:
        """Weight w of the law before, at ``time`` [s]."""
        return max(0.0, 1.0 - max(0.0, time - self._start) / LENGTH)

    def blended(self, after: Command, state: State, reference: Reference, dt: float) -> Command:
        """Both laws' command; ``after`` itself once the other is over, or has failed."""
        w = self.weight(state.time)
        if w == 0.0:
            return after
        try:
            before = blendable(self._before, state, reference, dt)
        except ControllerFault:
            return after
        value = as_readonly(w * before.value + (1 - w) * after.value)
        return Command(after.interface, value, after.stamp)


class ActiveController:
    """Updates one law, or two while one fades into the other.

    Another thread than the loop's may ``request_switch`` a law.
    """

    def __init__(self, controller: Controller) -> None:
        self.controller = _checked(controller)
        self._next: Controller | None = None
        self._handover: CommandBlend | None = None

    @property
    def newest(self) -> Controller:
        """The controller that waits for a switch; without one the active controller."""
        return self._next or self.controller

    def is_switch_due(self, time: float) -> bool:
        """Whether another law is to take over at ``time`` [s]: not while one still fades."""
        fading = self._handover is not None and self._handover.weight(time) > 0.0
        return self._next is not None and not fading

    def request_switch(self, controller: Controller) -> None:
        """Have another law take over, the newest where several are told before one can.

        Raises InvalidValue for another command interface.
        """
        law = _checked(controller)
        if law.interface != self.controller.interface:
            raise InvalidValue(
                f"the law in force commands {self.controller.interface}, {type(law).__name__}"
                f" {law.interface}: the interface stays while the loop runs"
            )
        self._next = law

    def switch(self, state: State) -> None:
        """Take up the law that is pending, to fade in from now on.

        Raises ControllerFault where its reset fails; the law before then stays active.
        """
        law, self._next = self._next, None
        if law is not None:
            reset(law, state)
            self._handover, self.controller = CommandBlend(self.controller, state.time), law

    def restart(self, state: State) -> None:
        """Begin anew from ``state``, without a law before; raises ControllerFault."""
        self._handover = None
        reset(self.controller, state)

    def command(self, state: State, reference: Reference, dt: float) -> Command:
        """The law's command, blended with that of the law before it while they change.

        Raises ControllerFault where the law fails.
        """
        if self._handover is None:
            return updated(self.controller, state, reference, dt)
        first = self._handover.weight(state.time) == 1.0
        after = blendable(self.controller, state, reference, 0.0 if first else dt)
        blended = self._handover.blended(after, state, reference, dt)
        if blended is after:
            self._handover = None
        return blended


def _checked(controller: Controller) -> Controller:
    law: Controller = check_type(Controller, "controller", controller)  # type: ignore[type-abstract]
    return law
