"""What acts on the joints at one instant, term by term."""

from __future__ import annotations

from dataclasses import dataclass

from arm_dynamics.arrays import Vector


@dataclass(frozen=True, slots=True, eq=False)
class JointEfforts:
    """M(q) v̇ + C(q, v) v + g(q) = applied + viscous + stop + dry,  -forward <= dry <= backward.

    Each (nv,) [N·m], read-only. ``computed`` is what the command asks of the actuators, before
    supply, current, temperature and gear limit it; ``applied`` is what they give. ``forward``
    and ``backward`` are the largest dry friction against forward and against backward motion.
    """

    computed: Vector
    applied: Vector
    viscous: Vector
    stop: Vector
    forward: Vector
    backward: Vector


@dataclass(frozen=True, slots=True, eq=False)
class MotorValues:
    """Voltage [V] and temperature [°C] of each motor, (nv,) each; NaN where it has none."""

    voltage: Vector
    temperature: Vector
