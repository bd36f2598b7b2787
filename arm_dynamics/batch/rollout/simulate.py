"""One arm under given commands."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from arm_dynamics.batch.rollout.batch import RolloutResult
from arm_dynamics.batch.rollout.rollout import rollout
from arm_dynamics.core.arrays import check_float, check_int
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State, require_state
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel


def simulate(
    arm: ArmModel,
    state: State,
    command: Command | ArrayLike,
    dt: float,
    steps: int,
    *,
    interface: str | None = None,
    **options: Any,
) -> RolloutResult:
    """``steps`` of dt [s] from ``state``: a batch of one lane.

    command: a Command, or a constant (nv,) on ``interface``. Commands that change go to
    ``rollout``; ``options`` are those of ``rollout``, which tells what is raised. An ``interface``
    beside a Command must be the Command's: InvalidValue for another.
    """
    size, every = check_arm(arm).nv, check_int("steps", steps, lower=1)
    if not isinstance(command, Command):
        if interface is None:
            raise InvalidValue("interface: one is expected with a command that is no Command")
        command = Command.checked(interface, command, size)
    if interface not in (None, command.interface):
        raise InvalidValue(f"interface = {interface!r}: the command's is '{command.interface}'")
    told, dt = command.value, check_float("dt [s]", dt, above=0)
    return rollout(
        arm,
        require_state(state),
        told,
        dt,
        interface=command.interface,
        steps_per_command=every,
        **options,
    )
