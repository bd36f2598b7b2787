"""A number that a user may set: its name, default, unit, range and meaning.

Actuators and controllers list theirs; the audit, the parameter files and the ROS nodes
read the same list, so that a range is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isinf, isnan

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
        """Return ``value`` when it lies within the range; raise InvalidValue if not."""
        try:
            number = float("" if isinstance(value, bool) else value)  # True is not 1 here
        except (TypeError, ValueError, OverflowError):
            said = f"{owner}: {self.name} = {value!r} {self.unit}: a number is expected"
            raise InvalidValue(said) from None
        if isinf(number) and number != self.default:
            raise InvalidValue(f"{owner}: {self.name} = {number:g} {self.unit}: finite expected")
        if isnan(number) or not self.lower <= number <= self.upper or number <= self.above:
            raise InvalidValue(f"{owner}: {self.name} = {number:g} {self.unit}: {self.range_text}")
        return number

    @property
    def range_text(self) -> str:
        """The range in words."""
        low = f"above {self.above:g}" if self.above > -inf else f"at least {self.lower:g}"
        return low if self.upper == inf else f"{low} and at most {self.upper:g}"


def with_defaults(
    owner: str, parameters: Iterable[Parameter], given: Mapping[str, float]
) -> dict[str, float]:
    """Return every parameter's checked value: the ``given`` ones, else the defaults.

    Raises UnknownName for a name that ``owner`` does not have, InvalidValue for a missing
    or out-of-range one.
    """
    table = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in table:
            raise UnknownName(f"parameter of {owner}", name, tuple(table))
    values: dict[str, float] = {}
    for name, parameter in table.items():
        value = given.get(name, parameter.default)
        if value is None:
            raise InvalidValue(f"{owner}: {name} [{parameter.unit}] is missing")
        values[name] = parameter.check(owner, value)
    return values
