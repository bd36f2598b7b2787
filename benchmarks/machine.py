"""The machine and versions that a figure was measured on, in one line."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy
import pinocchio


def machine() -> str:
    """Processor, cores, Python, Pinocchio and numpy."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores (load {load}),"
        f" Python {platform.python_version()}, Pinocchio {pinocchio.__version__},"
        f" numpy {numpy.__version__}"
    )
