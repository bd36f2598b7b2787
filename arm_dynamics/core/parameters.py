"""Parameters: numbers that users set, with name, default, unit, range and description.

Actuators and controllers list theirs. The audit, the parameter files and the ROS nodes read the
same list, so that a range is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isinf, isnan
from typing import Any

from arm_dynamics.core.errors import InvalidValue, UnknownName


@dataclass(frozen=True, slots=True)
class Parameter:
    """One settable number; ``default=None`` means that it must be given."""

    name: str
    default: float | None
    unit: str
    description: str
    lower: float = -inf
    upper: float = inf
    above: float = -inf
    order: int = 0
    """Power of a controller's bandwidth that its default is proportional to."""

    def check(self, owner: str, value: float) -> float:
        """Return ``value`` if it is within the range; raise InvalidValue if not."""
        try:
            number = float("" if isinstance(value, bool) else value)  # True is not 1 here
        except (TypeError, ValueError, OverflowError):
            message = f"{owner}: {self.name} = {value!r} {self.unit}; expected a number"
            raise InvalidValue(message) from None
        expected = ""
        if isinf(number) and number != self.default:
            expected = "a finite number"
        elif isnan(number) or not self.lower <= number <= self.upper or number <= self.above:
            expected = self.range_text
        if expected:
            quantity = f"{owner}: {self.name} = {number:g} {self.unit}"
            raise InvalidValue(f"{quantity}; expected {expected}")
        return number

    @property
    def range_text(self) -> str:
        """The range in words."""
        low = f"above {self.above:g}" if self.above > -inf else f"at least {self.lower:g}"
        return low if self.upper == inf else f"{low} and at most {self.upper:g}"


def with_defaults(
    owner: str, parameters: Iterable[Parameter], given: Mapping[str, float]
) -> dict[str, float]:
    """Return every parameter's checked value: the ``given`` one, else the default.

    Raises UnknownName for a name that ``owner`` does not have, InvalidValue for a value that is
    missing or out of range.
    """
    table = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in table:
            raise UnknownName(f"parameter of {owner}", name, tuple(table))
    values: dict[str, float] = {}
    for name, parameter in table.items():
        value = given.get(name, parameter.default)
        if value is None:
            unit = parameter.unit
            raise InvalidValue(f"{owner}: {name} is missing; expected a number [{unit}]")
        values[name] = parameter.check(owner, value)
    return values


def by_joint(values: Mapping[str, Any], prefix: str) -> dict[str, dict[str, float]]:
    """Return the values named ``<prefix>.<joint>.<name>`` as joint → name → value."""
    rows: dict[str, dict[str, float]] = {}
    for full_name, value in values.items():
        head, _, rest = full_name.partition(".")
        joint, _, name = rest.rpartition(".")
        if head == prefix and joint:
            rows.setdefault(joint, {})[name] = float(value)
    return rows
