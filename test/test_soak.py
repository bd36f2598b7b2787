"""A short soak test: the driver's loop in real time on an arm in another process."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.hardware

SOAK = Path(__file__).parents[1] / "benchmarks" / "soak.py"
SECONDS = 30


@pytest.mark.slow
def test_it_lasts():
    """No exception, active at the end, no memory leak; the rate is not checked."""
    words = [sys.executable, str(SOAK), "--motors", "dynamixel", "--seconds", str(SECONDS)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=180, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    cycles = int(ran.stdout.splitlines()[-2].split("|")[2])
    assert cycles > 5 * SECONDS
