"""What a tool is sent to while it may be moving: a pose, or a velocity for some time.

The tool sent to goals that may change at any time: each goes on from its present motion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.control.trajectories.transition_blend import (
    ZERO_TWIST,
    TransitionBlend,
    at_rest,
    to_task_reference,
)
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.rotations import rotation_vector
from arm_dynamics.core.state import Reference, TaskReference
from arm_dynamics.dynamics.kinematics import AXIS_NAMES
from arm_dynamics.dynamics.kinematics.pose_target import check_coordinates, rotation_matrix
from arm_dynamics.dynamics.kinematics.tool_motion import controlled_axes
from arm_dynamics.model.arm_model import ArmModel

SETTLING = 0.4
"""Least time [s] for what is left of a way: close to a pose the speed falls with the distance."""
AXIS_NOISE = 1e-9
"""Part of a velocity along an axis that an arm does not control that counts as none."""


@dataclass(frozen=True, slots=True, eq=False)
class TwistProfile:
    """A twist (6,) [m/s, rad/s] held for ``cruise`` [s] that then falls to 0 in ``braking`` [s]."""

    twist: Vector
    cruise: float
    braking: float

    def at(self, time: float) -> tuple[float, float, float]:
        """σ [s], σ' and σ'' [1/s] ``time`` [s] after its begin: how far it is, twist σ' in force.

        σ' = 1 until ``cruise``, then 1 - τ / T_b.
        """
        if time < self.cruise:
            return time, 1.0, 0.0
        left = self.cruise + self.braking - time
        if left <= 0:
            return self.cruise + self.braking / 2, 0.0, 0.0
        share = left / self.braking
        return self.cruise + self.braking / 2 * (1 - share**2), share, -1 / self.braking


class CartesianTarget(Protocol):
    """Where to, from anywhere, within limits."""

    @property
    def limits(self) -> ToolLimits:
        """Speeds and accelerations of the tool."""
        ...

    def glide(self, position: Vector, rotation: Vector) -> TwistProfile:
        """From a tool at ``position`` (3,) and ``rotation`` (3, 3)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class TargetPose:
    """Straight to a pose, turning at an even pace about one axis, within ``limits``.

    Axes that the arm does not control, ``axes`` (6,) 0 or 1, are left as they are.
    """

    position: Vector
    rotation: Vector
    limits: ToolLimits
    axes: Vector

    @classmethod
    def of(
        cls, arm: ArmModel, position: ArrayLike, rotation: ArrayLike, limits: ToolLimits
    ) -> TargetPose:
        """Checked; raises InvalidValue for what is no pose."""
        axes = as_readonly(np.array(controlled_axes(arm), dtype=float))
        turned = rotation_matrix("rotation", rotation)
        return cls(check_coordinates("position", position, 3), turned, limits, axes)

    def glide(self, position: Vector, rotation: Vector) -> TwistProfile:
        """v = way / T; at the speed limits but for the end, where √(2 a distance) is less."""
        way = self.axes * np.append(
            self.position - position, rotation_vector(rotation, self.rotation)
        )
        T = max(
            _slowest(way, self.limits.max_linear_velocity, self.limits.max_angular_velocity),
            SETTLING,
        )
        twist = way / T
        braking = braking_time(twist, self.limits)
        if braking > 2 * T:  # it would pass the pose: slower
            share = sqrt(2 * T / braking)
            T, twist, braking = T / share, share * twist, share * braking
        return TwistProfile(as_readonly(twist), T - braking / 2, braking)


@dataclass(frozen=True, slots=True, eq=False)
class TargetTwist:
    """A velocity for ``duration`` [s], then to rest."""

    twist: Vector
    duration: float
    limits: ToolLimits

    @classmethod
    def of(
        cls, arm: ArmModel, twist: ArrayLike, duration: float, limits: ToolLimits
    ) -> TargetTwist:
        """Checked twist (6,) [m/s, rad/s], slowed down in its direction to the speeds allowed.

        Raises InvalidValue naming an axis that is asked for and that the arm does not control.
        """
        found, axes = check_vector("twist", twist, 6), controlled_axes(arm)
        for name, value, on in zip(AXIS_NAMES, found.tolist(), axes, strict=True):
            if not on and abs(value) > AXIS_NOISE:
                able = ", ".join(n for n, a in zip(AXIS_NAMES, axes, strict=True) if a)
                raise InvalidValue(
                    f"twist: {name} = {value:g}: arm '{arm.name}' controls {able} of its tool"
                )
        share = max(_slowest(found, limits.max_linear_velocity, limits.max_angular_velocity), 1.0)
        return cls(
            as_readonly(found / share), check_float("duration [s]", duration, lower=0), limits
        )

    def glide(self, position: Vector, rotation: Vector) -> TwistProfile:
        """The same from everywhere."""
        del position, rotation
        return TwistProfile(self.twist, self.duration, braking_time(self.twist, self.limits))


def braking_time(twist: Vector, limits: ToolLimits) -> float:
    """max(|v| / a, |ω| / α) [s]."""
    return _slowest(twist, limits.max_linear_acceleration, limits.max_angular_acceleration)


def _slowest(six: Vector, straight: float, turn: float) -> float:
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(six[:3]), np.linalg.norm(six[3:])
    return float(max(lengths[0] / straight, lengths[1] / turn))


MIN_BLEND_TIME = 0.05
"""Least time [s] in which the velocity passes from the present one into a goal's."""


@dataclass(frozen=True, eq=False)
class OnlineCartesianTrajectory:
    """p = p0 + σ(t) v,  R = exp(σ(t) [ω]×) R0; at first the present motion passes into it.

    The way begins (v - v_now) T / 2 behind the tool, so that the speed rises evenly within the
    ``blend_time`` T and never beyond the goal's.
    """

    arm: ArmModel
    goal: CartesianTarget
    start: float
    position: Vector
    rotation: Vector
    posture: Vector
    glide: TwistProfile
    entry: TransitionBlend | None = None

    @classmethod
    def toward(
        cls, arm: ArmModel, goal: CartesianTarget, now: float, present: Reference
    ) -> OnlineCartesianTrajectory:
        """From the ``present`` reference at ``now`` [s] to ``goal``."""
        told = to_task_reference(arm, present)
        change = told.twist - goal.glide(told.position, told.rotation).twist
        T = blend_time(change, goal.limits)
        where = as_readonly(told.position + change[:3] * T / 2)
        turned = as_readonly(pin.exp3(change[3:] * T / 2) @ told.rotation)
        plan = cls(arm, goal, now, where, turned, told.q, goal.glide(where, turned))
        return replace(plan, entry=TransitionBlend.between(plan.at(now), told, now, now + T))

    @property
    def end(self) -> float:
        """Time [s] from which on the tool stands still."""
        over = self.start + self.glide.cruise + self.glide.braking
        return over if self.entry is None else max(over, self.entry.end)

    def at(self, time: float) -> TaskReference:
        """What the tool should do at ``time`` [s]; it stands before the start."""
        if time < self.start:
            return at_rest(self.at(self.start))
        planned = self._planned(time)
        if self.entry is None or time >= self.entry.end:
            return planned
        return self.entry.added(planned, time)

    def _planned(self, time: float) -> TaskReference:
        s, rate, change = self.glide.at(time - self.start)
        twist, still = self.glide.twist, as_readonly(np.zeros(self.arm.nv))
        position = as_readonly(self.position + s * twist[:3])
        rotation = as_readonly(pin.exp3(s * twist[3:]) @ self.rotation)
        moving = as_readonly(rate * twist), as_readonly(change * twist)
        return TaskReference(self.posture, still, still, position, rotation, *moving, ZERO_TWIST)

    def starting_from(self, now: float, current_reference: Reference) -> OnlineCartesianTrajectory:
        """To the same goal from the ``current_reference`` reference."""
        return OnlineCartesianTrajectory.toward(self.arm, self.goal, now, current_reference)

    def check(self, arm: ArmModel) -> None:
        """Nothing to refuse: a law of the tool goes as near as its arm can."""


def blend_time(change: Vector, limits: ToolLimits) -> float:
    """T = 3/2 max(|Δv| / a, |Δω| / α) [s]: what an even rise takes; at least SHORTEST."""
    return max(1.5 * braking_time(change, limits), MIN_BLEND_TIME)
