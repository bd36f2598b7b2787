"""A PID controller that runs inside a kernel, and the same as one controller per rollout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arm_dynamics.batch.kernels.tracking_metrics import METRICS
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.pid import Pid, PidGravity
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Reference, State
from arm_dynamics.model.arm_model import ArmModel

GAINS = tuple(p.name for p in Pid.parameters)
"""Gains in the order of ``pid_effort``; rows "gains.p" ... of a kernel."""
PID_CONTROLLERS: dict[type[Controller], bool] = {Pid: False, PidGravity: True}
"""Controllers that run inside kernels, and whether they add the gravity torque."""
ControlTick = Callable[[Matrix, Matrix, Matrix, Vector], Matrix]
"""Measured q and v (batch, nv), reference [q, v] (batch, 2 nv), time since the last tick (batch,)
[s], 0 at the first one -> commands (batch, nv)."""


@dataclass(frozen=True, eq=False)
class PidSpec:
    """PID structure of a kernel; gains, memory and references are rows of the kernel.

    Attributes
    ----------
    arm : ArmModel
        The controller's model.
    gravity : bool
        Add g(q) of ``arm``.
    voltage : bool
        Command the voltage that gives the effort with the motors of ``arm``.
    delay : bool
        A command acts one period late.
    noise : bool
        Noise is added to the measured q and v.

    Raises
    ------
    InvalidValue
        If ``voltage`` is set and an actuator of ``arm`` has no ``voltage_for``.

    """

    arm: ArmModel
    gravity: bool
    voltage: bool
    delay: bool
    noise: bool

    def __post_init__(self) -> None:
        for actuator in self.arm.actuators if self.voltage else ():
            if not hasattr(actuator, "voltage_for"):
                raise InvalidValue(
                    f"controller model, joint '{actuator.joint}': actuator ="
                    f" {type(actuator).__name__}; expected dc_motor, which gives the voltage of an"
                    " effort; or use interface 'effort'"
                )

    @property
    def interface(self) -> str:
        """Command interface."""
        return "voltage" if self.voltage else "effort"

    @property
    def key(self) -> tuple[Any, ...]:
        """Values that determine a kernel's text, except the numbers of ``arm``."""
        return self.gravity, self.voltage, self.delay, self.noise

    @property
    def inputs(self) -> dict[str, int]:
        """Rows written at the start of each period, and their sizes."""
        n = self.arm.nv
        noise = {"noise_q": n, "noise_v": n} if self.noise else {}
        return {"q_ref": n, "v_ref": n, "running": 1, "late_part": 1, **noise}

    @property
    def memory(self) -> dict[str, int]:
        """Rows written once, or carried from period to period, and their sizes."""
        n = self.arm.nv
        pending = ("pending",) if self.delay else ()
        names = ("integral", "filtered", *pending, "direction", *METRICS)
        return {"period": 1, **{f"gains.{g}": n for g in GAINS}, **dict.fromkeys(names, n)}

    @property
    def motors(self) -> Matrix:
        """Motor constants of the controller's model, (nv, constants)."""
        return np.array([actuator.kernel_constants() for actuator in self.arm.actuators])


def controllers_by_rollout(
    spec: PidSpec, gains: FloatArray, integral: Matrix, filtered: Matrix
) -> list[Controller]:
    """Return one controller per rollout.

    Parameters
    ----------
    spec : PidSpec
        Structure of the controllers.
    gains : FloatArray
        Gains in the order of ``GAINS``, shape (batch, 6, nv).
    integral, filtered : Matrix
        Memory of the controllers, shape (batch, nv).

    """
    kind, joints = PidGravity if spec.gravity else Pid, spec.arm.joint_names
    controllers: list[Controller] = []
    for rows, *memory in zip(gains, integral, filtered, strict=True):
        by_joint = {j: dict(zip(GAINS, rows[:, i], strict=True)) for i, j in enumerate(joints)}
        controller = kind(spec.arm, by_joint)
        controller.set_memory(*memory)
        controllers.append(controller)
    return controllers


def python_tick(controllers: Sequence[Controller], by_voltage: bool) -> ControlTick:
    """Return a tick that calls one controller per rollout; NaN for a diverged rollout."""

    def tick(q: Matrix, v: Matrix, reference: Matrix, elapsed: Vector) -> Matrix:
        commands, n = np.full_like(q, np.nan), q.shape[1]
        for k, controller in enumerate(controllers):
            if not np.isfinite(q[k]).all():
                continue
            target = Reference(*map(as_readonly, (reference[k, :n], reference[k, n:], np.zeros(n))))
            value = controller.update(State.of(q[k], v[k]), target, float(elapsed[k])).value
            if by_voltage:
                motors = zip(controller.arm.actuators, value.tolist(), v[k].tolist(), strict=True)
                value = np.array([motor.voltage_for(*effort) for motor, *effort in motors])
            commands[k] = value
        return commands

    return tick
