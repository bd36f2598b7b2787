"""Vector instructions of a kernel's time step, and its time next to that of its multiplications.

    pip install 'arm_dynamics[bench]' && python benchmarks/operations.py

The instructions are those of the machine code: one pass of its loop advances the rollouts of one
vector register. The limit is the time of as many independent fused multiply-adds, of
a loop of nothing else in the same run. The best of many times is taken, because load on the machine
only adds time.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from arms import ARMS
from tables import table

from arm_dynamics.batch import rollout
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions
from arm_dynamics.batch.kernels.lane_loop import lane_loop

WIDTH, CHAINS, ROUNDS, PASSES = 32, 12, 50, 20
"""SIMD lanes of a block; independent chains of multiply-adds, their length, passes."""
ROLLOUTS, STEPS, REPETITIONS = 512, 1000, 30
KINDS = {
    "multiplications": r"vf?n?m(ul|add|sub)\w*p[sd]|vfnm\w+p[sd]",
    "additions": r"v(add|sub)p[sd]",
    "divisions": r"v(div|sqrt)p[sd]",
    "loads and stores": r"vmov\w+",
}
"""Patterns of instructions; the others compare, select and change signs."""


def loop_instructions(function: Any, block: np.ndarray) -> list[str]:
    """Return the instructions of the longest loop of a function of a block."""
    options = {key: value for key, value in function.targetoptions.items() if key != "cache"}
    options.pop("nopython", None)
    compiled = numba.njit(**options)(function.py_func)
    compiled(block.copy())
    (text,) = compiled.inspect_asm().values()
    lines, labels, loops = text.splitlines(), dict[str, int](), list[list[str]]()
    for k, line in enumerate(lines):
        if found := re.match(r"(\.L\w+):", line):
            labels[found[1]] = k
        elif (found := re.match(r"\tj\w+\s+(\.L\w+)$", line)) and found[1] in labels:
            body = lines[labels[found[1]] : k]
            loops.append([each.strip() for each in body if re.match(r"\t[a-z]", each)])
    return max(loops, key=len)


def counts(instructions: list[str]) -> Counter[str]:
    """Return the number of instructions of each kind."""
    names = (line.split()[0] for line in instructions)
    kinds = ([k for k, p in KINDS.items() if re.fullmatch(p, name)] for name in names)
    return Counter(found[0] if found else "others" for found in kinds)


def multiply_adds(precision: str) -> Callable[[], None]:
    """Return a function of PASSES blocks of independent chains of fused multiply-adds."""
    chains = [f"a{i}" for i in range(CHAINS)]
    loads = [f"{name} = x[{i}]" for i, name in enumerate(chains)]
    loads += [f"m = x[{CHAINS}]", f"b = x[{CHAINS + 1}]"]
    lines = [f"{name} = {name} * m + b" for _ in range(ROUNDS) for name in chains]
    stores = [f"x[{i}] = {name}" for i, name in enumerate(chains)]
    one = lane_loop("\n".join(loads + lines + stores), precision, WIDTH, (CHAINS + 2) * WIDTH)

    @numba.njit(fastmath={"contract"})  # type: ignore[untyped-decorator]
    def passes(x: Any) -> None:
        for _ in range(PASSES):
            one(x)

    block = np.full((CHAINS + 2) * WIDTH, 0.5, dtype=precision)
    return lambda: passes(block)


def best_times(calls: list[Callable[[], object]]) -> list[float]:
    """Return the least times [s] of interleaved calls, compiled before."""
    for call in calls:
        call()
    best = [np.inf] * len(calls)
    for _ in range(REPETITIONS):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def measure(name: str, precision: str) -> tuple[object, ...]:
    """Return a row: instructions of each kind, limit and time of a pass, and their ratio."""
    load, interface = ARMS[name]
    arm = load()
    kernel = Kernel(arm, KernelOptions(interface=interface, precision=precision, lanes=WIDTH))
    n, q = arm.nv, np.array(arm.configuration("initial"))
    values = {"q": q, "v": np.zeros(n), "command": np.zeros(n), "dt": np.array([1e-4])}
    (step,) = kernel.functions("step")
    kinds = counts(loop_instructions(step, kernel.block(values)))
    starts = np.tile(np.concatenate([q, np.zeros(n)]), (ROLLOUTS, 1))
    peak, taken = best_times([
        multiply_adds(precision),
        lambda: rollout(
            arm, starts, np.zeros(n), 1e-4, interface=interface, steps_per_command=STEPS,
            outputs=(), precision=precision, threads=1,
        ),
    ])  # fmt: skip
    width = rollouts_of_a_register(precision)
    per_multiplication = peak / (PASSES * CHAINS * ROUNDS * WIDTH / width)
    limit, passed = (
        kinds["multiplications"] * per_multiplication,
        taken / (ROLLOUTS * STEPS / width),
    )
    cells = (kinds[kind] for kind in (*KINDS, "others"))
    return (f"{arm.name}, {precision}", *cells, f"{1e9 * limit:.0f}", f"{1e9 * passed:.0f}",
            f"{limit / passed:.2f}")  # fmt: skip


def rollouts_of_a_register(precision: str) -> int:
    """Return the SIMD lanes of a vector register, as the compiler of this machine uses it."""
    size = 64 if "avx512f" in numba.core.codegen.get_host_cpu_features() else 32
    return size // np.dtype(precision).itemsize


def main() -> None:
    """Print the table."""
    with table("operations") as printed:
        for name in ARMS:
            for precision in ("float64", "float32"):
                printed.row(*measure(name, precision))


if __name__ == "__main__":
    main()
