"""Errors of identified arms, compared with their stated deviations: table of docs/benchmarks.md.

    python benchmarks/identified_deviations.py [ARM ...] [--runs 200] [--seconds 30]

Each arm has hidden parameters near those of its description. It follows an excitation trajectory
under computed torque, sampled at 500 Hz. Positions have noise of 1e-4 rad and 16 bits per turn;
efforts have noise of 1 % and are 5 ms late. A run draws the noise, and the first of RUNS_PER_ARM
runs the hidden parameters and simulates the arm. Held-out efforts are those of another excitation
trajectory, without noise. Times are those of the processor.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from machine import machine
from threadpoolctl import threadpool_limits

from arm_dynamics import Plant, load_arm
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rnea
from arm_dynamics.identification import (
    Excitation,
    Identification,
    excite,
    identify,
    nominal_parameters,
    with_parameters,
)
from arm_dynamics.identification.parameters.pseudo_inertia import (
    consistent_prior,
    from_log_cholesky,
    log_cholesky_parameters,
    pseudo_inertia,
)
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording import MotionData

ARMS = (
    "two_link",
    "two_link_pb",
    "three_link",
    "four_joint",
    "five_dof",
    "so101",
    "puma560",
    "seven_dof_can",
)
PERIOD, SUBSTEPS = 2e-3, 4
"""Sampling period [s], and time steps of the simulation in it."""
POSITION_NOISE, EFFORT_NOISE, DELAY, BITS = 1e-4, 0.01, 0.005, 16
"""Standard deviations of position [rad] and effort (relative to its rms), delay of the effort [s],
bits per turn."""
RUNS_PER_ARM = 10
BODIES, TERMS = np.array([0.15, 0.1, 0.1, 0.1, *(0.01,) * 6]), 0.3
"""Standard deviation of hidden log-Cholesky parameters; largest change of friction and armature."""
MAX_SIGMAS = 3.0
EVALUATIONS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Result of a run: errors and deviations (nb,) of the base parameters, and the columns."""

    error: Vector
    deviation: Vector
    held_out: float
    eigenvalue: float
    seconds: float
    note: str

    @property
    def inside(self) -> float:
        """Fraction of the base parameters within MAX_SIGMAS of their deviations."""
        return float(np.mean(np.abs(self.error) < MAX_SIGMAS * self.deviation))


def hidden_arm(arm: ArmModel, random: np.random.Generator) -> ArmModel:
    """Return the arm with random bodies, rotor inertia and friction near the description's."""
    nv, values = arm.nv, np.array(nominal_parameters(arm))
    bodies = consistent_prior(values[: 10 * nv].reshape(nv, 10))
    values[: 10 * nv] = np.concatenate(
        [
            from_log_cholesky(log_cholesky_parameters(b) + BODIES * random.normal(size=10))
            for b in bodies
        ]
    )
    values[10 * nv : 13 * nv] *= random.uniform(1 - TERMS, 1 + TERMS, 3 * nv)
    return with_parameters(arm, values)


def simulated(actual: ArmModel, motion: Excitation) -> MotionData:
    """Return the motion of an arm under computed torque, with late efforts, without noise."""
    times: Vector = PERIOD * np.arange(int(motion.duration / PERIOD), dtype=float)
    q, v, a = motion.sample(times)
    viscous, coulomb = nominal_parameters(actual)[11 * actual.nv : 13 * actual.nv].reshape(2, -1)
    friction = viscous * v + coulomb * np.sign(v)
    plant, state, rows = Plant(actual), State.of(q[0], v[0]), []
    for k in range(times.size):
        desired = a[k] + 400.0 * (q[k] - state.q) + 40.0 * (v[k] - state.v)
        effort = rnea(actual, state.q, state.v, desired) + friction[k]
        command = Command.checked("effort", effort, actual.nv)
        state = plant.step(state, command, PERIOD / SUBSTEPS, SUBSTEPS)
        rows.append((state.q, state.tau))
    position, effort = (np.array(x) for x in zip(*rows, strict=True))
    return MotionData(actual.joint_names, times + PERIOD, position, late(effort), "exact")


def late(effort: Matrix) -> Matrix:
    """Return efforts (n, nv) that are DELAY late."""
    whole, part = divmod(DELAY / PERIOD, 1.0)
    padded = np.vstack((np.repeat(effort[:1], int(whole) + 1, axis=0), effort))
    moved = part * padded[:-1] + (1 - part) * padded[1:]
    return moved[: len(effort)]


def measured(exact: MotionData, random: np.random.Generator) -> MotionData:
    """Return a motion with noise and quantized positions."""
    assert exact.effort is not None
    bit, shape = 2 * np.pi / 2**BITS, exact.q.shape
    q = bit * np.round((exact.q + POSITION_NOISE * random.normal(size=shape)) / bit)
    scale = EFFORT_NOISE * np.sqrt(np.mean(exact.effort**2, axis=0))
    effort = exact.effort + scale * random.normal(size=shape)
    return replace(exact, q=q, effort=effort, source="recording")


def runs(arm: ArmModel, count: int, seconds: float) -> Iterator[Run]:
    """Yield the results of identifications with independent noise."""
    motions = [
        excite(arm, length, seed=seed, evaluations=EVALUATIONS)
        for length, seed in ((seconds, 1), (seconds / 2, 2))
    ]
    for k in range(count):
        random = np.random.default_rng(k)
        if k % RUNS_PER_ARM == 0:
            actual = hidden_arm(arm, random)
            fitted, held_out = (simulated(actual, motion) for motion in motions)
        recorded = measured(fitted, random)
        begin = time.process_time()
        result = identify(arm, [recorded], [held_out])
        yield evaluated(result, nominal_parameters(actual), time.process_time() - begin)


def evaluated(result: Identification, true: Vector, seconds: float) -> Run:
    """Return the errors of a result by the true parameters (14 nv,)."""
    fit = result.fit
    bodies = fit.parameters[: 10 * result.arm.nv].reshape(-1, 10)
    return Run(
        fit.base.values(fit.parameters - true),
        fit.base_deviation,
        float(result.after.relative_error.max()),
        min(float(np.linalg.eigvalsh(pseudo_inertia(body))[0]) for body in bodies),
        seconds,
        result.notes[-1],
    )


def row(name: str, found: list[Run]) -> str:
    """Return a row of the table."""
    relative = np.array([run.error / run.deviation for run in found])
    ratio = np.sqrt(np.mean(relative**2, axis=0))
    each = [run.inside for run in found]
    return (
        f"| `{name}` | {len(found)} | {relative.shape[1]} | {100 * np.mean(each):.2f} |"
        f" {100 * np.min(each):.1f} | {np.median(ratio):.2f} | {ratio.max():.2f} |"
        f" {100 * max(run.held_out for run in found):.2f} |"
        f" {min(run.eigenvalue for run in found):.1e} |"
        f" {np.mean([run.seconds for run in found[1:] or found]):.2f} |"
    )


@threadpool_limits.wrap(limits=1)
def main() -> None:
    """Print a row for each arm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arms", nargs="*", metavar="ARM", default=ARMS)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0, help="duration of the motion [s]")
    options = parser.parse_args()
    print(machine(), "\n")
    print(
        "| arm | runs | base parameters | within 3 deviations [%] | least of a run [%] |"
        " median error / deviation | largest | largest held-out error [%] |"
        " smallest eigenvalue | processor time of a run [s] |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.arms:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # collisions at the start
            found = list(runs(load_arm(name), options.runs, options.seconds))
        print(row(name, found), flush=True)


if __name__ == "__main__":
    main()
