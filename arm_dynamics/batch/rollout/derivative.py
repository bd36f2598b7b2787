"""A, B by derivative of the traced laws: of the rate, or of one time step of a method."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import ArrayLike

from arm_dynamics.batch.rollout.kernel import AGREEMENT, TRIAL_STEP, KernelRejected, Layout, filled
from arm_dynamics.batch.rollout.kernel_cache import cached_module, fingerprint
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.requirements import to_install
from arm_dynamics.core.state import Command, State, require_state
from arm_dynamics.model.arm_argument import check_arm, requires_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.equations_of_motion import check_command_interfaces
from arm_dynamics.simulation.linearization import Linearization
from arm_dynamics.simulation.plant import Plant

SLOPE_AGREEMENT = 1e-6
"""Largest difference of A and B from central differences of the plant's step, relative to the
largest entry of a row."""
SHIFT = 1e-5
"""Half the width of these differences."""


@requires_arm
def linearize_by_trace(
    arm: ArmModel,
    state: State,
    command: Command,
    dt: float | None = None,
    integrator: str = "semi_implicit_euler",
) -> Linearization:
    """A = ∂f/∂y and B = ∂f/∂u of ẏ = f(y, u), y = (q, v, z), from the kernels' own trace.

    Equal to ``linearization.linearize``: dry friction and stops apart. With ``dt`` [s] instead
    A = ∂y⁺/∂y and B = ∂y⁺/∂u of one time step of ``integrator``, stops included and dry friction
    apart: another thing than the exact step e^(A dt) that ``linearize`` gives, and what a
    simulation with that method does. State without own states: these at rest.

    Raises ConfigError without CasADi, InvalidValue for a method or an arm without a trace and for
    a bad state, command or dt, UnknownName for an interface that a joint does not take.
    """
    command, state = check_command_interfaces(arm, command), require_state(state)
    q, v = check_vector("state q", state.q, arm.nv), check_vector("state v", state.v, arm.nv)
    z = check_vector("state act", state.act if state.act.size else arm.initial_act, arm.na)
    given = (q, v, z, command.value)
    A, B, decay = (np.array(x) for x in _rate(arm, command.interface)(*given))
    if dt is not None:
        dt, n = check_float("dt [s]", dt, above=0), 2 * arm.nv + arm.na
        found = _step(arm, integrator, command.interface)(*given, dt)
        A, B = (np.array(x).reshape(n, -1) for x in found[4:])
    if not (np.isfinite(A).all() and np.isfinite(B).all()):
        raise InvalidValue("A and B leave the finite numbers: a smaller state or dt is expected")
    return Linearization(arm, as_readonly(A), as_readonly(B), as_readonly(decay.ravel()), dt)


class StepDerivative:
    """One time step and its derivative, δy⁺ = A δy + B δu, by generated code in one call."""

    def __init__(
        self, arm: ArmModel, integrator: str = "semi_implicit_euler", interface: str = "effort"
    ) -> None:
        """Load the code, or make it and hold it to the plant's step and its differences.

        Raises InvalidValue for an arm with dry friction, whose step has corners, or without a
        trace; ConfigError without CasADi when the code has to be made; KernelRejected when it
        does not agree with the plant.
        """
        check_command_interfaces(
            check_arm(arm), Command.checked(interface, np.zeros(arm.nv), arm.nv)
        )
        _require_smooth(arm)
        self.arm, self.integrator, self.interface = arm, integrator, interface
        key = fingerprint(arm, ("derivative", integrator, interface))
        made = cached_module(key, self._text, self._check)
        layout, n = Layout.of(made.LAYOUT), 2 * arm.nv + arm.na
        self._advance, self._x = made.advance, filled(layout, 1, np.dtype(float), {})
        views = [self._x[:n], *(self._x[layout.block(name)].reshape(n, -1) for name in "AB")]
        for view in views:
            view.flags.writeable = False
        self._found = views[0], views[1], views[2]
        self.step(np.concatenate([np.zeros(2 * arm.nv), arm.initial_act]), np.zeros(arm.nv), 1e-9)

    def step(self, state: Vector, command: Vector, dt: float) -> tuple[Vector, Vector, Vector]:
        """y⁺ (n,), A (n, n), B (n, nv) after dt [s] from y = (q, v, z) (n,) under u (nv,).

        Read-only views of memory that the next call writes anew: copy what is to stay. Raises
        InvalidValue for what is no array of the right shape, for a dt that is not above 0 and
        where y⁺ leaves the finite numbers.
        """
        try:
            wrong = self._advance(self._x, state, command, dt)
        except (TypeError, NumbaError) as error:
            raise self._refusal(state, command, dt) from error
        if wrong:
            raise self._refusal(state, command, dt)
        return self._found

    def _refusal(self, state: ArrayLike, command: ArrayLike, dt: float) -> InvalidValue:
        given = np.shape(state), np.shape(command)
        expected = self._found[0].shape, (self.arm.nv,)
        if given == expected and dt > 0:
            return InvalidValue(f"state, command or its step of dt = {dt:g} s is not finite")
        return InvalidValue(
            f"state {given[0]}, command {given[1]}, dt = {dt!r}: arrays of real numbers of shape"
            f" {expected[0]} and {expected[1]} and a dt above 0 are expected"
        )

    def _text(self) -> str:
        writer = _symbolic("derivative_trace")
        return str(writer.derivative_text(self.arm, self.integrator, self.interface))

    def _check(self, made: Any) -> None:
        """``advance``, and ``step`` in it: y⁺, A and B at random states, beside the plant's."""
        arm, layout, n = self.arm, Layout.of(made.LAYOUT), self.arm.nv
        lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
        random = np.random.default_rng(1)
        for _ in range(4):
            q, (v, u) = random.uniform(lower, upper), random.uniform(-1, 1, (2, n))
            y = np.concatenate([q, v, arm.initial_act])
            x = filled(layout, 1, np.dtype(float), {})
            lost = made.advance(x, y, u, TRIAL_STEP)
            self._accept("advance's answer", np.array([lost]), 1.0, 0.0)
            after, slopes = plant_step(self, y, u, TRIAL_STEP)
            found = np.hstack([x[layout.block(name)].reshape(y.size, -1) for name in "AB"])
            size = np.abs(after - y).max() + TRIAL_STEP
            rounding = 4 * np.finfo(float).eps / size
            self._accept("step", x[: y.size] - after, size, max(AGREEMENT["float64"], rounding))
            largest = np.abs(slopes).max(axis=1, keepdims=True)
            self._accept("A and B", found - slopes, np.maximum(largest, SHIFT), SLOPE_AGREEMENT)

    def _accept(self, what: str, miss: Vector, size: Vector | float, bound: float) -> None:
        worst = np.abs(miss / size).max()
        if not worst <= bound:
            raise KernelRejected(
                f"derivative of arm '{self.arm.name}' ({self.integrator}, {self.interface}): {what}"
                f" misses the plant's by {worst:.2g}; at most {bound:.2g} is allowed"
            )


def plant_step(own: StepDerivative, y: Vector, u: Vector, dt: float) -> tuple[Vector, Vector]:
    """y⁺ of ``Plant.step``, and its central differences (n, n + nv) in y and u."""
    plant, nv = Plant(own.arm, own.integrator), own.arm.nv

    def after(x: Vector) -> Vector:
        q, v, z, told = np.split(x, [nv, 2 * nv, y.size])
        end = plant.step(State.of(q, v, act=z), Command(own.interface, told), dt)
        return np.concatenate([end.q, end.v, end.act])

    x = np.concatenate([y, u])
    shifts = SHIFT * np.eye(x.size)
    return after(x), np.array([(after(x + h) - after(x - h)) / (2 * SHIFT) for h in shifts]).T


def _require_smooth(arm: ArmModel) -> None:
    for joint, actuator in zip(arm.joints, arm.actuators, strict=True):
        if joint.friction > 0 or actuator.has_dry_friction or actuator.has_internal_friction:
            raise InvalidValue(
                f"joint '{joint.name}' has dry friction: its step has corners and no derivative;"
                " 0 is expected, or linearize_by_trace, which leaves it apart"
            )


@lru_cache(maxsize=16)
def _rate(arm: ArmModel, interface: str) -> Any:
    return _symbolic("derivative_trace").rate_derivative(arm, interface)


@lru_cache(maxsize=16)
def _step(arm: ArmModel, integrator: str, interface: str) -> Any:
    return _symbolic("derivative_trace").step_derivative(arm, integrator, interface)


def _symbolic(name: str) -> ModuleType:
    """A module that needs CasADi; raises ConfigError without."""
    try:
        return import_module(f"arm_dynamics.batch.rollout.{name}")
    except ModuleNotFoundError as error:
        if error.name != "casadi":
            raise
        raise ConfigError(
            f"a derivative is made by CasADi, which is missing: {to_install('rollout')}"
        ) from error
