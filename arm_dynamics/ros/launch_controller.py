"""Selection of the controller of a launched arm: one whose command interface the arm accepts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from arm_dynamics.control.config import NAMELESS, controller_name, node_parameters
from arm_dynamics.core import plugins
from arm_dynamics.core.state import MIXED
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.launch_parts import given_arm

SIMULATED = "simulated"
USUAL = (NAMELESS, "position")
"""Controllers that replace one with an unavailable command interface."""


def select_controller(given: Mapping[str, str], files: Sequence[str]) -> tuple[str, str]:
    """Return the name of the controller, "" for the parameter file's, and a message if it differs.

    ``given`` contains arm, driver, command_interface and controller. A physical arm uses the given
    controller; a simulated one may have other interfaces than the motors. Raise UnknownName for an
    unregistered controller, ConfigError for an unreadable parameter file.
    """
    asked, simulated = given["controller"], given["driver"] == SIMULATED
    if asked and not simulated:
        return asked, ""
    own = controller_name(given_arm(given), file=files[0] if files else None)
    takes = _simulated(given_arm(given)) if simulated else (_interface(given, files),)
    wanted = asked or own
    found = next((law for law in (wanted, own, *USUAL) if _follows(law, takes)), wanted)
    if found == wanted:
        return asked or ("" if files else own), ""
    arm = "simulated arm accepts" if simulated else "motors accept"
    return found, (
        f"command interface of {wanted} = {_commands(wanted)}; the {arm} {', '.join(takes)};"
        f" using controller {found}"
    )


def _interface(given: Mapping[str, str], files: Sequence[str]) -> str:
    """Return the command interface of the motors: the argument, the parameter file's, or effort."""
    told = node_parameters(files[0], "hardware") if files else {}
    return given["command_interface"] or str(told.get("command_interface", "effort"))


def _simulated(arm: ArmModel) -> tuple[str, ...]:
    """Return the command interfaces of all joints of the simulated arm."""
    first, *others = (actuator.interfaces for actuator in arm.actuators)
    return tuple(one for one in first if all(one in other for other in others))


def _commands(law: str) -> str:
    interface: str = plugins.load_class("controllers", law).interface
    return interface


def _follows(law: str, takes: Collection[str]) -> bool:
    return _commands(law) in (*takes, MIXED)
