"""Machine and versions of a measurement in one line."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy
import pinocchio

VECTORS = ("avx2", "fma", "avx512f")
"""Instruction sets that determine the number of SIMD lanes."""


def machine() -> str:
    """Return processor, vector instructions, cores, load and versions."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    vectors = " ".join(name for name in VECTORS if name in flags) or "no avx2"
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{names[0] if names else platform.processor()}, {vectors}, {os.cpu_count()} cores"
        f" (load {load}),"
        f" Python {platform.python_version()}, Pinocchio {pinocchio.__version__},"
        f" numpy {numpy.__version__}"
    )
