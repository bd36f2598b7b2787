"""A = ∂f/∂y and B = ∂f/∂u by derivatives of the traced equations."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import ArrayLike

from arm_dynamics.batch.kernels.kernel_cache import (
    AGREEMENT,
    TRIAL_STEP,
    KernelRejected,
    cached_module,
    casadi_required,
    equations_fingerprint,
    fingerprint,
    stored,
)
from arm_dynamics.batch.kernels.layout import Layout, ModuleSource, filled_block
from arm_dynamics.batch.kernels.rollout_loop import addresses, call_at
from arm_dynamics.core.arrays import (
    IntArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
    check_vector,
)
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State, check_command, require_state
from arm_dynamics.model.arm_argument import check_arm, requires_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.equations_of_motion import accepted_interfaces
from arm_dynamics.simulation.linearization import Linearization
from arm_dynamics.simulation.plant import Plant

JACOBIAN_AGREEMENT = 1e-6
"""Allowed difference of A and B from central differences of the plant's step, relative to the
largest entry of a row."""
DIFFERENCE_STEP = 1e-5
"""Half width of the central differences."""


@requires_masses
def linearize_by_trace(
    arm: ArmModel,
    state: State,
    command: Command,
    dt: float | None = None,
    integrator: str = "semi_implicit_euler",
) -> Linearization:
    """Linearize ẏ = f(y, u), y = (q, v, act), or one time step y⁺ = F(y, u).

    Without ``dt``: A = ∂f/∂y, B = ∂f/∂u, as ``linearization.linearize``; dry friction and end
    stops are omitted. With ``dt``: A = ∂F/∂y, B = ∂F/∂u of one step of the integrator, which is
    what a simulation computes, not e^(A dt); end stops are included, dry friction is omitted.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    state : State
        State; without actuator states those at rest are used.
    command : Command
        Command.
    dt : float, optional
        Time step [s].
    integrator : str
        Integrator of the time step.

    Returns
    -------
    Linearization
        A (n, n), B (n, nv) with n = 2 nv + na.

    Raises
    ------
    ConfigError
        If CasADi is missing.
    InvalidValue
        If the state, command, dt or integrator is invalid, or the arm cannot be traced.
    UnknownName
        If a joint does not accept the command's interface.

    """
    command, state = check_command(command, arm.nv), require_state(state)
    accepted_interfaces(arm, command.interface)
    q, v = check_vector("state q", state.q, arm.nv), check_vector("state v", state.v, arm.nv)
    act = state.act if state.act.size else arm.initial_act
    inputs = (q, v, check_vector("state act", act, arm.na), command.value)
    A, B, decay = (np.array(x) for x in _rate_derivative(arm, command.interface)(*inputs))
    if dt is not None:
        dt, n = check_float("dt [s]", dt, above=0), 2 * arm.nv + arm.na
        results = _step_derivative(arm, integrator, command.interface)(*inputs, dt)
        A, B = (np.array(x).reshape(n, -1) for x in results[4:])
    if not (np.isfinite(A).all() and np.isfinite(B).all()):
        raise InvalidValue("linearization: A or B = inf or NaN; expected a smaller state or dt")
    return Linearization(arm, as_readonly(A), as_readonly(B), as_readonly(decay.ravel()), dt)


class StepDerivative:
    """One time step and its derivative, δy⁺ = A δy + B δu, in one call of generated code."""

    def __init__(
        self, arm: ArmModel, integrator: str = "semi_implicit_euler", interface: str = "effort"
    ) -> None:
        """Load the code, or generate it and check it against differences of the plant's step.

        Parameters
        ----------
        arm : ArmModel
            Arm without dry friction.
        integrator : str
            Integrator, one of ``step_trace.INTEGRATORS``.
        interface : str
            Command interface.

        Raises
        ------
        InvalidValue
            If the arm has dry friction, which is not differentiable, or cannot be traced.
        ConfigError
            If CasADi is missing, and the code has to be generated or an actuator is a user's.
        KernelRejected
            If the code does not agree with the plant.

        """
        nv = check_arm(arm).nv
        accepted_interfaces(arm, interface)
        for joint, actuator in zip(arm.joints, arm.actuators, strict=True):
            if joint.friction > 0 or actuator.has_dry_friction or actuator.has_internal_friction:
                raise InvalidValue(
                    f"joint '{joint.name}': dry friction = above 0; expected 0 for a derivative of"
                    " the step; or use linearize_by_trace, which omits it"
                )
        self.arm, self.integrator, self.interface = arm, integrator, interface
        equations = equations_fingerprint(arm, interface)
        key = fingerprint(arm, ("derivative", integrator, interface, equations))
        module = cached_module(key, self._source, self._check)
        self._layout = layout = Layout.of(module.LAYOUT)
        n = 2 * nv + arm.na
        first = layout.first
        rows = n, nv, first["command"], first["dt"]
        self._program = np.array([*addresses("float64", (module.step,)), *rows])
        self._x = filled_block(layout, 1, np.dtype(float), module.CONSTANTS, {})
        views = [self._x[:n], *(self._x[layout.block(name)].reshape(n, -1) for name in "AB")]
        for view in views:
            view.flags.writeable = False
        self._views = views[0], views[1], views[2]
        self.step(np.concatenate([np.zeros(2 * nv), arm.initial_act]), np.zeros(nv), 1e-9)

    def step(self, state: Vector, command: Vector, dt: float) -> tuple[Vector, Matrix, Matrix]:
        """Take one time step.

        Parameters
        ----------
        state : Vector
            y = (q, v, act), shape (n,).
        command : Vector
            u, shape (nv,).
        dt : float
            Time step [s].

        Returns
        -------
        tuple of arrays
            y⁺ (n,), A (n, n), B (n, nv): read-only views of memory that the next call overwrites.

        Raises
        ------
        InvalidValue
            If an argument is not an array of that shape, dt is not above 0, or y⁺ is not finite.

        """
        try:
            code = advance(self._program, self._x, state, command, dt)
        except (TypeError, NumbaError) as error:
            raise self._invalid(state, command, dt) from error
        if code:
            raise self._invalid(state, command, dt)
        return self._views

    @property
    def address(self) -> int:
        """Address of the generated step, a function of ``block()``."""
        return int(self._program[0])

    def block(self) -> tuple[Vector, Layout]:
        """Return a block of one lane for the generated step, and its layout."""
        return self._x.copy(), self._layout

    def _invalid(self, state: ArrayLike, command: ArrayLike, dt: float) -> InvalidValue:
        given = np.shape(state), np.shape(command)
        expected = self._views[0].shape, (self.arm.nv,)
        if given == expected and dt > 0:
            return InvalidValue(
                f"derivative: state, command or next state = inf or NaN with dt = {dt:g} s;"
                " expected finite values"
            )
        return InvalidValue(
            f"derivative: shapes of state and command = {given[0]}, {given[1]}, dt = {dt!r} s;"
            f" expected {expected[0]}, {expected[1]} and dt above 0"
        )

    def _source(self) -> ModuleSource:
        with casadi_required("derivative"):
            from arm_dynamics.batch.kernels.derivative_trace import (  # noqa: PLC0415
                derivative_source,
            )
        return derivative_source(self.arm, self.integrator, self.interface)

    def _check(self, module: Any) -> None:
        """Compare ``step`` with the plant's at random states."""
        arm, layout, n = self.arm, Layout.of(module.LAYOUT), self.arm.nv
        lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
        random = np.random.default_rng(1)
        for _ in range(4):
            q, (v, u) = random.uniform(lower, upper), random.uniform(-1, 1, (2, n))
            y = np.concatenate([q, v, arm.initial_act])
            x = filled_block(layout, 1, np.dtype(float), module.CONSTANTS, {})
            for name, value in (("command", u), ("dt", TRIAL_STEP)):
                x[layout.block(name)] = value
            x[: y.size] = y
            self._accept("divergence of a step", np.array([float(module.step(x))]), 1.0, 0.0)
            after, expected = plant_step_jacobian(self, y, u, TRIAL_STEP)
            jacobian = np.hstack([x[layout.block(name)].reshape(y.size, -1) for name in "AB"])
            size = np.abs(after - y).max() + TRIAL_STEP
            rounding = 4 * np.finfo(float).eps / size
            bound = max(AGREEMENT["float64"], rounding)
            self._accept("step", x[: y.size] - after, size, bound)
            largest = np.abs(expected).max(axis=1, keepdims=True)
            size = np.maximum(largest, DIFFERENCE_STEP)
            self._accept("A and B", jacobian - expected, size, JACOBIAN_AGREEMENT)

    def _accept(
        self, quantity: str, error: Vector | Matrix, size: Matrix | float, bound: float
    ) -> None:
        largest = np.abs(error / size).max()
        if not largest <= bound:
            raise KernelRejected(
                f"derivative of arm '{self.arm.name}' ({self.integrator}, {self.interface}):"
                f" {quantity}: difference from the plant = {largest:.2g};"
                f" expected at most {bound:.2g}"
            )


@stored
def advance(program: IntArray, x: Vector, state: Vector, command: Vector, dt: float) -> int:
    """Copy the arguments to their rows and take a step of the function at an address.

    Return 0, 1 if the state is not finite, 2 for a wrong size or a dt that is not above 0.
    """
    step, n, nv, first, time = program
    if state.size != n or command.size != nv or not dt > 0.0:
        return 2
    for i in range(n):
        x[i] = state[i]
    for i in range(nv):
        x[first + i] = command[i]
    x[time] = dt
    return 1 if call_at(step, x) else 0


def plant_step_jacobian(
    derivative: StepDerivative, y: Vector, u: Vector, dt: float
) -> tuple[Vector, Matrix]:
    """Return y⁺ of ``Plant.step`` (n,) and its central differences in y and u (n, n + nv)."""
    plant, nv = Plant(derivative.arm, derivative.integrator), derivative.arm.nv

    def after(x: Vector) -> Vector:
        q, v, act, command = np.split(x, [nv, 2 * nv, y.size])
        end = plant.step(State.of(q, v, act=act), Command(derivative.interface, command), dt)
        return np.concatenate([end.q, end.v, end.act])

    x = np.concatenate([y, u])
    steps = DIFFERENCE_STEP * np.eye(x.size)
    differences = [(after(x + h) - after(x - h)) / (2 * DIFFERENCE_STEP) for h in steps]
    return after(x), np.array(differences).T


@lru_cache(maxsize=16)
def _rate_derivative(arm: ArmModel, interface: str) -> Any:
    with casadi_required("derivative"):
        from arm_dynamics.batch.kernels.derivative_trace import rate_derivative  # noqa: PLC0415
    return rate_derivative(arm, interface)


@lru_cache(maxsize=16)
def _step_derivative(arm: ArmModel, integrator: str, interface: str) -> Any:
    with casadi_required("derivative"):
        from arm_dynamics.batch.kernels.derivative_trace import step_derivative  # noqa: PLC0415
    return step_derivative(arm, integrator, interface)
