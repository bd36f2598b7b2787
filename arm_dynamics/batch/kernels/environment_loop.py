"""Control periods of many environments: one compiled loop over their blocks."""

from __future__ import annotations

from arm_dynamics.batch.kernels.kernel_cache import stored
from arm_dynamics.batch.kernels.rollout_loop import call_block
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
    the number of lanes, the first row of the command, the first row of the observation (the reward
    follows it) and the time steps. Both kinds of blocks (blocks, rows * lanes) start with q and v;
    in ``y`` the action follows. Environment e of block b is row b * lanes + e of the other arrays.
    """
    step, evaluate, lanes, command, first, time_steps = program
    n, size, diverged = actions.shape[1], observations.shape[1], False
    for b in range(x.shape[0]):
        start = b * lanes
        for i in range(n):
            for lane in range(lanes):
                action = min(max(actions[start + lane, i], -1), 1)
                y[b, (2 * n + i) * lanes + lane] = action
                x[b, (command + i) * lanes + lane] = gain[i] * action
        for _ in range(time_steps):
            diverged |= call_block(step, x[b])
        for r in range(2 * n * lanes):
            y[b, r] = x[b, r]
        call_block(evaluate, y[b])
        for lane in range(lanes):
            for j in range(size):
                observations[start + lane, j] = y[b, (first + j) * lanes + lane]
            rewards[start + lane] = y[b, (first + size) * lanes + lane]
    return diverged
