"""Time to generate and to load kernels, each in a separate process.

``rollout.py`` prints the table. ``python benchmarks/starts.py NAME`` is one such process: it prints
the duration of its stages without imports. Compiled code is cached in XDG_CACHE_HOME.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from arms import ARMS
from tables import table

from arm_dynamics import Plant
from arm_dynamics.batch import StepDerivative, rollout
from arm_dynamics.model.model_error import with_model_error


def stages(name: str) -> dict[str, float]:
    """Return the duration [s] of each stage in this process."""
    load, interface = ARMS[name]
    arm = load()
    other, n = with_model_error(arm, mass=5.0), arm.nv
    batch = {"dt": 1e-4, "interface": interface, "outputs": (), "threads": 1}
    batch["steps_per_command"] = 10
    calls: dict[str, Callable[[], object]] = {
        "first `Plant`, for all arms": lambda: Plant(arm),
        "`rollout` float64, first call": lambda: rollout(
            arm, np.zeros((8, 2 * n)), np.zeros(n), **batch
        ),
        "the same with other masses": lambda: rollout(
            other, np.zeros((8, 2 * n)), np.zeros(n), **batch
        ),
        "next state with A and B": lambda: StepDerivative(arm, interface=interface),
    }
    return {stage: _seconds(call) for stage, call in calls.items()}


def print_starts() -> None:
    """Print the times of all stages without and with cached code, one process each."""
    times = []
    for name in ARMS:
        with tempfile.TemporaryDirectory() as folder:
            times += [_child(name, folder), _child(name, folder)]
    with table("starts") as printed:
        for stage in times[0]:
            printed.row(stage, *(f"{each[stage]:.2f}" for each in times))


def _child(name: str, folder: str) -> dict[str, float]:
    environment = {**os.environ, "XDG_CACHE_HOME": folder}
    output = subprocess.check_output([sys.executable, __file__, name], env=environment)
    found: dict[str, float] = json.loads(output)
    return found


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps(stages(sys.argv[1])))
