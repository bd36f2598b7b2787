"""Machine, versions and commit of a measurement in one line."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy
import pinocchio

VECTORS = ("avx2", "fma", "avx512f")
"""Instruction sets that determine the number of SIMD lanes."""


def machine(*packages: str) -> str:
    """Return processor, vector instructions, cores, load, versions and commit.

    ``packages`` are those whose versions are stated in addition, if they are installed.
    """
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    vectors = " ".join(name for name in VECTORS if name in flags) or "no avx2"
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    versions = ""
    for name in packages:
        with suppress(PackageNotFoundError):
            versions += f" {name} {version(name)},"
    return (
        f"{names[0] if names else platform.processor()}, {vectors}, {os.cpu_count()} cores"
        f" (load {load}),"
        f" Python {platform.python_version()}, Pinocchio {pinocchio.__version__},"
        f" numpy {numpy.__version__},{versions} commit {commit()}"
    )


def commit() -> str:
    """Return the present commit, with "+" if benchmarks or package differ from it."""

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        command, folder = ("git", *words), Path(__file__).parent
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    name = git("rev-parse", "--short", "HEAD").stdout.strip() or "unknown"
    changed = git("diff", "--quiet", "HEAD", "--", ".", "../arm_dynamics").returncode == 1
    return name + "+" * changed
