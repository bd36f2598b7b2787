"""Starts ``serve`` in another process and talks to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """Where another process finds the tests' modules and the package."""
    paths = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


class Spoken:
    """A process that answers each line with a line of JSON."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        self.first = self.heard()

    def tell(self, line: str) -> dict[str, Any]:
        """Say a line; the answer to it."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.heard()

    def heard(self) -> dict[str, Any]:
        """The next line that it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"process ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Spoken:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def served(maker: str, link: Path, *options: str) -> Spoken:
    """An arm at ``link``."""
    return Spoken("-m", "emulators.serve", maker, str(link), *options)
