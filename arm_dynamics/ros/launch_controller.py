"""The law that an arm is launched with: one whose commands the arm takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from arm_dynamics.control.config import NAMELESS, controller_name, node_parameters
from arm_dynamics.core import plugins
from arm_dynamics.core.state import MIXED
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.launch_parts import given_arm

SIMULATED = "simulated"
USUAL = (NAMELESS, "position")
"""What stands in for a law that the arm cannot follow and the parameter file has no other for."""


def select_controller(given: Mapping[str, str], files: Sequence[str]) -> tuple[str, str]:
    """The name of the law, "" for the parameter file's; and a word where it is not the wanted one.

    ``given`` has the arguments arm, driver, interface and controller. A physical arm obeys the law
    that it is given; a simulated one may take other commands than the motors. Raises UnknownName
    for a law that is not registered, ConfigError for a parameter file that cannot be read.
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
    arm = "simulated arm takes" if simulated else "motors take"
    return found, (
        f"the {arm} {', '.join(takes)}, and the law {wanted} commands"
        f" {_commands(wanted)}: the law is {found}"
    )


def _interface(given: Mapping[str, str], files: Sequence[str]) -> str:
    """What the motors are commanded: the argument, else the parameter file's, else effort."""
    told = node_parameters(files[0], "hardware") if files else {}
    return given["interface"] or str(told.get("interface", "effort"))


def _simulated(arm: ArmModel) -> tuple[str, ...]:
    """What every joint of the simulated arm takes."""
    first, *others = (actuator.interfaces for actuator in arm.actuators)
    return tuple(one for one in first if all(one in other for other in others))


def _commands(law: str) -> str:
    interface: str = plugins.load_class("controllers", law).interface
    return interface


def _follows(law: str, takes: Collection[str]) -> bool:
    return _commands(law) in (*takes, MIXED)
