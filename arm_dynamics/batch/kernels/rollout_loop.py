"""Periods of a block of rollouts: one compiled loop calls the functions of every kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core.types.function_type import CompileResultWAP

from arm_dynamics.batch.kernels.kernel_cache import stored
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector


def rollout_of(
    precision: str, functions: tuple[Any, ...], rows: tuple[int, ...]
) -> Callable[..., None]:
    """Return ``rollout`` of a kernel.

    Its functions are called by their addresses: a call of one compiled function by another would
    compile it a second time, and the loop once per kernel.

    Parameters
    ----------
    precision : str
        "float64" or "float32".
    functions : tuple
        Compiled ``step``, ``tick`` and ``score`` of a block; None if the kernel has no controller.
    rows : tuple of int
        Lanes, first input row, first row of v, number of joints.

    """

    @cache
    def program() -> IntArray:
        return np.array([*addresses(precision, functions), *rows])

    def rollout(
        x: Vector,
        inputs: Matrix,
        steps_per_command: int,
        record_every: int,
        count: int,
        recorded: IntArray,
        records: FloatArray,
        failed: IntArray,
    ) -> None:
        """Advance ``x`` by ``steps_per_command`` steps under each row of inputs (periods, size).

        records (n, recorded, lanes) takes the rows ``recorded`` of every ``record_every``-th state,
        ``count`` steps before this call; failed (lanes,) the step at which a lane diverged.
        """
        steps = steps_per_command, record_every, count
        advance(program(), x, inputs, steps, recorded, records, failed)

    return rollout


def addresses(precision: str, functions: tuple[Any, ...]) -> list[int]:
    """Return the addresses of compiled functions of a block; 0 for None."""
    signature = numba.types.boolean(numba.types.Array(getattr(numba.types, precision), 1, "C"))
    return [
        CompileResultWAP(function.get_compile_result(signature)).__wrapper_address__()
        if function
        else 0
        for function in functions
    ]


@numba.extending.intrinsic  # type: ignore[untyped-decorator]
def call_at(_: Any, address: Any, block: Any) -> Any:
    """Return the answer of the function of a block at an address."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        answer, argument = map(context.get_value_type, (signature.return_type, signature.args[1]))
        kind = ir.FunctionType(answer, [argument])
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), [values[1]])

    return numba.types.boolean(numba.types.int64, block), generate


@stored
def advance(
    program: IntArray,
    x: Vector,
    inputs: Matrix,
    steps: tuple[int, int, int],
    recorded: IntArray,
    records: FloatArray,
    failed: IntArray,
) -> None:
    """Execute ``rollout`` of the kernel with these addresses and rows."""
    step, tick, score, lanes, first, v, n = program
    steps_per_command, record_every, count = steps
    record = 0
    for k in range(inputs.shape[0]):
        for r in range(inputs.shape[1]):
            x[first * lanes + r] = inputs[k, r]
        if tick:
            call_at(tick, x)
        for _ in range(steps_per_command):
            diverged = call_at(step, x)
            count += 1
            if diverged:
                for lane in range(lanes):
                    finite = True
                    for i in range(n):
                        finite &= math.isfinite(x[(v + i) * lanes + lane])
                    if not finite and failed[lane] < 0:
                        failed[lane] = count
            if count % record_every == 0:
                for j in range(recorded.size):
                    for lane in range(lanes):
                        records[record, j, lane] = x[recorded[j] * lanes + lane]
                record += 1
        if score:
            call_at(score, x)
