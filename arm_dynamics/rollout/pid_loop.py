"""A PID law beside the lanes of a batch: in the kernel, or as controllers around other lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.controllers.base import Controller
from arm_dynamics.controllers.pid import Pid
from arm_dynamics.controllers.pid_gravity import PidGravity
from arm_dynamics.dynamics import gravity
from arm_dynamics.rollout.backends import chosen
from arm_dynamics.rollout.inputs import Start
from arm_dynamics.rollout.lanes import Lanes
from arm_dynamics.rollout.law import GAINS, METRICS, Law
from arm_dynamics.rollout.loop_lanes import LoopLanes, Tick
from arm_dynamics.rollout.work import Work
from arm_dynamics.state import Reference, State

LAWS: dict[type[Controller], bool] = {Pid: False, PidGravity: True}
"""Controllers that run inside kernels, and whether they add gravity."""


@dataclass(frozen=True, eq=False)
class PidLoop:
    """The law, and by lane: gains (lane, 6, nv), memory at the start, way of overshoot, period."""

    law: Law
    gains: Vector
    integral: Vector
    filtered: Vector
    way: Vector
    period: Vector
    metrics = METRICS

    def part(self, lanes: Any) -> PidLoop:
        """The same of some lanes."""
        every = (self.gains, self.integral, self.filtered, self.way, self.period)
        return PidLoop(self.law, *(x[lanes] for x in every))

    def maker(self, work: Work) -> Callable[[Work], Lanes]:
        """What makes the lanes of parts of ``work``, the law with them."""
        name, make = chosen(work.backend, work.arm, work.setup, tuple(work.varied), self.law)
        if name == "generated":
            return lambda part: make(part.start, part.dt, {**part.varied, **part.loop.rows()})
        return lambda part: part.loop.around(make(part.start, part.dt, part.varied), part.start)

    def rows(self) -> dict[str, Vector]:
        """Rows of a kernel with the law in it."""
        gains = {f"gains.{name}": self.gains[:, i] for i, name in enumerate(GAINS)}
        memory = {"integral": self.integral, "filtered": self.filtered, "way": self.way}
        return {"period": self.period[:, None], **gains, **memory}

    def around(self, inner: Lanes, start: Start) -> Lanes:
        """The law as one controller a lane."""
        laws = laws_by_lane(self.law, self.gains, self.integral, self.filtered)
        return LoopLanes(
            inner, controllers(laws, self.law.voltage), self.period, self.way, self.law.delay
        )


def laws_by_lane(law: Law, gains: Vector, integral: Vector, filtered: Vector) -> list[Controller]:
    """One controller a lane: gains (lane, 6, nv), memory (lane, nv) each."""
    kind, names, found = PidGravity if law.gravity else Pid, law.arm.joint_names, list[Controller]()
    for own, *memory in zip(gains, integral, filtered, strict=True):
        by_joint = {j: dict(zip(GAINS, own[:, i], strict=True)) for i, j in enumerate(names)}
        pid = kind(law.arm, by_joint)
        pid.recall(*memory)
        found.append(pid)
    return found


def controllers(laws: Sequence[Controller], by_voltage: bool) -> Tick:
    """One controller a lane as a tick."""

    def tick(q: Vector, v: Vector, reference: Vector, elapsed: Vector) -> Vector:
        told = np.empty_like(q)
        for lane, law in enumerate(laws):
            if not np.isfinite(q[lane]).all():
                told[lane] = np.nan
                continue
            told[lane] = _told(
                law, q[lane], v[lane], reference[lane], float(elapsed[lane]), by_voltage
            )
        return told

    return tick


def _told(
    law: Controller, q: Vector, v: Vector, reference: Vector, elapsed: float, by_voltage: bool
) -> Vector:
    n = q.size
    wanted = Reference(frozen(reference[:n]), frozen(reference[n:]), frozen(np.zeros(n)))
    value = law.update(State.of(q, v), wanted, elapsed).value
    if not by_voltage:
        return value
    motors = law.arm.actuators
    return np.array(
        [m.voltage_for(*x) for m, *x in zip(motors, value.tolist(), v.tolist(), strict=True)]
    )


def memory(law: Law, gains: Vector, start: Start, v: Vector) -> tuple[Vector, Vector]:
    """∫ and v_f (lane, nv) at the start, as ``Pid.reset`` has them; v (lane, nv) as measured."""
    known = np.isfinite(start.effort) & (gains[:, 1] > 0)
    carried = start.effort + gains[:, 2] * v
    if law.gravity and known.any():
        carried = carried - np.array([gravity(law.arm, q) for q in start.q])
    clamp = gains[:, 3]
    return np.where(known, np.clip(carried, -clamp, clamp), 0.0), v.copy()
