"""Lanes advanced by the compiled step of any tree: no code has to be made for an arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from arm_dynamics import joint_physics as row
from arm_dynamics.arrays import Vector
from arm_dynamics.bodies import bodies
from arm_dynamics.integrators import integrator
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.own_states import compiled_states, update_groups
from arm_dynamics.rollout import variation
from arm_dynamics.rollout.inputs import Start
from arm_dynamics.rollout.lanes import SingleLanes
from arm_dynamics.rollout.tree_step import steps_of
from arm_dynamics.tree import Tree, tree


class TreeLanes(SingleLanes):
    """One table of bodies and joints for all lanes, or one a lane where their arms differ."""

    def __init__(
        self,
        arm: ArmModel,
        method: str,
        interface: str,
        start: Start,
        dt: Vector,
        varied: Mapping[str, Vector],
    ) -> None:
        super().__init__(start)
        self.dt, self.late = dt, integrator(method).late_force
        self.slots, self.groups = _slots(arm)
        lanes = range(self.size if varied else 1)
        picked = [{name: values[lane] for name, values in varied.items()} for lane in lanes]
        self.arms = [_Tables(variation.lane_arm(arm, one), interface) for one in picked]

    def go(self, lane: int, told: Vector, steps: int) -> int:
        """As ``SingleLanes.go``."""
        own = self.arms[lane % len(self.arms)]
        own.rows[row.COMMAND] = told
        lost: int = steps_of(
            own.tree, own.rows, self.slots, self.groups, self.late, own.rubs, own.rubs_inside,
            self.q[lane], self.v[lane], self.z[lane], float(self.dt[lane]), steps,
        )  # fmt: skip
        self.effort[lane] = own.rows[row.EFFORT]
        return lost


class _Tables:
    """What the compiled step needs of an arm."""

    def __init__(self, arm: ArmModel, interface: str) -> None:
        self.tree: Tree = tree(bodies(arm), arm.gravity)
        self.rows: Any = row.pack(arm.joints, arm.actuators)
        self.rows[row.BY_VOLTAGE] = [a.taken(interface) == "voltage" for a in arm.actuators]
        self.rubs = any(
            j.friction > 0 or a.rubs for j, a in zip(arm.joints, arm.actuators, strict=True)
        )
        self.rubs_inside = any(a.rubs_inside for a in arm.actuators)


def _slots(arm: ArmModel) -> tuple[Any, int]:
    """Row, joint and group (3, na) of every own state; number of groups."""
    kept, (slots, joints) = compiled_states(arm)
    groups, table = update_groups(arm), np.zeros((3, arm.na), dtype=np.int64)
    table[0, kept], table[1, kept] = slots, joints
    for number, group in enumerate(groups):
        table[2, group] = number
    return table, len(groups)
