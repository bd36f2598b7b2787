"""The one law of MIT mode, and which of its numbers a goal fills in."""

from __future__ import annotations

from arm_dynamics.hardware.motor_bus import MotorCommand

MitCommand = tuple[float, float, float, float, float]
"""q, v, kp, kd and τ of kp (q - q_m) + kd (v - v_m) + τ, at the output shaft."""


def mit_command(goal: MotorCommand, kp: float, kd: float) -> MitCommand:
    """effort: τ alone; velocity: kd (v - v_m) + τ; position: kp (q - q_m) - kd v_m + τ."""
    if goal.interface == "effort":
        return 0.0, 0.0, 0.0, 0.0, goal.value
    if goal.interface == "velocity":
        return 0.0, goal.value, 0.0, kd, goal.feedforward_effort
    return goal.value, 0.0, kp, kd, goal.feedforward_effort


def commanded_torque(law: MitCommand, q: float, v: float) -> float:
    """What a motor gives at q_m [rad] and v_m [rad/s], in N·m."""
    position, velocity, kp, kd, torque = law
    return kp * (position - q) + kd * (velocity - v) + torque
