"""A compiled step of one arm for a block of rollouts: generated once, checked, loaded, run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from arm_dynamics.batch.kernels.kernel_cache import (
    KernelOptions,
    cached_module,
    casadi_required,
    equations_fingerprint,
    fingerprint,
)
from arm_dynamics.batch.kernels.kernel_check import check_kernel
from arm_dynamics.batch.kernels.layout import Layout, ModuleSource, filled_block
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector
from arm_dynamics.model.arm_model import ArmModel


class Kernel:
    """Generated code that advances a block of rollouts, one flat array (rows, lanes)."""

    def __init__(self, arm: ArmModel, options: KernelOptions) -> None:
        """Load the kernel, or generate it and check it against plant and controller.

        Parameters
        ----------
        arm : ArmModel
            Arm. Arms whose equations differ only in the values of constants use the same
            compiled code.
        options : KernelOptions
            Integrator, interface, variations, precision, block size and controller.

        Raises
        ------
        KernelRejected
            If the kernel does not agree with plant or controller, see ``kernel_check``.
        ConfigError
            If CasADi is missing, and the kernel has to be generated or an actuator is a user's.
        InvalidValue
            If the arm or the options have no kernel.

        """
        self.arm, self.options = arm, options
        equations = equations_fingerprint(arm, options.interface, options.vary)
        key = fingerprint(arm, (*options.key, equations, *self._plan_key()))
        self._module = cached_module(
            key, self._source, lambda module: check_kernel(module, arm, options)
        )
        self.layout = Layout.of(self._module.LAYOUT)
        self.dtype = np.dtype(options.precision)

    def block(self, values: Mapping[str, FloatArray]) -> Vector:
        """Return a block (rows * lanes,): block name to (size,) or (lanes, size)."""
        return filled_block(
            self.layout, self.options.lanes, self.dtype, self._module.CONSTANTS, values
        )

    def rows(self, names: Sequence[str]) -> IntArray:
        """Return the indices of the rows of ``names``, in order."""
        blocks = [np.arange(*self.layout.block(name).indices(self.layout.rows)) for name in names]
        return np.concatenate([*blocks, np.empty(0, dtype=int)])

    def run(
        self,
        x: Vector,
        inputs: Matrix,
        steps_per_command: int,
        record_every: int,
        recorded_rows: IntArray,
        records: FloatArray,
        count: int = 0,
    ) -> IntArray:
        """Advance block ``x`` in place.

        Parameters
        ----------
        x : Vector
            Block (rows * lanes,).
        inputs : Matrix
            Input rows of each period, shape (periods, input rows * lanes).
        steps_per_command : int
            Time steps per period.
        record_every : int
            Every how many steps the state is recorded.
        recorded_rows : IntArray
            Rows to record.
        records : FloatArray
            Output, shape (records, recorded rows, lanes).
        count : int
            Steps taken before this call.

        Returns
        -------
        IntArray
            Step at which a lane diverged, or -1; shape (lanes,).

        """
        failed = np.full(self.options.lanes, -1)
        self._module.rollout(
            x, inputs, steps_per_command, record_every, count, recorded_rows, records, failed
        )
        return failed

    def step(self, x: Vector) -> bool:
        """Advance block ``x`` by one time step; return whether any lane diverged."""
        diverged: bool = self._module.step(x)
        return diverged

    def functions(self, *names: str) -> tuple[Any, ...]:
        """Return compiled functions of a block."""
        return tuple(getattr(self._module, name) for name in names)

    def _plan_key(self) -> tuple[str, ...]:
        """Return what a planning kernel depends on: its traced policy and cost."""
        if self.options.plan is None:
            return ()
        with casadi_required(f"planning kernel of arm '{self.arm.name}'"):
            from arm_dynamics.batch.kernels.plan_trace import plan_fingerprint  # noqa: PLC0415
        return (plan_fingerprint(self.arm, self.options.plan),)

    def _source(self) -> ModuleSource:
        """Return the module of the traced step, with a controller also tick and metrics."""
        arm, options = self.arm, self.options
        with casadi_required(f"kernel of arm '{arm.name}'"):
            from arm_dynamics.batch.kernels.kernel_source import module_source  # noqa: PLC0415
            from arm_dynamics.batch.kernels.plan_trace import trace_plan  # noqa: PLC0415
            from arm_dynamics.batch.kernels.step_trace import trace_pid, trace_step  # noqa: PLC0415
        trace = trace_step(
            arm, options.integrator, options.interface, options.vary, options.contacts
        )
        if options.pid is not None:
            trace = trace_pid(trace, options.pid)
        if options.plan is not None:
            trace = trace_plan(trace, arm, options.plan)
        title = f"{options.integrator}, {options.interface}, {options.precision}."
        return module_source(trace, title, options.lanes, options.precision)
