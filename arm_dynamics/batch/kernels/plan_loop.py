"""Costs of many command sequences: one compiled loop for all planning kernels."""

from __future__ import annotations

import math

from arm_dynamics.batch.kernels.kernel_cache import stored
from arm_dynamics.batch.kernels.rollout_loop import call_at
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector


@stored
def fill(x: Vector, row: int, values: Vector, lanes: int) -> None:
    """Write ``values`` to consecutive rows of a block, the same for all lanes."""
    for r in range(values.size):
        for lane in range(lanes):
            x[(row + r) * lanes + lane] = values[r]


@stored
def copy_rows(x: Vector, row: int, out: Matrix) -> None:
    """Copy consecutive rows of a block."""
    rows, lanes = out.shape
    for r in range(rows):
        for lane in range(lanes):
            out[r, lane] = x[(row + r) * lanes + lane]


@stored
def write_inputs(
    x: Vector,
    k: int,
    knot: int,
    nominal: tuple[Matrix, Matrix, FloatArray],
    knots: FloatArray,
    taps: tuple[IntArray, Matrix],
) -> None:
    """Write the inputs of period k to the rows from ``knot`` on."""
    inputs, states, gains = nominal
    n, lanes, (first, weights) = knots.shape[1], knots.shape[2], taps
    at, w = first[k], weights[k]
    for j in range(n):
        row = (knot + j) * lanes
        for lane in range(lanes):
            x[row + lane] = (
                inputs[k, j]
                + w[0] * knots[at, j, lane]
                + w[1] * knots[at + 1, j, lane]
                + w[2] * knots[at + 2, j, lane]
                + w[3] * knots[at + 3, j, lane]
            )
        for i in range(2 * n if gains.shape[0] else 0):
            gain, desired = gains[k, j, i], states[k, i]
            for lane in range(lanes):
                x[row + lane] += gain * (desired - x[i * lanes + lane])


@stored
def evaluate(
    program: IntArray,
    blocks: Matrix,
    start: Vector,
    pending: Matrix,
    nominal: tuple[Matrix, Matrix, FloatArray],
    knots: FloatArray,
    taps: tuple[IntArray, Matrix],
    parameters: Matrix,
    costs: Vector,
    record: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    """Write the cost of each sample, infinity for one that diverges.

    Parameters
    ----------
    program : IntArray
        Addresses of step, tick, score and terminal; lanes, steps per period, those of them that
        tick takes, and joints; first rows of v, knot, command, parameter and cost.
    blocks : Matrix
        Blocks of the kernel, shape (blocks, rows * lanes), overwritten.
    start : Vector
        First rows, q, v and act, of all samples.
    pending : Matrix
        Commands already sent, of the first periods, shape (delay, nv).
    nominal : tuple
        Inputs (periods, nv) of the periods after the pending ones, states (periods, 2 nv) and gains
        (periods or 0, nv, 2 nv).
    knots : FloatArray
        Changes of the nominal inputs, shape (blocks, knots, nv, lanes).
    taps : tuple
        First knot (periods,) and weights (periods, 4): the input of period k is
        u_k + Σ_m weights[k, m] knots[first[k] + m] + K_k (x_k - (q, v)).
    parameters : Matrix
        Parameters of the cost, shape (1 or delay + periods, size).
    costs : Vector
        Output, shape (blocks * lanes,).
    record : tuple
        Output: inputs (periods, nv, lanes), states (periods + 1, 2 nv + na, lanes) and commands
        (periods, nv, lanes) of the first block; empty for none.

    """
    step, tick, score, terminal, lanes, steps, begun, n = program[:8]
    v, knot, command, parameter, cost = program[8:]
    delay, periods, size = pending.shape[0], taps[0].size, parameters.shape[1]
    inputs, states, commands = record
    for b in range(blocks.shape[0]):
        x = blocks[b]
        records = b == 0 and states.shape[0] > 0
        fill(x, 0, start, lanes)
        x[cost * lanes : (cost + 1) * lanes] = 0.0
        for k in range(-delay, periods):
            if size and (k == -delay or parameters.shape[0] > 1):
                fill(x, parameter, parameters[k + delay], lanes)
            if k < 0:
                fill(x, command, pending[k + delay], lanes)
            else:
                write_inputs(x, k, knot, nominal, knots[b], taps)
                if records:
                    copy_rows(x, 0, states[k])
                    copy_rows(x, knot, inputs[k])
                call_at(tick, x)
                if records:
                    copy_rows(x, command, commands[k])
            for _ in range(steps if k < 0 else steps - begun):
                call_at(step, x)
            call_at(score, x)
        call_at(terminal, x)
        if records:
            copy_rows(x, 0, states[periods])
        for lane in range(lanes):
            total = x[cost * lanes + lane]
            for i in range(n):
                total += 0.0 * x[(v + i) * lanes + lane]
            costs[b * lanes + lane] = total if math.isfinite(total) else math.inf
