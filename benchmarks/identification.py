"""Times of the identification of six joints, compared with a bare least-squares fit.

    python benchmarks/identification.py

One core: linear algebra has one thread. The recording is 50 s of an excitation trajectory of the
Puma 560 at 125 Hz: exact positions and efforts of the arm with an unmodeled payload, with noise of
0.1 mrad and 1 % of the efforts. The peer is ``numpy.linalg.lstsq`` of the stacked regressor that
``fit_torque`` receives, once. Repetitions of all steps but ``refine`` and ``excite`` are
interleaved; the table has medians. The peer of the output error is ``mujoco.sysid`` (the extra
``mujoco[sysid]``) with the same unknowns and start; each minimizer runs to its own end, the peer
for PEER_ITERATIONS at most. The motion is that of a simulated Puma 560 under a controller.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import TypeVar

import numpy as np
from tables import table
from threadpoolctl import threadpool_limits

from arm_dynamics import Plant, load_arm
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rnea
from arm_dynamics.identification import (
    excite,
    fit_torque,
    nominal_parameters,
    prepare_motion,
    regressor,
)
from arm_dynamics.identification.efforts.output_error_refinement import (
    STEPS,
    TOLERANCE,
    ParameterChart,
    output_error,
    refine,
    simulations_of,
    without_terms,
)
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording import MotionData

PLANNED, RECORDED, RATE = 40.0, 50.0, 125.0
"""Durations [s] of the planned and of the recorded motion, and sampling rate [Hz] of the latter."""
PAYLOAD = 2.0
"""Payload [kg] of the recorded arm."""
POSITION_NOISE, EFFORT_NOISE = 1e-4, 0.01
"""Standard deviations: position [rad]; effort relative to its rms."""
REPETITIONS = 5
PEER_ITERATIONS = 30
"""Steps after which ``mujoco.sysid`` is stopped."""
TARGET = 10.0
"""Largest time [s] of prepare_motion, fit_torque and refine together."""
SIMULATED, CONTROL_RATE = 20.0, 500.0
"""Duration [s] of the simulated motion for the output error, and rate [Hz] of its controller."""
T = TypeVar("T")


def recording(arm: ArmModel) -> MotionData:
    """Return the recording of the arm with its payload."""
    motion = excite(arm, RECORDED, seed=1, evaluations=200)
    times = np.arange(0, RECORDED, 1 / RATE)
    q, v, a = motion.sample(times)
    effort = regressor(arm, q, v, a) @ nominal_parameters(arm.with_payload(PAYLOAD))
    random = np.random.default_rng(0)
    scale = EFFORT_NOISE * np.sqrt(np.mean(effort**2, axis=0))
    return MotionData(
        arm.joint_names,
        as_readonly(times),
        as_readonly(q + POSITION_NOISE * random.normal(size=q.shape)),
        as_readonly(effort + scale * random.normal(size=q.shape)),
        "recording",
    )


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """Return the wall time [s] of a call, and its result."""
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def simulated(arm: ArmModel) -> MotionData:
    """Return a motion of the arm with its payload under computed torque, with noise."""
    motion, actual = excite(arm, SIMULATED, seed=1, evaluations=200), arm.with_payload(PAYLOAD)
    times = np.arange(1, int(SIMULATED * CONTROL_RATE)) / CONTROL_RATE
    q, v, a = motion.sample(times)
    plant, state, rows = Plant(actual), State.of(q[0], v[0]), []
    for k in range(times.size):
        desired = a[k] + 400.0 * (q[k] - state.q) + 40.0 * (v[k] - state.v)
        effort = rnea(actual, state.q, state.v, desired)
        command = Command.checked("effort", effort, arm.nv)
        state = plant.step(state, command, 1 / CONTROL_RATE / 4, 4)
        rows.append((state.q, state.tau))
    position, effort = (np.array(x)[::4] for x in zip(*rows, strict=True))
    random = np.random.default_rng(0)
    noise = EFFORT_NOISE * np.sqrt(np.mean(effort**2, axis=0))
    return MotionData(
        arm.joint_names,
        as_readonly(times[::4]),
        as_readonly(position + POSITION_NOISE * random.normal(size=position.shape)),
        as_readonly(effort + noise * random.normal(size=effort.shape)),
        "simulated",
    )


def compare_output_errors(arm: ArmModel) -> None:
    """Print times and costs of the output error here and by ``mujoco.sysid``."""
    data = simulated(arm)
    prepared = prepare_motion(arm, data)
    fit = fit_torque(arm, prepared.equations)
    prepared = without_terms(prepared, fit)
    simulations = simulations_of(arm, fit, [prepared.data], prepared.cutoff, prepared.delay)
    chart = ParameterChart(fit)
    problem, zero = output_error(chart, simulations), np.zeros(chart.size + 1)
    problem.minimum(zero, 1, TOLERANCE)  # compiles
    seconds, found = timed(partial(problem.minimum, zero, STEPS, TOLERANCE))
    count = len(found.costs) - 1
    print(f"\noutput error, {SIMULATED:g} s of motion, {chart.size} unknowns\n")
    with table("minimizers", "mujoco") as printed:
        printed.row("`OutputError`", f"{seconds:.3g}", count, *_costs(found.costs))
        try:
            import sysid_peer  # noqa: PLC0415
        except (ImportError, AttributeError) as error:
            printed.miss(f"mujoco.sysid: {error}; pip install 'mujoco[sysid]'")
            return
        with redirect_stdout(sys.stderr):  # its progress
            peer = sysid_peer.minimize(arm, simulations[0], chart, problem.weights, PEER_ITERATIONS)
        iterations = len(peer.costs) - 1
        steps = f"{iterations}, stopped" if peer.end else iterations
        printed.row("`mujoco.sysid`", f"{peer.seconds:.3g}", steps, *_costs(peer.costs))
    each = (peer.seconds / iterations) / (seconds / count)
    result = "met" if peer.seconds >= 50 * seconds else "not met"
    print(f"\nratio of the times: {peer.seconds / seconds:.3g}; target of at least 50 {result}")
    print(f"ratio of the times per step: {each:.3g}")
    print(f"costs of mujoco.sysid are those of its simulation{peer.end}")


def _costs(costs: Sequence[float]) -> tuple[str, str]:
    return f"{costs[0]:.4g}", f"{costs[-1]:.4g}"


@threadpool_limits.wrap(limits=1)
def main() -> None:
    """Print the times of each step and their ratios to the peer."""
    arm = load_arm("puma560")
    data = recording(arm)
    ideal = np.zeros(arm.nv, dtype=int)
    found: dict[str, list[float]] = {"lstsq": [], "prepare_motion": [], "fit_torque": []}
    for _ in range(REPETITIONS):
        seconds, prepared = timed(partial(prepare_motion, arm, data))
        found["prepare_motion"].append(seconds)
        equations = prepared.equations
        rows = equations.rows(ideal).reshape(equations.effort.size, -1)
        targets = equations.effort.ravel()
        seconds, _ = timed(partial(np.linalg.lstsq, rows, targets, rcond=None))
        found["lstsq"].append(seconds)
        seconds, fit = timed(partial(fit_torque, arm, equations))
        found["fit_torque"].append(seconds)
    times = {name: statistics.median(each) for name, each in found.items()}
    whole, _ = timed(partial(refine, arm, [prepared], fit))
    whole, _ = timed(partial(refine, arm, [prepared], fit))  # compiled
    both = times["prepare_motion"] + times["fit_torque"]
    planned, _ = timed(partial(excite, arm, PLANNED))
    print(f"{arm.name}: {arm.nv} joints, {RECORDED:g} s at {RATE:g} Hz; regressor {rows.shape}")
    with table("identification") as printed:
        for name, seconds in {
            "`numpy.linalg.lstsq` of the stacked regressor": times["lstsq"],
            "`prepare_motion`: filter, regressor, delay": times["prepare_motion"],
            "`fit_torque`: friction models, weights, consistency, deviations": times["fit_torque"],
            "`prepare_motion` and `fit_torque`": both,
            "`refine`: output error of simulated motions": whole,
            "`prepare_motion`, `fit_torque` and `refine`": both + whole,
            f"`excite`, {PLANNED:g} s": planned,
        }.items():
            printed.row(name, f"{seconds:.3g}", f"{seconds / times['lstsq']:.3g}")
    result = "met" if both + whole < TARGET else "not met"
    print(f"\nprepare_motion, fit_torque and refine: target of at most {TARGET:g} s {result}")
    compare_output_errors(arm)


if __name__ == "__main__":
    main()
