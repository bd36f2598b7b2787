"""A PID law that runs inside a kernel: what it is made for, and its ticks and scores on symbols.

A PID law beside the lanes of a batch: in the kernel, or as controllers around other lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arm_dynamics.batch.rollout.backends import select_backend
from arm_dynamics.batch.rollout.batch_stepper import BatchStepper
from arm_dynamics.batch.rollout.closed_loop_stepper import ClosedLoopStepper, Tick
from arm_dynamics.batch.rollout.inputs import InitialStates
from arm_dynamics.batch.rollout.task_runner import RolloutTask
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.pid import Pid, PidGravity
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.model.arm_model import ArmModel

GAINS = tuple(p.name for p in Pid.parameters)
"""Names of the rows "gains.p" ..., in the law's order."""
METRICS = ("iae", "peak_effort", "overshoot", "settled_error")
"""IAE = Σ T |e| [rad s]; max |effort| [N·m]; largest way beyond the reference, seen from the
start, [rad]; max |e| [rad] in the last part of the time. e = q_ref - q at the ends of periods."""


@dataclass(frozen=True, eq=False)
class PidSpec:
    """PID with ``arm`` as the law's own model; what differs by lane is in rows instead.

    gravity: adds g(q) of ``arm``; voltage: the effort goes out as the voltage that gives it;
    delay: a command acts one period late; noise: the measured q and v are disturbed.
    """

    arm: ArmModel
    gravity: bool
    voltage: bool
    delay: bool
    noise: bool

    def __post_init__(self) -> None:
        """Raise InvalidValue for a law by voltage whose model has a motor that tells none."""
        for actuator in self.arm.actuators if self.voltage else ():
            if not hasattr(actuator, "voltage_for"):
                raise InvalidValue(
                    f"joint '{actuator.joint}' of the law's model: actuator"
                    f" {type(actuator).__name__} tells no voltage for an effort; dc_motor, or"
                    " interface 'effort', is expected"
                )

    @property
    def interface(self) -> str:
        """What the commands ask for."""
        return "voltage" if self.voltage else "effort"

    @property
    def key(self) -> tuple[Any, ...]:
        """What a kernel's text depends on, besides the numbers of ``arm``."""
        return self.gravity, self.voltage, self.delay, self.noise

    @property
    def given(self) -> dict[str, int]:
        """Rows that each period is given, and their sizes."""
        n = self.arm.nv
        noise = {"noise_q": n, "noise_v": n} if self.noise else {}
        return {"q_ref": n, "v_ref": n, "running": 1, "late_part": 1, **noise}

    @property
    def kept(self) -> dict[str, int]:
        """Rows that are filled once, or carried from period to period, and their sizes."""
        n = self.arm.nv
        held = ("integral", "filtered", *(("pending",) if self.delay else ()), "way", *METRICS)
        return {"period": 1, **{f"gains.{g}": n for g in GAINS}, **dict.fromkeys(held, n)}

    @property
    def motors(self) -> Vector:
        """Constants of the motors as the law believes them, (nv, constants)."""
        return np.array([actuator.kernel_constants() for actuator in self.arm.actuators])


LAWS: dict[type[Controller], bool] = {Pid: False, PidGravity: True}
"""Controllers that run inside kernels, and whether they add gravity."""


@dataclass(frozen=True, eq=False)
class PidLoop:
    """The law, and by lane: gains (lane, 6, nv), memory at the start, way of overshoot, period."""

    law: PidSpec
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

    def maker(self, work: RolloutTask) -> Callable[[RolloutTask], BatchStepper]:
        """What makes the lanes of parts of ``work``, the law with them."""
        name, make = select_backend(
            work.backend, work.arm, work.setup, tuple(work.varied), self.law
        )
        if name == "generated":
            return lambda part: make(part.start, part.dt, {**part.varied, **part.loop.rows()})
        return lambda part: part.loop.wrap(make(part.start, part.dt, part.varied), part.start)

    def rows(self) -> dict[str, Vector]:
        """Rows of a kernel with the law in it."""
        gains = {f"gains.{name}": self.gains[:, i] for i, name in enumerate(GAINS)}
        memory = {"integral": self.integral, "filtered": self.filtered, "way": self.way}
        return {"period": self.period[:, None], **gains, **memory}

    def wrap(self, inner: BatchStepper, start: InitialStates) -> BatchStepper:
        """The law as one controller a lane."""
        laws = controllers_by_rollout(self.law, self.gains, self.integral, self.filtered)
        return ClosedLoopStepper(
            inner, controllers(laws, self.law.voltage), self.period, self.way, self.law.delay
        )


def controllers_by_rollout(
    law: PidSpec, gains: Vector, integral: Vector, filtered: Vector
) -> list[Controller]:
    """One controller a lane: gains (lane, 6, nv), memory (lane, nv) each."""
    kind, names, found = PidGravity if law.gravity else Pid, law.arm.joint_names, list[Controller]()
    for own, *memory in zip(gains, integral, filtered, strict=True):
        by_joint = {j: dict(zip(GAINS, own[:, i], strict=True)) for i, j in enumerate(names)}
        pid = kind(law.arm, by_joint)
        pid.set_memory(*memory)
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
    wanted = Reference(
        as_readonly(reference[:n]), as_readonly(reference[n:]), as_readonly(np.zeros(n))
    )
    value = law.update(State.of(q, v), wanted, elapsed).value
    if not by_voltage:
        return value
    motors = law.arm.actuators
    return np.array(
        [m.voltage_for(*x) for m, *x in zip(motors, value.tolist(), v.tolist(), strict=True)]
    )


def memory(law: PidSpec, gains: Vector, start: InitialStates, v: Vector) -> tuple[Vector, Vector]:
    """∫ and v_f (lane, nv) at the start, as ``Pid.reset`` has them; v (lane, nv) as measured."""
    known = np.isfinite(start.effort) & (gains[:, 1] > 0)
    carried = start.effort + gains[:, 2] * v
    if law.gravity and known.any():
        carried = carried - np.array([gravity(law.arm, q) for q in start.q])
    clamp = gains[:, 3]
    return np.where(known, np.clip(carried, -clamp, clamp), 0.0), v.copy()
