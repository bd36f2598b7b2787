"""The one law of MIT mode, and which of its numbers a goal fills in."""

from __future__ import annotations

from typing import NamedTuple

from arm_dynamics.drivers.motor_bus import Goal


class Law(NamedTuple):
    """kp (q - q_m) + kd (v - v_m) + τ at the output shaft, as a command carries it."""

    position: float = 0.0
    velocity: float = 0.0
    kp: float = 0.0
    kd: float = 0.0
    torque: float = 0.0

    def effort(self, q: float, v: float) -> float:
        """What the motor gives at q_m [rad] and v_m [rad/s], in N·m."""
        return self.kp * (self.position - q) + self.kd * (self.velocity - v) + self.torque


def law(goal: Goal, kp: float, kd: float) -> Law:
    """effort: τ alone; velocity: kd (v - v_m) + τ; position: kp (q - q_m) - kd v_m + τ."""
    if goal.interface == "effort":
        return Law(torque=goal.value)
    if goal.interface == "velocity":
        return Law(velocity=goal.value, kd=kd, torque=goal.effort)
    return Law(goal.value, 0.0, kp, kd, goal.effort)
