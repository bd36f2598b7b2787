"""The planning kernel: costs of many command sequences about a nominal motion, from one state."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from arm_dynamics.batch.kernels.free_object import BODY_ROWS
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions
from arm_dynamics.batch.kernels.layout import aligned_zeros
from arm_dynamics.batch.kernels.plan_loop import evaluate
from arm_dynamics.batch.kernels.plan_spec import PlanSpec
from arm_dynamics.batch.kernels.rollout_loop import addresses
from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.knots import KnotSpline
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, check_int
from arm_dynamics.model.arm_model import ArmModel

BLOCK = 32
"""Samples side by side."""


class PlanningKernel:
    """Costs of ``samples`` input sequences u_k + δ_k + K_k (x_k - x); all memory is made once.

    u, x, K are the nominal inputs, states and gains, δ the spline of a sample's knots.

    Parameters
    ----------
    arm : ArmModel
        The model of the predictions.
    spec : PlanSpec
        Policy and cost.
    horizon : Horizon
        Times.
    spline : KnotSpline
        Interpolation of the knots over the horizon.
    samples : int
        Number of sequences, rounded up to a multiple of ``BLOCK``.
    precision : str
        "float64" or "float32".
    threads : int
        Threads that evaluate the blocks of samples.

    Attributes
    ----------
    knots : FloatArray
        Knots of all samples, shape (blocks, padded knots, nv, BLOCK), to be written.
    inputs, states, gains, commands : FloatArray
        Nominal motion: (periods, nv), (periods + 1, 2 nv + na), (periods, nv, 2 nv) and
        (periods, nv) for the periods after the delay; commands are those of the policy. States have
        18 more columns with a free object, as ``BODY_ROWS``.

    """

    def __init__(
        self,
        arm: ArmModel,
        spec: PlanSpec,
        horizon: Horizon,
        spline: KnotSpline,
        samples: int,
        *,
        precision: str = "float64",
        threads: int = 1,
    ) -> None:
        blocks = -(-check_int("samples", samples, lower=1) // BLOCK)
        threads = min(check_int("threads", threads, lower=1), blocks)
        options = KernelOptions(
            interface=spec.interface, precision=precision, lanes=BLOCK, plan=spec,
            contacts=spec.contacts(arm),
        )  # fmt: skip
        kernel = Kernel(arm, options)
        self.samples, dtype, first = blocks * BLOCK, kernel.dtype, kernel.layout.first
        block = kernel.block({"dt": np.array([horizon.dt])})
        self._blocks = aligned_zeros(blocks * block.size, dtype).reshape(blocks, -1)
        self._blocks[:] = block
        functions = kernel.functions("step", "tick", "score", "terminal")
        self._program = np.array([
            *addresses(precision, functions), BLOCK, horizon.steps, arm.nv,
            *(first[name] for name in ("v", "knot", "command", "parameter", "cost")),
        ])  # fmt: skip
        periods, n = horizon.free_periods, arm.nv
        at, weights = spline.taps(np.arange(periods) / max(periods - 1, 1))
        self._taps = at, weights.astype(dtype)
        self.knots = np.zeros((blocks, spline.padded, n, BLOCK), dtype)
        self._costs = np.empty(self.samples, dtype)
        size = 2 * n + arm.na + (0 if spec.body is None else sum(BODY_ROWS.values()))
        self._start = np.empty(size, dtype)
        self.pending = np.zeros((horizon.delay, n), dtype)
        self.parameters = np.empty((1, spec.cost.size), dtype)
        self.inputs = np.zeros((periods, n), dtype)
        self.states = np.zeros((periods + 1, size), dtype)
        self.gains = np.zeros((periods, n, 2 * n), dtype)
        self.commands = np.zeros((periods, n), dtype)
        motion = self.inputs, self.states, self.commands
        self._recorded = tuple(np.empty_like(rows) for rows in motion)
        self._unrecorded = tuple(np.empty((0, rows.shape[1]), dtype) for rows in motion)
        self._no_gains = np.empty((0, n, 2 * n), dtype)
        self._bound = spec.bound(arm)
        self.feedback = False
        parts = np.array_split(np.arange(blocks), threads)
        self._parts = [slice(int(part[0]), int(part[-1]) + 1) for part in parts]
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def start_from(self, start: Vector, parameters: Matrix, pending: Matrix) -> None:
        """Set the state of all samples (q, v, act, body), parameters and pending commands."""
        self._start[:], self.pending[:] = start, pending
        if self.parameters.shape != parameters.shape:
            self.parameters = np.empty(parameters.shape, self._start.dtype)
        self.parameters[:] = parameters

    def costs(self) -> Vector:
        """Return the cost of each sample (samples,), infinity where it diverges.

        The result is overwritten by the next call.
        """
        if self._pool is None:
            self._evaluate(slice(None), self._unrecorded)
        else:
            list(self._pool.map(lambda part: self._evaluate(part, self._unrecorded), self._parts))
        return self._costs

    def follow_first(self) -> float:
        """Make sample 0 the nominal motion; return its cost, infinity if it diverges."""
        inputs, states, commands = self._recorded
        self._evaluate(slice(0, 1), self._recorded)
        if np.isfinite(cost := float(self._costs[0])):
            np.clip(inputs, -self._bound, self._bound, out=self.inputs)
            self.states[:], self.commands[:] = states, commands
        return cost

    def first_motion(self) -> Matrix:
        """Return the states (periods + 1, 2 nv + na) of sample 0 without a change of the inputs."""
        self.knots[0, :, :, 0] = 0.0
        self._evaluate(slice(0, 1), self._recorded)
        return self._recorded[1]

    def _evaluate(self, part: slice, record: tuple[Matrix, ...]) -> None:
        gains: FloatArray = self.gains if self.feedback else self._no_gains
        evaluate(
            self._program, self._blocks[part], self._start, self.pending,
            (self.inputs, self.states, gains), self.knots[part], self._taps, self.parameters,
            self._costs.reshape(-1, BLOCK)[part].reshape(-1), record,
        )  # fmt: skip
