"""Backends that advance the rollouts: steppers with a generated kernel or with plants."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from arm_dynamics.batch import variation
from arm_dynamics.batch.kernels.free_object import body_rows, body_state, free_object
from arm_dynamics.batch.kernels.pid_spec import PidSpec
from arm_dynamics.batch.kernels.tracking_metrics import METRICS
from arm_dynamics.batch.rollouts.inputs import InitialStates
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue, UnknownName
from arm_dynamics.core.state import Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.integrators import find_integrator
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import new_plant

if TYPE_CHECKING:
    from arm_dynamics.batch.kernels.kernel import Kernel  # needs numba, which is optional
    from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts

Records = Mapping[str, FloatArray]
"""Name of an output -> array (batch, records, size), to be filled from the front."""


class BatchStepper(ABC):
    """States of ``size`` rollouts after ``count`` steps; ``failed_step`` as in RolloutResult."""

    def __init__(self, size: int) -> None:
        self.size, self.count = size, 0
        self.failed_step = np.full(size, -1)

    @abstractmethod
    def advance(
        self, commands: FloatArray, steps_per_command: int, record_every: int, records: Records
    ) -> None:
        """Advance all rollouts in place.

        Parameters
        ----------
        commands : FloatArray
            Shape (batch or 1, periods, n).
        steps_per_command : int
            Time steps under each command.
        record_every : int
            States after a multiple of this number of steps are recorded.
        records : Mapping[str, FloatArray]
            Arrays to be filled.

        """

    @abstractmethod
    def state(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return q, v, actuator states and efforts, shape (batch, size) each."""

    @abstractmethod
    def replace_state(self, q: Matrix, v: Matrix, act: Matrix) -> None:
        """Continue from other q, v and actuator states, shape (batch, size) each."""

    def metrics(self) -> dict[str, Matrix]:
        """Return the metrics of a closed loop by name, shape (batch, nv); here none."""
        return {}


class KernelStepper(BatchStepper):
    """One block of a kernel; unused SIMD lanes repeat the last rollout and are ignored."""

    def __init__(
        self, kernel: Kernel, start: InitialStates, dt: Vector, varied: Mapping[str, Matrix]
    ) -> None:
        super().__init__(start.size)
        self.kernel = kernel
        rows = {"q": start.q, "v": start.v, "act": start.act, "dt": dt[:, None], **varied}
        contacts = kernel.options.contacts
        if contacts is not None and contacts.body is not None:
            rows |= body_rows(np.tile(body_state(contacts.body), (self.size, 1)))
        lanes = np.minimum(np.arange(kernel.options.lanes), self.size - 1)
        self.x = kernel.block({name: values[lanes] for name, values in rows.items()})

    def advance(
        self, commands: FloatArray, steps_per_command: int, record_every: int, records: Records
    ) -> None:
        """As ``BatchStepper.advance``."""
        kernel, lanes = self.kernel, self.kernel.options.lanes
        periods, width = commands.shape[1:]
        inputs = np.empty((periods, width, lanes), kernel.dtype)
        inputs[..., : self.size] = commands.transpose(1, 2, 0)
        inputs[..., self.size :] = inputs[..., self.size - 1 : self.size]
        inputs = inputs.reshape(periods, -1)
        before, rows = self.count // record_every, kernel.rows(list(records))
        after = self.count + periods * steps_per_command
        recorded = np.empty((after // record_every - before, rows.size, lanes), kernel.dtype)
        failed = kernel.run(
            self.x, inputs, steps_per_command, record_every, rows, recorded, self.count
        )[: self.size]
        self.failed_step = np.where(self.failed_step < 0, failed, self.failed_step)
        self.count, first = after, 0
        for array in records.values():
            width = array.shape[2]
            array[:] = recorded[:, first : first + width, : self.size].transpose(2, 0, 1)
            first += width
            for k in np.flatnonzero(self.failed_step >= 0).tolist():
                array[k, max(-(-self.failed_step[k] // record_every) - 1 - before, 0) :] = np.nan

    def rows(self, name: str) -> Matrix:
        """Return a named block of rows, shape (batch, size); NaN for diverged rollouts."""
        x = self.x.reshape(self.kernel.layout.rows, -1)[self.kernel.layout.block(name)]
        values = np.array(x[:, : self.size].T, dtype=float)
        values[self.failed_step >= 0] = np.nan
        return values

    def state(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """As ``BatchStepper.state``."""
        return self.rows("q"), self.rows("v"), self.rows("act"), self.rows("effort")

    def replace_state(self, q: Matrix, v: Matrix, act: Matrix) -> None:
        """As ``BatchStepper.replace_state``."""
        x = self.x.reshape(self.kernel.layout.rows, -1)
        for name, values in (("q", q), ("v", v), ("act", act)):
            x[self.kernel.layout.block(name), : self.size] = values.T

    def metrics(self) -> dict[str, Matrix]:
        """As ``BatchStepper.metrics``."""
        return {name: self.rows(name) for name in METRICS if name in self.kernel.layout.sizes}


class PlantStepper(BatchStepper):
    """One ``Plant`` for all rollouts, or one per rollout where their arms differ."""

    def __init__(
        self,
        arm: ArmModel,
        setup: Setup,
        start: InitialStates,
        dt: Vector,
        varied: Mapping[str, Matrix],
    ) -> None:
        super().__init__(start.size)
        self.q, self.v, self.act = start.q.copy(), start.v.copy(), start.act.copy()
        self.effort = np.full_like(start.q, np.nan)
        self.dt, self.interface = dt, setup.interface
        arms = [
            variation.rollout_arm(arm, {name: values[k] for name, values in varied.items()})
            for k in range(self.size if varied else 1)
        ]
        self.plants = [new_plant(one, setup.integrator, setup.scene) for one in arms]

    def advance(
        self, commands: FloatArray, steps_per_command: int, record_every: int, records: Records
    ) -> None:
        """As ``BatchStepper.advance``, one rollout after another."""
        commands = np.broadcast_to(commands, (self.size, *commands.shape[1:]))
        for k in range(self.size):
            self._advance_one(k, commands[k], steps_per_command, record_every, records)
        self.count += commands.shape[1] * steps_per_command

    def _advance_one(
        self, k: int, commands: Matrix, steps_per_command: int, record_every: int, records: Records
    ) -> None:
        state = {"q": self.q, "v": self.v, "act": self.act, "effort": self.effort}
        count, record = self.count, 0
        for command in commands:
            left = steps_per_command
            while left:
                steps = min(left, record_every - count % record_every)
                self._step_one(k, command, steps, count)
                count, left = count + steps, left - steps
                if count % record_every == 0:
                    for name, array in records.items():
                        array[k, record] = state[name][k]
                    record += 1

    def _step_one(self, k: int, value: Vector, steps: int, count: int) -> None:
        """Advance rollout k under one command; NaN from the step on at which it diverges."""
        if self.failed_step[k] >= 0:
            return
        rows = (self.q, self.v, self.effort, self.act)
        state = State(0.0, *(as_readonly(x[k]) for x in rows))
        command = Command(self.interface, as_readonly(value))
        plant, dt = self.plants[k % len(self.plants)], float(self.dt[k])
        try:
            after = plant.step(state, command, dt, steps)
        except InvalidValue:
            self.failed_step[k] = count + _first_failing_step(plant, state, command, dt)
            for x in rows:
                x[k] = np.nan
            return
        self.q[k], self.v[k], self.act[k], self.effort[k] = after.q, after.v, after.act, after.tau

    def state(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """As ``BatchStepper.state``."""
        return self.q, self.v, self.act, self.effort

    def replace_state(self, q: Matrix, v: Matrix, act: Matrix) -> None:
        """As ``BatchStepper.replace_state``."""
        self.q, self.v, self.act = q.copy(), v.copy(), act.copy()


def _first_failing_step(plant: Plant, state: State, command: Command, dt: float) -> int:
    """Return the number of the step at which the plant diverges."""
    step = 1
    while True:
        try:
            state = plant.step(state, command, dt)
        except InvalidValue:
            return step
        step += 1


BACKENDS = ("generated", "plant")
"""Generated kernels (for arms, integrators and actuators that have one), and ``Plant``."""
PRECISIONS = ("float64", "float32")
BLOCK = 32
"""Rollouts that a kernel advances side by side."""


class Setup(NamedTuple):
    """Integrator, command interface, precision and the objects around the arm."""

    integrator: str
    interface: str
    precision: str
    scene: Scene = EMPTY_SCENE


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
        Integrator, command interface, precision and scene.
    vary : sequence of str
        Quantities that differ between rollouts.
    pid : PidSpec, optional
        PID controller to be included in a generated kernel.

    Raises
    ------
    UnknownName
        If the backend, integrator, precision or a varied quantity does not exist.
    InvalidValue
        If the requested backend cannot simulate this arm, or the generated kernels this scene,
        which "auto" does not replace by the plant; the message states the reason.

    """
    find_integrator(setup.integrator)
    if setup.precision not in PRECISIONS:
        raise UnknownName("precision", setup.precision, PRECISIONS)
    if backend not in ("auto", *BACKENDS):
        raise UnknownName("backend", backend, ("auto", *BACKENDS))

    def plant_stepper(
        start: InitialStates, dt: Vector, varied: Mapping[str, Matrix]
    ) -> BatchStepper:
        return PlantStepper(arm, setup, start, dt, varied)

    if backend == "plant":
        _require_fixed(setup.scene, "use backend 'generated'")
        return "plant", plant_stepper
    generated = _generated(arm, setup, vary, pid, _contacts(arm, setup))
    if not isinstance(generated, str):
        return "generated", generated
    if backend == "generated":
        raise InvalidValue(
            f"rollout: backend = 'generated'; expected an arm with a kernel: {generated};"
            " use backend 'plant'"
        )
    _require_fixed(setup.scene, generated)
    _warn_once(f"rollouts use backend 'plant', slower, because 'generated': {generated}")
    return "plant", plant_stepper


def _require_fixed(scene: Scene, reason: str) -> None:
    """Raise InvalidValue for a free object, which plants as backend do not move."""
    if (one := free_object(scene)) is not None:
        raise InvalidValue(
            f"scene object '{one.name}': mass = {one.mass:g} kg; expected 0 with backend 'plant':"
            f" {reason}, or use Simulation"
        )


def _contacts(arm: ArmModel, setup: Setup) -> SphereContacts | None:
    """Return the contacts with the objects of the scene, None without any; raises InvalidValue."""
    if not len(setup.scene):
        return None
    from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts  # noqa: PLC0415

    if setup.integrator != "semi_implicit_euler":
        raise InvalidValue(
            f"integrator = '{setup.integrator}'; expected 'semi_implicit_euler' in a scene: the"
            " other integrators have no contact"
        )
    contacts = SphereContacts.of(arm, setup.scene)
    return contacts if contacts.contacts else None


def _generated(
    arm: ArmModel,
    setup: Setup,
    vary: Sequence[str],
    pid: PidSpec | None,
    contacts: SphereContacts | None,
) -> MakeStepper | str:
    """Return the function that makes steppers with a kernel, or why no kernel exists."""
    try:  # numba is optional
        from arm_dynamics.batch.kernels.kernel import Kernel  # noqa: PLC0415
        from arm_dynamics.batch.kernels.kernel_cache import KernelOptions  # noqa: PLC0415

        integrator, interface, precision, _ = setup
        options = KernelOptions(integrator, interface, tuple(vary), precision, BLOCK, pid, contacts)
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
