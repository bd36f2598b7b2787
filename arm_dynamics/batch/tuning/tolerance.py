"""Tolerances of a data sheet: what constants may be, drawn by a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.batch.rollout.variation import variable_names
from arm_dynamics.batch.tuning.uncertain_parameters import SHARED, UNCERTAIN, nominal_values
from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.core.yaml_file import read_yaml
from arm_dynamics.model.arm_model import ArmModel

SHAPES = ("normal", "uniform")
SIGMAS = 3.0
"""Standard deviations that a normal tolerance spans, where it is cut off."""


@dataclass(frozen=True)
class Tolerance:
    """Values within nominal (1 ± ``fraction``): "uniform", or "normal" with σ = share / 3, cut off."""

    fraction: float = 0.1
    distribution: str = "normal"

    def __post_init__(self) -> None:
        if check_float("tolerance", self.fraction, lower=0) >= 1:
            raise InvalidValue(f"tolerance = {self.fraction:g}: a share below 1 is expected")
        if self.distribution not in SHAPES:
            raise UnknownName("distribution", self.distribution, SHAPES)

    def factors(self, random: np.random.Generator, shape: tuple[int, ...]) -> Vector:
        """Factors on the nominal values."""
        if self.distribution == "uniform":
            return 1 + self.fraction * random.uniform(-1, 1, shape)
        spread = np.clip(random.normal(size=shape) / SIGMAS, -1, 1)
        return 1 + self.fraction * spread


ToleranceMap = Mapping[str, Tolerance]
"""Name of ``rollout.variation`` → its tolerance."""


def data_sheet(arm: ArmModel, tolerance: Tolerance) -> dict[str, Tolerance]:
    """One tolerance for everything uncertain that the arm has: motors, friction, links, payload."""
    every = (*sorted(UNCERTAIN), "payload")
    return {
        n: tolerance for n in every if n in variable_names(arm) and nominal_values(arm, n).any()
    }


def read_tolerances(file: str | Path, arm: ArmModel) -> dict[str, Tolerance]:
    """Tolerances from YAML: ``name: share`` or ``name: {share: 0.05, shape: uniform}``.

    Raises ConfigError naming the file and the entry when it cannot be read, UnknownName for what
    may not vary, InvalidValue for a share out of [0, 1) and for what the arm has not.
    """
    content = read_yaml(file)
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"{file}: entries such as 'motor.kt: 0.1' are expected")
    found = {str(name): _entry(file, str(name), value) for name, value in content.items()}
    for name in found:
        if name not in variable_names(arm):
            raise UnknownName(f"variation in {file}", name, variable_names(arm))
        if not nominal_values(arm, name).any():
            raise InvalidValue(f"{file}: {name}: arm '{arm.name}' has 0 or ∞ there: nothing varies")
    return found


def _entry(file: str | Path, name: str, value: Any) -> Tolerance:
    entry = value if isinstance(value, dict) else {"share": value}
    if not set(entry) <= {"share", "shape"} or isinstance(entry.get("share"), bool):
        raise ConfigError(f"{file}: {name}: {value!r}: a share, or share and shape, is expected")
    try:
        return Tolerance(**entry)
    except (InvalidValue, UnknownName, TypeError) as error:
        raise ConfigError(f"{file}: {name}: {error}") from error


def draw_values(
    arm: ArmModel, spread: ToleranceMap, random: np.random.Generator, runs: int
) -> dict[str, Vector]:
    """Values of ``runs`` arms: name → (runs, nv), or (runs, 1) payload; every joint by itself.

    A break-away friction keeps its ratio to the Coulomb friction of its joint.
    """
    factors: dict[str, Vector] = {}
    for name in sorted(spread):
        shape = (runs, nominal_values(arm, name).size)
        shared = factors.get(SHARED.get(name, ""))
        factors[name] = spread[name].factors(random, shape) if shared is None else shared
    return {name: nominal_values(arm, name) * values for name, values in factors.items()}
