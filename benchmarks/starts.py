"""Time to generate and to load kernels, each in a separate process.

``rollout.py`` prints the table. ``python benchmarks/starts.py NAME stages`` is one such process: it
prints the duration of its stages without imports. Compiled code is cached in XDG_CACHE_HOME.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from arms import ARMS
from tables import table

from arm_dynamics import Command, Plant, State
from arm_dynamics.batch import StepDerivative, rollout
from arm_dynamics.model.model_error import with_model_error

WHOLE = "whole process: imports, `load_arm`, first step"


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


def first_step(name: str) -> None:
    """Load an arm and take one step."""
    arm = ARMS[name][0]()
    command = Command(ARMS[name][1], np.zeros(arm.nv))
    Plant(arm).step(State.of(np.zeros(arm.nv)), command, dt=1e-3)


def print_starts() -> None:
    """Print the times of all stages without and with cached code, one process each."""
    times = []
    for name in ARMS:
        with tempfile.TemporaryDirectory() as process, tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                whole = _seconds(partial(_child, name, process, "first_step"))
                times.append({WHOLE: whole, **_child(name, folder, "stages")})
    with table("starts") as printed:
        for stage in times[0]:
            printed.row(stage, *(f"{each[stage]:.2f}" for each in times))


def _child(name: str, folder: str, function: str) -> dict[str, float]:
    environment = {**os.environ, "XDG_CACHE_HOME": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    output = subprocess.check_output([sys.executable, __file__, name, function], env=environment)
    found: dict[str, float] = json.loads(output)
    return found


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps({"stages": stages, "first_step": first_step}[sys.argv[2]](sys.argv[1])))
