"""Who advances the lanes: generated kernels, the compiled tree, or plants. Same results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from arm_dynamics.batch.rollout.batch_stepper import BatchStepper, PlantStepper
from arm_dynamics.batch.rollout.inputs import InitialStates
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue, UnknownName
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.integrators import find_integrator

if TYPE_CHECKING:
    from arm_dynamics.batch.rollout.pid_loop import PidSpec

BACKENDS = ("generated", "tree", "plant")
"""Fastest first."""
PRECISIONS = ("float64", "float32")
BLOCK = 32
"""Lanes that are advanced side by side."""

Setup = tuple[str, str, str]
"""Integrator, interface of the commands, precision."""
MakeLanes = Callable[[InitialStates, Vector, Mapping[str, Vector]], BatchStepper]
"""Lanes from where they begin, their time steps and what varies between them."""


def select_backend(
    backend: str, arm: ArmModel, setup: Setup, vary: Sequence[str], law: PidSpec | None = None
) -> tuple[str, MakeLanes]:
    """The backend and what makes its lanes; "auto" is the fastest that serves.

    A ``law`` goes into the lanes of "generated" alone.

    "auto" says once, as a RuntimeWarning, why a faster one does not serve. Raises UnknownName
    for a backend, integrator or variation that there is not, InvalidValue when the one asked
    for does not serve, saying why.
    """
    find_integrator(setup[0])
    if setup[2] not in PRECISIONS:
        raise UnknownName("precision", setup[2], PRECISIONS)
    if backend != "auto":
        if backend not in BACKENDS:
            raise UnknownName("backend", backend, ("auto", *BACKENDS))
        made = _made(backend, arm, setup, vary, law)
        if isinstance(made, str):
            raise InvalidValue(f"backend '{backend}' does not serve here: {made}")
        return backend, made
    missed: list[str] = []
    for name in BACKENDS:
        made = _made(name, arm, setup, vary, law)
        if not isinstance(made, str):
            if missed:
                _say_once(f"rollouts by backend '{name}', slower: {'; '.join(missed)}")
            return name, made
        missed.append(f"'{name}': {made}")
    raise InvalidValue(f"no backend serves: {'; '.join(missed)}")


def _made(
    name: str, arm: ArmModel, setup: Setup, vary: Sequence[str], law: PidSpec | None
) -> MakeLanes | str:
    """What makes the lanes of a backend, or why it can not serve."""
    if name == "generated":
        return _generated(arm, setup, vary, law)
    return (_tree if name == "tree" else _plant)(arm, setup)


def _generated(
    arm: ArmModel, setup: Setup, vary: Sequence[str], law: PidSpec | None
) -> MakeLanes | str:
    try:
        from arm_dynamics.batch.rollout.batch_stepper import KernelStepper  # noqa: PLC0415
        from arm_dynamics.batch.rollout.kernel import Kernel, Options  # noqa: PLC0415 - numba

        method, interface, precision = setup
        kernel = Kernel(arm, Options(method, interface, tuple(vary), precision, BLOCK, law))
    except UnknownName:
        raise
    except ArmDynamicsError as error:
        return str(error)
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed"
    return lambda start, dt, varied: KernelStepper(kernel, start, dt, varied)


def _tree(arm: ArmModel, setup: Setup) -> MakeLanes | str:
    try:
        import numba  # noqa: F401, PLC0415

        from arm_dynamics.batch.rollout.tree_stepper import INTEGRATORS, TreeStepper  # noqa: PLC0415
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed"
    method, interface, _ = setup
    if method not in INTEGRATORS:
        return f"integrator {method} is none of {', '.join(INTEGRATORS)}"
    for actuator in arm.actuators:
        if actuator.kernel_id not in (1, 2) or actuator.prescribes_motion:
            return f"joint '{actuator.joint}': its actuator has no compiled law"
    return lambda start, dt, varied: TreeStepper(arm, method, interface, start, dt, varied)


def _plant(arm: ArmModel, setup: Setup) -> MakeLanes | str:
    method, interface, _ = setup
    return lambda start, dt, varied: PlantStepper(arm, method, interface, start, dt, varied)


@cache
def _say_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)
