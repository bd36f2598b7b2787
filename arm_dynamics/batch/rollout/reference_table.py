"""What the control ticks of a batch are told: reference, which part of the time it is, noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from arm_dynamics.batch.rollout.inputs import broadcast_commands
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.arrays import Vector, check_float, check_int
from arm_dynamics.core.errors import InvalidValue

MAX_PARTS = 2.0**53
"""Beyond it not every whole number is a float."""


@dataclass(frozen=True)
class MeasurementNoise:
    """Normal errors of the measured q [rad] and v [rad/s], the same for a ``seed``."""

    q: float = 0.0
    v: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_float("noise of q", self.q, lower=0)
        check_float("noise of v", self.v, lower=0)
        check_int("seed of the noise", self.seed)

    def table(self, lanes: int, periods: int, size: int) -> Vector:
        """Errors [q, v] (lane, period, 2 nv); a lane's do not depend on how many there are."""
        scale = np.repeat([self.q, self.v], size)
        draw = [
            np.random.default_rng([self.seed, lane]).normal(size=(periods, 2 * size))
            for lane in range(lanes)
        ]
        errors: Vector = np.array(draw) * scale
        return errors


def reference_table(reference: Any, lanes: int, periods: int, size: int, period: float) -> Vector:
    """Reference [q, v] (lanes or 1, periods, 2 nv).

    From a JointTrajectory, or q alone or [q, v] as (nv,), (lanes, nv), (periods, nv) or (lanes,
    periods, nv); the last period's goes on where there are fewer. Raises InvalidValue.
    """
    if isinstance(reference, JointTrajectory):
        at = [reference.at(k * period) for k in range(periods)]
        return np.array([[[*one.q, *one.v] for one in at]])
    width = 2 * size if np.shape(reference)[-1:] == (2 * size,) else size
    table = broadcast_commands("reference", reference, lanes, width)
    if width == size:
        table = np.concatenate([table, np.zeros_like(table)], axis=2)
    return table[:, np.minimum(np.arange(periods), table.shape[1] - 1)]


def integer_ratio(name: str, time: float, of: str, part: float) -> int:
    """time / part as a whole number; raises InvalidValue naming both when it is none."""
    part = check_float(f"{of} [s]", part, above=0)
    time = check_float(f"{name} [s]", time, lower=part)
    if time / part > MAX_PARTS:
        raise InvalidValue(f"{name} {time:g} s: at most {MAX_PARTS:g} times the {of} {part:g} s")
    count = round(time / part)
    if abs(count * part - time) > 1e-9 * time:
        raise InvalidValue(
            f"{name} {time:g} s is no whole multiple of {of} {part:g} s;"
            f" nearest allowed: {count * part:g} s"
        )
    return count


def control_rows(reference: Vector, late: float, noise: Vector | None) -> Vector:
    """Rows of ``Law.given``: reference, 0 at the first tick, 1 in the ``late`` part, noise."""
    periods = reference.shape[1]
    running, settled = np.ones(periods), np.zeros(periods)
    running[0], settled[periods - max(round(late * periods), 1) :] = 0.0, 1.0
    flags = np.stack([running, settled], axis=1)[None]
    lanes = len(reference) if noise is None else len(noise)
    parts = [reference, flags] if noise is None else [reference, flags, noise]
    return np.concatenate([np.broadcast_to(p, (lanes, *p.shape[1:])) for p in parts], axis=2)
