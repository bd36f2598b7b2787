"""Inverse kinematics compared with ``ik_LM`` (C++) of the Robotics Toolbox in the same run.

    pip install 'arm_dynamics[bench]' && python benchmarks/inverse_kinematics.py

Both solvers get the same chains, limits, targets, initial guesses and tolerances. Targets are poses
of random configurations within the limits. The initial guess is random; a warm start is at most
0.01 rad from a solution. Calls are interleaved, so that load on the machine affects both equally.
Other processes change the median little, but the mean.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np
from arms import panda, ur5
from roboticstoolbox import ET, ETS
from tables import table

from arm_dynamics import load_arm, nearest_reachable
from arm_dynamics.core.arrays import Vector
from arm_dynamics.dynamics.kinematics.chain import chain_of
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.dynamics.kinematics.inverse_kinematics import sampling_ranges
from arm_dynamics.model.arm_model import ArmModel

POSES, WARM = 1000, 0.01
TOLERANCES = (1e-9, 1e-3)
"""Convergence tolerances [m, rad]: default of this package, about the default of the toolbox."""
CASES = ("up to 101 starts", "1 start", "warm start")
SOLVERS = ("toolbox", "arm_dynamics")


@dataclass
class Row:
    """Times [s] and number of reached poses of one solver in one case."""

    times: list[float] = field(default_factory=list)
    reached: int = 0

    def measure(
        self, call: Callable[[], tuple[Vector, bool]], holds: Callable[[Vector], bool]
    ) -> None:
        """Measure one call; it succeeds if its configuration also satisfies ``holds``."""
        begin = time.perf_counter()
        q, success = call()
        self.times.append(time.perf_counter() - begin)
        self.reached += success and holds(q)


def toolbox_chain(arm: ArmModel) -> ETS:
    """Return the chain to the tool as elementary transforms of the toolbox, with limits."""
    chain = chain_of(arm, None)
    lower, upper = sampling_ranges(arm, np.zeros(arm.nv))
    parts = []
    for i, numbers in enumerate(chain.placements):
        placement = np.eye(4)
        placement[:3, :3], placement[:3, 3] = numbers[:9].reshape(3, 3).T, numbers[9:]
        parts.append(ET.SE3(placement))
        if i < arm.nv:
            moves = ET.tz if chain.slides[i] else ET.Rz
            parts.append(moves(jindex=i, qlim=np.array([lower[i], upper[i]])))
    return ETS(parts)


def measure(arm: ArmModel, tolerance: float) -> dict[tuple[str, str], Row]:
    """Return the rows by case and solver."""
    peer, random = toolbox_chain(arm), np.random.default_rng(1)
    lower, upper = sampling_ranges(arm, np.zeros(arm.nv))
    rows = {(case, solver): Row() for case in CASES for solver in SOLVERS}
    for _ in range(POSES):
        solution, start = random.uniform(lower, upper, (2, arm.nv))
        near = np.clip(solution + random.uniform(-WARM, WARM, arm.nv), lower, upper)
        position, rotation = pose(arm, solution)
        target = np.eye(4)
        target[:3, :3], target[:3, 3] = rotation, position
        holds = partial(is_solution, arm, target, tolerance)
        for case in CASES:
            first, more = near if case == CASES[2] else start, 100 * (case == CASES[0])
            rows[case, "toolbox"].measure(
                partial(by_toolbox, peer, target, first, tolerance, more), holds
            )
            rows[case, "arm_dynamics"].measure(
                partial(by_arm_dynamics, arm, position, rotation, first, tolerance, more), holds
            )
    return rows


def by_toolbox(
    peer: ETS, target: Vector, start: Vector, tolerance: float, restarts: int
) -> tuple[Vector, bool]:
    """Solve with the toolbox: its residual is |e|² / 2, its search limit includes the first."""
    found = peer.ik_LM(target, start, tol=tolerance**2 / 2, slimit=restarts + 1)
    return found.q, found.success


def by_arm_dynamics(
    arm: ArmModel,
    position: Vector,
    rotation: Vector,
    start: Vector,
    tolerance: float,
    restarts: int,
) -> tuple[Vector, bool]:
    """Solve with the public function of this package."""
    found = nearest_reachable(
        arm, position, rotation, initial_guess=start, tolerance=tolerance, restarts=restarts
    )
    return found.q, max(found.position_error, found.orientation_error) <= tolerance


def is_solution(arm: ArmModel, target: Vector, tolerance: float, q: Vector) -> bool:
    """Return whether q is within the limits and its pose is the target."""
    position, rotation = pose(arm, q)
    off = max(np.abs(position - target[:3, 3]).max(), np.abs(rotation - target[:3, :3]).max())
    lower, upper = sampling_ranges(arm, np.zeros(arm.nv))
    return bool(off < 2 * tolerance and (lower <= q).all() and (q <= upper).all())


def main() -> None:
    """Print success rates and mean and median times."""
    arms = {"Panda": panda(), "UR5": ur5(), "Puma 560": load_arm("puma560")}
    begin = time.perf_counter()
    nearest_reachable(arms["Panda"], (0.3, 0.0, 0.4))
    print(f"first call of the process: {time.perf_counter() - begin:.2f} s")
    with table("inverse kinematics", "roboticstoolbox-python") as printed:
        for (name, arm), tolerance in product(arms.items(), TOLERANCES):
            rows = measure(arm, tolerance)
            for case in CASES:
                both = [rows[case, solver] for solver in SOLVERS]
                middle = [statistics.median(row.times) for row in both]
                mean = [statistics.mean(row.times) for row in both]
                printed.row(
                    name, case, f"{tolerance:g}", *(f"{row.reached / POSES:.1%}" for row in both),
                    *(f"{1e6 * t:.0f}, {1e6 * m:.0f}" for t, m in zip(mean, middle, strict=True)),
                    f"{middle[1] / middle[0]:.2f}",
                )  # fmt: skip


if __name__ == "__main__":
    main()
