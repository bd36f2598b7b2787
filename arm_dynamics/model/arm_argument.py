"""An arm as an argument: a name is none, and another arm than the one at hand may not fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel

F = TypeVar("F", bound=Callable[..., Any])


def check_arm(arm: object, name: str = "arm") -> ArmModel:
    """Return ``arm`` when it is one; raises InvalidValue, with a hint for a name, if not."""
    return check_type(
        ArmModel, name, arm, f"load_arm({arm!r}) gives one" if isinstance(arm, str) else ""
    )


def requires_arm(function: F) -> F:
    """``function(arm, ...)`` that refuses, as InvalidValue, all but an ArmModel for ``arm``."""

    @wraps(function)
    def checked(arm: object, *rest: Any, **named: Any) -> Any:
        if not isinstance(arm, ArmModel):
            check_arm(arm)
        return function(arm, *rest, **named)

    return cast(F, checked)


def require_same_joints(name: str, arm: object, than: ArmModel) -> ArmModel:
    """Return ``arm`` when its joints are those of ``than``; raises InvalidValue if not."""
    found = check_arm(arm, name)
    if found.joint_names != than.joint_names:
        raise InvalidValue(
            f"{name} = '{found.name}' with joints {found.joint_names}: {than.joint_names} expected"
        )
    return found
