"""Resolve wheels of all run-time dependencies: ``resolve_wheels.py WHEEL``, without a download.

Fail unless every platform and Python version of PLATFORMS has wheels of this package's
requirements and of its extras. Only uv is needed, which reads the metadata of the index.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

PLATFORMS = "x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin"
PYTHONS = "3.10", "3.11", "3.12", "3.13", "3.14"
EXTRAS = "plot,record,table,rollout,hardware,tune"
X86_ONLY = "trajectories"
"""Extra with wheels for Linux x86-64 only. Of the extra ros, empy has no wheels: pip builds it."""
PROCESSES = 8
"""Simultaneous resolutions: they mostly wait for the index."""


def main(wheel: Path) -> None:
    """Resolve all combinations; raise SystemExit with those that fail."""
    cases = list(product(PLATFORMS, PYTHONS))
    with ThreadPoolExecutor(PROCESSES) as pool:
        results = dict(zip(cases, pool.map(lambda case: resolve(wheel, *case), cases), strict=True))
    failed = {case: text for case, text in results.items() if text}
    for platform, python in cases:
        print(f"{platform} Python {python}: {'FAILED' if failed.get((platform, python)) else 'ok'}")
    if failed:
        sys.exit("\n".join(f"{' '.join(case)}:\n{text}" for case, text in failed.items()))


def resolve(wheel: Path, platform: str, python: str) -> str:
    """Return the error of a resolution, "" if every requirement has a wheel."""
    extras = f"{EXTRAS},{X86_ONLY}" if platform == PLATFORMS[0] else EXTRAS
    done = subprocess.run(
        [
            "uv", "pip", "compile", "--quiet", "--no-header", "--only-binary", ":all:",
            "--index-strategy", "unsafe-best-match", "--python-platform", platform,
            "--python-version", python, "-",
        ],
        input=f"arm_dynamics[{extras}] @ {wheel.resolve().as_uri()}",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stderr if done.returncode else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
