"""Joints and motor shafts: which motor moves which joint, by which interface, in which units."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import MATRIX_OUT, VECTOR, compiled_for
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.hardware.driver import ESTIMATED, MEASURED, NONE, Capability
from arm_dynamics.hardware.motor_bus import MotorBus, MotorCommand
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import JointMotor
from arm_dynamics.simulation.actuators.dc_motor import DcMotor
from arm_dynamics.simulation.actuators.dc_motor_equations import (
    effort_of_voltage,
    voltage_for_effort,
)

AMBIENT = 25.0
"""Temperature [°C] of a winding that does not tell its own."""
INTERFACES = ("effort", "voltage", "position", "velocity")


class Transmission:
    """q = s q_m / N + b, v = s v_m / N, τ = s N τ_m with sign s, ratio N and offset b of a joint.

    An arm of DC motors that take volts takes efforts too: the motor's law turns one into the
    other, its constants being those at the joint. Raises ConfigError for a joint without a motor
    and for an interface that a motor does not take, naming those that it does.
    """

    def __init__(
        self, arm: ArmModel, wiring: Sequence[JointMotor], bus: MotorBus, interface: str
    ) -> None:
        self.arm = arm
        self.motors = _in_order(arm, wiring)
        self.ids = tuple(motor.id for motor in self.motors)
        self._sign = np.array([motor.sign for motor in self.motors])
        self._ratio = self._sign * [motor.ratio for motor in self.motors]
        self._offset = np.array([motor.offset for motor in self.motors])
        every = [_taken(arm, i, bus.interfaces(id)) for i, id in enumerate(self.ids)]
        for motor, taken in zip(self.motors, every, strict=True):
            if interface not in taken:
                raise ConfigError(
                    f"joint '{motor.joint}': motor {motor.id} ({motor.motor}) takes no"
                    f" {interface}; allowed: {', '.join(taken) or 'nothing'}"
                )
        direct = all(interface in bus.interfaces(id) for id in self.ids)
        self.interface = interface if direct else "voltage"
        """What the motors are told, where ``interface`` is what the joints are."""
        self._laws = [
            np.array(a.kernel_constants()) for a in arm.actuators if isinstance(a, DcMotor)
        ]
        self._volts: Vector = np.full(arm.nv, nan)
        self.feeds = bus.accepts_feedforward_effort and interface in ("position", "velocity")
        """Whether goals take the effort that carries the arm."""
        self.capabilities = tuple(
            Capability(motor.joint, taken, self._told(bus, motor.id))
            for motor, taken in zip(self.motors, every, strict=True)
        )

    def _told(self, bus: MotorBus, id: int) -> str:
        """How the motor's effort is known."""
        if bus.estimates_effort or self.uses_voltage:
            return ESTIMATED
        return MEASURED if "effort" in bus.interfaces(id) else NONE

    @property
    def uses_voltage(self) -> bool:
        """Whether efforts are made from volts."""
        return self.interface == "voltage"

    def to_joints(self, rows: Vector) -> None:
        """Rows (nv, 6) of readings, time q v τ ..., of shafts become those of joints, in place."""
        _to_joints(rows, self._ratio, self._offset)

    def motor_commands(
        self, interface: str, value: Vector, v: Vector, warm: Vector, fed: Vector | None = None
    ) -> dict[int, MotorCommand]:
        """What each motor is asked for efforts, positions or velocities of the joints (nv,).

        ``fed`` (nv,) [N·m] carries the joints beside a position or a velocity.
        """
        if interface == "position":
            asked = (value - self._offset) * self._ratio
        elif interface == "velocity":
            asked = value * self._ratio
        elif self.uses_voltage:
            self._volts = self.voltages(value, v, warm)
            asked = self._volts * self._sign
        else:
            asked = value / self._ratio
        pairs = zip(self.ids, asked.tolist(), strict=True)
        kind = self.interface
        if fed is None:
            return {id: MotorCommand(kind, number) for id, number in pairs}
        carried = (fed / self._ratio).tolist()
        return {id: MotorCommand(kind, x, e) for (id, x), e in zip(pairs, carried, strict=True)}

    def voltages(self, effort: Vector, v: Vector, warm: Vector) -> Vector:
        """Voltages (nv,) [V] that settle at these efforts (nv,) [N·m]."""
        each = zip(effort.tolist(), v.tolist(), warm.tolist(), self._laws, strict=True)
        told = [voltage_for_effort(e, x, t if isfinite(t) else AMBIENT, c) for e, x, t, c in each]
        return np.array(told)

    def efforts(self, volts: Vector, v: Vector, warm: Vector) -> Vector:
        """Efforts (nv,) [N·m] that these voltages (nv,) [V] settle at."""
        each = zip(volts.tolist(), v.tolist(), warm.tolist(), self._laws, strict=True)
        told = [effort_of_voltage(u, x, t if isfinite(t) else AMBIENT, c) for u, x, t, c in each]
        return np.where(np.isfinite(volts), told, nan)

    def estimated(self, v: Vector, warm: Vector) -> Vector:
        """Efforts (nv,) [N·m] of the voltages sent last; NaN before any."""
        return self.efforts(self._volts, v, warm)


@compiled_for(MATRIX_OUT, VECTOR, VECTOR)
def _to_joints(rows: Vector, ratio: Vector, offset: Vector) -> None:
    for i in range(ratio.size):
        rows[i, 1] = rows[i, 1] / ratio[i] + offset[i]
        rows[i, 2] /= ratio[i]
        rows[i, 3] *= ratio[i]


def _taken(arm: ArmModel, i: int, given: Sequence[str]) -> tuple[str, ...]:
    """What the joint takes of ``given``: volts, and efforts made of them, need its motor's law."""
    able = set(given)
    if "voltage" in able:
        law = isinstance(arm.actuators[i], DcMotor)
        able = able | {"effort"} if law else able - {"voltage"}
    return tuple(name for name in INTERFACES if name in able)


def _in_order(arm: ArmModel, wiring: Sequence[JointMotor]) -> tuple[JointMotor, ...]:
    by_joint = {motor.joint: motor for motor in wiring}
    for name in arm.joint_names:
        if name not in by_joint:
            raise ConfigError(f"joint '{name}' has no motor; wired: {', '.join(by_joint)}")
    return tuple(by_joint[name] for name in arm.joint_names)
