"""A compiled function of the states of a block: observation and reward of an environment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.kernel_cache import AGREEMENT, KernelRejected, cached_module
from arm_dynamics.batch.kernels.kernel_source import FUNCTION, function_lines, head_text
from arm_dynamics.batch.kernels.layout import (
    Layout,
    ModuleSource,
    filled_block,
    with_constant_rows,
)
from arm_dynamics.batch.kernels.rollout_loop import function_address
from arm_dynamics.batch.kernels.step_trace import TracedFunction
from arm_dynamics.batch.kernels.symbolic_equations import input_symbols, vector
from arm_dynamics.batch.kernels.symbolic_math import Symbol
from arm_dynamics.batch.kernels.symbolic_rigid_body import Chain
from arm_dynamics.core.arrays import Vector
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel


class ArmState(NamedTuple):
    """State of an arm after a control period: numbers, or symbols of a trace.

    Attributes
    ----------
    q, v : array
        Positions [rad or m] and velocities, shape (nv,).
    action : array
        Normalized action, shape (nv,).
    goal : array
        Goal of the episode.
    tool_position : array
        Position of the tool frame in the base frame [m], shape (3,).
    potential_energy : float
        Potential energy [J], payload included.

    """

    q: Any
    v: Any
    action: Any
    goal: Any
    tool_position: Any
    potential_energy: Any


class StateFunction:
    """``evaluate(ArmState)`` for all lanes of a block; its rows are inputs, then outputs."""

    def __init__(
        self,
        arm: ArmModel,
        goal_size: int,
        evaluate: Callable[[ArmState], Mapping[str, Any]],
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
            Returns output name to its values; it is called with symbols.
        precision : str
            "float64" or "float32".
        lanes : int
            SIMD lanes of a block.

        Raises
        ------
        KernelRejected
            If the compiled function differs from the trace.

        """
        n = arm.nv
        rows = input_symbols({"q": n, "v": n, "action": n, "goal": goal_size})
        outputs = {name: vector(x) for name, x in evaluate(_symbolic_state(arm, rows)).items()}
        function = TracedFunction.of("evaluate", "Observation and reward.", rows, outputs)
        layout = Layout.of({name: len(x) for name, x in {**rows, **outputs}.items()})
        self.precision, self.lanes = precision, lanes
        source = _source(function, layout, precision, lanes)
        key = hashlib.sha256(repr(source).encode()).hexdigest()[:20]
        self._module = cached_module(key, lambda: source, lambda m: self._check(m, function))
        self.layout = Layout.of(self._module.LAYOUT)

    @property
    def address(self) -> int:
        """Address of the compiled function, for ``call_block``."""
        return function_address(self._module.evaluate, self.precision)

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


def _symbolic_state(arm: ArmModel, rows: Mapping[str, Any]) -> ArmState:
    """Return the state of symbols with tool position and potential energy.

    p_tool = p + R t of the body that carries the tool frame; U = -Σ m gᵀ (p + R c).
    """
    table = bodies(arm)
    placed = Chain(table, arm.gravity, [x.sx for x in rows["q"]]).placements()
    frame = arm.links.frames[arm.links.getFrameId(arm.tool_frame, pin.BODY)]
    tool, carrier = ca.SX(ca.DM(frame.placement.translation)), frame.parentJoint - 1
    if carrier >= 0:
        rotation, origin = placed[carrier]
        tool = origin + rotation @ (ca.DM(table[carrier].turn.T) @ tool)
    energy = ca.SX(0)
    for body, (rotation, origin) in zip(table, placed, strict=True):
        center = origin + rotation @ ca.DM(np.array(body.center, dtype=float))
        energy -= float(body.mass) * ca.dot(ca.DM(np.array(arm.gravity)), center)
    position = vector(Symbol(tool[i]) for i in range(3))
    return ArmState(**rows, tool_position=position, potential_energy=Symbol(energy))


def _source(function: TracedFunction, layout: Layout, precision: str, lanes: int) -> ModuleSource:
    constants: dict[float, str] = {}
    lines = function_lines(function, layout, constants)
    layout = with_constant_rows(layout, lanes, len(constants))
    head = head_text(f"Observation and reward, {precision}.", layout, lanes, precision)
    body = FUNCTION.format(name=function.name, purpose=function.purpose, lines=lines)
    return ModuleSource(head + body, tuple(constants))
