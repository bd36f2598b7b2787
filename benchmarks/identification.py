"""Times of the identification of six joints, compared with a bare least-squares fit.

    python benchmarks/identification.py

One core: linear algebra has one thread. The recording is 50 s of an excitation trajectory of the
Puma 560 at 125 Hz: exact positions and efforts of the arm with an unmodeled payload, with noise of
0.1 mrad and 1 % of the efforts. The peer is ``numpy.linalg.lstsq`` of the stacked regressor that
``fit_torque`` receives, once. Repetitions of all steps but ``excite`` are interleaved; the table
has medians.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
from machine import machine
from threadpoolctl import threadpool_limits

from arm_dynamics import load_arm
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.identification import (
    MotionData,
    excite,
    fit_torque,
    nominal_parameters,
    prepare_motion,
    regressor,
)
from arm_dynamics.model.arm_model import ArmModel

PLANNED, RECORDED, RATE = 40.0, 50.0, 125.0
"""Durations [s] of the planned and of the recorded motion, and sampling rate [Hz] of the latter."""
PAYLOAD = 2.0
"""Payload [kg] of the recorded arm."""
POSITION_NOISE, EFFORT_NOISE = 1e-4, 0.01
"""Standard deviations: position [rad]; effort relative to its rms."""
REPETITIONS = 5
TARGET = 10.0
"""Largest time [s] of prepare_motion and fit_torque together."""
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
        found["fit_torque"].append(timed(partial(fit_torque, arm, equations))[0])
    times = {name: statistics.median(each) for name, each in found.items()}
    both = times["prepare_motion"] + times["fit_torque"]
    planned, _ = timed(partial(excite, arm, PLANNED))
    print(machine())
    print(f"{arm.name}: {arm.nv} joints, {RECORDED:g} s at {RATE:g} Hz; regressor {rows.shape}\n")
    print("| step | time [s] | ratio to lstsq |")
    print("|---|---|---|")
    for name, seconds in (
        ("`numpy.linalg.lstsq` of the stacked regressor", times["lstsq"]),
        ("`prepare_motion`", times["prepare_motion"]),
        ("`fit_torque`", times["fit_torque"]),
        ("`prepare_motion` and `fit_torque`", both),
        (f"`excite`, {PLANNED:g} s", planned),
    ):
        print(f"| {name} | {seconds:.3g} | {seconds / times['lstsq']:.3g} |")
    result = "met" if both < TARGET else "not met"
    print(f"\nprepare_motion and fit_torque: target of at most {TARGET:g} s {result}")


if __name__ == "__main__":
    main()
