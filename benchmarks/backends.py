"""Rollout backends: preparation time and time per step for arms of 2 to 30 joints.

    XDG_CACHE_HOME=$(mktemp -d) python benchmarks/backends.py [JOINTS ...]

Serial chains of revolute joints with motors of unlimited supply, semi-implicit Euler, one core. The
preparation of "generated" is tracing, compilation and comparison with the plant, once per arm and
options; it needs CasADi. All times are processor times, so that other processes do not count.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from machine import machine

from arm_dynamics.batch import rollout
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import parse_arm

SIZES = (2, 6, 10, 15, 20, 30)
ROLLOUTS, STEPS, DT = 32, 1000, 1e-4
AXES = ("0 0 1", "0 1 0", "1 0 0")
JOINT = """<joint name="J{i}" type="revolute"><parent link="L{parent}"/><child link="L{i}"/>
<origin xyz="0 0 0.1" rpy="0.3 -0.2 0.1"/><axis xyz="{axis}"/>
<limit lower="-3" upper="3" effort="500" velocity="5"/>
<dynamics damping="0.1" friction="{friction}"/></joint>
<link name="L{i}"><inertial><origin xyz="0 0 0.05"/><mass value="1"/>
<inertia ixx="0.002" iyy="0.002" izz="0.0005" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def chain(joints: int, friction: float) -> ArmModel:
    """Return a serial chain with the given number of joints and joint friction [N·m]."""
    parts = (
        JOINT.format(i=i, parent=i - 1, axis=AXES[i % 3], friction=friction)
        for i in range(1, joints + 1)
    )
    tool = f'<link name="tool"/><joint name="tool" type="fixed"><parent link="L{joints}"/>'
    tool += '<child link="tool"/><origin xyz="0 0 0.1"/></joint>'
    return parse_arm(f'<robot name="chain"><link name="L0"/>{"".join(parts)}{tool}</robot>')


def run(arm: ArmModel, backend: str, steps: int) -> float:
    """Return the processor time [s] of a batch."""
    states = np.zeros((ROLLOUTS, 2 * arm.nv))
    states[:, : arm.nv] = 0.1
    start = time.process_time()
    rollout(
        arm, states, np.zeros(arm.nv), DT, interface="effort", steps_per_command=steps,
        outputs=(), backend=backend, threads=1,
    )  # fmt: skip
    return time.process_time() - start


def main() -> None:
    """Print one row for each size, without and with dry friction, and each backend."""
    print(f"{machine()}\n")
    print("| joints | dry friction | backend | preparation [s] | time per step [µs] |")
    print("|---|---|---|---|---|")
    run(chain(1, 0.0), "plant", 1)  # compile the functions common to all arms
    for joints in map(int, sys.argv[1:] or SIZES):
        for friction in (0.0, 0.1) if joints < 10 else (0.0,):
            arm = chain(joints, friction)
            for backend, steps in (("generated", STEPS), ("plant", STEPS // 10)):
                first = run(arm, backend, 1)
                best = min(run(arm, backend, steps) for _ in range(5)) / ROLLOUTS / steps
                dry = "yes" if friction else "no"
                print(f"| {joints} | {dry} | {backend} | {first:.1f} | {1e6 * best:.3g} |")


if __name__ == "__main__":
    main()
