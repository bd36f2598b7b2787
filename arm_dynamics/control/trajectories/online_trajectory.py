"""Online trajectory generation of the tool: targets that may change while the tool moves."""

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
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.rotations import rotation_vector
from arm_dynamics.core.state import Reference, TaskReference
from arm_dynamics.dynamics.kinematics.frames import AXIS_NAMES
from arm_dynamics.dynamics.kinematics.pose_target import check_coordinates, rotation_matrix
from arm_dynamics.dynamics.kinematics.tool_motion import controlled_axes
from arm_dynamics.model.arm_model import ArmModel

SETTLING_TIME = 0.4
"""Minimum time of the remaining distance [s]: near a target the velocity is proportional to it."""
AXIS_NOISE = 1e-9
"""Velocity [m/s, rad/s] along an axis that the arm does not control that counts as 0."""
MIN_BLEND_TIME = 0.05
"""Minimum time in which the current velocity changes to the target's [s]."""


@dataclass(frozen=True, slots=True, eq=False)
class TwistProfile:
    """A twist (6,) [m/s, rad/s] for ``cruise`` [s] that then decreases to 0 in ``braking`` [s]."""

    twist: Vector
    cruise: float
    braking: float

    def at(self, time: float) -> tuple[float, float, float]:
        """Return σ [s], σ' and σ'' [1/s] at ``time`` [s] after the start; the twist is σ' twist.

        σ' = 1 during ``cruise``, then 1 - τ / T_b.
        """
        if time < self.cruise:
            return time, 1.0, 0.0
        remaining = self.cruise + self.braking - time
        if remaining <= 0:
            return self.cruise + self.braking / 2, 0.0, 0.0
        fraction = remaining / self.braking
        travel = self.cruise + self.braking / 2 * (1 - fraction**2)
        return travel, fraction, -1 / self.braking


class CartesianTarget(Protocol):
    """A target with the limits of the motion to it."""

    @property
    def limits(self) -> ToolLimits:
        """Velocity and acceleration limits of the tool."""
        ...

    def glide(self, position: Vector, rotation: Matrix) -> TwistProfile:
        """Return the motion from a tool at ``position`` (3,) [m] and ``rotation`` (3, 3)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class TargetPose:
    """Target pose, approached straight and with a constant axis of rotation.

    Parameters
    ----------
    position : (3,) array
        Position [m] in the base frame.
    rotation : (3, 3) array
        Orientation in the base frame.
    limits : ToolLimits
        Velocity and acceleration limits.
    axes : (6,) array
        1 for axes that the arm controls, 0 for the others, which stay as they are.

    """

    position: Vector
    rotation: Matrix
    limits: ToolLimits
    axes: Vector

    @classmethod
    def of(
        cls, arm: ArmModel, position: ArrayLike, rotation: ArrayLike, limits: ToolLimits
    ) -> TargetPose:
        """Return a checked target.

        Parameters
        ----------
        arm : ArmModel
            Arm that moves.
        position : (3,) array
            Position [m] in the base frame.
        rotation : (3, 3) array
            Orientation in the base frame.
        limits : ToolLimits
            Velocity and acceleration limits.

        Raises
        ------
        InvalidValue
            For an invalid pose.

        """
        axes = as_readonly(np.array(controlled_axes(arm), dtype=float))
        target = rotation_matrix("rotation", rotation)
        return cls(check_coordinates("position", position, 3), target, limits, axes)

    def glide(self, position: Vector, rotation: Matrix) -> TwistProfile:
        """Return v = distance / T at the velocity limits; √(2 a distance) near the target."""
        turn = rotation_vector(rotation, self.rotation)
        distance = self.axes * np.append(self.position - position, turn)
        limits = self.limits
        T = max(
            _duration(distance, limits.max_linear_velocity, limits.max_angular_velocity),
            SETTLING_TIME,
        )
        twist = distance / T
        braking = braking_time(twist, limits)
        if braking > 2 * T:  # it would overshoot: slower
            scale = sqrt(2 * T / braking)
            T, twist, braking = T / scale, scale * twist, scale * braking
        return TwistProfile(as_readonly(twist), T - braking / 2, braking)


@dataclass(frozen=True, slots=True, eq=False)
class TargetTwist:
    """Target velocity for a duration, then rest.

    Parameters
    ----------
    twist : (6,) array
        Velocity [m/s, rad/s] in the base frame.
    duration : float
        Duration [s].
    limits : ToolLimits
        Velocity and acceleration limits.

    """

    twist: Vector
    duration: float
    limits: ToolLimits

    @classmethod
    def of(
        cls, arm: ArmModel, twist: ArrayLike, duration: float, limits: ToolLimits
    ) -> TargetTwist:
        """Return a checked target, scaled down to the velocity limits.

        Parameters
        ----------
        arm : ArmModel
            Arm that moves.
        twist : (6,) array
            Velocity [m/s, rad/s] in the base frame.
        duration : float
            Duration [s].
        limits : ToolLimits
            Velocity and acceleration limits.

        Raises
        ------
        InvalidValue
            For a velocity along an axis that the arm does not control.

        """
        checked, axes = check_vector("twist", twist, 6), controlled_axes(arm)
        for name, value, on in zip(AXIS_NAMES, checked.tolist(), axes, strict=True):
            if not on and abs(value) > AXIS_NOISE:
                able = ", ".join(n for n, a in zip(AXIS_NAMES, axes, strict=True) if a)
                raise InvalidValue(
                    f"twist: {name} = {value:g}; expected 0: arm '{arm.name}' controls {able} of"
                    " its tool"
                )
        v, w = limits.max_linear_velocity, limits.max_angular_velocity
        slower = max(_duration(checked, v, w), 1.0)
        length = check_float("duration [s]", duration, lower=0)
        return cls(as_readonly(checked / slower), length, limits)

    def glide(self, position: Vector, rotation: Matrix) -> TwistProfile:
        """Return the motion, the same from every pose."""
        del position, rotation
        return TwistProfile(self.twist, self.duration, braking_time(self.twist, self.limits))


def braking_time(twist: Vector, limits: ToolLimits) -> float:
    """Return max(|v| / a, |ω| / α) [s]."""
    return _duration(twist, limits.max_linear_acceleration, limits.max_angular_acceleration)


def blend_time(change: Vector, limits: ToolLimits) -> float:
    """Return T = 3/2 max(|Δv| / a, |Δω| / α) [s] of a smooth change; at least MIN_BLEND_TIME."""
    return max(1.5 * braking_time(change, limits), MIN_BLEND_TIME)


def _duration(six: Vector, linear: float, angular: float) -> float:
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(six[:3]), np.linalg.norm(six[3:])
    return float(max(lengths[0] / linear, lengths[1] / angular))


@dataclass(frozen=True, eq=False)
class OnlineCartesianTrajectory:
    """p = p0 + σ(t) v,  R = exp(σ(t) [ω]×) R0; at the start the current motion blends into it.

    The path starts (v - v_now) T / 2 behind the tool, so that within the blend time T the velocity
    changes evenly and never exceeds the target's.

    Parameters
    ----------
    arm : ArmModel
        Arm that moves.
    goal : CartesianTarget
        Target pose or twist.
    start : float
        Start time [s].
    position, rotation : (3,), (3, 3) arrays
        Start p0 [m] and R0 of the path.
    posture : (nv,) array
        Null-space posture [rad or m].
    glide : TwistProfile
        Motion σ(t) with the twist (v, ω).
    entry : TransitionBlend, optional
        Blend from the motion before.

    """

    arm: ArmModel
    goal: CartesianTarget
    start: float
    position: Vector
    rotation: Matrix
    posture: Vector
    glide: TwistProfile
    entry: TransitionBlend | None = None

    @classmethod
    def toward(
        cls, arm: ArmModel, goal: CartesianTarget, now: float, current_reference: Reference
    ) -> OnlineCartesianTrajectory:
        """Return the motion from a reference to a target.

        Parameters
        ----------
        arm : ArmModel
            Arm that moves.
        goal : CartesianTarget
            Target pose or twist.
        now : float
            Start time [s].
        current_reference : Reference
            Reference at ``now``.

        """
        current = to_task_reference(arm, current_reference)
        change = current.twist - goal.glide(current.position, current.rotation).twist
        T = blend_time(change, goal.limits)
        position = as_readonly(current.position + change[:3] * T / 2)
        rotation = as_readonly(pin.exp3(change[3:] * T / 2) @ current.rotation)
        profile = goal.glide(position, rotation)
        plan = cls(arm, goal, now, position, rotation, current.q, profile)
        return replace(plan, entry=TransitionBlend.between(plan.at(now), current, now, now + T))

    @property
    def end(self) -> float:
        """Time from which the tool rests [s]."""
        over = self.start + self.glide.cruise + self.glide.braking
        return over if self.entry is None else max(over, self.entry.end)

    def at(self, time: float) -> TaskReference:
        """Return the reference at ``time`` [s]; at rest before the start."""
        if time < self.start:
            return at_rest(self.at(self.start))
        s, rate, change = self.glide.at(time - self.start)
        twist, zero = self.glide.twist, as_readonly(np.zeros(self.arm.nv))
        position = as_readonly(self.position + s * twist[:3])
        rotation = as_readonly(pin.exp3(s * twist[3:]) @ self.rotation)
        moving = as_readonly(rate * twist), as_readonly(change * twist)
        planned = TaskReference(self.posture, zero, zero, position, rotation, *moving, ZERO_TWIST)
        if self.entry is None or time >= self.entry.end:
            return planned
        return self.entry.added(planned, time)

    def starting_from(self, now: float, current_reference: Reference) -> OnlineCartesianTrajectory:
        """Return the motion to the same target from a reference at ``now`` [s]."""
        return OnlineCartesianTrajectory.toward(self.arm, self.goal, now, current_reference)

    def check(self, arm: ArmModel) -> None:
        """Accept: the controller tracks the nearest reachable pose."""
