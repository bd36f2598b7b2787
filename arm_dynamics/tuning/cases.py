"""Cases that gains must hold: poses, payloads, model errors, time steps, noise; all by a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from arm_dynamics.arrays import Vector, scalar
from arm_dynamics.controllers.base import Controller
from arm_dynamics.dynamics import gravity
from arm_dynamics.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout import Batch, Noise, rollout_closed_loop
from arm_dynamics.rollout.variation import known, lane_arm
from arm_dynamics.simulation import whole_steps

INSIDE = 0.1
"""Share of a joint's range that poses keep away from either limit."""
HOLDABLE = 0.7
"""Largest share of a joint's weakest motor that a pose's weight may take."""
TRIES = 1000
"""Poses that are tried for one that the motors can hold."""
SCALED = ("p", "i", "d")
"""Gains that an effort is proportional to."""
SHARED = {"motor.stiction": "motor.coulomb_friction"}
"""Constants that vary together with another one, which they may not pass."""


@dataclass(frozen=True)
class Conditions:
    """What cases are drawn from: uniform within what is given here.

    payload [kg]: up to this, unknown to the law; one case in six has none, one all of it. error:
    share by which masses, inertias, friction and motor constants, the supply voltage among them,
    are off either way; an effort command gives Kt / Kt,nominal of itself. step [rad or m]: most
    that a joint's reference jumps at the start. dts [s]: time steps, in turn. period, duration
    [s]; noise_q [rad], noise_v [rad/s]: standard deviations of what is measured. interface and
    delay as in ``rollout_closed_loop``: by default commands act one period late, as over topics.
    """

    payload: float = 0.5
    error: float = 0.2
    step: float = 0.2
    dts: tuple[float, ...] = (1e-4, 5e-4)
    period: float = 2e-3
    duration: float = 1.5
    noise_q: float = 1e-4
    noise_v: float = 1e-2
    interface: str = "effort"
    delay: bool = True

    def __post_init__(self) -> None:
        scalar("payload [kg]", self.payload, lower=0)
        if scalar("error", self.error, lower=0) >= 1:
            raise InvalidValue(f"error = {self.error:g}: a share below 1 is expected")
        scalar("step [rad]", self.step, lower=0)
        for dt in self.dts:
            whole_steps(self.period, dt)
        whole_steps(self.duration, self.period)


@dataclass(frozen=True, eq=False)
class Cases:
    """n cases: rest at ``start`` (n, nv), reference ``target`` (n, nv), dt (n,) [s], ``vary``."""

    arm: ArmModel
    conditions: Conditions
    start: Vector
    target: Vector
    dt: Vector
    vary: Mapping[str, Vector]
    seed: int

    def __len__(self) -> int:
        """How many."""
        return len(self.dt)

    def arm_of(self, case: int) -> ArmModel:
        """The arm as it is in one case."""
        return true_arm(self.arm, {name: rows[case] for name, rows in self.vary.items()})

    def run(
        self, law: Controller, gains: Mapping[str, Vector] | None = None, **options: object
    ) -> Batch:
        """Every candidate in every case, one call: lane = candidate · n + case.

        gains: "gains.p" ... → (candidates, nv), in the place of the law's own. Candidates meet
        the same noise in the same case.
        """
        gains, n = dict(gains or {}), len(self)
        count = len(next(iter(gains.values()))) if gains else 1
        every = {name: np.tile(rows, (count, 1)) for name, rows in self.vary.items()}
        every |= self._driven(law, gains, count)
        c, still = self.conditions, np.zeros_like(self.start)
        noisy = _Noise(c.noise_q, c.noise_v, self.seed, n) if c.noise_q or c.noise_v else None
        given = {
            "interface": c.interface, "delay": c.delay, "noise": noisy, "vary": every, **options
        }  # fmt: skip
        states = np.tile(np.hstack([self.start, still]), (count, 1))
        target, dt = np.tile(self.target, (count, 1)), np.tile(self.dt, count)
        return rollout_closed_loop(
            self.arm, states, law, target[:, None, :], dt, c.period, c.duration, **given  # type: ignore[arg-type]
        )  # fmt: skip

    def _driven(
        self, law: Controller, gains: Mapping[str, Vector], count: int
    ) -> dict[str, Vector]:
        """Gains (count · n, nv): as in effect where Kt is not what an effort command supposes.

        The plant's motors know their own Kt; p, i and d take its ratio to the nominal instead.
        """
        n, nv = len(self), self.arm.nv
        ratio = np.ones((n, nv))
        if self.conditions.interface == "effort" and "motor.kt" in self.vary:
            ratio = self.vary["motor.kt"] / nominal_values(self.arm, "motor.kt")
        own = {f"gains.{g}": np.tile(law.gains[g], (count, 1)) for g in SCALED if g in law.gains}
        return {
            name: np.repeat(rows, n, axis=0) * (np.tile(ratio, (count, 1)) if name in own else 1.0)
            for name, rows in {**own, **gains}.items()
        }


@dataclass(frozen=True)
class _Noise(Noise):
    """The same errors every ``cases`` lanes, so that candidates are compared under the same."""

    cases: int = 1

    def table(self, lanes: int, periods: int, size: int) -> Vector:
        """As ``Noise.table``."""
        return np.tile(super().table(self.cases, periods, size), (lanes // self.cases, 1, 1))


def draw(arm: ArmModel, count: int, seed: int, conditions: Conditions) -> Cases:
    """``count`` cases; case k is the same for a seed, whatever the count.

    Raises InvalidValue for no cases, and for an arm that finds no pose which it can hold.
    """
    if count < 1:
        raise InvalidValue(f"{count} cases: at least 1 is expected")
    nominal = {name: values for name in known(arm) if (values := nominal_values(arm, name)).any()}
    nominal.pop("payload", None)
    rows = [_one(arm, np.random.default_rng([seed, k]), conditions, nominal) for k in range(count)]
    start, target = (np.array([row[i] for row in rows]) for i in range(2))
    varied = {name: np.array([row[2][name] for row in rows]) for name in rows[0][2]}
    dt = np.array(conditions.dts)[np.arange(count) % len(conditions.dts)]
    return Cases(arm, conditions, start, target, dt, varied, seed)


def true_arm(arm: ArmModel, values: Mapping[str, Vector]) -> ArmModel:
    """``arm`` with the ``values`` of its variations, name → (nv,) or (1,)."""
    return lane_arm(arm, {name: row.tolist() for name, row in values.items()})


def nominal_values(arm: ArmModel, name: str) -> Vector:
    """What ``arm`` has for a variation (nv,), or (1,) payload; zeros where it is no number."""
    kind, _, field = name.partition(".")
    if name == "payload":
        return np.array([arm.payload.mass])
    if kind == "joint":
        values = [getattr(joint, field) for joint in arm.joints]
    elif name == "link.mass":
        values = [arm.links.inertias[i + 1].mass for i in range(arm.nv)]
    elif name == "link.inertia":
        values = [1.0] * arm.nv
    else:
        values = [actuator.constants.get(field, 0.0) for actuator in arm.actuators]
    found = np.array(values, dtype=float)
    return found if np.isfinite(found).all() else np.zeros(arm.nv)


UNCERTAIN = frozenset(
    {"link.mass", "link.inertia", "joint.damping", "joint.friction", "motor.kt", "motor.ke"}
    | {"motor.resistance", "motor.supply_voltage", "motor.rotor_inertia", "motor.current_limit"}
    | {"motor.viscous_friction", "motor.coulomb_friction", "motor.stiction"}
)
"""What a model may have wrong; geometry, stops and own states' constants are taken as known."""


def _one(
    arm: ArmModel, random: np.random.Generator, c: Conditions, nominal: Mapping[str, Vector]
) -> tuple[Vector, Vector, dict[str, Vector]]:
    """Start, target and variations of one case."""
    payload = np.clip(random.uniform(-0.25, 1.25), 0.0, 1.0) * c.payload
    varied: dict[str, Vector] = {"payload": np.array([arm.payload.mass + payload])}
    factors: dict[str, Vector] = {}
    for name, values in nominal.items():
        if name in UNCERTAIN:
            factors[name] = factors.get(SHARED.get(name, ""), random.uniform(-1, 1, arm.nv))
            varied[name] = values * (1 + c.error * factors[name])
    start, target = _poses(arm, random, c, true_arm(arm, varied))
    return start, target, varied


def _poses(
    arm: ArmModel, random: np.random.Generator, c: Conditions, true: ArmModel
) -> tuple[Vector, Vector]:
    """Two poses within the limits, at most ``step`` apart, that the case's motors can hold."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, -np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, np.pi)
    margin = INSIDE * (upper - lower)
    limit = HOLDABLE * (1 - c.error) * arm.effort_limit
    for _ in range(TRIES):
        start = random.uniform(lower + margin, upper - margin)
        jump = c.step * random.uniform(-1, 1, arm.nv)
        target = np.clip(start + jump, lower + margin, upper - margin)
        if all((np.abs(gravity(true, q)) <= limit).all() for q in (start, target)):
            return start, target
    raise InvalidValue(
        f"arm '{arm.name}': none of {TRIES} poses can be held with {c.payload:g} kg at"
        f" {HOLDABLE:.0%} of the weakest motors: a smaller payload is expected"
    )
