"""Kernels, plant and Pinocchio compared with ``mujoco.rollout`` in the same run.

    pip install 'arm_dynamics[bench]' && python benchmarks/rollout.py

MuJoCo gets the same arm as MJCF (``mjcf.py``) without contacts, once with end stops like the
kernels and once without constraints. Its accelerations are first compared with Pinocchio's. Rows
are interleaved. The best repetition is reported, because load on the machine only adds time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import mujoco
import numpy as np
import pinocchio as pin
from arms import ARMS
from mjcf import mjcf
from mujoco import rollout as peer
from starts import print_starts
from tables import table

from arm_dynamics import Command, Plant, State
from arm_dynamics.batch import StepDerivative, rollout
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions
from arm_dynamics.model.arm_model import ArmModel

DT, ROLLOUTS, STEPS, REPETITIONS = 1e-4, 512, 4000, 15
PEER_ROLLOUTS, PEER_STEPS, CALLS = 8, 400, 2000


def acceleration_error(arm: ArmModel, model: mujoco.MjModel, interface: str) -> float:
    """Return the maximum error of q̈ relative to max |q̈| of random states, plant as reference."""
    random, data, worst = np.random.default_rng(0), mujoco.MjData(model), 0.0
    plant = Plant(arm, "explicit_euler")
    lower, upper = np.maximum(arm.lower, -3.0), np.minimum(arm.upper, 3.0)
    for _ in range(100):
        q, v, value = random.uniform(lower, upper), *random.normal(size=(2, arm.nv))
        data.qpos, data.qvel, data.ctrl = q, v, value
        mujoco.mj_forward(model, data)
        efforts = plant.efforts(State.of(q, v), Command.checked(interface, value, arm.nv))
        a = pin.aba(arm.model, arm.model.createData(), q, v, efforts.applied + efforts.viscous)
        worst = max(worst, np.abs(data.qacc - a).max() / np.abs(a).max())
    return worst


def rows(arm: ArmModel, interface: str) -> dict[str, tuple[int, Callable]]:
    """Return name → (steps per call, call)."""
    n, q = arm.nv, np.array(arm.configuration("initial"))
    state, command = State.of(q, [0.1] * n), Command.checked(interface, [0.2] * n, n)
    data, tau, v = arm.model.createData(), np.zeros(n), np.full(n, 0.1)
    plant, single = Plant(arm), Kernel(arm, KernelOptions(interface=interface, lanes=1))
    x = single.block({"q": q, "v": v, "command": command.value, "dt": np.array([DT])})
    step_derivative, y = StepDerivative(arm, interface=interface), np.concatenate([q, v])
    starts = np.concatenate(
        [q + 0.1 * np.random.default_rng(0).normal(size=(ROLLOUTS, n)), np.zeros((ROLLOUTS, n))],
        axis=1,
    )

    def batch(precision: str, threads: int) -> Callable:
        return lambda: rollout(
            arm, starts, command.value, DT, interface=interface, steps_per_command=STEPS,
            outputs=(),
            precision=precision, threads=threads,
        )  # fmt: skip

    def repeated(call: Callable) -> Callable:
        return lambda: [call() for _ in range(CALLS)] and None

    def simulated(steps: int) -> Callable:
        def call() -> None:
            now = state
            for _ in range(CALLS // steps):
                now = plant.step(now, command, DT, steps)

        return call

    def other(stops: bool) -> Callable:
        model = mujoco.MjModel.from_xml_string(mjcf(arm, DT, stops))
        mj, kind = mujoco.MjData(model), mujoco.mjtState.mjSTATE_FULLPHYSICS
        begin = np.zeros((PEER_ROLLOUTS, mujoco.mj_stateSize(model, kind)))
        begin[:, 1 : 1 + n] = starts[:PEER_ROLLOUTS, :n]
        control = np.full((PEER_ROLLOUTS, PEER_STEPS, n), 0.2)
        return lambda: peer.rollout(model, mj, begin, control)

    return {
        "`pin.aba` only, from Python": (
            CALLS, repeated(lambda: pin.aba(arm.model, data, q, v, tau))),
        "`Plant.step`, one step per call": (CALLS, simulated(1)),
        "`Plant.step`, 20 steps per call": (CALLS, simulated(20)),
        "`pin.computeABADerivatives`, from Python": (
            CALLS, repeated(lambda: pin.computeABADerivatives(arm.model, data, q, v, tau))),
        "next state with A and B, one per Python call": (
            CALLS, repeated(lambda: step_derivative.step(y, command.value, DT))),
        "kernel, one step per Python call": (CALLS, repeated(lambda: single.step(x))),
        "`rollout` float64, one core": (ROLLOUTS * STEPS, batch("float64", 1)),
        "`rollout` float32, one core": (ROLLOUTS * STEPS, batch("float32", 1)),
        "`rollout` float64, two cores": (ROLLOUTS * STEPS, batch("float64", 2)),
        "`mujoco.rollout`, one core": (PEER_ROLLOUTS * PEER_STEPS, other(True)),
        "`mujoco.rollout`, one core, no end stops": (PEER_ROLLOUTS * PEER_STEPS, other(False)),
    }  # fmt: skip


def measure(name: str) -> dict[str, tuple[float, float]]:
    """Return million steps per second and their ratio to ``mujoco.rollout`` by call."""
    load, interface = ARMS[name]
    arm = load()
    model = mujoco.MjModel.from_xml_string(mjcf(arm, DT, False))
    error = acceleration_error(arm, model, interface)
    calls = rows(arm, interface)
    best = dict.fromkeys(calls, np.inf)
    for call in (call for _, call in calls.values()):
        call()
    for _ in range(REPETITIONS):
        for row, (steps, call) in calls.items():
            start = time.perf_counter()
            call()
            best[row] = min(best[row], (time.perf_counter() - start) / steps)
    print(f"{arm.name}: MuJoCo's accelerations differ by {error:.1e} of the largest", flush=True)
    other = best["`mujoco.rollout`, one core"]
    return {row: (1e-6 / seconds, other / seconds) for row, seconds in best.items()}


def main() -> None:
    """Print the tables."""
    found = [measure(name) for name in ARMS]
    with table("rollouts", "mujoco") as printed:
        for row in found[0]:
            printed.row(row, *(f"{number:.3g}" for each in found for number in each[row]))
    print_starts()


if __name__ == "__main__":
    main()
