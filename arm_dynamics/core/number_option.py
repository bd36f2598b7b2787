"""Numbers on a command line: each option states its range, and rejects the rest in one line."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

from arm_dynamics.core.errors import ConfigError

MIN_TIME, MAX_TIME = 1e-9, 1e6
"""Times [s] of a time step, a control period or a run."""
MAX_NUMBER = 1e6
"""Masses [kg], angles [rad or deg], lengths."""
MAX_STEPS = 1e11
"""Time steps of a run: days of computing."""


@dataclass(frozen=True, slots=True)
class Number:
    """``type`` of an argparse option: a number of ``unit`` from ``lower`` to ``upper``."""

    option: str
    lower: float
    upper: float
    unit: str = ""
    whole: bool = False

    def __call__(self, text: str) -> float:
        """Return the number; raises ConfigError for another text and outside of the range."""
        try:
            number = int(text) if self.whole else float(text)
        except ValueError:
            number = float("nan")
        if isnan(number) or not self.lower <= number <= self.upper:
            kind = "an integer" if self.whole else "a number"
            unit = f" {self.unit}" if self.unit else ""
            shown = text if len(text) < 40 else f"{text[:40]}…"
            raise ConfigError(
                f"{self.option} = {shown}{unit}; expected {kind} from {self.lower:g}"
                f" to {self.upper:g}{unit}"
            )
        return number


def seconds(option: str) -> Number:
    """Return the option of a duration, time step or period [s]."""
    return Number(option, MIN_TIME, MAX_TIME, "s")


def port(option: str) -> Number:
    """Return the option of a TCP port; 0 is any free one."""
    return Number(option, 0, 65535, whole=True)


def seed(option: str) -> Number:
    """Return the option of a seed of random numbers."""
    return Number(option, 0, 2**63 - 1, whole=True)


def check_steps(what: str, steps: float) -> None:
    """Raise ConfigError for more than MAX_STEPS time steps."""
    if not steps <= MAX_STEPS:
        raise ConfigError(
            f"{what} = {steps:.3g} time steps; expected at most {MAX_STEPS:g}; increase --dt or"
            " reduce --duration"
        )
