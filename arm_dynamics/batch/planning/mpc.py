"""Model-predictive control (MPC): a controller that follows the newest plan of a planner."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.planning.plan import NoPlan, Plan
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Matrix, Vector, check_float
from arm_dynamics.core.errors import CommandRejected
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.model.arm_model import ArmModel

if TYPE_CHECKING:
    from arm_dynamics.batch.planning.planner import Planner

References = Callable[[Reference, Vector], Mapping[str, ArrayLike]]
"""Reference of the loop and times from now (periods,) [s] -> parameters of the cost."""


def joint_references(reference: Reference, times: Vector) -> Mapping[str, ArrayLike]:
    """Return the parameter "q_ref" over the periods: the reference continues at its velocity."""
    return {"q_ref": reference.q + times[:, None] * reference.v}


class Mpc(Controller):
    """u(t) = u_k + K_k (x(t) - (q, v)) of the newest plan, with a new plan each period.

    Plans are computed by ``update`` itself, which makes a run reproducible, or in a thread of their
    own, while ``update`` follows the plan before. Without a plan younger than ``max_age`` the
    command is rejected, and the loop stops the arm. With a delay of the horizon the commands sent
    before are part of each plan.

    Parameters
    ----------
    planner : Planner
        Planner.
    references : callable
        Returns parameters of the cost for the loop's reference (default: "q_ref", if the cost has
        it).
    background : bool
        Plan in a thread.
    max_age : float, optional
        Largest age of a plan [s] (default: half of the horizon).
    arm : ArmModel, optional
        The controller's model (default: that of the planner).

    Attributes
    ----------
    late : int
        Periods in which no new plan was ready.
    failed : int
        Plans without a finite cost.
    plan_time : float
        Time that the last plan took [s].

    Raises
    ------
    InvalidValue
        If ``max_age`` is not above 0.

    """

    def __init__(
        self,
        planner: Planner,
        references: References | None = None,
        *,
        background: bool = False,
        max_age: float | None = None,
        arm: ArmModel | None = None,
    ) -> None:
        from arm_dynamics.batch.planning.planner import Planner  # noqa: PLC0415 - needs numba

        self.planner = check_type(Planner, "planner", planner, "Planner(...)")
        self.interface = planner.spec.interface  # type: ignore[misc]
        if references is None and "q_ref" in planner.cost.parameters:
            references = joint_references
        self._references, horizon = references, planner.horizon
        default = 0.5 * horizon.periods * horizon.period
        self.max_age = check_float("max_age [s]", default if max_age is None else max_age, above=0)
        self.times: Vector = horizon.period * np.arange(1.0, horizon.periods + 1)
        self._pool: ThreadPoolExecutor | None = None
        self.plan_in_thread(background)
        self._running: Future[Plan] | None = None
        self._plan: Plan | None = None
        self._planned_at, self.late, self.failed = -np.inf, 0, 0
        self.plan_time, self._failure = 0.0, ""
        self._sent: deque[tuple[float, Vector]] = deque()
        super().__init__(planner.arm if arm is None else arm)

    def __deepcopy__(self, memo: dict[int, Any]) -> Mpc:
        """Return a controller that plans in ``update``, for the analysis of a loop."""
        del memo
        return Mpc(self.planner.copied(), self._references, max_age=self.max_age)

    def plan_in_thread(self, background: bool) -> None:
        """Plan in a thread, or in ``update``, from the next plan on; from any thread."""
        if background != (self._pool is not None):
            self._pool = ThreadPoolExecutor(1) if background else None

    @property
    def diagnostics(self) -> Mapping[str, str]:
        """Numbers of late and failed plans, the cause of the last failure, time of a plan."""
        values = {
            "late plans": f"{self.late}",
            "failed plans": f"{self.failed}",
            "plan time [ms]": f"{1e3 * self.plan_time:.3f}",
        }
        return {**values, "last failed plan": self._failure} if self._failure else values

    def reset(self, state: State) -> None:
        """Forget all plans."""
        del state
        if self._running is not None:
            self._running.exception()
        self._running = self._plan = None
        self._planned_at = -np.inf
        self._sent.clear()
        self.planner.reset()

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the command of the newest plan (nv,).

        Raises
        ------
        CommandRejected
            Without a plan, or with one older than ``max_age``.

        """
        state, reference = self.bounded_inputs(state, reference, dt)
        self._take_plan()
        elapsed = state.time - self._planned_at
        if elapsed < 0:  # a clock that was set back
            self.reset(state)
        if not 0 <= elapsed < self.planner.horizon.period * (1 - 1e-9):
            self._start_plan(state, reference)
        plan, delay = self._plan, self.planner.horizon.delay * self.planner.horizon.period
        age = np.inf if plan is None else state.time + delay - plan.time
        if plan is None or age > self.max_age:
            raise CommandRejected(
                f"plan: age = {age:.3g} s; expected at most {self.max_age:.3g} s;"
                f" {self._failure or 'reduce samples or periods'}"
            )
        command = self.plan_command(plan, state, reference)
        if self.interface == "effort":
            command = self.effort_command(command.value, state)
        if delay:
            self._sent.append((state.time, command.value))
        return command

    def plan_command(self, plan: Plan, state: State, reference: Reference) -> Command:
        """Return the command of a plan at the time of a state."""
        del reference
        return self.planner.command(state, plan)

    def cost_parameters(self, state: State, reference: Reference) -> Mapping[str, ArrayLike]:
        """Return the parameters of the cost of the next plan, others with their first values.

        Without any, the parameters stay.
        """
        del state
        return {} if self._references is None else self._references(reference, self.times)

    def _start_plan(self, state: State, reference: Reference) -> None:
        """Plan from a state, unless the plan before is not ready."""
        self._planned_at = state.time
        if self._running is not None:
            self.late += 1
            return
        if changes := self.cost_parameters(state, reference):
            self.planner.set_parameters(changes)
        pending, pool = self._pending(state.time), self._pool
        if pool is None or self._plan is None:  # the first one is waited for
            done: Future[Plan] = Future()
            try:
                done.set_result(self._timed_plan(state, pending))
            except NoPlan as error:
                done.set_exception(error)
            self._running = done
            self._take_plan()
        else:
            self._running = pool.submit(self._timed_plan, state, pending)

    def _timed_plan(self, state: State, pending: Matrix) -> Plan:
        """Return a plan, and store the time that it takes."""
        start = perf_counter()
        try:
            return self.planner.update(state, pending)
        finally:
            self.plan_time = perf_counter() - start

    def _pending(self, time: float) -> Matrix:
        """Return the commands of the last periods that have not acted (delay, nv), 0 before any."""
        horizon = self.planner.horizon
        pending = np.zeros((horizon.delay, self.arm.nv))
        for k in range(horizon.delay):
            at = time - (horizon.delay - k) * horizon.period + 0.5 * horizon.period
            while len(self._sent) > 1 and k == 0 and self._sent[1][0] <= at:
                self._sent.popleft()
            for sent, value in self._sent:
                if sent <= at:
                    pending[k] = value
        return pending

    def _take_plan(self) -> None:
        """Follow the plan that is ready; the one before, if it has no finite cost."""
        if self._running is None or not self._running.done():
            return
        running, self._running = self._running, None
        try:
            self._plan, self._failure = running.result(), ""
        except NoPlan as error:
            self.failed, self._failure = self.failed + 1, str(error)
