"""Receding-horizon planning: state in, plan out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.kernels.cost import Cost
from arm_dynamics.batch.kernels.free_object import body_state
from arm_dynamics.batch.kernels.plan_spec import PlanSpec
from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.local_model import LocalModel
from arm_dynamics.batch.planning.plan import Motion, NoPlan, Plan
from arm_dynamics.batch.planning.planning_kernel import PlanningKernel
from arm_dynamics.batch.planning.planning_method import PlanningMethod
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State, require_state
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_argument import check_arm, require_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.equations_of_motion import accepted_interfaces

DEFAULT_HORIZON = Horizon()


class Planner:
    """Predictive control of an arm: one plan per state.

    Parameters
    ----------
    arm : ArmModel
        Model of the predictions: nominal, identified, perturbed or with a payload.
    cost : Cost
        Cost.
    method : PlanningMethod
        ``Mppi``, ``CrossEntropy``, ``PredictiveSampling`` or ``Ilqr``, which is copied.
    horizon : Horizon
        Times.
    interface, policy : str
        Command interface, and what the inputs are: "command", or with "effort" also "gravity" (in
        addition to g(q)) and "acceleration" (of M(q) a + C(q, v) v + g(q)).
    feedback : bool
        Whether gains of the second-order model keep predicted motions, and the arm between two
        plans, at the nominal motion. Unstable motions need it.
    scene : Scene
        Objects whose gaps the cost can use.
    contact : bool
        Whether the predicted links touch the objects of the scene, one of which can be free. Not
        with gains of the second-order model.
    precision : str
        "float64" or "float32".
    threads : int
        Threads of the predictions.

    Raises
    ------
    InvalidValue, UnknownName
        If an argument is invalid, or the cost cannot be traced.
    ConfigError
        If CasADi is missing.

    """

    def __init__(
        self,
        arm: ArmModel,
        cost: Cost,
        method: PlanningMethod,
        horizon: Horizon = DEFAULT_HORIZON,
        *,
        interface: str = "effort",
        policy: str = "command",
        feedback: bool = False,
        scene: Scene = EMPTY_SCENE,
        contact: bool = False,
        precision: str = "float64",
        threads: int = 1,
    ) -> None:
        require_masses(check_arm(arm), "a plan")
        accepted_interfaces(arm, interface)
        check_type(Scene, "scene", scene, "load_scene(...)")
        self._options: dict[str, Any] = {
            "interface": interface, "policy": policy, "feedback": feedback, "scene": scene,
            "contact": contact, "precision": precision, "threads": threads,
        }  # fmt: skip
        self.arm, self.cost = arm, check_type(Cost, "cost", cost, "Cost(...)")
        self.horizon = check_type(Horizon, "horizon", horizon, "Horizon(...)")
        check_type(PlanningMethod, "method", method, "Mppi(...)")  # type: ignore[type-abstract]
        self.method = method = copy(method)  # its memory is of this planner
        self.spec = PlanSpec(cost, interface, policy, scene, contact)
        needs_model = feedback or method.needs_model
        if contact and needs_model:
            given = "feedback = True" if feedback else f"method = {type(method).__name__}"
            raise InvalidValue(
                f"planner with contact: {given}; expected a sampling method without feedback: the"
                " derivatives of a step have no contact; use Mppi(...)"
            )
        model = with_soft_stops(arm, horizon.dt)
        self.kernel = PlanningKernel(
            model, self.spec, horizon, method.spline(horizon), method.samples, precision=precision,
            threads=threads,
        )  # fmt: skip
        self.local_model = LocalModel(model, self.spec, horizon) if needs_model else None
        self.kernel.feedback = needs_model
        self._data = arm.model.createData()
        self.parameters = cost.packed()
        self.reference: Motion | None = None
        """First nominal motion, and the one after a motion that diverges; None: zeros."""
        self.reset()
        self._compile()

    def _compile(self) -> None:
        """Make one plan and forget it: no later one compiles, with torque enabled."""
        with suppress(NoPlan):
            self.update(State.of(self.arm.configuration("initial")), self.kernel.pending)
        self.reset()

    def copied(self) -> Planner:
        """Return a planner with the same parameters and without a plan."""
        planner = Planner(self.arm, self.cost, self.method, self.horizon, **self._options)
        planner.parameters = self.parameters
        return planner

    def reset(self) -> None:
        """Forget all plans: the next one starts from inputs of 0 and the seed of the method."""
        self.plan: Plan | None = None
        self._time: float | None = None
        for memory in (
            self.kernel.knots,
            self.kernel.inputs,
            self.kernel.states,
            self.kernel.gains,
        ):
            memory[:] = 0.0
        if self.local_model is not None:
            self.local_model.change_damping(0.0)
        self.method.start(self.kernel, self.spec.bound(self.arm), self.local_model)

    def set_parameters(self, changes: Mapping[str, ArrayLike]) -> None:
        """Replace parameters of the cost, constants or values over the periods.

        Raises
        ------
        InvalidValue, UnknownName
            As ``Cost.packed``; the previous parameters stay.

        """
        packed = self.cost.packed(changes)
        if len(packed) not in (1, self.horizon.periods):
            raise InvalidValue(
                f"parameters of the cost: periods = {len(packed)}; expected {self.horizon.periods}"
            )
        self.parameters = packed

    def update(self, state: State, pending: ArrayLike = ()) -> Plan:
        """Return the plan from a state.

        Parameters
        ----------
        state : State
            Present state; a ``SceneState`` has the state of the free object, which otherwise is at
            rest at its pose in the scene.
        pending : ArrayLike
            Commands already sent that have not acted yet, one per period, shape (delay, nv).

        Raises
        ------
        NoPlan
            If no predicted motion has a finite cost; the next call starts from the plan before.
        InvalidValue
            If the state or the pending commands have another shape, or are not finite.

        """
        start, sent = self._checked(state, pending)
        kernel, horizon = self.kernel, self.horizon
        time = state.time + horizon.delay * horizon.period
        self._shift_to(time)
        kernel.start_from(start, self.parameters, sent)
        if self.plan is None and self.reference is not None:
            self._begin()
        cost = np.inf
        if self.local_model is None:
            cost = self.method.improve()
        elif self._follow_nominal():
            self.local_model.update(kernel)
            cost = self.method.improve()
        if not np.isfinite(cost):
            raise NoPlan(
                f"plan at t = {state.time:.6g} s: finite costs = 0 of {kernel.samples} samples;"
                f" expected at least one; {self._cause(state)}"
            )
        n = 2 * self.arm.nv
        motion = kernel.inputs, kernel.states[:, :n], kernel.gains
        inputs, states, gains = (as_readonly(rows.astype(float)) for rows in motion)
        self.plan = Plan(time, horizon.period, inputs, states, gains, cost, self.reference)
        return self.plan

    def command(self, state: State, plan: Plan | None = None) -> Command:
        """Return the command of a plan (default: the last one) that is sent at the time of a state.

        With a delay it is that of the predicted state at which it acts, without feedback.

        Raises
        ------
        InvalidValue
            Without a plan.

        """
        plan = plan or self.plan
        if plan is None:
            raise InvalidValue("plan = None; expected one; call update(state) first")
        q, v, time = state.q, state.v, state.time
        if self.horizon.delay:
            time += self.horizon.delay * self.horizon.period
            q, v = np.split(plan.state(time), 2)
        value = self.spec.command(self.arm, self._data, q, v, plan.input(time, q, v))
        return Command(self.spec.interface, as_readonly(value), state.time)

    def _checked(self, state: State, pending: ArrayLike) -> tuple[Vector, Matrix]:
        """Return (q, v, act, body) and the pending commands (delay, nv); raises InvalidValue."""
        n, delay = self.arm.nv, self.horizon.delay
        act = require_state(state).act
        act = act if act.size else self.arm.initial_act
        named = ("q", state.q, n), ("v", state.v, n), ("act", act, self.arm.na)
        start = np.concatenate(
            [check_vector(f"state {x}", value, size) for x, value, size in named]
        )
        if self.spec.body is not None:
            start = np.concatenate([start, body_state(self.spec.body, state)])
        sent = np.asarray(pending, float)
        sent = np.empty((0, n)) if not sent.size else sent
        if sent.shape != (delay, n) or not np.isfinite(sent).all():
            raise InvalidValue(
                f"pending commands: shape = {sent.shape}; expected finite ({delay}, {n})"
            )
        return start, sent

    def _shift_to(self, time: float) -> None:
        """Move the nominal motion to a start time [s]; one of another time is forgotten."""
        last, self._time = self._time, time
        if last is None or time == last:
            return
        periods, kernel = (time - last) / self.horizon.period, self.kernel
        if not 0 < periods < len(kernel.inputs):
            self.reset()
            self._time = time
            return
        for rows in (kernel.inputs, kernel.states, kernel.gains):
            _shift(rows, periods)
        self.method.shift(periods)

    def _follow_nominal(self) -> bool:
        """Predict the nominal motion from the present state; if it diverges, without its past."""
        kernel = self.kernel
        kernel.knots[0, :, :, 0] = 0.0
        if np.isfinite(kernel.follow_first()):
            return True
        self._begin()
        return bool(np.isfinite(kernel.follow_first()))

    def _cause(self, state: State) -> str:
        """Return why no cost is finite, with a remedy: start, predicted motion, or the cost."""
        names, q = self.arm.joint_names, state.q
        motion = self.kernel.first_motion()[:, : 2 * self.arm.nv]
        diverged = np.argwhere(~np.isfinite(motion))
        if len(diverged):
            k, i = diverged[0]
            return (
                f"joint '{names[i % len(names)]}' is not finite after {k} of {len(motion) - 1}"
                " periods; reduce the time step of the horizon or the noise"
            )
        for j in np.flatnonzero((q < self.arm.lower) | (q > self.arm.upper)):
            return (
                f"joint '{names[j]}' at {q[j]:.4g} rad, limits {self.arm.lower[j]:.4g} to"
                f" {self.arm.upper[j]:.4g}; move it into its range, or give positions beyond it a"
                " finite cost"
            )
        return "the predicted motion is finite; check the cost and its parameters"

    def _begin(self) -> None:
        """Set the nominal motion to the reference."""
        kernel = self.kernel
        if self.reference is None:
            kernel.inputs[:] = kernel.gains[:] = 0.0
        else:
            rows = kernel.inputs, kernel.states[:, : 2 * self.arm.nv], kernel.gains
            for memory, values in zip(rows, self.reference, strict=True):
                memory[:] = values


@lru_cache(maxsize=16)
def with_soft_stops(arm: ArmModel, dt: float) -> ArmModel:
    """Return the arm with end stops that are stable in explicit steps of dt [s].

    Their damping is at most 0.4 m / dt and their stiffness 0.1 m / dt², with the effective inertia
    m = 1 / (M⁻¹)_ii at the initial configuration.
    """
    inverse = np.linalg.inv(mass_matrix(arm, arm.configuration("initial")))
    for name, joint, m in zip(arm.joint_names, arm.joints, 1 / np.diag(inverse), strict=True):
        k, b = min(joint.stop_stiffness, 0.1 * m / dt**2), min(joint.stop_damping, 0.4 * m / dt)
        if (k, b) != (joint.stop_stiffness, joint.stop_damping):
            arm = arm.with_joint(name, stop_stiffness=float(k), stop_damping=float(b))
    return arm


def _shift(rows: FloatArray, periods: float) -> None:
    """Move rows by a number of periods in place; the last one is repeated."""
    at = np.clip(np.arange(len(rows)) + periods, 0.0, len(rows) - 1.0)
    before = at.astype(int)
    after = np.minimum(before + 1, len(rows) - 1)
    fraction = (at - before).reshape(-1, *[1] * (rows.ndim - 1))
    rows[:] = (1.0 - fraction) * rows[before] + fraction * rows[after]
