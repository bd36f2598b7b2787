"""Samples of a motion of an arm, with energies and tool positions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.dynamics.kinematics.frames import joint_origins
from arm_dynamics.dynamics.rigid_body import kinetic_energy, potential_energy
from arm_dynamics.model.arm_model import ArmModel


@dataclass(frozen=True, eq=False)
class MotionRecord:
    """Samples of a motion: time (n,) [s]; q [rad], v [rad/s], tau [N·m], each (n, nv)."""

    arm: ArmModel
    time: Vector
    q: Vector
    v: Vector
    tau: Vector

    @cached_property
    def kinetic(self) -> Vector:
        """T(q, v) (n,) [J]."""
        pairs = zip(self.q, self.v, strict=True)
        return as_readonly([kinetic_energy(self.arm, q, v) for q, v in pairs])

    @cached_property
    def potential(self) -> Vector:
        """U(q) (n,) [J]."""
        return as_readonly([potential_energy(self.arm, q) for q in self.q])

    @property
    def energy(self) -> Vector:
        """T + U (n,) [J]."""
        return as_readonly(self.kinetic + self.potential)

    @cached_property
    def points(self) -> Vector:
        """Origins of the joints and of the tool (n, nv + 1, 3) [m]."""
        return as_readonly([joint_origins(self.arm, q) for q in self.q])

    @property
    def tool(self) -> Vector:
        """Positions of the tool (n, 3) [m]."""
        return as_readonly(self.points[:, -1])

    def work(self, power: Vector) -> Vector:
        """∫ power dt (n,) [J] of ``power`` (n,) [W] by the trapezoidal rule."""
        mean = (power[1:] + power[:-1]) / 2
        return as_readonly(np.concatenate([[0.0], np.cumsum(mean * np.diff(self.time))]))
