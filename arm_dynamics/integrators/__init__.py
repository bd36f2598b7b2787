"""How the arm's motion advances by one time step: one method a file, chosen by name."""

from __future__ import annotations

from arm_dynamics.errors import UnknownName
from arm_dynamics.expect import expect
from arm_dynamics.integrators.adaptive import Adaptive
from arm_dynamics.integrators.base import Integrator, Motion
from arm_dynamics.integrators.explicit_euler import ExplicitEuler
from arm_dynamics.integrators.implicit_midpoint import ImplicitMidpoint
from arm_dynamics.integrators.rk4 import Rk4
from arm_dynamics.integrators.semi_implicit_euler import SemiImplicitEuler
from arm_dynamics.integrators.velocity_verlet import VelocityVerlet

INTEGRATORS: dict[str, type[Integrator]] = {
    c.name: c
    for c in (ExplicitEuler, SemiImplicitEuler, VelocityVerlet, Rk4, ImplicitMidpoint, Adaptive)
}


def integrator(name: str) -> Integrator:
    """An integrator by name; raises UnknownName listing those that exist."""
    if expect(str, "method", name) not in INTEGRATORS:
        raise UnknownName("integrator", name, tuple(INTEGRATORS))
    return INTEGRATORS[name]()


__all__ = ["INTEGRATORS", "Integrator", "Motion", "integrator"]
