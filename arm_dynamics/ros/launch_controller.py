"""Selection of the controller of a launched arm: one whose command interface the arm accepts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from arm_dynamics.control.config import NAMELESS, controller_name, node_parameters
from arm_dynamics.core import plugins
from arm_dynamics.core.state import MIXED
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.launch_parts import given_arm

SIMULATED = "simulated"
FALLBACKS = (NAMELESS, "position")
"""Controllers that replace one with an unavailable command interface."""


def select_controller(given: Mapping[str, str], files: Sequence[str]) -> tuple[str, str]:
    """Return the name of the controller, "" for the parameter file's, and a message if it differs.

    ``given`` contains arm, driver, command_interface and controller. A physical arm uses the given
    controller; a simulated one may have other interfaces than the motors. Raise UnknownName for an
    unregistered controller, ConfigError for an unreadable parameter file.
    """
    requested, simulated = given["controller"], given["driver"] == SIMULATED
    if requested and not simulated:
        return requested, ""
    default = controller_name(given_arm(given), file=files[0] if files else None)
    accepted = _simulated(given_arm(given)) if simulated else (_interface(given, files),)
    preferred = requested or default
    found = next(
        (name for name in (preferred, default, *FALLBACKS) if _accepts(accepted, name)), preferred
    )
    if found == preferred:
        return requested or ("" if files else default), ""
    arm = "simulated arm accepts" if simulated else "motors accept"
    return found, (
        f"command interface of {preferred} = {_commands(preferred)};"
        f" the {arm} {', '.join(accepted)};"
        f" using controller {found}"
    )


def _interface(given: Mapping[str, str], files: Sequence[str]) -> str:
    """Return the command interface of the motors: the argument, the parameter file's, or effort."""
    file_parameters = node_parameters(files[0], "hardware") if files else {}
    return given["command_interface"] or str(file_parameters.get("command_interface", "effort"))


def _simulated(arm: ArmModel) -> tuple[str, ...]:
    """Return the command interfaces of all joints of the simulated arm."""
    first, *others = (actuator.interfaces for actuator in arm.actuators)
    return tuple(one for one in first if all(one in other for other in others))


def _commands(controller: str) -> str:
    interface: str = plugins.load_class("controllers", controller).interface
    return interface


def _accepts(interfaces: Collection[str], controller: str) -> bool:
    return _commands(controller) in (*interfaces, MIXED)
