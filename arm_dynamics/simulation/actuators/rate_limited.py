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
    """A position servo: the joint moves to its command at ``max_velocity``, whatever the effort.

    Actuator states: the desired angle, which is the command clamped to the limits at the time of
    its arrival, and the command itself. They distinguish a new command from a held one, so that
    the motion is a function of state and command. The initial states are those after a command of
    0 rad, or those that ``hold_act`` sets. A command that is sent again is clamped to the limits
    of that moment, see ``act_after_command``. A change of the velocity acts immediately.

    Raises
    ------
    InvalidValue
        If a limit is outside [0, 2 pi] rad, min_position is above max_position, or the speed is
        outside [0, 100] rad/s.

    """

    interfaces: ClassVar[tuple[str, ...]] = ("position",)
    prescribes_motion: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("min_position", 0.0, "rad", "smallest position of a command", 0.0, TURN),
        Parameter("max_position", TURN, "rad", "largest position of a command", 0.0, TURN),
        Parameter("max_velocity", 1.0, "rad/s", "speed of the joint", 0.0, 100.0),
    )

    def __init__(self, joint: str, effort_limit: float, constants: Mapping[str, float]) -> None:
        super().__init__(joint, effort_limit, constants)
        self._lower = low = self.constants["min_position"]
        self._upper = high = self.constants["max_position"]
        self._speed = self.constants["max_velocity"]
        if low > high:
            raise InvalidValue(
                f"actuator of joint '{joint}': min_position = {low:g} rad;"
                f" expected at most max_position = {high:g} rad"
            )

    @property
    def states(self) -> tuple[ActuatorState, ...]:
        """The desired angle and the last command [rad]."""
        zero = clip(0.0, self._lower, self._upper)
        return ActuatorState("desired", "rad", zero), ActuatorState("command", "rad", 0.0)

    def effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Return 0; raises UnknownName for an interface other than "position"."""
        if interface not in self.interfaces:
            raise UnknownName("interface of actuator rate_limited", interface, self.interfaces)
        return 0.0

    def prescribed_motion(
        self, value: float, q: float, act: Sequence[float], elapsed: float
    ) -> tuple[float, Sequence[float]]:
        """Return angle [rad] and states after ``elapsed`` [s] under the command ``value`` [rad]."""
        desired, last = act
        desired = rate_limited_target(value, last, desired, self._lower, self._upper)
        return rate_limited_step(q, desired, self._speed, elapsed), (desired, value)

    def act_after_command(self, value: float, act: Sequence[float]) -> Sequence[float]:
        """Return the states with the command ``value`` [rad] clamped to the present limits."""
        desired, last = act
        return (clip(value, self._lower, self._upper) if value == last else desired), last

    def hold_act(self, q: float, act: Sequence[float]) -> Sequence[float]:
        """Return the states that hold ``q``, within the limits or not, until another command."""
        return q, q
