"""Linear dynamics and quadratic cost along a nominal motion, and the feedback gains of these."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from arm_dynamics.batch.kernels.derivative import StepDerivative
from arm_dynamics.batch.kernels.kernel_cache import (
    KernelRejected,
    cached_module,
    casadi_required,
    fingerprint,
)
from arm_dynamics.batch.kernels.layout import Layout, ModuleSource, filled_block
from arm_dynamics.batch.kernels.plan_spec import PlanSpec
from arm_dynamics.batch.kernels.riccati import backward, expand
from arm_dynamics.batch.kernels.rollout_loop import addresses
from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.planning_kernel import PlanningKernel
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.model.arm_model import ArmModel

MIN_DAMPING, MAX_DAMPING, DAMPING_FACTOR = 1e-6, 1e3, 5.0
"""Damping μ of Q_uu relative to its diagonal: larger until it is positive definite, and less after
an update whose first pass succeeded."""
DIFFERENCE = 1e-5
"""Half width of the central differences that check the generated expansion."""
EXPANSION_AGREEMENT = 1e-5
"""Allowed difference of a gradient from them, relative to the largest entry."""


class LocalModel:
    """Second-order model of the cost along a motion, for arms with derivatives of their step.

    Dry friction is omitted. An effort in the cost counts as the command on the interface "effort",
    and as a constant on others.

    Parameters
    ----------
    arm : ArmModel
        The model of the predictions.
    spec : PlanSpec
        Policy and cost.
    horizon : Horizon
        Times.

    Raises
    ------
    InvalidValue
        If a joint has no derivative (backlash), or the cost cannot be traced.

    """

    def __init__(self, arm: ArmModel, spec: PlanSpec, horizon: Horizon) -> None:
        self.arm, self.spec, self.horizon = arm, spec, horizon
        derivative = StepDerivative(without_dry_friction(arm), interface=spec.interface)
        self._derivative, layout = derivative.block()
        n, m, periods = arm.nv, 2 * arm.nv + arm.na, horizon.free_periods
        with casadi_required(f"plan of arm '{arm.name}'"):
            from arm_dynamics.batch.kernels.plan_trace import plan_fingerprint  # noqa: PLC0415
        key = fingerprint(arm, ("expansion", plan_fingerprint(arm, spec)))
        module = cached_module(key, self._source, self._check)
        own = Layout.of(module.LAYOUT)
        self._quadratic = filled_block(own, 1, np.dtype(float), module.CONSTANTS, {})
        functions = module.running, module.terminal, module.policy
        names = (
            "command",
            "parameter",
            "gradient",
            "hessian",
            "policy_state",
            "policy_input",
            "knot",
        )
        self._program = np.array([
            derivative.address, *addresses("float64", functions), horizon.steps, n, m,
            *(layout.first[x] for x in ("command", "dt", "A", "B")), *(own.first[x] for x in names),
        ])  # fmt: skip
        shapes = (periods, m, m), (periods, m, n), (periods, n, m), (periods, n, n)
        A, B, by_state, by_input = (np.zeros(shape) for shape in shapes)
        self.dynamics = A, B, by_state, by_input
        self.costs = np.zeros((periods + 1, m + n)), np.zeros((periods + 1, m + n, m + n))
        self.bound, self._damping = spec.bound(arm), MIN_DAMPING
        self.steps, self._gains = np.zeros((periods, n)), np.zeros((periods, n, m))

    def update(self, kernel: PlanningKernel) -> float:
        """Compute ``steps`` and the gains of the kernel along its nominal motion.

        Returns
        -------
        float
            Expected decrease of the cost, 0 without one; then steps and gains are 0.

        """
        n, parameters = self.arm.nv, kernel.parameters
        motion = kernel.states, kernel.inputs, kernel.commands
        states, inputs, commands = (rows.astype(float) for rows in motion)
        rows = parameters[-len(inputs) :] if len(parameters) > 1 else parameters
        rows = np.array(np.broadcast_to(rows, (len(inputs), self.spec.cost.size)), float)
        finite = expand(
            self._program, self._derivative, self._quadratic, states, inputs, commands, rows,
            self.horizon.dt, self.dynamics, self.costs,
        )  # fmt: skip
        factor = 1 / DAMPING_FACTOR
        while finite and self._damping <= MAX_DAMPING:
            decrease = backward(
                self.dynamics,
                self.costs,
                commands,
                self.bound,
                self._damping,
                self.steps,
                self._gains,
            )
            if decrease >= 0 and np.isfinite(self._gains).all():
                kernel.gains[:] = self._gains[:, :, : 2 * n]
                self.change_damping(factor)
                return float(decrease)
            self._damping *= DAMPING_FACTOR
            factor = 1.0  # as much is needed next time too
        self._damping = MAX_DAMPING
        self.steps[:] = kernel.gains[:] = 0.0
        return 0.0

    def change_damping(self, factor: float) -> None:
        """Multiply the damping of the next update, within its limits."""
        self._damping = min(max(factor * self._damping, MIN_DAMPING), MAX_DAMPING)

    def _source(self) -> ModuleSource:
        from arm_dynamics.batch.kernels.quadratic_cost import quadratic_source  # noqa: PLC0415

        return quadratic_source(self.arm, self.spec)

    def _check(self, module: Any) -> None:
        """Compare gradients and exact hessians with central differences, at a random state."""
        layout, n, cost = Layout.of(module.LAYOUT), self.arm.nv, self.spec.cost
        m = 3 * n + self.arm.na
        lower, upper = np.maximum(self.arm.lower, -np.pi), np.minimum(self.arm.upper, np.pi)
        random = np.random.default_rng(1)
        z = np.concatenate([
            random.uniform(lower, upper), random.uniform(-1, 1, n), self.arm.initial_act,
            random.uniform(-1, 1, n),
        ])  # fmt: skip

        def expansion(function: Any, z: Vector) -> tuple[float, Vector, Matrix]:
            x = filled_block(layout, 1, np.dtype(float), module.CONSTANTS, {})
            x[:m], x[layout.block("parameter")] = z, cost.packed()[0]
            function(x)
            rows = [x[layout.block(name)] for name in ("value", "gradient", "hessian")]
            return float(rows[0][0]), rows[1], rows[2].reshape(m, m)

        for name in ("running", "terminal"):
            function = getattr(module, name)
            _, gradient, hessian = expansion(function, z)
            ends = [
                [expansion(function, z + side * h) for side in (1, -1)]
                for h in DIFFERENCE * np.eye(m)
            ]
            checks = [("gradient", gradient, 0), ("hessian", hessian, 1)]
            for quantity, found, i in checks[: 1 if module.GAUSS_NEWTON else 2]:
                expected = np.array([(a[i] - b[i]) / (2 * DIFFERENCE) for a, b in ends])
                size = max(np.abs(expected).max(), abs(expansion(function, z)[0]), 1.0)
                error = np.abs(found - expected).max() / size
                if not error <= EXPANSION_AGREEMENT:
                    raise KernelRejected(
                        f"expansion of the {name} cost of arm '{self.arm.name}': {quantity}:"
                        f" difference = {error:.2g}; expected at most {EXPANSION_AGREEMENT:.2g}"
                    )


def without_dry_friction(arm: ArmModel) -> ArmModel:
    """Return the arm without dry friction of its joints and motors."""
    none = {"coulomb_friction": 0.0, "stiction": 0.0, "efficiency": 1.0, "back_efficiency": 1.0}
    joints = tuple(
        replace(
            joint,
            friction=0.0,
            constants=MappingProxyType(
                {**joint.constants, **{x: none[x] for x in none if x in joint.constants}}
            ),
        )
        for joint in arm.joints
    )
    return replace(arm, joints=joints)
