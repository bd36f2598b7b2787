"""Transmission between joints and motor shafts: which motor, which interface, which units."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
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
"""Temperature [°C] of a winding that is not measured."""
INTERFACES = ("effort", "voltage", "position", "velocity")


class Transmission:
    """Convert between joint and motor coordinates.

    q = s q_m / N + b,  v = s v_m / N,  τ = s N τ_m

    with sign s, mechanical reduction N and offset b of each joint. Joints with DC motors that
    accept voltages accept efforts too: the motor model converts between both, with its constants at
    the joint.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    motors : Sequence[JointMotor]
        Motor of each joint, in any order.
    bus : MotorBus
        The motors' bus, for their interfaces.
    interface : str
        Command interface of the joints.

    Raises
    ------
    ConfigError
        A joint has no motor, or a motor does not accept ``interface``.

    Attributes
    ----------
    interface : str
        Command interface of the motors; "voltage" if efforts are converted to voltages.
    accepts_feedforward : bool
        Whether commands carry the gravity effort in addition to a position or velocity.
    capabilities : tuple of Capability
        Command interfaces and effort source of each joint.

    """

    def __init__(
        self, arm: ArmModel, motors: Sequence[JointMotor], bus: MotorBus, interface: str
    ) -> None:
        self.arm = arm
        self.motors = _by_joint(arm, motors)
        self.ids = tuple(motor.id for motor in self.motors)
        self._sign = np.array([motor.sign for motor in self.motors])
        self._reduction = self._sign * [motor.mechanical_reduction for motor in self.motors]
        self._offset = np.array([motor.offset for motor in self.motors])
        accepted = [_accepted(arm, i, bus.interfaces(id)) for i, id in enumerate(self.ids)]
        _require_accepted(interface, self.motors, accepted)
        direct = all(interface in bus.interfaces(id) for id in self.ids)
        self.interface = interface if direct else "voltage"
        self._motor_constants = [
            np.array(a.kernel_constants()) for a in arm.actuators if isinstance(a, DcMotor)
        ]
        self._sent_voltages: Vector = np.full(arm.nv, nan)
        has_gravity = not arm.is_kinematic  # the gravity effort
        follows = interface in ("position", "velocity")
        self.accepts_feedforward = bus.accepts_feedforward_effort and follows and has_gravity
        sources = [MEASURED if "effort" in bus.interfaces(id) else NONE for id in self.ids]
        if bus.estimates_effort or self.uses_voltage:
            sources = [ESTIMATED for _ in self.ids]
        self.capabilities = tuple(
            Capability(motor.joint, interfaces, source)
            for motor, interfaces, source in zip(self.motors, accepted, sources, strict=True)
        )

    @property
    def uses_voltage(self) -> bool:
        """Whether motors receive voltages."""
        return self.interface == "voltage"

    def to_joints(self, rows: Matrix) -> None:
        """Convert rows (nv, 6) of readings, time q v τ ..., from shafts to joints in place."""
        _to_joints(rows, self._reduction, self._offset)

    def motor_commands(
        self, interface: str, value: Vector, v: Vector, temperature: Vector,
        feedforward: Vector | None = None,
    ) -> dict[int, MotorCommand]:  # fmt: skip
        """Return the command of each motor.

        Parameters
        ----------
        interface : str
            "effort", "position" or "velocity".
        value : Vector, shape (nv,)
            Commands of the joints.
        v, temperature : Vector, shape (nv,)
            Velocities and winding temperatures [°C], for motors that receive voltages.
        feedforward : Vector, shape (nv,), optional
            Efforts [N·m] in addition to positions or velocities.

        Returns
        -------
        dict of int to MotorCommand
            Commands by motor id.

        """
        if interface == "position":
            values = (value - self._offset) * self._reduction
        elif interface == "velocity":
            values = value * self._reduction
        elif self.uses_voltage:
            self._sent_voltages = self.voltages(value, v, temperature)
            values = self._sent_voltages * self._sign
        else:
            values = value / self._reduction
        efforts = np.zeros(values.size) if feedforward is None else feedforward / self._reduction
        rows = zip(self.ids, values.tolist(), efforts.tolist(), strict=True)
        return {id: MotorCommand(self.interface, x, effort) for id, x, effort in rows}

    def voltages(self, effort: Vector, v: Vector, temperature: Vector) -> Vector:
        """Return the voltages (nv,) [V] that settle at these efforts (nv,) [N·m]."""
        rows = self._motor_rows(effort, v, temperature)
        return np.array([voltage_for_effort(tau, x, t, c) for tau, x, t, c in rows])

    def efforts(self, voltage: Vector, v: Vector, temperature: Vector) -> Vector:
        """Return the efforts (nv,) [N·m] at which these voltages (nv,) [V] settle."""
        rows = self._motor_rows(voltage, v, temperature)
        efforts = [effort_of_voltage(u, x, t, c) for u, x, t, c in rows]
        return np.where(np.isfinite(voltage), efforts, nan)

    def estimated(self, v: Vector, temperature: Vector) -> Vector:
        """Return the efforts (nv,) [N·m] of the voltages sent last; NaN before any."""
        return self.efforts(self._sent_voltages, v, temperature)

    def _motor_rows(
        self, value: Vector, v: Vector, temperature: Vector
    ) -> list[tuple[float, float, float, Vector]]:
        measured = np.where(np.isfinite(temperature), temperature, AMBIENT)
        columns = value.tolist(), v.tolist(), measured.tolist(), self._motor_constants
        return list(zip(*columns, strict=True))


@compiled_for(MATRIX_OUT, VECTOR, VECTOR)
def _to_joints(rows: Matrix, reduction: Vector, offset: Vector) -> None:
    for i in range(reduction.size):
        rows[i, 1] = rows[i, 1] / reduction[i] + offset[i]
        rows[i, 2] /= reduction[i]
        rows[i, 3] *= reduction[i]


def joint_interface(interface: str) -> str:
    """Return the command interface of the joints: "effort" where commands are voltages."""
    return "effort" if interface == "voltage" else interface


def _by_joint(arm: ArmModel, motors: Sequence[JointMotor]) -> tuple[JointMotor, ...]:
    """Return the motor of each joint; raises ConfigError for a joint without one."""
    by_joint = {motor.joint: motor for motor in motors}
    for name in arm.joint_names:
        if name not in by_joint:
            raise ConfigError(
                f"joint '{name}': motor is missing; expected a <joint> in the <ros2_control>"
                f" block; configured: {', '.join(by_joint)}"
            )
    return tuple(by_joint[name] for name in arm.joint_names)


def _require_accepted(
    interface: str, motors: Sequence[JointMotor], accepted: Sequence[Sequence[str]]
) -> None:
    """Raise ConfigError for a motor that does not accept ``interface``."""
    for motor, interfaces in zip(motors, accepted, strict=True):
        if interface not in interfaces:
            raise ConfigError(
                f"joint '{motor.joint}': interface = '{interface}'; expected"
                f" {' or '.join(map(repr, interfaces)) or 'none'} for motor {motor.id}"
                f" ({motor.motor})"
            )


def _accepted(arm: ArmModel, i: int, interfaces: Sequence[str]) -> tuple[str, ...]:
    """Return the joint's interfaces: voltages, and efforts made of them, need a motor model."""
    accepted = set(interfaces)
    if "voltage" in accepted:
        has_model = isinstance(arm.actuators[i], DcMotor)
        accepted = accepted | {"effort"} if has_model else accepted - {"voltage"}
    return tuple(name for name in INTERFACES if name in accepted)
