"""Control periods of many environments: one compiled loop over their blocks."""

from __future__ import annotations

from arm_dynamics.batch.kernels.kernel_cache import stored
from arm_dynamics.batch.kernels.rollout_loop import call_at
from arm_dynamics.core.arrays import IntArray, Matrix, Vector


@stored
def advance_environments(
    program: IntArray,
    x: Matrix,
    y: Matrix,
    actions: Matrix,
    gain: Vector,
    observations: Matrix,
    rewards: Vector,
) -> bool:
    """Advance all environments by a control period; return whether any diverged.

    command = gain clip(action, -1, 1). ``program`` has the addresses of ``step`` and ``evaluate``,
    the number of lanes, the time steps, the first rows of command and effort in ``x`` and of the
    observation in ``y``, which the reward follows. Both kinds of blocks (blocks, rows * lanes)
    start with q, v, act and command; in ``y`` effort and action follow. Environment e of block b
    is row b * lanes + e of the other arrays.
    """
    step, evaluate, lanes, time_steps, command, effort, first = program
    n, size, diverged = actions.shape[1], observations.shape[1], False
    for b in range(x.shape[0]):
        start = b * lanes
        for i in range(n):
            for lane in range(lanes):
                action = min(max(actions[start + lane, i], -1), 1)
                y[b, (command + 2 * n + i) * lanes + lane] = action
                x[b, (command + i) * lanes + lane] = gain[i] * action
        for _ in range(time_steps):
            diverged |= call_at(step, x[b])
        for r in range((command + n) * lanes):
            y[b, r] = x[b, r]
        for r in range(n * lanes):
            y[b, (command + n) * lanes + r] = x[b, effort * lanes + r]
        call_at(evaluate, y[b])
        for lane in range(lanes):
            for j in range(size):
                observations[start + lane, j] = y[b, (first + j) * lanes + lane]
            rewards[start + lane] = y[b, (first + size) * lanes + lane]
    return diverged
