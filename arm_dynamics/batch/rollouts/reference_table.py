"""Inputs of the control ticks of a batch: reference, flags and measurement noise by period."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from arm_dynamics.batch.rollouts.inputs import broadcast_commands
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.arrays import FloatArray, check_float, check_int
from arm_dynamics.core.errors import InvalidValue

MAX_PARTS = 2.0**53
"""Integers above are not all representable as a float."""


@dataclass(frozen=True)
class MeasurementNoise:
    """Normally distributed errors of the measured positions and velocities.

    Attributes
    ----------
    q, v : float
        Standard deviations [rad or m], [rad/s or m/s].
    seed : int
        Seed; the errors of a rollout do not depend on the batch size.

    """

    q: float = 0.0
    v: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_float("noise of q", self.q, lower=0)
        check_float("noise of v", self.v, lower=0)
        check_int("seed of the noise", self.seed)

    def table(self, batch: int, periods: int, size: int) -> FloatArray:
        """Return errors of [q, v] for ``size`` joints, shape (batch, periods, 2 size)."""
        scale = np.repeat([self.q, self.v], size)
        samples = [
            np.random.default_rng([self.seed, k]).normal(size=(periods, 2 * size))
            for k in range(batch)
        ]
        errors: FloatArray = np.array(samples) * scale
        return errors


def reference_table(
    reference: Any, batch: int, periods: int, size: int, period: float
) -> FloatArray:
    """Return the reference [q, v] of each period, shape (batch or 1, periods, 2 nv).

    Parameters
    ----------
    reference : JointTrajectory or ArrayLike
        A trajectory, or q or [q, v] as (nv,), (batch, nv), (periods, nv) or
        (batch, periods, nv). If there are fewer periods, the last one continues.
    batch, periods, size : int
        Number of rollouts, periods and joints.
    period : float
        Control period [s].

    Raises
    ------
    InvalidValue
        If the shape is another one.

    """
    if isinstance(reference, JointTrajectory):
        samples = [reference.at(k * period) for k in range(periods)]
        return np.array([[[*one.q, *one.v] for one in samples]])
    width = 2 * size if np.shape(reference)[-1:] == (2 * size,) else size
    table = broadcast_commands("reference", reference, batch, width)
    if width == size:
        table = np.concatenate([table, np.zeros_like(table)], axis=2)
    if table.shape[1] >= periods:
        return table[:, :periods]
    return table[:, np.minimum(np.arange(periods), table.shape[1] - 1)]


def integer_ratio(name: str, time: float, of: str, part: float) -> int:
    """Return time / part if it is an integer.

    Parameters
    ----------
    name, of : str
        Names of the times, for the message.
    time, part : float
        Times [s].

    Raises
    ------
    InvalidValue
        If the ratio is not an integer, or above MAX_PARTS.

    """
    part = check_float(f"{of} [s]", part, above=0)
    time = check_float(f"{name} [s]", time, above=0)
    if time < part:
        raise InvalidValue(f"{of} = {part:g} s; expected at most the {name} of {time:g} s")
    if time / part > MAX_PARTS:
        raise InvalidValue(
            f"{name} = {time:g} s; expected at most {MAX_PARTS:g} times the {of} of {part:g} s"
        )
    count = round(time / part)
    if abs(count * part - time) > 1e-9 * time:
        raise InvalidValue(
            f"{name} = {time:g} s; expected an integer multiple of the {of} of {part:g} s;"
            f" nearest: {count * part:g} s"
        )
    return count


def control_rows(reference: FloatArray, late: float, noise: FloatArray | None) -> FloatArray:
    """Return the rows of ``PidSpec.inputs`` by period: reference, running, late part, noise.

    Parameters
    ----------
    reference : FloatArray
        Reference [q, v], shape (batch or 1, periods, 2 nv).
    late : float
        Fraction of the time, at its end, in which the residual error is measured.
    noise : FloatArray or None
        Errors of [q, v], shape (batch, periods, 2 nv).

    """
    periods = reference.shape[1]
    running, settled = np.ones(periods), np.zeros(periods)
    running[0], settled[periods - max(round(late * periods), 1) :] = 0.0, 1.0
    flags = np.stack([running, settled], axis=1)[None]
    batch = len(reference) if noise is None else len(noise)
    parts = [reference, flags] if noise is None else [reference, flags, noise]
    return np.concatenate([np.broadcast_to(p, (batch, *p.shape[1:])) for p in parts], axis=2)
