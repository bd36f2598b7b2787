"""A PID controller with its values for each rollout of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from arm_dynamics.batch.kernels.pid_spec import GAINS, PidSpec, controllers_by_rollout, python_tick
from arm_dynamics.batch.rollouts.closed_loop_stepper import ClosedLoopStepper
from arm_dynamics.batch.rollouts.inputs import InitialStates
from arm_dynamics.batch.rollouts.steppers import BatchStepper
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.dynamics.rigid_body import gravity


@dataclass(frozen=True, eq=False)
class PidLoop:
    """The structure of a PID controller, and what differs between rollouts.

    Attributes
    ----------
    spec : PidSpec
        Structure.
    gains : FloatArray
        Gains in the order of ``GAINS``, shape (batch, 6, nv).
    integral, filtered : Matrix
        Memory at the start, shape (batch, nv).
    direction : Matrix
        Sign of the first error, of which the opposite is overshoot; shape (batch, nv).
    period : Vector
        Control period [s], shape (batch,).

    """

    spec: PidSpec
    gains: FloatArray
    integral: Matrix
    filtered: Matrix
    direction: Matrix
    period: Vector

    def part(self, rollouts: Any) -> PidLoop:
        """Return the same for some rollouts."""
        arrays = (self.gains, self.integral, self.filtered, self.direction, self.period)
        return PidLoop(self.spec, *(x[rollouts] for x in arrays))

    def rows(self) -> dict[str, Matrix]:
        """Return the rows of a kernel that contains the controller, shape (batch, size)."""
        gains = {f"gains.{name}": self.gains[:, i] for i, name in enumerate(GAINS)}
        memory = {"integral": self.integral, "filtered": self.filtered}
        return {"period": self.period[:, None], **gains, **memory, "direction": self.direction}

    def wrap(self, stepper: BatchStepper) -> BatchStepper:
        """Return ``stepper`` under one controller in Python per rollout."""
        controllers = controllers_by_rollout(self.spec, self.gains, self.integral, self.filtered)
        tick = python_tick(controllers, self.spec.voltage)
        return ClosedLoopStepper(stepper, tick, self.period, self.direction, self.spec.delay)


def initial_memory(
    spec: PidSpec, gains: FloatArray, start: InitialStates, v: Matrix
) -> tuple[Matrix, Matrix]:
    """Return integral and filtered velocity (batch, nv) at the start, as ``Pid.reset`` sets them.

    Parameters
    ----------
    spec : PidSpec
        Structure of the controller.
    gains : FloatArray
        Gains in the order of ``GAINS``, shape (batch, 6, nv).
    start : InitialStates
        Initial states; where their efforts are known, the integral continues from them.
    v : Matrix
        Measured velocities, shape (batch, nv).

    """
    known = np.isfinite(start.effort) & (gains[:, 1] > 0)
    integral = start.effort + gains[:, 2] * v
    if spec.gravity and known.any():
        integral = integral - np.array([gravity(spec.arm, q) for q in start.q])
    clamp = gains[:, 3]
    return np.where(known, np.clip(integral, -clamp, clamp), 0.0), v.copy()
