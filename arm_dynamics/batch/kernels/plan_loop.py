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
    first_sample: tuple[Matrix, Matrix, Matrix],
) -> None:
    """Write the cost of each sample, infinity for one that diverges.

    Parameters
    ----------
    program : IntArray
        Addresses of step, tick, score and terminal; lanes, steps per period and joints; first rows
        of v, knot, command, parameter and cost.
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
    first_sample : tuple
        Output: inputs (periods, nv), states (periods + 1, 2 nv + na) and commands (periods, nv) of
        lane 0 of the first block; empty for none.

    """
    step, tick, score, terminal, lanes, steps, n = program[:7]
    v, knot, command, parameter, cost = program[7:]
    delay, periods, size = pending.shape[0], taps[0].size, parameters.shape[1]
    sample_inputs, sample_states, sample_commands = first_sample
    for b in range(blocks.shape[0]):
        x = blocks[b]
        records = b == 0 and sample_states.shape[0] > 0
        fill(x, 0, start, lanes)
        x[cost * lanes : (cost + 1) * lanes] = 0.0
        for k in range(-delay, periods):
            if size and (k == -delay or parameters.shape[0] > 1):
                fill(x, parameter, parameters[k + delay], lanes)
            if k < 0:
                fill(x, command, pending[k + delay], lanes)
            else:
                write_inputs(x, k, knot, nominal, knots[b], taps)
                call_at(tick, x)
                if records:
                    sample_states[k] = x[: start.size * lanes : lanes]
                    sample_inputs[k] = x[knot * lanes : (knot + n) * lanes : lanes]
                    sample_commands[k] = x[command * lanes : (command + n) * lanes : lanes]
            for _ in range(steps):
                call_at(step, x)
            call_at(score, x)
        call_at(terminal, x)
        if records:
            sample_states[periods] = x[: start.size * lanes : lanes]
        for lane in range(lanes):
            total = x[cost * lanes + lane]
            for i in range(n):
                total += 0.0 * x[(v + i) * lanes + lane]
            costs[b * lanes + lane] = total if math.isfinite(total) else math.inf
