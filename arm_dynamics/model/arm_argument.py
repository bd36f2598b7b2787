"""Checks of arguments that are arms."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel

F = TypeVar("F", bound=Callable[..., Any])


def check_arm(arm: object, name: str = "arm") -> ArmModel:
    """Return ``arm`` if it is an ArmModel; else raise InvalidValue, with a remedy for a name."""
    remedy = f"load_arm({arm!r}) returns one" if isinstance(arm, str) else ""
    return check_type(ArmModel, name, arm, remedy)


def requires_arm(function: F) -> F:
    """Decorate ``function(arm, ...)`` to raise InvalidValue unless ``arm`` is an ArmModel."""

    @wraps(function)
    def checked(arm: object, *rest: Any, **named: Any) -> Any:
        if not isinstance(arm, ArmModel):
            check_arm(arm)
        return function(arm, *rest, **named)

    return cast(F, checked)


def require_masses(arm: ArmModel, purpose: str) -> None:
    """Raise InvalidValue for a kinematic arm; the message names ``purpose`` and the remedy."""
    if arm.is_kinematic:
        raise InvalidValue(
            f"arm '{arm.name}': masses of the moving links = 0 kg; expected above 0 for {purpose};"
            " write them into the URDF, or estimate them from its shapes: arm-dynamics audit"
            f" {arm.source or 'FILE'} --estimate-inertia KG --output NEW"
        )


def require_no_mimic_joints(arm: ArmModel, purpose: str) -> None:
    """Raise InvalidValue for an arm with mimic joints; the message names ``purpose``."""
    if arm.mimic_joints:
        names = ", ".join(mimic.name for mimic in arm.mimic_joints)
        driven = list(dict.fromkeys(mimic.joint for mimic in arm.mimic_joints))
        raise InvalidValue(
            f"arm '{arm.name}': mimic joints = {names}; expected none for {purpose};"
            f" load_arm(..., lock={driven}) locks them"
        )


def requires_masses(function: F) -> F:
    """Decorate ``function(arm, ...)`` as ``requires_arm``, and to reject a kinematic arm."""

    @wraps(function)
    def checked(arm: object, *rest: Any, **named: Any) -> Any:
        if check_arm(arm).is_kinematic:
            require_masses(check_arm(arm), function.__name__)
        return function(arm, *rest, **named)

    return cast(F, checked)


def require_same_joints(name: str, arm: object, than: ArmModel) -> ArmModel:
    """Return ``arm`` if its joints are those of ``than``; else raise InvalidValue."""
    checked = check_arm(arm, name)
    if checked.joint_names != than.joint_names:
        raise InvalidValue(
            f"{name} = '{checked.name}' with joints {checked.joint_names};"
            f" expected {than.joint_names}"
        )
    return checked
