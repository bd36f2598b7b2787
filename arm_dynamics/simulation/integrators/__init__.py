"""Numerical methods of one time step, chosen by name."""

from __future__ import annotations

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.simulation.integrators.adaptive import Adaptive
from arm_dynamics.simulation.integrators.explicit_integrators import (
    ExplicitEuler,
    Rk4,
    SemiImplicitEuler,
    VelocityVerlet,
)
from arm_dynamics.simulation.integrators.implicit_midpoint import ImplicitMidpoint
from arm_dynamics.simulation.integrators.integrator import Integrator

INTEGRATORS: dict[str, type[Integrator]] = {
    c.name: c
    for c in (ExplicitEuler, SemiImplicitEuler, VelocityVerlet, Rk4, ImplicitMidpoint, Adaptive)
}


def find_integrator(name: str) -> Integrator:
    """Return an integrator by name; raises UnknownName with the existing ones."""
    if check_type(str, "integrator", name) not in INTEGRATORS:
        raise UnknownName("integrator", name, tuple(INTEGRATORS))
    return INTEGRATORS[name]()
