"""Lanes advanced by plants: any arm and any integrator, one lane after the other."""

from __future__ import annotations

from collections.abc import Mapping

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.plant import Plant
from arm_dynamics.rollout import variation
from arm_dynamics.rollout.inputs import Start
from arm_dynamics.rollout.lanes import SingleLanes
from arm_dynamics.state import Command, State


class PlantLanes(SingleLanes):
    """One ``Plant`` for all lanes, or one a lane where their arms differ."""

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
        self.dt, self.interface = dt, interface
        arms = [
            variation.lane_arm(arm, {name: values[lane] for name, values in varied.items()})
            for lane in range(self.size if varied else 1)
        ]
        self.plants = [Plant(one, method) for one in arms]

    def go(self, lane: int, told: Vector, steps: int) -> int:
        """As ``SingleLanes.go``."""
        state = State(0.0, *(frozen(x[lane]) for x in (self.q, self.v, self.effort, self.z)))
        command = Command(self.interface, frozen(told))
        plant, dt = self.plants[lane % len(self.plants)], float(self.dt[lane])
        try:
            after = plant.step(state, command, dt, steps)
        except InvalidValue:
            return self._lost(plant, state, command, dt)
        self.q[lane], self.v[lane], self.z[lane] = after.q, after.v, after.act
        self.effort[lane] = after.tau
        return -1

    def _lost(self, plant: Plant, state: State, command: Command, dt: float) -> int:
        """The step that could not be taken."""
        step = 1
        while True:
            try:
                state = plant.step(state, command, dt)
            except InvalidValue:
                return step
            step += 1
