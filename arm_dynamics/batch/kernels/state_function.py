"""A compiled function of the states of a block: observation and reward of an environment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch.kernels.cost import Stage, cost_geometry
from arm_dynamics.batch.kernels.kernel_cache import AGREEMENT, KernelRejected, cached_module
from arm_dynamics.batch.kernels.kernel_source import FUNCTION, function_lines, head_text
from arm_dynamics.batch.kernels.layout import (
    Layout,
    ModuleSource,
    filled_block,
    with_constant_rows,
)
from arm_dynamics.batch.kernels.plan_trace import STAGE, symbolic_stage
from arm_dynamics.batch.kernels.rollout_loop import addresses
from arm_dynamics.batch.kernels.step_trace import TracedFunction
from arm_dynamics.batch.kernels.symbolic_equations import input_symbols, vector
from arm_dynamics.batch.kernels.symbolic_math import SymbolVector
from arm_dynamics.collision.scene import EMPTY_SCENE
from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel

Evaluate = Callable[[Stage, SymbolVector, SymbolVector], Mapping[str, Any]]
"""Function of a stage, the normalized action (nv,) and the goal: output name to its values."""


class StateFunction:
    """``evaluate`` for all lanes of a block: rows ``STAGE``, action and goal, then outputs."""

    def __init__(
        self,
        arm: ArmModel,
        goal_size: int,
        evaluate: Evaluate,
        precision: str,
        lanes: int,
    ) -> None:
        """Trace, compile and check the function.

        Parameters
        ----------
        arm : ArmModel
            Arm.
        goal_size : int
            Number of values of the goal.
        evaluate : callable
            Called once, with symbols.
        precision : str
            "float64" or "float32".
        lanes : int
            SIMD lanes of a block.

        Raises
        ------
        KernelRejected
            If the compiled function differs from the trace.

        """
        sizes = {name: arm.na if name == "act" else arm.nv for name in (*STAGE, "action")}
        rows = input_symbols({**sizes, "goal": goal_size})
        stage = symbolic_stage(cost_geometry(arm, EMPTY_SCENE), rows)
        results = evaluate(stage, rows["action"], rows["goal"])
        outputs = {name: vector(values) for name, values in results.items()}
        function = TracedFunction.of("evaluate", "Observation and reward.", rows, outputs)
        layout = Layout.of({name: len(x) for name, x in {**rows, **outputs}.items()})
        self.precision, self.lanes = precision, lanes
        source = _source(function, layout, precision, lanes)
        key = hashlib.sha256(repr(source).encode()).hexdigest()[:20]
        self._module = cached_module(key, lambda: source, lambda m: self._check(m, function))
        self.layout = Layout.of(self._module.LAYOUT)

    @property
    def address(self) -> int:
        """Address of the compiled function, for ``call_at``."""
        return addresses(self.precision, (self._module.evaluate,))[0]

    def block(self) -> Vector:
        """Return a block (rows * lanes,) of zeros and the constants."""
        return self._filled(self._module, {})

    def _filled(self, module: Any, values: Mapping[str, Any]) -> Vector:
        layout, dtype = Layout.of(module.LAYOUT), np.dtype(self.precision)
        return filled_block(layout, self.lanes, dtype, module.CONSTANTS, values)

    def _check(self, module: Any, traced: TracedFunction) -> None:
        """Compare with the evaluation by CasADi; raises KernelRejected."""
        layout, random = Layout.of(module.LAYOUT), np.random.default_rng(1)
        values = {name: random.uniform(-1, 1, layout.sizes[name]) for name in traced.inputs}
        x = self._filled(module, values)
        module.evaluate(x)
        expected = np.array(ca.vertcat(*traced.function.call(list(values.values())))).ravel()
        first = layout.first[traced.outputs[0]]
        found = x.reshape(layout.rows, -1)[first : first + expected.size, 0]
        error = np.abs(found - expected).max()
        bound = AGREEMENT[self.precision] * max(1.0, np.abs(expected).max())
        if not error <= bound:
            raise KernelRejected(
                f"observation and reward: difference = {error:.2g}; expected at most {bound:.2g}"
            )


def _source(function: TracedFunction, layout: Layout, precision: str, lanes: int) -> ModuleSource:
    constants: dict[float, str] = {}
    lines = function_lines(function, layout, constants)
    layout = with_constant_rows(layout, lanes, len(constants))
    head = head_text(f"Observation and reward, {precision}.", layout, lanes, precision)
    body = FUNCTION.format(name=function.name, purpose=function.purpose, lines=lines)
    return ModuleSource(head + body, tuple(constants))
