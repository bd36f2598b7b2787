"""Distribution of the cases of a gain search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from arm_dynamics.batch.tuning.tolerance import Tolerance
from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.simulation.simulation import steps_per_period


@dataclass(frozen=True)
class CaseDistribution:
    """Uniform distribution of cases within these bounds.

    Attributes
    ----------
    payload : float
        Largest unmodeled payload [kg]; one case in six has none, one the largest.
    model_error : float
        Largest relative error of masses, inertias, friction, motor constants and supply voltage;
        an effort command gives Kt / Kt,nominal of itself.
    step_size : float
        Largest step of a joint's reference at the start [rad or m].
    dts : tuple of float
        Time steps [s], in turn.
    period, duration : float
        Control period and simulated time [s].
    noise_q, noise_v : float
        Standard deviations of the measured positions [rad] and velocities [rad/s].
    interface : str
        "effort" or "voltage".
    delay : bool
        Commands act one period late, as over topics.
    tolerances : dict
        Tolerances of single quantities, for example of an identification; ``model_error`` is
        that of the others.

    Raises
    ------
    InvalidValue
        If a value is out of range, or a time step does not divide the period.

    """

    payload: float = 0.5
    model_error: float = 0.2
    step_size: float = 0.2
    dts: tuple[float, ...] = (1e-4, 5e-4)
    period: float = 2e-3
    duration: float = 1.5
    noise_q: float = 1e-4
    noise_v: float = 1e-2
    interface: str = "effort"
    delay: bool = True
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_float("payload [kg]", self.payload, lower=0)
        if check_float("model_error", self.model_error, lower=0) >= 1:
            raise InvalidValue(f"model_error = {self.model_error:g}; expected below 1")
        check_float("step_size [rad]", self.step_size, lower=0)
        check_float("period [s]", self.period, above=0)
        check_float("duration [s]", self.duration, lower=self.period)
        if not self.dts:
            raise InvalidValue("dts = (); expected at least one time step")
        for dt in self.dts:
            steps_per_period(self.period, dt)
        steps_per_period(self.duration, self.period)
