"""What all laws of the tool share: their axes, and what they follow within the arm's reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import hypot
from typing import ClassVar

from arm_dynamics.control.controllers.controller import LARGEST, Controller, Gains, moderate
from arm_dynamics.control.trajectories.transition_blend import task_of
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import demand
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State, TaskReference
from arm_dynamics.dynamics.kinematics.closed_loop_ik import VirtualArm, rates
from arm_dynamics.dynamics.kinematics.tool_motion import Tool
from arm_dynamics.model.arm_model import ArmModel


class TaskController(Controller):
    """A law that follows a TaskReference by an arm without mass that can go where this one can.

    A plain Reference is followed by its tool. ``virtual`` tells how far the reference is out of
    reach and how close a singularity is.
    """

    law_parameters: ClassVar[tuple[Parameter, ...]] = (
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
        demand(rates)

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self.tool, self.virtual = Tool(arm), VirtualArm(arm)
        self.reset(State.of(arm.pose("initial")))

    def use_model(self, arm: ArmModel) -> None:
        """Tell the law another model; errors as in Controller."""
        super().use_model(arm)
        old, tool, virtual = self.virtual, Tool(arm), VirtualArm(arm)
        virtual.q, virtual.v, virtual.a = old.q, old.v, old.a
        virtual.distance, virtual.weakest = old.distance, old.weakest
        virtual.leaving, virtual.time, virtual.task = old.leaving, old.time, old.task
        self.tool, self.virtual = tool, virtual  # only now: a loop may run in another thread

    def reset(self, state: State) -> None:
        """Follow anew from where the arm is, and from how it moves."""
        state, _ = super().readable(state, Reference.hold(state.q))
        self.virtual.place(state.q, state.v)

    def readable(
        self, state: State, reference: Reference, dt: float = 0.0
    ) -> tuple[State, Reference]:
        """As for every law, with the parts of a TaskReference; errors as there."""
        state, told = super().readable(state, reference, dt)
        if not isinstance(told, TaskReference):
            return state, told
        p, t, a, w = told.position, told.twist, told.acceleration, told.wrench
        try:
            if hypot(*p.tolist(), *t.tolist(), *a.tolist(), *w.tolist()) < LARGEST:
                return state, told
        except (AttributeError, TypeError):
            return state, told  # no vectors: refused by name when it is followed
        names = {"position": 3, "twist": 6, "acceleration": 6, "wrench": 6}
        clipped = {n: moderate(f"reference: {n}", getattr(told, n), k) for n, k in names.items()}
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

    def within_reach(self, reference: Reference, dt: float) -> TaskReference:
        """What the arm can follow of a reference, dt [s] after the last one."""
        return self.virtual.follow(task_of(self.arm, reference), dt, self.law_gains)
