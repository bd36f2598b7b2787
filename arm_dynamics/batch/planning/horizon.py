"""Times of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from arm_dynamics.core.arrays import check_float, check_int
from arm_dynamics.core.errors import InvalidValue


@dataclass(frozen=True)
class Horizon:
    """Times of a plan.

    Attributes
    ----------
    periods : int
        Number of control periods.
    period : float
        Time for which a command is held [s].
    steps : int
        Time steps of semi-implicit Euler per period.
    delay : int
        Periods from a command to its effect.

    Raises
    ------
    InvalidValue
        For a horizon that is not longer than the delay.

    """

    periods: int = 30
    period: float = 0.02
    steps: int = 4
    delay: int = 0

    def __post_init__(self) -> None:
        check_int("horizon: periods", self.periods, lower=1)
        check_float("horizon: period [s]", self.period, above=0)
        check_int("horizon: steps", self.steps, lower=1)
        if self.periods <= check_int("horizon: delay [periods]", self.delay, lower=0):
            raise InvalidValue(
                f"horizon: periods = {self.periods}; expected more than the delay of {self.delay}"
                " periods; increase the periods, or reduce the delay"
            )

    @property
    def dt(self) -> float:
        """Time step of the prediction [s]."""
        return self.period / self.steps

    @property
    def free_periods(self) -> int:
        """Periods after the delay, whose commands a plan decides."""
        return self.periods - self.delay
