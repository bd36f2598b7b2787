"""The published step and its law, ``dynamechs``, as a module of kernels for many gains at once.

The objective of the published gain search for many gains at once, by generated code.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch.rollout.kernel import KernelRejected, Layout, filled
from arm_dynamics.batch.rollout.kernel_cache import cached_module, fingerprint
from arm_dynamics.batch.rollout.kernel_source import PART, head_text, part_lines, shared_constants
from arm_dynamics.batch.rollout.step_trace import TracedFunction
from arm_dynamics.batch.rollout.symbolic_math import Symbol, symbols, traced, where
from arm_dynamics.batch.rollout.symbolic_rigid_body import Chain
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.requirements import to_install
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import dynamechs as row
from arm_dynamics.simulation.dynamechs import CONTROLLED, DRY, LOST, ROTOR, Dynamechs, objective

Rows = dict[str, Any]

STATE = {"q": row.Q, "v": row.V, "a": row.A, "previous": row.PREVIOUS}
"""What every moving joint carries from call to call → its row in ``dynamechs``."""
LAW = {"voltage": row.VOLTAGE, "error_sum": row.ERROR_SUM}
"""What the controlled joints carry."""
GIVEN = {"gain_p": row.GAIN_P, "gain_i": row.GAIN_I}
"""What the controlled joints are given."""
TRIALS, WIDE, ROUNDING = 20, 3.0, 1e-12
"""States that tell whether a joint rests: how many, within what, and an acceleration's share."""
LOOK = 50
"""Calls between two looks at whether any lane goes on."""

MOVING = "\n\nMOVING = {moving}  # joints with rows of their own; the others rest\n"
SCORE = '''

@numba.njit(**options)
def score(x, calls):
    """Up to ``calls`` calls, until every lane is lost; returns those made."""
    for k in range(calls):
        if k % {look} == 0:
            going = 0
            for l in range(LANES):
                going += x[{total} * LANES + l] - x[{total} * LANES + l] == ZERO
            if going == 0:
                return k
        call(x)
    return calls
'''


def published_text(arm: ArmModel, joints: Sequence[str], lanes: int) -> str:
    """The module: ``call`` takes one call of plant and law, ``score`` many."""
    layout, part, moving = trace_published(arm, joints)
    constants = shared_constants("float64")
    body = part_lines(part, layout, constants)
    title = f"{arm.name}: published step, and its law for {', '.join(joints)}."
    head = head_text(title, layout, lanes, "float64", constants)
    call = PART.format(name=part.name, purpose=part.purpose, body=body)
    score = SCORE.format(look=LOOK, total=layout.first["total"])
    return "".join([head, MOVING.format(moving=moving), call, score])


def trace_published(
    arm: ArmModel, joints: Sequence[str]
) -> tuple[Layout, TracedFunction, list[int]]:
    """Rows of a lane, the function of one call, and the joints that move.

    Row ``total`` is the sum of the errors so far; infinite from the call on in which they add up
    to more than ``dynamechs.LOST_ERROR``, or to no number. A joint that nothing pushes, whatever
    the others do, rests in the initial pose and has no rows: of five_dof, R1 and R4, whose arm
    moves in a plane.
    """
    columns = [arm.index(joint) for joint in joints]
    moving = sorted(columns)
    while pushed := _pushed(arm, columns, moving):
        moving = sorted({*moving, *pushed})
    rows, x, total = _call(arm, columns, moving)
    after = {name: x[place, moving] for name, place in STATE.items()}
    after |= {name: x[place, columns] for name, place in LAW.items()}
    after["total"] = [total]
    given, found = ([_column(r) for r in every.values()] for every in (rows, after))
    function = ca.Function("call", given, ca.cse(found))
    part = TracedFunction("call", "One call of plant and law.", function, tuple(rows), tuple(after))
    return Layout.of({name: len(symbol) for name, symbol in rows.items()}), part, moving


def _pushed(arm: ArmModel, columns: Sequence[int], moving: Sequence[int]) -> list[int]:
    """Joints other than ``moving`` that accelerate at rest in one of some states of the others."""
    rows, x, _ = _call(arm, columns, moving)
    pushed = ca.Function("pushed", [_column(r) for r in rows.values()], [_column(x[row.A])])
    random, least = np.random.default_rng(1), np.zeros(arm.nv)
    for _ in range(TRIALS):
        state = [random.uniform(-WIDE, WIDE, len(symbol)) for symbol in rows.values()]
        a = np.abs(np.array(pushed(*state)).ravel())
        least = np.maximum(least, a / a.max())
    return [j for j in range(arm.nv) if j not in moving and least[j] > ROUNDING]


def _call(arm: ArmModel, columns: Sequence[int], moving: Sequence[int]) -> tuple[Rows, Any, Any]:
    """Symbols before a call, all rows of ``dynamechs`` after it, and the total after it."""
    sizes = dict.fromkeys(STATE, len(moving)) | dict.fromkeys((*LAW, *GIVEN), len(columns))
    sizes |= {"target": len(columns), "dt": 1, "total": 1}
    rows = {name: symbols(name, size) for name, size in sizes.items()}
    x: Any = row.constants(arm).astype(object)
    x[row.Q], x[row.TARGET, columns], x[row.ACTIVE, columns] = (
        arm.configuration("initial"),
        rows["target"],
        1,
    )
    for name, place in STATE.items():
        x[place, moving] = rows[name]
    for name, place in {**LAW, **GIVEN}.items():
        x[place, columns] = rows[name]
    x[row.FLAG] = 0.0  # without dry friction it is read only where a torque is exactly 0
    traced(row.advance_published_step)(x, rows["dt"][0])
    traced(row.unloaded_torques)(x)
    q, v, tau = ([Symbol(e).sx for e in x[place]] for place in (row.Q, row.V, row.TAU))
    x[row.A] = [Symbol(a) for a in Chain(bodies(arm), arm.gravity, q).acceleration(v, tau)]
    error = traced(row.published_control_step)(x)
    total = where(error <= row.LOST_ERROR, rows["total"][0] + error, float("inf"))
    return rows, x, total


def _column(values: Vector | Sequence[Any]) -> Any:
    return ca.vertcat(*[Symbol(value).sx for value in values])


LANES = 4
"""Gains judged side by side: a vector of the processor; more would not be faster each."""
AGREEMENT = 1e-9
"""Largest difference from ``dynamechs.objective`` over TRIAL_CALLS, relative."""
TRIAL_CALLS = 200
TRIAL_GAINS = ((6.0, 0.1), (300.0, 1.0), (1500.0, 0.0), (20000.0, 0.1))
"""P and I [V/rad] that the check is made with, the same at every joint."""


class PublishedKernel:
    """``dynamechs.objective`` of an arm for rows of gains; no lane's numbers depend on others'."""

    def __init__(self, arm: ArmModel, joints: Sequence[str] = CONTROLLED) -> None:
        """Load the kernel, or make it and hold it to ``dynamechs.objective``.

        Raises KernelRejected when it does not agree, ConfigError without CasADi when it has to
        be made, InvalidValue for an arm that has no published step.
        """
        rows = Dynamechs(arm).rows  # raises where there is no such step
        if rows[[DRY, ROTOR]].any():
            raise KernelRejected(
                f"published objective of arm '{arm.name}': dry friction and rotor inertia have no"
                " kernel"
            )
        self.arm, self.joints = arm, tuple(joints)
        key = fingerprint(
            arm, ("published", arm.configuration("initial").tobytes(), self.joints, LANES)
        )
        self._module = cached_module(key, self._text, self._check)

    def objectives(
        self, p: Vector, i: Vector, *, duration: float = 3.0, dt: float = 1e-4
    ) -> Vector:
        """Objectives (m,) of gains p, i (m, joints), as ``dynamechs.objective``.

        A joint without gains may lock at a torque of exactly 0, which the kernel does not model.
        """
        calls, totals = round(duration / dt), np.empty(len(p))
        may_lock = ((p == 0) & (i == 0)).any(axis=1)
        for k in np.flatnonzero(may_lock):
            totals[k] = objective(
                self.arm, p[k], i[k], joints=self.joints, duration=duration, dt=dt
            )
        traced = np.flatnonzero(~may_lock)
        for first in range(0, len(traced), LANES):
            lanes = traced[first : first + LANES]
            totals[lanes] = self._totals(self._module, p[lanes], i[lanes], calls, dt)
        return totals

    def _text(self) -> str:
        try:
            from arm_dynamics.published.published_kernel import published_text  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name != "casadi":
                raise
            raise ConfigError(
                f"a kernel has to be made and CasADi is missing: {to_install('rollout')}"
            ) from error
        return published_text(self.arm, self.joints, LANES)

    def _check(self, made: Any) -> None:
        gains, dt = np.array(TRIAL_GAINS), 1e-4
        p, i = (np.repeat(gains[:, k : k + 1], len(self.joints), axis=1) for k in (0, 1))
        found = self._totals(made, p[:LANES], i[:LANES], TRIAL_CALLS, dt)
        for lane, total in enumerate(found):
            expected = objective(
                self.arm, p[lane], i[lane], joints=self.joints, duration=TRIAL_CALLS * dt, dt=dt
            )
            if not abs(total - expected) <= AGREEMENT * expected:
                raise KernelRejected(
                    f"kernel of the published objective of arm '{self.arm.name}': {total!r} with"
                    f" P, I = {TRIAL_GAINS[lane]}, {expected!r} +- {AGREEMENT:g} is expected"
                )

    def _totals(self, made: Any, p: Vector, i: Vector, calls: int, dt: float) -> Vector:
        """Objectives of at most LANES gains; the last one fills the lanes that are left."""
        lanes = np.minimum(np.arange(LANES), len(p) - 1)
        pose, columns = (
            self.arm.configuration("initial"),
            [self.arm.index(joint) for joint in self.joints],
        )
        start = {"q": pose[made.MOVING], "target": pose[columns], "dt": np.array([dt])}
        layout = Layout.of(made.LAYOUT)
        gains = {"gain_p": p[lanes], "gain_i": i[lanes]}
        x = filled(layout, LANES, np.dtype(float), {**start, **gains})
        made.score(x, calls)
        totals = x.reshape(layout.rows, LANES)[layout.first["total"], : len(p)]
        return np.where(totals < inf, totals, LOST)
