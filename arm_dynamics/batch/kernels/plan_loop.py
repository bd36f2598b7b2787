"""Costs of many command sequences: one compiled loop for all planning kernels."""

from __future__ import annotations

import math

from arm_dynamics.batch.kernels.kernel_cache import stored
from arm_dynamics.batch.kernels.rollout_loop import call_at
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector


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
    inputs, states, gains = nominal
    first, weights = taps
    sample_inputs, sample_states, sample_commands = first_sample
    delay, periods = pending.shape[0], first.size
    for b in range(blocks.shape[0]):
        x = blocks[b]
        records = b == 0 and sample_states.shape[0] > 0
        for r in range(start.size):
            for lane in range(lanes):
                x[r * lanes + lane] = start[r]
        for lane in range(lanes):
            x[cost * lanes + lane] = 0.0
        for k in range(-delay, periods):
            if k == -delay or parameters.shape[0] > 1:
                for r in range(parameters.shape[1]):
                    for lane in range(lanes):
                        x[(parameter + r) * lanes + lane] = parameters[k + delay, r]
            if k < 0:
                for j in range(n):
                    for lane in range(lanes):
                        x[(command + j) * lanes + lane] = pending[k + delay, j]
            else:
                at = first[k]
                w0, w1, w2, w3 = weights[k, 0], weights[k, 1], weights[k, 2], weights[k, 3]
                for j in range(n):
                    row = (knot + j) * lanes
                    for lane in range(lanes):
                        x[row + lane] = (
                            inputs[k, j]
                            + w0 * knots[b, at, j, lane]
                            + w1 * knots[b, at + 1, j, lane]
                            + w2 * knots[b, at + 2, j, lane]
                            + w3 * knots[b, at + 3, j, lane]
                        )
                    if gains.shape[0] > 0:
                        for i in range(2 * n):
                            gain, desired = gains[k, j, i], states[k, i]
                            for lane in range(lanes):
                                x[row + lane] += gain * (desired - x[i * lanes + lane])
                call_at(tick, x)
                if records:
                    for j in range(n):
                        sample_inputs[k, j] = x[(knot + j) * lanes]
                        sample_commands[k, j] = x[(command + j) * lanes]
                    for i in range(start.size):
                        sample_states[k, i] = x[i * lanes]
            for _ in range(steps):
                call_at(step, x)
            call_at(score, x)
        call_at(terminal, x)
        if records:
            for i in range(start.size):
                sample_states[periods, i] = x[i * lanes]
        for lane in range(lanes):
            total = x[cost * lanes + lane]
            for i in range(n):
                total += 0.0 * x[(v + i) * lanes + lane]
            costs[b * lanes + lane] = total if math.isfinite(total) else math.inf
