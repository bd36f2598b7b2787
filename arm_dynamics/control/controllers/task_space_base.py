"""What all laws of the tool share: their axes, and what they follow within the arm's reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import hypot
from typing import ClassVar

from arm_dynamics.control.controllers.controller import MAX_VALUE, Controller, Gains, bounded_vector
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
    """A law that follows a TaskReference by an arm without mass that can go where this one can.

    A plain Reference is followed by its tool. ``clik`` tells how far the reference is out of
    reach and how close a singularity is.
    """

    controller_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("rate", 10.0, "1/s", "rate at which the reference is caught up", above=0),
        Parameter(
            "acceleration", 100.0, "rad/s²", "largest change of a joint's reference", above=0
        ),
        Parameter("posture_rate", 2.0, "1/s", "rate at which spare joints go to q_ref", lower=0),
        Parameter(
            "weak", 0.05, "1", "singular values filtered below this share of the reach", above=0
        ),
    )

    def __init_subclass__(cls) -> None:
        """Have its inverse kinematics compiled before torque is on: tens of seconds.

        From the import of a subclass on, since its objects may be made while motors have torque.
        """
        super().__init_subclass__()
        demand(clik_step)

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self.tool, self.clik = ToolKinematics(arm), ClosedLoopIk(arm)
        self.reset(State.of(arm.configuration("initial")))

    def set_model(self, arm: ArmModel) -> None:
        """Tell the law another model; errors as in Controller."""
        super().set_model(arm)
        old, tool, virtual = self.clik, ToolKinematics(arm), ClosedLoopIk(arm)
        virtual.q, virtual.v, virtual.a = old.q, old.v, old.a
        virtual.reachability_error, virtual.min_singular_value = (
            old.reachability_error,
            old.min_singular_value,
        )
        virtual.leaving, virtual.time, virtual.task = old.leaving, old.time, old.task
        self.tool, self.clik = tool, virtual  # only now: a loop may run in another thread

    def reset(self, state: State) -> None:
        """Follow anew from where the arm is, and from how it moves."""
        state, _ = super().bounded_inputs(state, Reference.hold(state.q))
        self.clik.reset(state.q, state.v)

    def bounded_inputs(
        self, state: State, reference: Reference, dt: float = 0.0
    ) -> tuple[State, Reference]:
        """As for every law, with the parts of a TaskReference; errors as there."""
        state, told = super().bounded_inputs(state, reference, dt)
        if not isinstance(told, TaskReference):
            return state, told
        p, t, a, w = told.position, told.twist, told.acceleration, told.wrench
        try:
            if hypot(*p.tolist(), *t.tolist(), *a.tolist(), *w.tolist()) < MAX_VALUE:
                return state, told
        except (AttributeError, TypeError):
            return state, told  # no vectors: refused by name when it is followed
        names = {"position": 3, "twist": 6, "acceleration": 6, "wrench": 6}
        clipped = {
            n: bounded_vector(f"reference: {n}", getattr(told, n), k) for n, k in names.items()
        }
        return state, replace(told, **clipped)

    def instant(
        self,
        state: State,
        reference: Reference,
        memory: Vector,
        acceleration: Callable[[Vector], Vector],
    ) -> tuple[Command, Vector]:
        """Raise InvalidValue: the CLIK that is followed is a recursion in discrete time."""
        raise InvalidValue(
            f"controller {type(self).__name__}: its closed-loop inverse kinematics exists in"
            " discrete time only; expected the sampled loop"
        )

    def reachable_reference(self, reference: Reference, dt: float) -> TaskReference:
        """What the arm can follow of a reference, dt [s] after the last one."""
        return self.clik.update(to_task_reference(self.arm, reference), dt, self.controller_gains)
