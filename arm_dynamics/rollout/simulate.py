"""One arm under given commands."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from arm_dynamics.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout.batch import Batch
from arm_dynamics.rollout.rollout import counted, rollout
from arm_dynamics.state import Command, State


def simulate(
    arm: ArmModel,
    state: State,
    command: Command | ArrayLike,
    dt: float,
    steps: int,
    *,
    interface: str | None = None,
    **options: Any,
) -> Batch:
    """``steps`` of dt [s] from ``state``: a batch of one lane.

    command: a Command, or a constant (nv,) on ``interface``. Commands that change go to
    ``rollout``; ``options`` are those of ``rollout``, which tells what is raised.
    """
    if isinstance(command, Command):
        interface, command = command.interface, command.value
    if interface is None:
        raise InvalidValue("interface: one is expected with a command that is no Command")
    every = counted("steps", steps)
    return rollout(arm, state, command, dt, interface=interface, every=every, **options)
