"""The base of all task-space controllers: a reference limited to the reachable workspace."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from arm_dynamics.control.controllers.controller import (
    MAX_VALUE,
    REFERENCE,
    STATE,
    CompiledController,
    Gains,
    are_bounded,
    bounded_vector,
)
from arm_dynamics.control.controllers.friction_compensation import (
    FRICTION_COMPENSATION,
    FrictionCompensation,
)
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import (
    MATRIX,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    compiled_for,
    demand,
    direct_call,
)
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State, TaskReference
from arm_dynamics.dynamics.kinematics.closed_loop_ik import (
    POSE,
    ClosedLoopIk,
    clik_step,
    has_valid_shapes,
    invalid_reference_error,
)
from arm_dynamics.dynamics.kinematics.tool_motion import ToolKinematics
from arm_dynamics.model.arm_model import ArmModel


class TaskSpaceController(CompiledController):
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
        tool, clik = ToolKinematics(arm), ClosedLoopIk(arm)
        clik.copy_state(self.clik)
        self.tool, self.clik = tool, clik  # complete: a loop may run in another thread

    def reset(self, state: State) -> None:
        """Start the CLIK solution at the measured position and velocity."""
        state, _ = super().bounded_inputs(state, Reference.hold(state.q))
        self.clik.reset(state.q, state.v)

    def bounded_inputs(
        self, state: State, reference: Reference, dt: float = 0.0
    ) -> tuple[State, Reference]:
        """Return state and TaskReference as Controller, all parts within ±MAX_VALUE."""
        state, joints = super().bounded_inputs(state, reference, dt)
        bounded = to_task_reference(self.arm, joints)
        if not has_valid_shapes(bounded, self.arm.nv):
            raise invalid_reference_error(bounded, self.arm.nv, dt)
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

    def compute(self, effort: Vector, state: State, reference: Reference, dt: float) -> bool:
        """Advance the CLIK solution and track it; return whether inputs are valid."""
        task = to_task_reference(self.arm, reference)
        if not direct_call(is_valid_task)(
            (task.q, task.v, task.a), (state.q, state.v), (task.position, task.rotation),
            (task.twist, task.acceleration, task.wrench), dt, effort,
        ):  # fmt: skip
            return False
        self.clik.advance(task, dt, self.controller_gains)
        self.track(effort, state, task.wrench, dt)
        return True

    @abstractmethod
    def track(self, effort: Vector, state: State, wrench: Vector, dt: float) -> None:
        """Write the effort (nv,) [N·m] that tracks ``clik``; the inputs are valid."""

    def reachable_reference(self, reference: Reference, dt: float) -> TaskReference:
        """Return the reachable part of a reference, dt [s] after the last one."""
        return self.clik.update(to_task_reference(self.arm, reference), dt, self.controller_gains)


@compiled_for(REFERENCE, STATE, POSE, (VECTOR,) * 3, NUMBER, VECTOR, direct=True)
def is_valid_task(
    reference: tuple[Vector, Vector, Vector],
    state: tuple[Vector, Vector],
    pose: tuple[Vector, Matrix],
    motion: tuple[Vector, Vector, Vector],
    dt: float,
    effort: Vector,
) -> bool:
    """Return whether all values are within ±MAX_VALUE and have their sizes.

    ``reference``, ``state`` and ``effort``: (nv,); ``pose``: (3,) and (3, 3); ``motion``: twist,
    acceleration and wrench (6,).
    """
    (position, rotation), (twist, acceleration, wrench) = pose, motion
    if not are_bounded(reference, state, dt, effort.size):
        return False
    if not twist.size == acceleration.size == wrench.size == 6:
        return False
    if not position.size == rotation.shape[0] == rotation.shape[1] == 3:
        return False
    valid = True
    for i in range(6):  # a comparison with NaN is false
        valid &= abs(twist[i]) <= MAX_VALUE and abs(acceleration[i]) <= MAX_VALUE
        valid &= abs(wrench[i]) <= MAX_VALUE and abs(position[i % 3]) <= MAX_VALUE
    return valid


@compiled_for(STATE, MATRIX, (VECTOR, VECTOR), VECTOR, VECTOR_OUT, direct=True)
def joint_acceleration(
    state: tuple[Vector, Vector],
    joints: Matrix,
    gains: tuple[Vector, Vector],
    offset: Vector,
    acceleration: Vector,
) -> None:
    """Write q̈_r + d (q̇_r - q̇) + p (q_r - q) + ``offset`` (nv,) into ``acceleration``.

    The rows of ``joints`` are those of ``ClosedLoopIk``; ``gains`` are p and d.
    """
    (q, v), (p, d) = state, gains
    for i in range(q.size):
        feedback = d[i] * (joints[1, i] - v[i]) + p[i] * (joints[0, i] - q[i])
        acceleration[i] = joints[2, i] + feedback + offset[i]
