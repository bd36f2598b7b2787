"""Comparison of a generated kernel with plant and controller, each of its functions once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.cost import cost_geometry
from arm_dynamics.batch.kernels.free_object import BODY_ROWS, body_rows
from arm_dynamics.batch.kernels.kernel_cache import (
    AGREEMENT,
    TRIAL_STEP,
    KernelOptions,
    KernelRejected,
)
from arm_dynamics.batch.kernels.layout import Layout, filled_block
from arm_dynamics.batch.kernels.pid_spec import (
    GAINS,
    PidSpec,
    controllers_by_rollout,
    python_tick,
)
from arm_dynamics.batch.kernels.tracking_metrics import METRICS, update_all_metrics
from arm_dynamics.batch.variation import nominal_values
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector
from arm_dynamics.core.state import Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.plant import Plant

if TYPE_CHECKING:
    from arm_dynamics.batch.kernels.plan_spec import PlanSpec
    from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts

TRIAL_PERIOD = 2e-3
"""Control period [s] of the comparison."""
GRID = 2.0**-12
"""Resolution of random positions and velocities: their sums are exact in single precision."""
CANDIDATES = 200
"""Random configurations of which those in contact are compared."""
CHECKED_LANES, TICKS, STEPS = 8, 3, 2
"""Compared lanes, successive ticks, and time steps per period."""


def check_kernel(module: Any, arm: ArmModel, options: KernelOptions) -> None:
    """Compare the functions of a generated module with their originals, at random states.

    ``step`` with ``Plant.step``, ``tick`` with the controller, ``score`` with ``update_metrics``,
    and ``rollout`` with these functions in turn, within ``AGREEMENT``.

    Raises
    ------
    KernelRejected
        If a difference is larger.

    """
    trial = _Trial(module, arm, options)
    trial.check_step()
    if options.pid is not None:
        trial.check_ticks(options.pid)
        trial.check_metrics()
    if options.plan is not None:
        trial.check_plan(options.plan)
    trial.check_rollout(options.pid)


def random_inputs(arm: ArmModel, options: KernelOptions) -> Mapping[str, Matrix]:
    """Return random values of all rows that a block is given."""
    random, shape = np.random.default_rng(1), (options.lanes, arm.nv)
    lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    q = random.uniform(lower, upper, shape)
    body = {}
    if options.contacts is not None:
        q = _near_contact(arm, options.contacts, random.uniform(lower, upper, (CANDIDATES, arm.nv)))
        if options.contacts.body is not None:
            body = _body_in_contact(arm, options.contacts, q, random)
    rows = {
        **{name: np.resize(x, (options.lanes, x.shape[1])) for name, x in body.items()},
        "q": _on_grid(np.resize(q, shape)),
        "v": _on_grid(random.uniform(-1, 1, shape)),
        "act": arm.initial_act + 0.01 * random.uniform(size=(options.lanes, arm.na)),
        "command": random.uniform(-5, 5, shape),
        "dt": np.array([TRIAL_STEP]),
        **{name: nominal_values(arm, name) for name in options.vary},
    }
    if options.pid is not None:
        rows |= _random_pid_inputs(options.pid, rows["q"], random)
    if options.plan is not None:
        rows |= {"knot": random.uniform(-1, 1, shape), "effort": random.uniform(-1, 1, shape)}
        rows["parameter"] = options.plan.cost.packed()
    return rows


def _near_contact(arm: ArmModel, contacts: SphereContacts, q: Matrix) -> Matrix:
    """Return the configurations of ``q`` with the smallest gap of each contact.

    Those of the last contacts of each group are first: each function of a kernel is compared.
    """
    data, gaps = arm.model.createData(), np.empty((len(contacts.contacts), len(q)))
    for k, one in enumerate(q):
        pin.forwardKinematics(arm.model, data, one)
        for i, contact in enumerate(contacts.contacts):
            sphere = contact.sphere
            gaps[i, k] = contact.gap(data.oMi[sphere.joint].act(sphere.center))
    found: Matrix = q[np.argmin(gaps[_groups_first(contacts)], axis=1)]
    return found


def _groups_first(contacts: SphereContacts) -> IntArray:
    """Return the order of the contacts with the last one of each group first."""
    last = np.cumsum(list(contacts.counts.values())) - 1
    return np.concatenate([last, np.delete(np.arange(len(contacts.contacts)), last)])


def _body_in_contact(
    arm: ArmModel, contacts: SphereContacts, q: Matrix, random: np.random.Generator
) -> dict[str, Matrix]:
    """Return states of the free object in the contacts of ``_near_contact``, in their order."""
    data, rotation = arm.model.createData(), pin.exp3(random.uniform(-1, 1, 3))
    states = np.hstack([np.zeros((len(q), 3)), np.tile(rotation.ravel(), (len(q), 1)),
                        random.uniform(-1, 1, (len(q), 6))])  # fmt: skip
    for k, i in enumerate(_groups_first(contacts)):
        sphere, touched, _ = contacts.contacts[i]
        pin.forwardKinematics(arm.model, data, q[k])
        center = data.oMi[sphere.joint].act(sphere.center)
        size = 0.5 * (min(touched.shape.size, default=0.0) + sphere.radius)
        at = center if touched is contacts.body else touched.position - rotation @ sphere.center
        states[k, :3] = _on_grid(at + size * random.uniform(-1, 1, 3))
    return body_rows(states)


def _random_pid_inputs(spec: PidSpec, q: Matrix, random: np.random.Generator) -> dict[str, Matrix]:
    """Random rows of a controller; every second lane with an integral limit and a filter."""

    def small(width: int = q.shape[1]) -> Matrix:
        return _on_grid(random.uniform(-0.1, 0.1, (len(q), width)))

    second = np.arange(len(q))[:, None] % 2 == 1
    nominal = Pid(spec.arm).gains
    gains = {name: nominal[name] * random.uniform(0.5, 1.5, q.shape) for name in GAINS}
    gains["i_clamp"] = np.where(second, 2.0, gains["i_clamp"])
    gains["d_filter"] = np.where(second, 0.01, gains["d_filter"])
    rows = {name: small(size) for name, size in {**spec.inputs, **spec.memory}.items()}
    rows |= {f"gains.{name}": values for name, values in gains.items()}
    rows |= {"q_ref": q + small(), "direction": np.sign(small()), "late_part": 1.0 * second}
    return {**rows, "running": 0.0 * second + 1.0, "period": 0.0 * second + TRIAL_PERIOD}


def _on_grid(x: FloatArray) -> FloatArray:
    return GRID * np.round(x / GRID)


class _Trial:
    """A block of random lanes."""

    def __init__(self, module: Any, arm: ArmModel, options: KernelOptions) -> None:
        self.module, self.arm, self.options = module, arm, options
        self.layout, self.dtype = Layout.of(module.LAYOUT), np.dtype(options.precision)
        self.lanes = range(min(options.lanes, CHECKED_LANES))
        rows = random_inputs(arm, options)
        self.start = filled_block(self.layout, options.lanes, self.dtype, module.CONSTANTS, rows)

    def check_step(self) -> None:
        """Compare positions, velocities, actuator states and efforts after a step."""
        x, commands = self.start.copy(), self.rows("command")
        plant = Plant(self.arm, self.options.integrator)
        if self.options.contacts is not None:
            from arm_dynamics.batch.kernels.contact_integrator import ContactEuler  # noqa: PLC0415

            plant.integrator = contact = ContactEuler(self.arm, self.options.contacts)
        self.module.step(x)
        body = [name for name in BODY_ROWS if name in self.layout.sizes]
        before = {name: self.rows(name) for name in ("q", "v", "act", *body)}
        for k in self.lanes:
            state = State.of(before["q"][k], before["v"][k], act=before["act"][k])
            command = Command.checked(self.options.interface, commands[k], self.arm.nv)
            if body:
                contact.body = np.concatenate([before[name][k] for name in body])
            after = plant.step(state, command, TRIAL_STEP)
            moved = {"q": after.q, "v": after.v, "act": after.act}
            if body:
                moved |= body_rows(contact.body)
            for name, expected in moved.items():
                change = np.abs(expected - before[name][k]).max(initial=0.0) + TRIAL_STEP
                self._accept(f"{name} after a step", self.rows(name, x)[k], expected, change)
            self._accept("effort of a step", self.rows("effort", x)[k], after.tau)

    def check_ticks(self, spec: PidSpec) -> None:
        """Compare commands tick after tick: each depends on the memory of the one before."""
        x, gains = self.start.copy(), np.stack([self.rows(f"gains.{g}") for g in GAINS], axis=1)
        memory = self.rows("integral"), self.rows("filtered")
        tick = python_tick(controllers_by_rollout(spec, gains, *memory), spec.voltage)
        q, v = (self.rows(n) + (self.rows(f"noise_{n}") if spec.noise else 0.0) for n in "qv")
        reference = np.hstack([self.rows("q_ref"), self.rows("v_ref")])
        for number in range(TICKS):
            running = float(number > 0)  # no time has passed at the first one
            x.reshape(self.layout.rows, -1)[self.layout.block("running")] = running
            expected = tick(q, v, reference, running * self.rows("period")[:, 0])
            self.module.tick(x)
            commands = self.rows("pending" if spec.delay else "command", x)
            for k in self.lanes:
                self._accept(f"command of tick {number}", commands[k], expected[k])

    def check_metrics(self) -> None:
        """Compare the metrics after one more period."""
        x = self.start.copy()
        self.module.score(x)
        names = ("q", "effort", "q_ref", "direction", "late_part", "period")
        q, effort, q_ref, direction, late, period = (self.rows(name) for name in names)
        expected = np.stack([self.rows(name) for name in METRICS])
        update_all_metrics(
            q, effort, q_ref, direction, late[:, 0].copy(), period[:, 0].copy(), expected
        )
        for name, values in zip(METRICS, expected, strict=True):
            self._accept(f"metric {name}", self.rows(name, x), values)

    def check_plan(self, plan: PlanSpec) -> None:
        """Compare the policy and the costs with their functions of numbers."""
        x, data = self.start.copy(), self.arm.model.createData()
        q, v, act, effort, command, knot = (
            self.rows(name) for name in ("q", "v", "act", "effort", "command", "knot")
        )
        bodies = {name: self.rows(name) for name in BODY_ROWS if name in self.layout.sizes}
        geometry = cost_geometry(self.arm, plan.scene)
        self.module.tick(x)
        for k in self.lanes:
            expected = plan.command(self.arm, data, q[k], v[k], knot[k])
            self._accept("command of a policy", self.rows("command", x)[k], expected)
        for name in ("score", "terminal"):
            x = self.start.copy()
            getattr(self.module, name)(x)
            costs = self.rows("cost", x)[:, 0]
            for k in self.lanes:
                state = State.of(q[k], v[k], effort[k], act=act[k])
                body = {name: x[k] for name, x in bodies.items()}
                stage = geometry.stage(state, command[k], body)
                value = plan.cost.evaluate(stage, terminal=name == "terminal")
                self._accept(f"{name} of a cost", costs[k], np.array([value]))

    def check_rollout(self, spec: PidSpec | None) -> None:
        """Compare ``rollout`` and its records with the module's other functions in turn."""
        controlled = spec is not None or self.options.plan is not None
        inputs = ["knot" if self.options.plan else "command"] if spec is None else list(spec.inputs)
        module, lanes, x, y = self.module, self.options.lanes, self.start.copy(), self.start.copy()
        first = self.layout.first[inputs[0]] * lanes
        size = sum(self.layout.sizes[name] for name in inputs) * lanes
        table = np.stack([x[first : first + size] * factor for factor in (1.0, 0.5)])
        recorded, failed = np.arange(2 * self.arm.nv), np.full(lanes, -1)
        records = np.empty((len(table), recorded.size, lanes), self.dtype)
        module.rollout(x, table, STEPS, STEPS, 0, recorded, records, failed)
        for row in table:
            y[first : first + size] = row
            if controlled:
                module.tick(y)
            for _ in range(STEPS):
                module.step(y)
            if controlled:
                module.score(y)
        for name in ("q", "v", "act", "command", "effort", *(spec.memory if spec else ())):
            self._accept(f"{name} of a rollout", self.rows(name, x), self.rows(name, y))
        self._accept("last record of a rollout", records[-1], x.reshape(-1, lanes)[recorded])
        self._accept("failed lanes of a rollout", failed, np.full(lanes, -1))

    def rows(self, name: str, x: Vector | None = None) -> Matrix:
        """Return the rows ``name`` of a block, shape (lanes, size)."""
        rows = (self.start if x is None else x).reshape(self.layout.rows, -1)
        return np.ascontiguousarray(rows[self.layout.block(name)].T, dtype=float)

    def _accept(
        self, quantity: str, found: FloatArray, expected: FloatArray, size: float | None = None
    ) -> None:
        """Require |found - expected| within AGREEMENT of ``size``, or a few rounding errors."""
        with np.errstate(invalid="ignore"):
            difference = np.abs(np.where(found == expected, 0.0, found - expected))
        largest, error = (
            np.abs(expected[np.isfinite(expected)]).max(initial=1.0),
            difference.max(initial=0.0),
        )
        relative = AGREEMENT[self.options.precision] * (largest if size is None else size)
        bound = max(relative, 4 * np.finfo(self.dtype).eps * largest)
        if not error <= bound:
            raise KernelRejected(
                f"kernel of arm '{self.arm.name}' ({self.options.key}): {quantity}: difference ="
                f" {error:.2g}; expected at most {bound:.2g}"
            )
