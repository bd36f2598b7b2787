"""Vector operations of a kernel's step compared with the limit of the core.

    python benchmarks/operations.py

The operations are counted in the machine code of the loop over the rollouts of a block. The rates
of the core are measured: independent chains of vector additions, multiplications, both, and
divisions. Divisions use the multiplier. The limit is the time of the arithmetic alone,

    max(additions / r_add, multiplications / r_mul + divisions / r_div, both / r_both).

Rows are interleaved, and the best repetition counts, because load only adds time.
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
from llvmlite import ir
from numba.core import cgutils
from tables import table

from arm_dynamics.batch import rollout
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions

DT, ROLLOUTS, STEPS, REPETITIONS = 1e-4, 512, 2000, 9
CHAINS, COUNT = 12, 100_000
"""Independent chains hide the latency of an operation."""
KINDS = {"add": ("fadd",), "mul": ("fmul",), "both": ("fadd", "fmul"), "div": ("fdiv",)}
CLASSES = (
    ("mul", r"vmul"), ("add", r"v(add|sub)p"), ("div", r"v(div|sqrt)"), ("other", r"v"),
)  # fmt: skip
"""Class of an instruction by the first match of its name."""
BITS = {"float64": 64, "float32": 32}


def chains(kind: str, precision: str, width: int) -> Callable[[int, float], float]:
    """Return a function that runs ``count`` operations in each chain, by ``neutral``."""

    @numba.extending.intrinsic
    def run(_: Any, count: Any, neutral: Any) -> Any:
        def generate(context: Any, b: Any, signature: Any, values: Any) -> Any:
            number = ir.DoubleType() if precision == "float64" else ir.FloatType()
            vector, given = ir.VectorType(number, width), values[1]
            given = given if precision == "float64" else b.fptrunc(given, number)
            place = ir.Constant(ir.IntType(32), 0)
            single = b.insert_element(ir.Constant(vector, ir.Undefined), given, place)
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
            operand = b.shuffle_vector(single, single, zeros)
            held = [cgutils.alloca_once_value(b, operand) for _ in range(CHAINS)]
            with cgutils.for_range(b, values[0]):
                for k, one in enumerate(held):
                    operation = getattr(b, KINDS[kind][k % len(KINDS[kind])])
                    b.store(operation(b.load(one), operand), one)
            total = b.load(held[0])
            for one in held[1:]:
                total = b.fadd(total, b.load(one))
            first = b.extract_element(total, place)
            return first if precision == "float64" else b.fpext(first, ir.DoubleType())

        return numba.types.float64(count, neutral), generate

    @numba.njit
    def repeated(count: int, neutral: float) -> float:
        return run(count, neutral)

    return repeated


def operations(arm: Any, options: KernelOptions) -> tuple[Counter[str], int]:
    """Return the operations of one pass of the loop by class, and its number of rollouts."""
    kernel = Kernel(arm, options)
    (step,) = kernel.functions("step")
    fresh = numba.njit(error_model="numpy")(step.py_func)  # code from disk has no text
    fresh.compile((numba.types.Array(numba.from_dtype(kernel.dtype), 1, "C"),))
    (text,) = fresh.inspect_asm().values()
    lines, bodies = text.splitlines(), []
    places = {line[:-1]: k for k, line in enumerate(lines) if line.startswith(".LBB")}
    for k, line in enumerate(lines):
        jump = re.match(r"\s+j\w+\s+(\.LBB\w+)$", line)
        if jump and places.get(jump[1], k) < k:
            bodies.append(lines[places[jump[1]] : k])
    body = max(bodies, key=lambda found: sum("%zmm" in x or "%ymm" in x for x in found))
    counts: Counter[str] = Counter()
    for name, operands in (x.split("\t")[1:3] for x in body if x.count("\t") == 2):
        kind = next((kind for kind, start in CLASSES if re.match(start, name)), None)
        is_move = re.match(r"vmov", name) is not None
        if kind and not is_move:
            counts[kind] += 1
        if "(" in operands and name.startswith("v"):
            counts["stores" if operands.endswith(")") else "loads"] += 1
            counts["stack"] += "(%rsp)" in operands
    width = 512 if any("%zmm" in line for line in body) else 256
    return counts, width // BITS[options.precision]


def best(calls: dict[Any, Callable[[], object]]) -> dict[Any, float]:
    """Return the least processor time [s] of each call, interleaved."""
    least = dict.fromkeys(calls, np.inf)
    for _ in range(REPETITIONS):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            least[name] = min(least[name], time.process_time() - begin)
    return least


def main() -> None:
    """Print the operations, the limit and the measured time of a step."""
    found, calls = {}, {}
    for name, (load, interface) in ARMS.items():
        arm = load()
        starts = np.zeros((ROLLOUTS, 2 * arm.nv))
        starts[:, : arm.nv] = arm.configuration("initial")
        command = np.full(arm.nv, 0.2)
        for precision in BITS:
            row = name, precision
            options = KernelOptions(interface=interface, precision=precision)
            found[row] = operations(arm, options)
            calls[row] = lambda a=arm, s=starts, c=command, i=interface, p=precision: rollout(
                a, s, c, DT, interface=i, steps_per_command=STEPS, outputs=(), precision=p,
                threads=1,
            )  # fmt: skip
            for kind in KINDS:
                run = chains(kind, precision, found[row][1])
                calls[(kind, *row)] = lambda f=run, x=float(kind != "add"): f(COUNT, x)
    for call in calls.values():
        call()
    spent = best(calls)
    with table("operations") as printed:
        for row, (counts, width) in found.items():
            each = {k: 1e9 * spent[(k, *row)] / (COUNT * CHAINS) for k in KINDS}
            limit = max(
                counts["add"] * each["add"],
                counts["mul"] * each["mul"] + counts["div"] * each["div"],
                (counts["add"] + counts["mul"]) * each["both"],
            )
            measured = 1e9 * spent[row] * width / (ROLLOUTS * STEPS)
            printed.row(
                f"{row[0]}, {row[1]}", width, counts["mul"], counts["add"], counts["div"],
                counts["other"], f"{counts['loads']}, {counts['stores']} ({counts['stack']})",
                f"{limit:.0f}", f"{measured:.0f}", f"{measured / limit:.2f}",
            )  # fmt: skip


if __name__ == "__main__":
    main()
