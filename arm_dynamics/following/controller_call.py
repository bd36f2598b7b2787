"""Calls into a controller: whatever it raises names its class and the line of its file."""

from __future__ import annotations

import dis
import traceback
from pathlib import Path

from arm_dynamics.controllers.base import Controller
from arm_dynamics.errors import ArmDynamicsError, ControllerFault, InvalidValue, UnknownName
from arm_dynamics.state import Command, Reference, State, require_command


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
