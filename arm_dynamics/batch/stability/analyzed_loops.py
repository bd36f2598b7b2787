"""The loops that are asked about: a controller on an arm, and the published one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.stability.stability_report import LinearLoop
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.control.linear_controller import (
    linear_controller,
    linearized_controller,
    voltage_pi_controller,
)
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.dynamechs import objective, published_arm
from arm_dynamics.simulation.linearization import find_equilibrium, linearize

LINEAR = (Pid, GravityCompensation, ComputedTorque)
"""Controllers whose linear form is known, and whose subclasses' is."""
PUBLISHED_P: Mapping[str, float] = MappingProxyType(
    {"R2": 1688.61035631972, "R3": 5529.51939064412, "R5": 5578.2466209947}
)
"""Gains [V/rad] that AffectiveSilicon published for five_dof; R1 and R4 get 0 V."""
PUBLISHED_DT = 1e-4
PUBLISHED_METHOD = "explicit_euler"
PUBLISHED_SECONDS = 3.0
"""Time [s] that the published gain search simulates."""
DIVERGED = 10.0
"""Factor on the objective of the published gains from which on the motion has diverged."""
EXACT = 1e-4
"""To which the factor is found that loses the published arm."""


def controlled_loop(
    arm: ArmModel, controller: Controller, q: ArrayLike, dt: float, period: float
) -> LinearLoop:
    """The arm held at ``q`` [rad] by a controller that is called every ``period`` [s].

    Raises InvalidValue for a pose that cannot be held, and for a controller whose linear law is
    not known: those of ``linear_controller`` and computed torque are.
    """
    state, command = find_equilibrium(arm, q, controller.interface)
    linear = linearize(arm, state, command)
    law = linearized_controller if isinstance(controller, ComputedTorque) else linear_controller
    return LinearLoop(linear, lambda span: law(controller, state.q, span), dt, period)


def published_loop(
    q: ArrayLike | None = None, dt: float = PUBLISHED_DT, factor: float = 1.0
) -> LinearLoop:
    """five_dof under V = P e on R2, R3, R5, as its gain search ran it, less two artefacts.

    A voltage computed from the state that call k returned acts from the next call on: with
    explicit Euler one step late. Not in it: the rule that stops a joint at each reversal, and
    stops. ``q`` [rad] defaults to the initial pose; ``factor`` multiplies P.
    """
    arm = published_arm()
    state, command = find_equilibrium(
        arm, arm.configuration("initial") if q is None else q, "voltage"
    )
    gains = np.array([factor * PUBLISHED_P.get(name, 0.0) for name in arm.joint_names])
    law = voltage_pi_controller(arm, gains)
    return LinearLoop(linearize(arm, state, command), lambda _: law, dt, None, 1)


def published_stability_limit(held: float = 1.0, lost: float = 1.1) -> float:
    """Least factor on the published gains at which the published step diverges within 3 s.

    ``dynamechs.objective``, the rule that stops a joint at each reversal included, is then
    DIVERGED times that of the published gains. Bisected, to EXACT, between a factor that is held
    and one that is lost; ``held`` when that is lost too, ``lost`` when that is held.
    """
    arm, p = published_arm(), np.array(list(PUBLISHED_P.values()))

    def cost(factor: float) -> float:
        return objective(
            arm, factor * p, joints=tuple(PUBLISHED_P), duration=PUBLISHED_SECONDS, dt=PUBLISHED_DT
        )

    limit = DIVERGED * cost(1.0)

    def loses(factor: float) -> bool:
        return cost(factor) > limit

    if loses(held):
        return held
    if not loses(lost):
        return lost
    while lost - held > EXACT:
        middle = (held + lost) / 2
        held, lost = (held, middle) if loses(middle) else (middle, lost)
    return lost
