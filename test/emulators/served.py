"""Client of ``serve`` running in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]


def _environment() -> dict[str, str]:
    """Return the environment in which a process can import the tests' modules and the package."""
    paths = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


class Spoken:
    """Process that replies to each line with a line of JSON."""

    def __init__(self, *words: str, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=_environment() if environment is None else environment,
        )  # fmt: skip
        self.first = self._reply()

    def request(self, line: str) -> dict[str, Any]:
        """Send a command and return its reply."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"process ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Spoken:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def served(vendor: str, link: Path, *options: str) -> Spoken:
    """Start an emulated arm at ``link``."""
    return Spoken("-m", "emulators.serve", vendor, str(link), *options)
