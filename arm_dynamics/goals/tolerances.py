"""How far from where they should be joints may be: in position, in velocity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.errors import InvalidValue, UnknownName
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import position_error
from arm_dynamics.state import Reference, State

ERASED = -1.0
"""In a goal: no tolerance, whatever the default is; 0 there is the default."""

Given = Mapping[str, tuple[float, float]]
"""Joint → position and velocity as a goal gives them."""


@dataclass(frozen=True, slots=True, eq=False)
class Tolerances:
    """Largest |reference - measured| of every joint of ``arm``; inf where any error will do.

    position (nv,) [rad or m], of continuous joints modulo one turn; velocity (nv,) [rad/s or m/s].
    """

    arm: ArmModel
    position: Vector
    velocity: Vector
    any_error: bool = field(init=False)
    """Whether nothing at all is asked for."""

    def __post_init__(self) -> None:
        """Look once what every tick would ask."""
        asked = np.isfinite(self.position).any() or np.isfinite(self.velocity).any()
        object.__setattr__(self, "any_error", not asked)

    @classmethod
    def of(cls, arm: ArmModel, position: Vector, velocity: Vector) -> Tolerances:
        """From parameters, where 0 stands for any error."""
        return cls(arm, _or_any(position), _or_any(velocity))

    def changed(self, kind: str, names: Sequence[str], given: Given) -> Tolerances:
        """With what a goal gives: 0 is the default (this one), -1 none at all.

        Raises UnknownName for a joint that there is not, InvalidValue for another negative or a
        non-finite number, both naming ``kind``.
        """
        columns = {"position": self.position.copy(), "velocity": self.velocity.copy()}
        for joint, values in given.items():
            if joint not in names:
                raise UnknownName(f"joint of a {kind} tolerance", joint, tuple(names))
            for (part, column), value in zip(columns.items(), values, strict=True):
                what = f"joint '{joint}': {kind} tolerance, {part} = {value:g}"
                i = names.index(joint)
                column[i] = _taken(what, value, float(column[i]))
        return Tolerances(self.arm, frozen(columns["position"]), frozen(columns["velocity"]))

    def met(self, state: State, reference: Reference) -> bool:
        """Whether every joint is within them."""
        return self.any_error or bool(
            (np.abs(position_error(self.arm, reference.q, state.q)) <= self.position).all()
            and (np.abs(reference.v - state.v) <= self.velocity).all()
        )

    def violations(self, names: Sequence[str], state: State, reference: Reference) -> Iterator[str]:
        """Each joint that is further off: what of it, by how much, and how much is allowed."""
        for part, unit, error, limit in (
            ("position", "rad", position_error(self.arm, reference.q, state.q), self.position),
            ("velocity", "rad/s", reference.v - state.v, self.velocity),
        ):
            for i in np.flatnonzero(~(np.abs(error) <= limit)).tolist():
                yield (
                    f"joint '{names[i]}': {part} error {error[i]:.6g} {unit} exceeds the"
                    f" tolerance {limit[i]:.6g}"
                )


def _or_any(values: Vector) -> Vector:
    return frozen(np.where(np.asarray(values) > 0, values, np.inf))


def _taken(what: str, value: float, default: float) -> float:
    if value == 0.0:
        return default
    if value == ERASED:
        return float("inf")
    if not 0 < value < float("inf"):
        raise InvalidValue(f"{what}: positive, 0 (the default) or -1 (none) is allowed")
    return value
