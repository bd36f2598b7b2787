"""Tolerances of a data sheet, and values drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.batch.variation import nominal_values, variable_names
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, check_float
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.core.yaml_file import read_yaml
from arm_dynamics.model.arm_model import ArmModel

DISTRIBUTIONS = ("normal", "uniform")
SIGMAS = 3.0
"""Standard deviations that a normal tolerance spans; it is truncated there."""
UNCERTAIN = frozenset(
    {"link.mass", "link.inertia", "joint.damping", "joint.friction", "motor.kt", "motor.ke"}
    | {"motor.resistance", "motor.supply_voltage", "motor.rotor_inertia", "motor.current_limit"}
    | {"motor.viscous_friction", "motor.coulomb_friction", "motor.stiction", "motor.armature"}
)
"""Quantities with uncertain values; geometry, end stops and constants of actuator states are
assumed to be exact."""
COUPLED = {"motor.stiction": "motor.coulomb_friction"}
"""Quantities that keep their ratio to another one."""


@dataclass(frozen=True)
class Tolerance:
    """Distribution of values within nominal (1 ± ``fraction``).

    Attributes
    ----------
    fraction : float or tuple of float
        Relative tolerance, below 1: of all joints, or one per joint.
    distribution : str
        "uniform", or "normal" with σ = fraction / 3, truncated.

    Raises
    ------
    InvalidValue, UnknownName
        If a value is out of range.

    """

    fraction: float | tuple[float, ...] = 0.1
    distribution: str = "normal"

    def __post_init__(self) -> None:
        for one in self.fraction if isinstance(self.fraction, tuple) else (self.fraction,):
            if check_float("tolerance", one, lower=0) >= 1:
                raise InvalidValue(f"tolerance = {one:g}; expected below 1")
        if self.distribution not in DISTRIBUTIONS:
            raise UnknownName("distribution", self.distribution, DISTRIBUTIONS)

    def factors(self, random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draw factors of the nominal values; the last axis of ``shape`` are the joints."""
        fraction = np.asarray(self.fraction)
        if self.distribution == "uniform":
            return 1 + fraction * random.uniform(-1, 1, shape)
        return 1 + fraction * np.clip(random.normal(size=shape) / SIGMAS, -1, 1)


ToleranceMap = Mapping[str, Tolerance]
"""Name of ``variable_names`` -> tolerance."""


def variable_values(arm: ArmModel, name: str) -> Vector:
    """Return the nominal values (nv,) or (1,); zeros if one is not finite: it cannot be scaled."""
    values = nominal_values(arm, name)
    return values if np.isfinite(values).all() else np.zeros(values.size)


def data_sheet_tolerances(arm: ArmModel, tolerance: Tolerance) -> dict[str, Tolerance]:
    """Return one tolerance for all uncertain quantities of an arm, and for its payload."""
    known = variable_names(arm)
    names = (*sorted(UNCERTAIN), "payload")
    return {n: tolerance for n in names if n in known and variable_values(arm, n).any()}


def read_tolerances(file: str | Path, arm: ArmModel) -> dict[str, Tolerance]:
    """Read tolerances from a YAML file.

    Entries are ``name: fraction`` or ``name: {fraction: 0.05, distribution: uniform}``. In the
    second form a fraction may be a table of joints, ``{J1: 0.05, J2: 0.02}``; joints that it does
    not contain have no tolerance.

    Parameters
    ----------
    file : str or Path
        YAML file.
    arm : ArmModel
        Arm.

    Raises
    ------
    ConfigError
        If the file or an entry cannot be read.
    UnknownName
        If a quantity or joint does not exist.
    InvalidValue
        If a fraction is outside of [0, 1), or the arm's value is 0 or infinite.

    """
    content = read_yaml(file)
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"{file}: content = {content!r}; expected entries like 'motor.kt: 0.1'")
    tolerances = {
        str(name): _parse_entry(file, str(name), value, arm) for name, value in content.items()
    }
    for name in tolerances:
        if name not in variable_names(arm):
            raise UnknownName(f"variation in {file}", name, variable_names(arm))
        if not variable_values(arm, name).any():
            raise InvalidValue(
                f"{file}: {name} of arm '{arm.name}' = 0 or inf; expected a finite value"
            )
    return tolerances


def _parse_entry(file: str | Path, name: str, value: Any, arm: ArmModel) -> Tolerance:
    """Return the tolerance of one entry of a file."""
    entry = dict(value) if isinstance(value, dict) else {"fraction": value}
    table = entry.get("fraction")
    if isinstance(table, dict) and name != "payload":
        for joint in table:
            if joint not in arm.joint_names:
                raise UnknownName(f"joint of {name} in {file}", str(joint), arm.joint_names)
        entry["fraction"] = tuple(table.get(joint, 0.0) for joint in arm.joint_names)
    fractions = entry.get("fraction")
    each = fractions if isinstance(fractions, tuple) else (fractions,)
    if not set(entry) <= {"fraction", "distribution"} or any(isinstance(x, bool) for x in each):
        raise ConfigError(
            f"{file}: {name} = {value!r}; expected a fraction, or fraction and distribution"
        )
    try:
        return Tolerance(**entry)
    except (InvalidValue, UnknownName, TypeError) as error:
        raise ConfigError(f"{file}: {name}: {error}") from error


def draw_values(
    arm: ArmModel, tolerances: ToleranceMap, random: np.random.Generator, runs: int
) -> dict[str, Matrix]:
    """Draw values of ``runs`` arms, every joint independently.

    The stiction keeps its ratio to the Coulomb friction of its joint.

    Returns
    -------
    dict
        Name to values, shape (runs, nv), or (runs, 1) for the payload.

    """
    factors: dict[str, Matrix] = {}
    for name in sorted(tolerances):
        shape = (runs, variable_values(arm, name).size)
        coupled = factors.get(COUPLED.get(name, ""))
        factors[name] = tolerances[name].factors(random, shape) if coupled is None else coupled
    return {name: variable_values(arm, name) * values for name, values in factors.items()}
