"""A position servo that moves toward its commanded angle at no more than a set speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import pi
from typing import ClassVar

from arm_dynamics.core.compiled_math import clip, compiled, where
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.simulation.actuators.actuator import Actuator, ActuatorState

TURN = 2 * pi
"""Largest limit angle [rad] of a servo; the least is 0."""


@compiled
def rate_limited_step(angle: float, desired: float, velocity: float, elapsed: float) -> float:
    """q⁺ = q + sgn(d - q) min(|d - q|, elapsed w), landing exactly on d.

    q angle, d desired [rad], w velocity [rad/s], elapsed [s]; no time passes where it is not
    above 0. No constant enters: single-precision arguments give a single-precision result.
    Source: the joint simulation of the MCA2 tutorial on a Puma 560.
    """
    error = desired - angle
    step = elapsed * velocity
    moved = where(error > 0.0, angle + step, angle - step)
    return where(step > 0.0, where(step < abs(error), moved, desired), angle)


@compiled
def rate_limited_target(
    command: float, last: float, desired: float, minimum: float, maximum: float
) -> float:
    """d⁺ = clip(u, minimum, maximum) where the command u arrives, else d; all in rad.

    A command arrives when it differs from the last one: limits that change later leave it alone.
    """
    return where(command != last, clip(command, minimum, maximum), desired)


class RateLimited(Actuator):
    """The joint goes to its commanded angle at ``angular_velocity``, whatever effort that takes.

    Own states: the desired angle, which is the command clamped to the limits of its arrival,
    and the command itself. They distinguish a new command from a held one, so that the motion is
    a function of state and command. At rest they are as after a command of 0 rad, or as ``hold_act``
    sets them. A command that is sent again is clamped to the limits of that moment: ``resent``.
    A change of the velocity acts at once.
    Raises InvalidValue for limits outside 0 to 2 pi rad, a minimum above the maximum, and speeds
    outside 0 to 100 rad/s.
    """

    interfaces: ClassVar[tuple[str, ...]] = ("position",)
    prescribes_motion: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("minimum", 0.0, "rad", "least angle of a command", 0.0, TURN),
        Parameter("maximum", TURN, "rad", "largest angle of a command", 0.0, TURN),
        Parameter("angular_velocity", 1.0, "rad/s", "speed of the joint", 0.0, 100.0),
    )

    def __init__(self, joint: str, effort_limit: float, constants: Mapping[str, float]) -> None:
        super().__init__(joint, effort_limit, constants)
        self._minimum = low = self.constants["minimum"]
        self._maximum = high = self.constants["maximum"]
        self._velocity = self.constants["angular_velocity"]
        if low > high:
            raise InvalidValue(
                f"actuator of joint '{joint}': minimum = {low:g} rad: at most its maximum,"
                f" {high:g} rad, is allowed"
            )

    @property
    def states(self) -> tuple[ActuatorState, ...]:
        """The desired angle and the last command [rad]."""
        zero = clip(0.0, self._minimum, self._maximum)
        return ActuatorState("desired", "rad", zero), ActuatorState("command", "rad", 0.0)

    def effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """0: what the motion takes is the arm's to tell. UnknownName but for "position"."""
        if interface not in self.interfaces:
            raise UnknownName("interface of actuator rate_limited", interface, self.interfaces)
        return 0.0

    def prescribed_motion(
        self, value: float, q: float, act: Sequence[float], elapsed: float
    ) -> tuple[float, Sequence[float]]:
        """Angle [rad] after ``elapsed`` [s] under the command ``value`` [rad], and own states."""
        desired, last = act
        desired = rate_limited_target(value, last, desired, self._minimum, self._maximum)
        return rate_limited_step(q, desired, self._velocity, elapsed), (desired, value)

    def resent(self, value: float, act: Sequence[float]) -> Sequence[float]:
        """The last command ``value`` [rad] is clamped again, to the present limits."""
        desired, last = act
        return (clip(value, self._minimum, self._maximum) if value == last else desired), last

    def hold_act(self, q: float, act: Sequence[float]) -> Sequence[float]:
        """Nothing is desired but ``q``, within the limits or not, until another command."""
        return q, q
