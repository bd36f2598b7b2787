"""Whether a reference of the tool is one that compiled laws can read."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import vector
from arm_dynamics.errors import InvalidValue
from arm_dynamics.state import TaskReference


def fits(task: TaskReference, nv: int) -> bool:
    """Whether all parts have the shapes that TaskReference tells: a tick has time for no more."""
    try:
        return (
            task.q.shape == task.v.shape == task.a.shape == (nv,)
            and task.position.shape == (3,)
            and task.rotation.shape == (3, 3)
            and task.twist.shape == task.acceleration.shape == task.wrench.shape == (6,)
        )
    except AttributeError:
        return False


def refusal(task: TaskReference, nv: int, dt: float) -> InvalidValue:
    """Why a task can not be followed: its first part of a wrong shape or that is not finite."""
    sizes = dict.fromkeys("qva", nv) | {"position": 3, "twist": 6, "acceleration": 6, "wrench": 6}
    try:
        for name, size in sizes.items():
            vector(name, getattr(task, name), size)
        vector("rotation", np.ravel(task.rotation), 9)
    except InvalidValue as error:
        return InvalidValue(f"reference of the tool: {error}")
    return InvalidValue(
        f"the reference of the tool leaves the finite numbers, or is not of arrays, in dt = {dt} s"
    )
