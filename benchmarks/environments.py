"""Gymnasium environments compared with rollouts, ``mujoco.rollout`` and CartPole of Gymnasium.

    pip install 'arm_dynamics[bench]' && python benchmarks/environments.py

so101, task Reach with voltages, control period 2 ms of one time step, random actions, one core. The
rollouts have the same commands and initial states. MuJoCo has the same arm with end stops, without
dry friction (``mjcf.py``). Rows are interleaved. The best repetition is reported, because load only
adds time. The last table is the deviation of the tool from that with many time steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import gymnasium
import mujoco
import numpy as np
from mjcf import mjcf
from mujoco import rollout as peer
from tables import table

from arm_dynamics import load_arm
from arm_dynamics.batch import rollout
from arm_dynamics.batch.environments import ArmVectorEnvironment

SIZE, PERIODS, EPISODE, PERIOD, REPETITIONS = 4096, 100, 1000, 0.002, 10
PEER_SIZE, FINE, SECONDS = 16, 20, 1.0


def environment(dtype: str, size: int = SIZE, **options: int) -> ArmVectorEnvironment:
    """Return environments after ``reset``."""
    env = ArmVectorEnvironment("Reach", "so101", size, dtype=dtype, interface="voltage", **options)
    env.reset(seed=0)
    return env


def stepped(env: gymnasium.vector.VectorEnv, actions: np.ndarray) -> Callable:
    """Return a call that takes a step under each row of actions."""
    return lambda: [env.step(action) for action in actions] and None


def rows() -> dict[str, tuple[int, Callable]]:
    """Return name → (steps per call, call)."""
    arm, env = load_arm("so101"), environment("float32")
    n, actions = arm.nv, np.random.default_rng(0).uniform(-1, 1, (PERIODS, SIZE, 6))
    starts = env.reset(seed=0)[0][:, : 2 * n].astype(float)
    commands = env.command_limit * actions.swapaxes(0, 1)

    def batch(precision: str) -> Callable:
        return lambda: rollout(
            arm, starts, commands, PERIOD, interface="voltage", outputs=(), precision=precision,
            threads=1,
        )  # fmt: skip

    model = mujoco.MjModel.from_xml_string(mjcf(arm, PERIOD, True))
    data, kind = mujoco.MjData(model), mujoco.mjtState.mjSTATE_FULLPHYSICS
    begin = np.zeros((PEER_SIZE, mujoco.mj_stateSize(model, kind)))
    begin[:, 1 : 1 + 2 * n] = starts[:PEER_SIZE]
    control = commands[:PEER_SIZE].copy()
    cart = gymnasium.make_vec("CartPole-v1", SIZE, "vector_entry_point")
    cart.reset(seed=0)
    pushes = np.random.default_rng(0).integers(0, 2, (PERIODS, SIZE))
    steps, narrow = SIZE * PERIODS, actions.astype("float32")
    episode = np.resize(narrow, (EPISODE, SIZE, n))
    ended = environment("float32", max_episode_steps=EPISODE - 1)
    return {
        "environments float32": (steps, stepped(env, narrow)),
        "environments float32, episode with reset": (EPISODE * SIZE, stepped(ended, episode)),
        "environments float64": (steps, stepped(environment("float64"), actions)),
        "`rollout` float32": (steps, batch("float32")),
        "`rollout` float64": (steps, batch("float64")),
        "`mujoco.rollout`": (
            PEER_SIZE * PERIODS, lambda: peer.rollout(model, data, begin, control)),
        "CartPole-v1 of Gymnasium": (steps, stepped(cart, pushes)),
    }  # fmt: skip


def deviation(time_steps: int) -> tuple[float, float]:
    """Return median and maximum deviation of the tool [m] after SECONDS from FINE time steps."""
    size, tools = 256, []
    actions = np.random.default_rng(1).uniform(-1, 1, (round(SECONDS / PERIOD) // 50, size, 6))
    for count in (time_steps, FINE):
        env = environment("float64", size, time_steps=count)
        for action in actions:
            for _ in range(50):  # a new action each 0.1 s
                observations = env.step(action)[0]
        tools.append(observations[:, 12:15])
    error = np.linalg.norm(tools[0] - tools[1], axis=1)
    return float(np.median(error)), float(error.max())


def main() -> None:
    """Print the tables."""
    calls = rows()
    best = dict.fromkeys(calls, np.inf)
    for repetition in range(REPETITIONS + 1):
        for name, (steps, call) in calls.items():
            start = time.perf_counter()
            call()
            if repetition:
                best[name] = min(best[name], (time.perf_counter() - start) / steps)
    with table("environments", "mujoco", "gymnasium") as printed:
        for name, seconds in best.items():
            numbers = (1e-6 / seconds, 1e9 * seconds, best["`mujoco.rollout`"] / seconds)
            printed.row(name, *(f"{number:.3g}" for number in numbers))
    print("\n| time steps | median deviation [mm] | maximum [mm] |\n|---|---|---|")
    for count in (1, 2, 4):
        print(f"| {count} | " + " | ".join(f"{1e3 * x:.3g}" for x in deviation(count)) + " |")


if __name__ == "__main__":
    main()
