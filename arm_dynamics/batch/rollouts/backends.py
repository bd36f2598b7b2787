"""Choice of the backend that advances the rollouts: generated kernel or plant."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from arm_dynamics.batch.kernels.pid_spec import PidSpec
from arm_dynamics.batch.rollouts.inputs import InitialStates
from arm_dynamics.batch.rollouts.steppers import BatchStepper, KernelStepper, PlantStepper
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue, UnknownName
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.integrators import find_integrator

BACKENDS = ("generated", "plant")
"""Generated kernels (for arms, integrators and actuators that have one), and ``Plant``."""
PRECISIONS = ("float64", "float32")
BLOCK = 32
"""Rollouts that a kernel advances side by side."""


class Setup(NamedTuple):
    """Integrator, command interface and precision."""

    integrator: str
    interface: str
    precision: str


MakeStepper = Callable[[InitialStates, Vector, Mapping[str, Matrix]], BatchStepper]
"""Initial states, time steps (batch,) [s] and varied quantities -> stepper."""


def select_backend(
    backend: str, arm: ArmModel, setup: Setup, vary: Sequence[str], pid: PidSpec | None = None
) -> tuple[str, MakeStepper]:
    """Return the backend and the function that makes its steppers.

    Parameters
    ----------
    backend : str
        One of ``BACKENDS``, or "auto": the generated kernel if there is one, else the plant; a
        RuntimeWarning states the reason once.
    arm : ArmModel
        Nominal arm.
    setup : Setup
        Integrator, command interface and precision.
    vary : sequence of str
        Quantities that differ between rollouts.
    pid : PidSpec, optional
        PID controller to be included in a generated kernel.

    Raises
    ------
    UnknownName
        If the backend, integrator, precision or a varied quantity does not exist.
    InvalidValue
        If the requested backend cannot simulate this arm; the message states the reason.

    """
    find_integrator(setup.integrator)
    if setup.precision not in PRECISIONS:
        raise UnknownName("precision", setup.precision, PRECISIONS)
    if backend not in ("auto", *BACKENDS):
        raise UnknownName("backend", backend, ("auto", *BACKENDS))

    def plant_stepper(
        start: InitialStates, dt: Vector, varied: Mapping[str, Matrix]
    ) -> BatchStepper:
        return PlantStepper(arm, setup.integrator, setup.interface, start, dt, varied)

    if backend == "plant":
        return "plant", plant_stepper
    generated = _generated(arm, setup, vary, pid)
    if not isinstance(generated, str):
        return "generated", generated
    if backend == "generated":
        raise InvalidValue(
            f"rollout: backend = 'generated'; expected an arm with a kernel: {generated};"
            " use backend 'plant'"
        )
    _warn_once(f"rollouts use backend 'plant', slower, because 'generated': {generated}")
    return "plant", plant_stepper


def _generated(
    arm: ArmModel, setup: Setup, vary: Sequence[str], pid: PidSpec | None
) -> MakeStepper | str:
    """Return the function that makes steppers with a kernel, or why no kernel exists."""
    try:  # numba is optional
        from arm_dynamics.batch.kernels.kernel import Kernel  # noqa: PLC0415
        from arm_dynamics.batch.kernels.kernel_cache import KernelOptions  # noqa: PLC0415

        integrator, interface, precision = setup
        options = KernelOptions(integrator, interface, tuple(vary), precision, BLOCK, pid)
        kernel = Kernel(arm, options)
    except UnknownName:
        raise
    except ArmDynamicsError as error:
        return str(error)
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed"
    return lambda start, dt, varied: KernelStepper(kernel, start, dt, varied)


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)
