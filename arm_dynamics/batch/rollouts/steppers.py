"""Steppers: they advance the states of some rollouts, by a kernel or by plants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from arm_dynamics.batch import variation
from arm_dynamics.batch.kernels.tracking_metrics import METRICS
from arm_dynamics.batch.rollouts.inputs import InitialStates
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.plant import Plant

if TYPE_CHECKING:
    from arm_dynamics.batch.kernels.kernel import Kernel  # needs numba, which is optional

Records = Mapping[str, FloatArray]
"""Name of an output -> array (batch, records, size), to be filled from the front."""


class BatchStepper(ABC):
    """States of ``size`` rollouts after ``count`` steps; ``failed_step`` as in RolloutResult."""

    def __init__(self, size: int) -> None:
        self.size, self.count = size, 0
        self.failed_step = np.full(size, -1)

    @abstractmethod
    def advance(
        self, commands: FloatArray, steps_per_command: int, record_every: int, records: Records
    ) -> None:
        """Advance all rollouts in place.

        Parameters
        ----------
        commands : FloatArray
            Shape (batch or 1, periods, n).
        steps_per_command : int
            Time steps under each command.
        record_every : int
            States after a multiple of this number of steps are recorded.
        records : Mapping[str, FloatArray]
            Arrays to be filled.

        """

    @abstractmethod
    def state(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return q, v, actuator states and efforts, shape (batch, size) each."""

    def metrics(self) -> dict[str, Matrix]:
        """Return the metrics of a closed loop by name, shape (batch, nv); here none."""
        return {}


class KernelStepper(BatchStepper):
    """One block of a kernel; unused SIMD lanes repeat the last rollout and are ignored."""

    def __init__(
        self, kernel: Kernel, start: InitialStates, dt: Vector, varied: Mapping[str, Matrix]
    ) -> None:
        super().__init__(start.size)
        self.kernel = kernel
        rows = {"q": start.q, "v": start.v, "act": start.act, "dt": dt[:, None], **varied}
        lanes = np.minimum(np.arange(kernel.options.lanes), self.size - 1)
        self.x = kernel.block({name: values[lanes] for name, values in rows.items()})

    def advance(
        self, commands: FloatArray, steps_per_command: int, record_every: int, records: Records
    ) -> None:
        """As ``BatchStepper.advance``."""
        kernel, lanes = self.kernel, self.kernel.options.lanes
        periods, width = commands.shape[1:]
        inputs = np.empty((periods, width, lanes), kernel.dtype)
        inputs[..., : self.size] = commands.transpose(1, 2, 0)
        inputs[..., self.size :] = inputs[..., self.size - 1 : self.size]
        inputs = inputs.reshape(periods, -1)
        before, rows = self.count // record_every, kernel.rows(list(records))
        after = self.count + periods * steps_per_command
        recorded = np.empty((after // record_every - before, rows.size, lanes), kernel.dtype)
        failed = kernel.run(
            self.x, inputs, steps_per_command, record_every, rows, recorded, self.count
        )[: self.size]
        self.failed_step = np.where(self.failed_step < 0, failed, self.failed_step)
        self.count, first = after, 0
        for array in records.values():
            width = array.shape[2]
            array[:] = recorded[:, first : first + width, : self.size].transpose(2, 0, 1)
            first += width
            for k in np.flatnonzero(self.failed_step >= 0).tolist():
                array[k, max(-(-self.failed_step[k] // record_every) - 1 - before, 0) :] = np.nan

    def rows(self, name: str) -> Matrix:
        """Return a named block of rows, shape (batch, size); NaN for diverged rollouts."""
        x = self.x.reshape(self.kernel.layout.rows, -1)[self.kernel.layout.block(name)]
        values = np.array(x[:, : self.size].T, dtype=float)
        values[self.failed_step >= 0] = np.nan
        return values

    def state(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """As ``BatchStepper.state``."""
        return self.rows("q"), self.rows("v"), self.rows("act"), self.rows("effort")

    def metrics(self) -> dict[str, Matrix]:
        """As ``BatchStepper.metrics``."""
        return {name: self.rows(name) for name in METRICS if name in self.kernel.layout.sizes}


class PlantStepper(BatchStepper):
    """One ``Plant`` for all rollouts, or one per rollout where their arms differ."""

    def __init__(
        self,
        arm: ArmModel,
        integrator: str,
        interface: str,
        start: InitialStates,
        dt: Vector,
        varied: Mapping[str, Matrix],
    ) -> None:
        super().__init__(start.size)
        self.q, self.v, self.act = start.q.copy(), start.v.copy(), start.act.copy()
        self.effort = np.full_like(start.q, np.nan)
        self.dt, self.interface = dt, interface
        arms = [
            variation.rollout_arm(arm, {name: values[k] for name, values in varied.items()})
            for k in range(self.size if varied else 1)
        ]
        self.plants = [Plant(one, integrator) for one in arms]

    def advance(
        self, commands: FloatArray, steps_per_command: int, record_every: int, records: Records
    ) -> None:
        """As ``BatchStepper.advance``, one rollout after another."""
        commands = np.broadcast_to(commands, (self.size, *commands.shape[1:]))
        for k in range(self.size):
            self._advance_one(k, commands[k], steps_per_command, record_every, records)
        self.count += commands.shape[1] * steps_per_command

    def _advance_one(
        self, k: int, commands: Matrix, steps_per_command: int, record_every: int, records: Records
    ) -> None:
        state = {"q": self.q, "v": self.v, "act": self.act, "effort": self.effort}
        count, record = self.count, 0
        for command in commands:
            left = steps_per_command
            while left:
                steps = min(left, record_every - count % record_every)
                self._step_one(k, command, steps, count)
                count, left = count + steps, left - steps
                if count % record_every == 0:
                    for name, array in records.items():
                        array[k, record] = state[name][k]
                    record += 1

    def _step_one(self, k: int, value: Vector, steps: int, count: int) -> None:
        """Advance rollout k under one command; NaN from the step on at which it diverges."""
        if self.failed_step[k] >= 0:
            return
        rows = (self.q, self.v, self.effort, self.act)
        state = State(0.0, *(as_readonly(x[k]) for x in rows))
        command = Command(self.interface, as_readonly(value))
        plant, dt = self.plants[k % len(self.plants)], float(self.dt[k])
        try:
            after = plant.step(state, command, dt, steps)
        except InvalidValue:
            self.failed_step[k] = count + _first_failing_step(plant, state, command, dt)
            for x in rows:
                x[k] = np.nan
            return
        self.q[k], self.v[k], self.act[k], self.effort[k] = after.q, after.v, after.act, after.tau

    def state(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """As ``BatchStepper.state``."""
        return self.q, self.v, self.act, self.effort


def _first_failing_step(plant: Plant, state: State, command: Command, dt: float) -> int:
    """Return the number of the step at which the plant diverges."""
    step = 1
    while True:
        try:
            state = plant.step(state, command, dt)
        except InvalidValue:
            return step
        step += 1
