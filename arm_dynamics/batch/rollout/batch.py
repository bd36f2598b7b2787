"""The result of a rollout: arrays (lane, record, size), and who was lost when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly, check_int
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.state import State
from arm_dynamics.model.arm_model import ArmModel

OUTPUTS = ("q", "v", "act", "effort", "tool_position")
"""What may be recorded: positions, velocities, actuators' own states, actuators' efforts, and
where the tool's frame is in the base's [m]."""


@dataclass(frozen=True, eq=False)
class RolloutResult:
    """Records of every lane at ``time`` (lane, record) [s] since the start.

    arrays: name of ``OUTPUTS`` → (lane, record, size); effort is the one that a record's last
    step began with. failed (lanes,): number of the step at which a lane left the finite numbers
    (its records from there on are NaN), -1 for none. metrics: name → (lane, nv), of closed loops.
    backend is what computed it. Without outputs the one ``time`` is that of the end.
    """

    arm: ArmModel
    time: Vector
    arrays: Mapping[str, Vector]
    failed_step: Vector
    final_array: Vector
    """Last state [time, q, v, effort, own states] of each lane (lanes, 1 + 3 nv + na)."""
    backend: str
    metrics: Mapping[str, Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """From here on nobody changes what was found."""
        own = (
            self.time,
            self.failed_step,
            self.final_array,
            *self.arrays.values(),
            *self.metrics.values(),
        )
        for array in own:
            array.flags.writeable = False

    def __getitem__(self, name: str) -> Vector:
        """An output by name; raises UnknownName for one that was not asked for."""
        if name not in self.arrays:
            raise UnknownName("recorded output", name, tuple(self.arrays))
        return self.arrays[name]

    def __len__(self) -> int:
        """Number of lanes."""
        return len(self.failed_step)

    @property
    def q(self) -> Vector:
        """Positions (lane, record, nv)."""
        return self["q"]

    @property
    def v(self) -> Vector:
        """Velocities (lane, record, nv)."""
        return self["v"]

    @property
    def act(self) -> Vector:
        """Actuators' own states (lane, record, na)."""
        return self["act"]

    @property
    def effort(self) -> Vector:
        """Actuators' efforts (lane, record, nv)."""
        return self["effort"]

    def final_state(self, lane: int) -> State:
        """The last state of a lane, to go on from; raises InvalidValue for one there is not."""
        if not -len(self) <= check_int("lane", lane, lower=-len(self)) < len(self):
            raise InvalidValue(f"lane = {lane}: at most {len(self) - 1}, the last of {len(self)}")
        n = self.arm.nv
        time, q, v, effort, act = np.split(self.final_array[lane], [1, 1 + n, 1 + 2 * n, 1 + 3 * n])
        return State(
            float(time[0]), as_readonly(q), as_readonly(v), as_readonly(effort), as_readonly(act)
        )

    @property
    def tool_position(self) -> Vector:
        """Positions of the tool's frame in the base's (lane, record, 3) [m]."""
        return self["tool_position"]

    @property
    def final_states(self) -> list[State]:
        """The last state of every lane."""
        return [self.final_state(lane) for lane in range(len(self))]
