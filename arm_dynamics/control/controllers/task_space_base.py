"""The base of all task-space controllers: a reference limited to the reachable workspace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import hypot
from typing import ClassVar

from arm_dynamics.control.controllers.controller import (
    MAX_VALUE,
    Controller,
    Gains,
    bounded_vector,
)
from arm_dynamics.control.controllers.friction_compensation import (
    FRICTION_COMPENSATION,
    FrictionCompensation,
)
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import demand
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State, TaskReference
from arm_dynamics.dynamics.kinematics.closed_loop_ik import ClosedLoopIk, clik_step
from arm_dynamics.dynamics.kinematics.tool_motion import ToolKinematics
from arm_dynamics.model.arm_model import ArmModel


class TaskSpaceController(Controller):
    """Tracks a TaskReference by its closed-loop inverse kinematics (CLIK) solution.

    The tool of a joint reference is tracked. ``clik`` contains the reachability error and the
    minimum singular value.
    """

    controller_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("tracking_rate", 10.0, "1/s", "rate of the task-space error", above=0),
        Parameter(
            "max_joint_acceleration", 100.0, "rad/s²", "maximum acceleration of a joint reference",
            above=0,
        ),
        Parameter("nullspace_rate", 2.0, "1/s", "rate of the null-space posture", lower=0),
        Parameter(
            "singular_value_threshold", 0.05, "1",
            "singular value, as a fraction of the reach, below which motion is damped", above=0,
        ),
        FRICTION_COMPENSATION,
    )  # fmt: skip

    def __init_subclass__(cls) -> None:
        """Compile the inverse kinematics at the import of a subclass, before torque is enabled.

        It takes tens of seconds, and controllers may be created while motors have torque.
        """
        super().__init_subclass__()
        demand(clik_step)

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self.tool, self.clik = ToolKinematics(arm), ClosedLoopIk(arm)
        self.reset(State.of(arm.configuration("initial")))

    def set_gains(self, gains: Gains) -> None:
        """Set gains; the memory stays. Errors as in Controller."""
        super().set_gains(gains)
        scale = self.controller_gains["friction_compensation"]
        self.friction = FrictionCompensation(self.arm, scale, viscous_only=False)

    def set_model(self, arm: ArmModel) -> None:
        """Set the controller's model; errors as in Controller."""
        super().set_model(arm)
        scale = self.controller_gains["friction_compensation"]
        self.friction = FrictionCompensation(arm, scale, viscous_only=False)
        old, tool, clik = self.clik, ToolKinematics(arm), ClosedLoopIk(arm)
        clik.q, clik.v, clik.a = old.q, old.v, old.a
        clik.reachability_error = old.reachability_error
        clik.min_singular_value = old.min_singular_value
        clik.leaving, clik.time, clik.task = old.leaving, old.time, old.task
        self.tool, self.clik = tool, clik  # complete: a loop may run in another thread

    def reset(self, state: State) -> None:
        """Start the CLIK solution at the measured position and velocity."""
        state, _ = super().bounded_inputs(state, Reference.hold(state.q))
        self.clik.reset(state.q, state.v)

    def bounded_inputs(
        self, state: State, reference: Reference, dt: float = 0.0
    ) -> tuple[State, Reference]:
        """Return as Controller, with the parts of a TaskReference; errors as there."""
        state, bounded = super().bounded_inputs(state, reference, dt)
        if not isinstance(bounded, TaskReference):
            return state, bounded
        p, t, a, w = bounded.position, bounded.twist, bounded.acceleration, bounded.wrench
        try:
            if hypot(*p.tolist(), *t.tolist(), *a.tolist(), *w.tolist()) < MAX_VALUE:
                return state, bounded
        except (AttributeError, TypeError):
            return state, bounded  # no vectors: rejected by name in reachable_reference
        sizes = {"position": 3, "twist": 6, "acceleration": 6, "wrench": 6}
        parts = {
            name: bounded_vector(f"reference: {name}", getattr(bounded, name), size)
            for name, size in sizes.items()
        }
        return state, replace(bounded, **parts)

    def instant(
        self,
        state: State,
        reference: Reference,
        memory: Vector,
        acceleration: Callable[[Vector], Vector],
    ) -> tuple[Command, Vector]:
        """Raise InvalidValue: the CLIK solution is a recursion in discrete time."""
        raise InvalidValue(
            f"controller {type(self).__name__}: its closed-loop inverse kinematics exists in"
            " discrete time only; expected the sampled loop"
        )

    def reachable_reference(self, reference: Reference, dt: float) -> TaskReference:
        """Return the reachable part of a reference, dt [s] after the last one."""
        return self.clik.update(to_task_reference(self.arm, reference), dt, self.controller_gains)
