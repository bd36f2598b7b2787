"""All errors of the package, with one base class.

A message has the form "<where>: <quantity> = <value> <unit>; expected <constraint>; <remedy>".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def closest_name(name: str, known: Iterable[str], ratio: float = 0.6) -> str:
    """Return the known name closest to a mistyped one; "" if none has this ratio of similarity."""
    by_letters = {other.lower(): other for other in known}
    found = get_close_matches(name.lower(), by_letters, n=1, cutoff=ratio)
    return by_letters[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str], ratio: float = 0.6) -> str:
    """Return "; did you mean '<the closest name>'?"; "" if no known name is similar."""
    near = closest_name(name, known, ratio)
    return f"; did you mean '{near}'?" if near else ""


MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""Errors of parsed data with other types, sizes or nesting than expected."""


class ArmDynamicsError(Exception):
    """Base class of every error that this package raises."""


class InvalidValue(ArmDynamicsError, ValueError):
    """An argument with a wrong size, a non-finite entry or a value out of its range."""


class UnknownName(ArmDynamicsError, LookupError):
    """A name that is not registered; the message lists what exists, and the closest name."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        allowed = ", ".join(sorted(known)) or "none"
        hint = did_you_mean(str(name), known)
        super().__init__(f"unknown {kind} '{name}'; known: {allowed}{hint}")
        self.kind, self.name, self.known = kind, name, known


class CommandRejected(InvalidValue):
    """A command that is not sent to the motors: wrong size, wrong joints or not finite."""


class ControllerFault(ArmDynamicsError):
    """A controller raised or did not return a Command; the message has its class and line."""


class TrajectoryRejected(InvalidValue):
    """A trajectory that the arm cannot follow; the message names joint and limit."""


class CollisionRejected(TrajectoryRejected):
    """A trajectory with which links come too near; the message names them, distance and time."""


class Unreachable(ArmDynamicsError):
    """A target that no configuration within the joint limits reaches.

    ``position_error`` [m] and ``orientation_error`` [rad] are the residuals at ``nearest``, the
    position (3,) [m] of the nearest point found, with joint positions ``q`` (nv,).
    """

    def __init__(
        self,
        target: str,
        position_error: float,
        orientation_error: float,
        nearest: Sequence[float],
        q: Sequence[float],
    ) -> None:
        angle = f", orientation error = {orientation_error:.6g} rad" if orientation_error else ""
        point = ", ".join(f"{x:.6g}" for x in nearest)
        super().__init__(
            f"{target} is out of reach: position error = {position_error:.6g} m{angle};"
            f" the nearest point found is ({point}) m"
        )
        self.target, self.nearest, self.q = target, tuple(nearest), tuple(q)
        self.position_error, self.orientation_error = position_error, orientation_error

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arguments of the constructor."""
        errors = self.position_error, self.orientation_error
        return type(self), (self.target, *errors, self.nearest, self.q)


class GoalRejected(TrajectoryRejected):
    """A goal that is not accepted; ``code`` is one of ``goal.ErrorCode``."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConfigError(ArmDynamicsError):
    """A parameter file or option that cannot be used."""


class RecordingError(ArmDynamicsError):
    """A recording that cannot be written or read."""


class DriverFault(ArmDynamicsError):
    """A driver that cannot read or write its arm at present."""
