"""From one motion of the tool into another without a jump: a difference that fades out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.kinematics import acceleration, pose, twist
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.state import Reference, TaskReference
from arm_dynamics.trajectories.polynomials import evaluate, joining
from arm_dynamics.trajectories.turning import turning, turning_rates

NOTHING = frozen(np.zeros(6))
ROUNDING = 1e-12
"""Difference that counts as none."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What is added to a plan from ``begin`` to ``end`` [s].

    A quintic polynomial of columns (12 + nv): position, rotation vector, wrench and posture
    that the plan lacks. It ends at 0 with its first two derivatives.
    """

    begin: float
    end: float
    coefficients: Vector

    @classmethod
    def between(
        cls, planned: TaskReference, present: TaskReference, begin: float, end: float
    ) -> Entry | None:
        """From ``present`` to ``planned``, both at ``begin``; None where they are the same."""
        missing = _difference(planned, present)
        if max(np.abs(x).max() for x in missing) < ROUNDING:
            return None
        p, v, a = ((x, np.zeros_like(x)) for x in missing)
        return cls(begin, end, frozen(joining(end - begin, p, v, a)))

    def added(self, planned: TaskReference, time: float) -> TaskReference:
        """``planned`` with this on top; both at ``time`` [s]."""
        return _sum(planned, *evaluate(self.coefficients, time - self.begin))


def task_of(arm: ArmModel, reference: Reference) -> TaskReference:
    """A plain reference as that of its tool: p, R of q, J v, J a + J̇ v, no wrench."""
    if isinstance(reference, TaskReference):
        return reference
    q, v, a = reference.q, reference.v, reference.a
    rates, changes = twist(arm, q, v), acceleration(arm, q, v, a)
    return TaskReference(q, v, a, *pose(arm, q), rates, changes, NOTHING)


def stopped(r: TaskReference) -> TaskReference:
    """Standing still where ``r`` is."""
    still = frozen(np.zeros_like(r.q))
    return TaskReference(r.q, still, still, r.position, r.rotation, NOTHING, NOTHING, r.wrench)


def _difference(plan: TaskReference, present: TaskReference) -> tuple[Vector, Vector, Vector]:
    """Values, rates and second derivatives (12 + nv,) that ``plan`` lacks to be ``present``.

    R = E R_plan, ω = Ω + E ω_plan, ω̇ = Ω̇ + E ω̇_plan + Ω × E ω_plan.
    """
    phi = pin.log3(present.rotation @ plan.rotation.T)
    E = pin.exp3(phi)
    base = E @ plan.twist[3:]
    omega = present.twist[3:] - base
    alpha = present.acceleration[3:] - E @ plan.acceleration[3:] - pin.skew(omega) @ base
    rate, second = turning_rates(phi, omega, alpha)
    p, v, a = (
        present.position - plan.position,
        present.twist[:3] - plan.twist[:3],
        present.acceleration[:3] - plan.acceleration[:3],
    )
    return (
        np.concatenate([p, phi, present.wrench - plan.wrench, present.q - plan.q]),
        np.concatenate([v, rate, NOTHING, present.v - plan.v]),
        np.concatenate([a, second, NOTHING, present.a - plan.a]),
    )


def _sum(plan: TaskReference, x: Vector, v: Vector, a: Vector) -> TaskReference:
    """``plan`` with a difference of these values, rates and second derivatives on top."""
    E, omega, alpha = turning(x[3:6], v[3:6], a[3:6])
    base = E @ plan.twist[3:]
    change = alpha + E @ plan.acceleration[3:] + pin.skew(omega) @ base
    return TaskReference(
        frozen(plan.q + x[12:]),
        frozen(plan.v + v[12:]),
        frozen(plan.a + a[12:]),
        frozen(plan.position + x[:3]),
        frozen(E @ plan.rotation),
        frozen(np.concatenate([plan.twist[:3] + v[:3], omega + base])),
        frozen(np.concatenate([plan.acceleration[:3] + a[:3], change])),
        frozen(plan.wrench + x[6:12]),
    )
