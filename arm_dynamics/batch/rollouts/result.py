"""Result of a batch of rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from arm_dynamics.batch.kernels.free_object import BODY_ROWS
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, as_readonly, check_int
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.state import State
from arm_dynamics.model.arm_model import ArmModel

OUTPUTS = ("q", "v", "act", "effort", "tool_position", *BODY_ROWS)
"""Quantities that can be recorded: positions, velocities, actuator states, applied efforts, the
position of the tool frame in the base frame [m], and the rows of a free object."""


@dataclass(frozen=True, eq=False)
class RolloutResult:
    """Records of all rollouts; read-only.

    Attributes
    ----------
    arm : ArmModel
        Nominal arm.
    time : Matrix
        Time of each record since the start [s], shape (batch, records); without outputs one
        record, at the end.
    arrays : Mapping[str, FloatArray]
        Name of ``OUTPUTS`` to values, shape (batch, records, size). The effort of a record is
        that at the start of its last step.
    failed_step : IntArray
        Step at which the rollout diverged, or -1; shape (batch,). Later records are NaN.
    final_array : Matrix
        Last state [time, q, v, effort, act], shape (batch, 1 + 3 nv + na).
    backend : str
        Backend that computed the rollouts.
    metrics : Mapping[str, Matrix]
        Name of ``METRICS`` to values, shape (batch, nv); of closed loops only.

    """

    arm: ArmModel
    time: Matrix
    arrays: Mapping[str, FloatArray]
    failed_step: IntArray
    final_array: Matrix
    backend: str
    metrics: Mapping[str, Matrix] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make all arrays read-only."""
        fields = (self.time, self.failed_step, self.final_array)
        for array in (*fields, *self.arrays.values(), *self.metrics.values()):
            array.flags.writeable = False

    def __getitem__(self, name: str) -> FloatArray:
        """Return an output by name; raises UnknownName if it was not recorded."""
        if name not in self.arrays:
            raise UnknownName("recorded output", name, tuple(self.arrays))
        return self.arrays[name]

    def __len__(self) -> int:
        """Return the number of rollouts."""
        return len(self.failed_step)

    @property
    def q(self) -> FloatArray:
        """Positions [rad or m], shape (batch, records, nv)."""
        return self["q"]

    @property
    def v(self) -> FloatArray:
        """Velocities [rad/s or m/s], shape (batch, records, nv)."""
        return self["v"]

    @property
    def act(self) -> FloatArray:
        """Actuator states, shape (batch, records, na)."""
        return self["act"]

    @property
    def effort(self) -> FloatArray:
        """Applied efforts [N·m or N], shape (batch, records, nv)."""
        return self["effort"]

    @property
    def tool_position(self) -> FloatArray:
        """Positions of the tool frame in the base frame [m], shape (batch, records, 3)."""
        return self["tool_position"]

    def final_state(self, rollout: int) -> State:
        """Return the last state of a rollout, from which it can be continued.

        Raises
        ------
        InvalidValue
            If ``rollout`` is not an index of the batch.

        """
        size = len(self)
        if not -size <= check_int("rollout", rollout, lower=-size) < size:
            raise InvalidValue(f"rollout = {rollout}; expected at most {size - 1}")
        n = self.arm.nv
        row = self.final_array[rollout]
        time, q, v, effort, act = np.split(row, [1, 1 + n, 1 + 2 * n, 1 + 3 * n])
        return State(float(time[0]), *map(as_readonly, (q, v, effort, act)))

    @property
    def final_states(self) -> list[State]:
        """Last state of every rollout."""
        return [self.final_state(k) for k in range(len(self))]
