"""What cases are drawn from."""

from __future__ import annotations

from dataclasses import dataclass

from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.simulation.simulation import steps_per_period


@dataclass(frozen=True)
class CaseDistribution:
    """What cases are drawn from: uniform within what is given here.

    payload [kg]: up to this, unknown to the law; one case in six has none, one all of it. error:
    share by which masses, inertias, friction and motor constants, the supply voltage among them,
    are off either way; an effort command gives Kt / Kt,nominal of itself. step [rad or m]: most
    that a joint's reference jumps at the start. dts [s]: time steps, in turn. period, duration
    [s]; noise_q [rad], noise_v [rad/s]: standard deviations of what is measured. interface and
    delay as in ``rollout_closed_loop``: by default commands act one period late, as over topics.
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

    def __post_init__(self) -> None:
        check_float("payload [kg]", self.payload, lower=0)
        if check_float("model_error", self.model_error, lower=0) >= 1:
            raise InvalidValue(f"error = {self.model_error:g}: a share below 1 is expected")
        check_float("step [rad]", self.step_size, lower=0)
        check_float("period [s]", self.period, above=0)
        check_float("duration [s]", self.duration, lower=self.period)
        if not self.dts:
            raise InvalidValue("no time steps: at least one is expected")
        for dt in self.dts:
            steps_per_period(self.period, dt)
        steps_per_period(self.duration, self.period)
