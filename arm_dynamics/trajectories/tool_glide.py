"""The tool sent to goals that may change at any time: each goes on from its present motion."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.state import Reference, TaskReference
from arm_dynamics.trajectories.tool_entry import NOTHING, Entry, stopped, task_of
from arm_dynamics.trajectories.tool_goals import Glide, ToolGoal, braking_time
from arm_dynamics.trajectories.tool_paths import ToolLimits

SHORTEST = 0.05
"""Least time [s] in which the velocity passes from the present one into a goal's."""


@dataclass(frozen=True, eq=False)
class ToolGlide:
    """p = p0 + σ(t) v,  R = exp(σ(t) [ω]×) R0; at first the present motion passes into it.

    The way begins (v - v_now) T / 2 behind the tool, so that the speed rises evenly within the
    ``entry_time`` T and never beyond the goal's.
    """

    arm: ArmModel
    goal: ToolGoal
    start: float
    position: Vector
    rotation: Vector
    posture: Vector
    glide: Glide
    entry: Entry | None = None

    @classmethod
    def to(cls, arm: ArmModel, goal: ToolGoal, now: float, present: Reference) -> ToolGlide:
        """From the ``present`` reference at ``now`` [s] to ``goal``."""
        told = task_of(arm, present)
        change = told.twist - goal.glide(told.position, told.rotation).twist
        T = entry_time(change, goal.limits)
        where = frozen(told.position + change[:3] * T / 2)
        turned = frozen(pin.exp3(change[3:] * T / 2) @ told.rotation)
        plan = cls(arm, goal, now, where, turned, told.q, goal.glide(where, turned))
        return replace(plan, entry=Entry.between(plan.at(now), told, now, now + T))

    @property
    def end(self) -> float:
        """Time [s] from which on the tool stands still."""
        over = self.start + self.glide.cruise + self.glide.braking
        return over if self.entry is None else max(over, self.entry.end)

    def at(self, time: float) -> TaskReference:
        """What the tool should do at ``time`` [s]; it stands before the start."""
        if time < self.start:
            return stopped(self.at(self.start))
        planned = self._planned(time)
        if self.entry is None or time >= self.entry.end:
            return planned
        return self.entry.added(planned, time)

    def _planned(self, time: float) -> TaskReference:
        s, rate, change = self.glide.at(time - self.start)
        twist, still = self.glide.twist, frozen(np.zeros(self.arm.nv))
        position = frozen(self.position + s * twist[:3])
        rotation = frozen(pin.exp3(s * twist[3:]) @ self.rotation)
        moving = frozen(rate * twist), frozen(change * twist)
        return TaskReference(self.posture, still, still, position, rotation, *moving, NOTHING)

    def after(self, now: float, present: Reference) -> ToolGlide:
        """To the same goal from the ``present`` reference."""
        return ToolGlide.to(self.arm, self.goal, now, present)

    def check(self, arm: ArmModel) -> None:
        """Nothing to refuse: a law of the tool goes as near as its arm can."""


def entry_time(change: Vector, limits: ToolLimits) -> float:
    """T = 3/2 max(|Δv| / a, |Δω| / α) [s]: what an even rise takes; at least SHORTEST."""
    return max(1.5 * braking_time(change, limits), SHORTEST)
