"""Random numbers for the rows of a kernel that is to be checked.

A generated module beside the laws that it was made of: each of its functions, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from arm_dynamics.batch.rollout.closed_loop_stepper import update_all_metrics
from arm_dynamics.batch.rollout.kernel import (
    AGREEMENT,
    TRIAL_STEP,
    KernelRejected,
    Layout,
    Options,
    filled,
)
from arm_dynamics.batch.rollout.pid_loop import (
    GAINS,
    PidSpec,
    controllers,
    controllers_by_rollout,
)
from arm_dynamics.batch.rollout.tracking_metrics import METRICS
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.state import Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.plant import Plant

TRIAL_PERIOD = 2e-3
GRID = 2.0**-12
"""What positions and speeds are multiples of: their sums are exact in single precision too."""


def trial_numbers(arm: ArmModel, options: Options) -> Mapping[str, Vector]:
    """Random numbers for every row that a block is given."""
    random, shape = np.random.default_rng(1), (options.lanes, arm.nv)
    lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    blocks = {
        "q": _gridded(random.uniform(lower, upper, shape)),
        "v": _gridded(random.uniform(-1, 1, shape)),
        "z": arm.initial_act + 0.01 * random.uniform(size=(options.lanes, arm.na)),
        "told": random.uniform(-5, 5, shape),
        "dt": np.array([TRIAL_STEP]),
        **{name: _nominal(arm, name) for name in options.vary},
    }
    if options.law is None:
        return blocks
    return {**blocks, **_law_numbers(options.law, blocks["q"], random)}


def _law_numbers(law: PidSpec, q: Vector, random: np.random.Generator) -> Mapping[str, Vector]:
    """Random numbers for the rows of a law; every other lane with a clamp and a filter."""

    def near(width: int = q.shape[1]) -> Vector:
        return _gridded(random.uniform(-0.1, 0.1, (len(q), width)))

    other = np.arange(len(q))[:, None] % 2 == 1
    made = Pid(law.arm).gains
    gains = {name: made[name] * random.uniform(0.5, 1.5, q.shape) for name in GAINS}
    gains["i_clamp"] = np.where(other, 2.0, gains["i_clamp"])
    gains["d_filter"] = np.where(other, 0.01, gains["d_filter"])
    rows = {name: near(size) for name, size in {**law.given, **law.kept}.items()}
    rows |= {f"gains.{name}": values for name, values in gains.items()}
    rows |= {"q_ref": q + near(), "way": np.sign(near()), "late_part": 1.0 * other}
    return {**rows, "running": 0.0 * other + 1.0, "period": 0.0 * other + TRIAL_PERIOD}


def _gridded(x: Vector) -> Vector:
    return GRID * np.round(x / GRID)


def _nominal(arm: ArmModel, name: str) -> Vector:
    """The arm's own numbers for a variation."""
    kind, _, field = name.partition(".")
    if kind == "payload":
        return np.array([arm.payload.mass])
    if kind == "joint":
        return np.array([getattr(joint, field) for joint in arm.joints])
    if kind == "motor":
        return np.array([a.constants.get(field, 0.0) for a in arm.actuators])
    if field == "inertia":
        return np.ones(arm.nv)
    return np.array([inertia.mass for inertia in list(arm.links.inertias)[1:]])


LANES, TICKS, EVERY = 8, 3, 2
"""Lanes that are looked at, ticks one after the other, steps in a period."""


def check_kernel(made: Any, arm: ArmModel, options: Options) -> None:
    """Hold every function of the module to what it stands for, at random states.

    ``step`` to ``Plant.step``, ``tick`` to the controller's commands, ``score`` to ``update_metrics``,
    and ``rollout`` to these functions in turn, with ``AGREEMENT``. Raises KernelRejected.
    """
    trial = _Trial(made, arm, options)
    trial.step()
    if options.law is not None:
        trial.ticks(options.law)
        trial.score()
    trial.rollout(options.law)


class _Trial:
    """A block of random lanes, and the same numbers as arrays (lane, size) by name."""

    def __init__(self, made: Any, arm: ArmModel, options: Options) -> None:
        self.made, self.arm, self.options = made, arm, options
        self.layout, self.dtype = Layout.of(made.LAYOUT), np.dtype(options.precision)
        self.lanes = range(min(options.lanes, LANES))
        self.start = filled(self.layout, options.lanes, self.dtype, trial_numbers(arm, options))

    def step(self) -> None:
        """``Plant.step``: positions, speeds, own states and efforts."""
        x, plant, told = (
            self.start.copy(),
            Plant(self.arm, self.options.integrator),
            self.of("told"),
        )
        self.made.step(x)
        before = [self.of(name) for name in ("q", "v", "z")]
        for lane in self.lanes:
            state = State.of(before[0][lane], before[1][lane], act=before[2][lane])
            command = Command.checked(self.options.interface, told[lane], self.arm.nv)
            after = plant.step(state, command, TRIAL_STEP)
            ends = after.q, after.v, after.act
            for name, expected, was in zip("qvz", ends, before, strict=True):
                change = np.abs(expected - was[lane]).max(initial=0.0) + TRIAL_STEP
                self._accept(f"step's {name}", self.of(name, x)[lane], expected, change)
            self._accept("step's effort", self.of("effort", x)[lane], after.tau)

    def ticks(self, law: PidSpec) -> None:
        """Commands of the controllers, tick after tick: the memory shows in the next one."""
        x, gains = self.start.copy(), np.stack([self.of(f"gains.{g}") for g in GAINS], axis=1)
        laws = controllers_by_rollout(law, gains, self.of("integral"), self.of("filtered"))
        tick = controllers(laws, law.voltage)
        q, v = (self.of(n) + (self.of(f"noise_{n}") if law.noise else 0.0) for n in "qv")
        reference = np.hstack([self.of("q_ref"), self.of("v_ref")])
        for k in range(TICKS):
            running = float(k > 0)  # no time has passed at the first one
            x.reshape(self.layout.rows, -1)[self.layout.block("running")] = running
            expected = tick(q, v, reference, running * self.of("period")[:, 0])
            self.made.tick(x)
            found = self.of("pending" if law.delay else "told", x)
            for lane in self.lanes:
                self._accept(f"command of tick {k}", found[lane], expected[lane])

    def score(self) -> None:
        """Metrics after one more period."""
        x = self.start.copy()
        self.made.score(x)
        names = ("q", "effort", "q_ref", "way", "late_part", "period")
        q, effort, q_ref, way, late, period = (self.of(name) for name in names)
        expected = np.stack([self.of(name) for name in METRICS])
        update_all_metrics(q, effort, q_ref, way, late[:, 0].copy(), period[:, 0].copy(), expected)
        for name, values in zip(METRICS, expected, strict=True):
            self._accept(f"score's {name}", self.of(name, x), values)

    def rollout(self, law: PidSpec | None) -> None:
        """The module's other functions in turn, and its records of the rows after them."""
        given = ["told"] if law is None else list(law.given)
        made, lanes, x, y = self.made, self.options.lanes, self.start.copy(), self.start.copy()
        first = self.layout.first[given[0]] * lanes
        size = sum(self.layout.sizes[name] for name in given) * lanes
        table = np.stack([x[first : first + size] * share for share in (1.0, 0.5)])
        chosen, failed = np.arange(2 * self.arm.nv), np.full(lanes, -1)
        out = np.empty((len(table), chosen.size, lanes), self.dtype)
        made.rollout(x, table, EVERY, EVERY, 0, chosen, out, failed)
        for row in table:
            y[first : first + size] = row
            if law is not None:
                made.tick(y)
            for _ in range(EVERY):
                made.step(y)
            if law is not None:
                made.score(y)
        for name in ("q", "v", "z", "told", "effort", *(law.kept if law else ())):
            self._accept(f"rollout's {name}", self.of(name, x), self.of(name, y))
        self._accept("rollout's last record", out[-1], x.reshape(-1, lanes)[chosen])
        self._accept("rollout's failed", failed, np.full(lanes, -1))

    def of(self, name: str, x: Vector | None = None) -> Vector:
        """The rows ``name`` of a block, (lane, size)."""
        rows = (self.start if x is None else x).reshape(self.layout.rows, -1)
        return np.ascontiguousarray(rows[self.layout.block(name)].T, dtype=float)

    def _accept(
        self, what: str, found: Vector, expected: Vector, size: float | None = None
    ) -> None:
        """|found - expected| within AGREEMENT of ``size``, or a few roundings of the numbers."""
        with np.errstate(invalid="ignore"):
            miss = np.abs(np.where(found == expected, 0.0, found - expected)).max(initial=0.0)
        largest = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
        share = AGREEMENT[self.options.precision]
        bound = max(
            share * (largest if size is None else size), 4 * np.finfo(self.dtype).eps * largest
        )
        if not miss <= bound:
            raise KernelRejected(
                f"kernel of arm '{self.arm.name}' ({self.options.key}): {what} misses what is"
                f" expected by {miss:.2g}; at most {bound:.2g} is allowed"
            )
