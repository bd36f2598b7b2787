"""The active controller: guarded calls, and bumpless switching to another controller."""

from __future__ import annotations

import dis
import traceback
from pathlib import Path

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import ArmDynamicsError, ControllerFault, InvalidValue, UnknownName
from arm_dynamics.core.state import Command, Reference, State, require_command

LENGTH = 0.5
"""Duration of the blend between two controllers [s]."""


class ActiveController:
    """Updates the active controller; during a switch two, whose commands are blended.

    ``request_switch`` may be called from another thread than the loop's.
    """

    def __init__(self, controller: Controller) -> None:
        self.controller = _checked(controller)
        self._next: Controller | None = None
        self._blend: CommandBlend | None = None

    @property
    def newest(self) -> Controller:
        """The controller that waits for a switch; without one the active controller."""
        return self._next or self.controller

    def request_switch(self, controller: Controller) -> None:
        """Queue a switch; the newest request replaces an older one.

        Raises
        ------
        InvalidValue
            If the controller uses another command interface.

        """
        checked, active = _checked(controller), self.controller
        if checked.interface != active.interface:
            raise InvalidValue(
                f"controller switch: {type(active).__name__} commands {active.interface},"
                f" {type(checked).__name__} {checked.interface}; expected the same interface"
            )
        self._next = checked

    def is_switch_due(self, time: float) -> bool:
        """Return whether a requested switch can start at ``time`` [s]: no blend is running."""
        blending = self._blend is not None and self._blend.weight(time) > 0.0
        return self._next is not None and not blending

    def switch(self, state: State) -> None:
        """Activate the requested controller and start the blend.

        Raises
        ------
        ControllerFault
            If its ``reset`` raises; the previous controller then stays active.

        """
        controller, self._next = self._next, None
        if controller is not None:
            reset(controller, state)
            self._blend = CommandBlend(self.controller, state.time)
            self.controller = controller

    def restart(self, state: State) -> None:
        """End a blend and reset the active controller; raises ControllerFault as ``reset``."""
        self._blend = None
        reset(self.controller, state)

    def bound_effort(self, bound: Vector | None) -> None:
        """Limit the efforts of the controllers to ``bound`` (nv,) [N·m or N] from now on."""
        before = () if self._blend is None else (self._blend.before,)
        for controller in (self.controller, *before):
            if controller.effort_bound is not bound:
                controller.bound_effort(bound)

    def command(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the command, blended during a switch; raises ControllerFault."""
        if self._blend is None:
            return updated(self.controller, state, reference, dt)
        first = self._blend.weight(state.time) == 1.0
        after = blendable(self.controller, state, reference, 0.0 if first else dt)
        blended = self._blend.blended(after, state, reference, dt)
        if blended is after:
            self._blend = None
        return blended


class CommandBlend:
    """u = w u_before + (1 - w) u_after, with w = 1 - t / LENGTH decreasing from 1 to 0.

    Both controllers run with the same states and references. At the start w = 1, so the command
    does not step.
    """

    def __init__(self, before: Controller, time: float) -> None:
        self.before, self._start = before, time

    def weight(self, time: float) -> float:
        """Return the weight w of the previous controller at ``time`` [s]."""
        return max(0.0, 1.0 - max(0.0, time - self._start) / LENGTH)

    def blended(self, after: Command, state: State, reference: Reference, dt: float) -> Command:
        """Return the blend; ``after`` itself at the end, or if the previous controller fails."""
        w = self.weight(state.time)
        if w == 0.0:
            return after
        try:
            before = blendable(self.before, state, reference, dt)
        except ControllerFault:
            return after
        value = as_readonly(w * before.value + (1 - w) * after.value)
        return Command(after.interface, value, after.stamp)


def updated(controller: Controller, state: State, reference: Reference, dt: float) -> Command:
    """Return ``controller.update(state, reference, dt)``; the guard checks its values.

    Raises
    ------
    ControllerFault
        If the controller raises, or does not return a Command; names its class and line.

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
    """Return ``updated`` with one finite value per joint; raises ControllerFault as ``updated``."""
    command = updated(controller, state, reference, dt)
    try:
        return Command.checked(command.interface, command.value, state.nv, command.stamp)
    except (InvalidValue, UnknownName) as error:
        raise ControllerFault(f"{returned_by(controller)}: {error}") from error


def reset(controller: Controller, state: State) -> None:
    """Call ``controller.reset(state)``; raises ControllerFault if it raises."""
    try:
        controller.reset(state)
    except Exception as error:
        raise _fault(controller, error) from error


def returned_by(controller: Controller) -> str:
    """Return the controller's class and the line of ``update`` that returns.

    If several lines return, the line of its ``def``.
    """
    code = getattr(controller.update, "__code__", None)
    if code is None:  # a compiled extension
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
    """Return ``error`` with the innermost line of the package or program that defines the class."""
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


def _checked(controller: Controller) -> Controller:
    return check_type(Controller, "controller", controller)  # type: ignore[type-abstract]
