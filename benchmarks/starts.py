"""How long kernels take to be made, and to be loaded: each in a process of its own.

``rollout.py`` prints the table. ``python benchmarks/starts.py NAME`` is one such process: it
prints the seconds of its stages, imports apart. What was compiled lies in XDG_CACHE_HOME.
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

from arm_dynamics import Plant
from arm_dynamics.batch import StepDerivative, rollout


def stages(name: str) -> dict[str, float]:
    """Seconds of each stage in this process."""
    load, interface = ARMS[name]
    arm = load()
    n = arm.nv
    batch = {"dt": 1e-4, "interface": interface, "every": 10, "outputs": (), "threads": 1}
    calls: dict[str, Callable[[], object]] = {
        "laws, with the first Plant": lambda: Plant(arm),
        "rollout f64, its first call": lambda: rollout(
            arm, np.zeros((8, 2 * n)), np.zeros(n), **batch
        ),
        "step + A + B": lambda: StepDerivative(arm, interface=interface),
    }
    return {stage: _seconds(call) for stage, call in calls.items()}


def table(name: str) -> str:
    """Stages that make everything anew, and that find it made; one process each."""
    with tempfile.TemporaryDirectory() as folder:
        made, found = _child(name, folder), _child(name, folder)
    rows = [f"| {stage} | {made[stage]:.2f} | {found[stage]:.2f} |" for stage in made]
    head = "| made once for an arm | generate + compile, s | from the cache, s |\n|---|---|---|"
    return "\n".join([head, *rows])


def _child(name: str, folder: str) -> dict[str, float]:
    environment = {**os.environ, "XDG_CACHE_HOME": folder}
    said = subprocess.check_output([sys.executable, __file__, name], env=environment)
    found: dict[str, float] = json.loads(said)
    return found


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps(stages(sys.argv[1])))
