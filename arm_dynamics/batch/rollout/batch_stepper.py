"""Some lanes of a batch on their way: the seam of every backend.

Lanes advanced by a generated kernel: a block of them side by side.

Lanes advanced by plants: any arm and any integrator, one lane after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from arm_dynamics.batch.rollout import variation
from arm_dynamics.batch.rollout.inputs import InitialStates
from arm_dynamics.batch.rollout.tracking_metrics import METRICS
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.plant import Plant

if TYPE_CHECKING:
    from arm_dynamics.batch.rollout.kernel import Kernel

Out = Mapping[str, Vector]
"""Name of an output → array (lane, record, size) to be filled from the front."""


class BatchStepper(ABC):
    """States q, v, z and efforts of ``size`` lanes after ``count`` steps; failed as in Batch."""

    def __init__(self, size: int) -> None:
        self.size, self.count = size, 0
        self.failed = np.full(size, -1)

    @abstractmethod
    def advance(self, given: Vector, every: int, stride: int, out: Out) -> None:
        """``every`` steps under each entry of ``given`` (lanes or 1, periods, n), in place.

        States after a number of steps that ``stride`` divides go to ``out``.
        """

    @abstractmethod
    def state(self) -> tuple[Vector, Vector, Vector, Vector]:
        """q, v, z and effort as they are now, (lane, size) each."""

    def metrics(self) -> dict[str, Vector]:
        """Name → (lane, nv) of what a closed loop adds up; nothing here."""
        return {}


class SequentialStepper(BatchStepper):
    """Lanes that are advanced one after the other."""

    def __init__(self, start: InitialStates) -> None:
        super().__init__(start.lanes)
        self.q, self.v, self.z = start.q.copy(), start.v.copy(), start.z.copy()
        self.effort = np.full_like(start.q, np.nan)

    @abstractmethod
    def step_one(self, lane: int, told: Vector, steps: int) -> int:
        """Advance a lane in place under one command; the step at which it was lost, or -1."""

    def advance(self, given: Vector, every: int, stride: int, out: Out) -> None:
        """As ``BatchStepper.advance``."""
        given = np.broadcast_to(given, (self.size, *given.shape[1:]))
        for lane in range(self.size):
            self._advance_lane(lane, given[lane], every, stride, out)
        self.count += given.shape[1] * every

    def _advance_lane(self, lane: int, given: Vector, every: int, stride: int, out: Out) -> None:
        count, record = self.count, 0
        for told in given:
            left = every
            while left:
                steps = min(left, stride - count % stride)
                self._go(lane, told, steps, count)
                count, left = count + steps, left - steps
                if count % stride == 0:
                    self._note(lane, record, out)
                    record += 1

    def _go(self, lane: int, told: Vector, steps: int, count: int) -> None:
        if self.failed[lane] >= 0:
            return
        lost = self.step_one(lane, told, steps)
        if lost >= 0:
            self.failed[lane] = count + lost
            self.q[lane] = self.v[lane] = self.z[lane] = self.effort[lane] = np.nan

    def _note(self, lane: int, record: int, out: Out) -> None:
        now = {"q": self.q, "v": self.v, "act": self.z, "effort": self.effort}
        for name, array in out.items():
            array[lane, record] = now[name][lane]

    def state(self) -> tuple[Vector, Vector, Vector, Vector]:
        """As ``BatchStepper.state``."""
        return self.q, self.v, self.z, self.effort


ROWS = {"q": "q", "v": "v", "act": "z", "effort": "effort"}
"""Output → rows of the kernel."""


class KernelStepper(BatchStepper):
    """One block of ``kernel``; lanes beyond ``start`` repeat its last and are not shown."""

    def __init__(
        self, kernel: Kernel, start: InitialStates, dt: Vector, varied: Mapping[str, Vector]
    ) -> None:
        super().__init__(start.lanes)
        self.kernel = kernel
        blocks = {"q": start.q, "v": start.v, "z": start.z, "dt": dt[:, None], **varied}
        self.x = kernel.block({name: self._padded(values) for name, values in blocks.items()})

    def advance(self, given: Vector, every: int, stride: int, out: Out) -> None:
        """As ``BatchStepper.advance``."""
        kernel, lanes = self.kernel, self.kernel.options.lanes
        given = np.broadcast_to(given, (self.size, *given.shape[1:]))
        flat = np.ascontiguousarray(
            self._padded(given).transpose(1, 2, 0), dtype=kernel.dtype
        ).reshape(given.shape[1], -1)
        after = self.count + given.shape[1] * every
        rows = kernel.rows([ROWS[name] for name in out])
        record = np.empty((after // stride - self.count // stride, rows.size, lanes), kernel.dtype)
        failed = kernel.run(self.x, flat, every, stride, rows, record, self.count)[: self.size]
        self.failed = np.where(self.failed < 0, failed, self.failed)
        first, before = 0, self.count // stride
        self.count = after
        for array in out.values():
            width = array.shape[2]
            array[:] = record[:, first : first + width, : self.size].transpose(2, 0, 1)
            first += width
            for lane in np.flatnonzero(self.failed >= 0).tolist():
                array[lane, max(-(-self.failed[lane] // stride) - 1 - before, 0) :] = np.nan

    def rows(self, name: str) -> Vector:
        """A named block of rows, (lane, size)."""
        rows = self.x.reshape(self.kernel.layout.rows, -1)[self.kernel.layout.block(name)]
        found = np.array(rows[:, : self.size].T, dtype=float)
        found[self.failed >= 0] = np.nan
        return found

    def state(self) -> tuple[Vector, Vector, Vector, Vector]:
        """As ``BatchStepper.state``."""
        return self.rows("q"), self.rows("v"), self.rows("z"), self.rows("effort")

    def metrics(self) -> dict[str, Vector]:
        """As ``BatchStepper.metrics``."""
        return {name: self.rows(name) for name in METRICS if name in self.kernel.layout.sizes}

    def _padded(self, values: Vector) -> Vector:
        missing = self.kernel.options.lanes - self.size
        return np.concatenate([values, np.repeat(values[-1:], missing, axis=0)])


class PlantStepper(SequentialStepper):
    """One ``Plant`` for all lanes, or one a lane where their arms differ."""

    def __init__(
        self,
        arm: ArmModel,
        integrator: str,
        interface: str,
        start: InitialStates,
        dt: Vector,
        varied: Mapping[str, Vector],
    ) -> None:
        super().__init__(start)
        self.dt, self.interface = dt, interface
        arms = [
            variation.rollout_arm(arm, {name: values[lane] for name, values in varied.items()})
            for lane in range(self.size if varied else 1)
        ]
        self.plants = [Plant(one, integrator) for one in arms]

    def step_one(self, lane: int, told: Vector, steps: int) -> int:
        """As ``SequentialStepper.step_one``."""
        state = State(0.0, *(as_readonly(x[lane]) for x in (self.q, self.v, self.effort, self.z)))
        command = Command(self.interface, as_readonly(told))
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
