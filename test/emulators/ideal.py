"""Ideal motors with a current loop, a servo and a watchdog, and a bus that calls them directly."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.emulation.emulated_motors import EmulatedMotors, Shaft
from arm_dynamics.hardware.motor_bus import MotorBus, MotorCommand, Reading

WIRE = 1e-4
"""Duration of one read cycle [s]."""


@dataclass
class Motor:
    """Registers of one motor."""

    on: bool = False
    interface: str = "effort"
    goal: float = 0.0
    target: float = 0.0
    fault: str = ""
    watchdog: float = 0.0
    last_request: float = 0.0


class IdealMotors(EmulatedMotors):
    """Motors that apply the commanded effort; a watchdog trip and a fault disable torque."""

    def __init__(
        self,
        shafts: Sequence[Shaft],
        stiffness: Sequence[float] | None = None,
        damping: Sequence[float] | None = None,
    ) -> None:
        """Set the servo gains of each shaft [N·m/rad, N·m·s/rad]."""
        super().__init__(shafts)
        self.each = {shaft.id: Motor() for shaft in shafts}
        ids = [shaft.id for shaft in shafts]
        self.K = dict(
            zip(ids, [1000.0] * len(ids) if stiffness is None else stiffness, strict=True)
        )
        self.D = dict(zip(ids, [50.0] * len(ids) if damping is None else damping, strict=True))
        self.time = 0.0

    def receive(self, data: bytes, now: float) -> bytes:
        """Return no bytes: the bus calls the motors directly."""
        return b""

    def step(self, now: float) -> None:
        """Run watchdogs and control loops."""
        for shaft in self.shafts:
            motor = self.each[shaft.id]
            if motor.on and motor.watchdog and now - motor.last_request > motor.watchdog:
                self.trip(shaft.id, "watchdog")
            shaft.effort = self._effort(motor, shaft, now - self.time) if motor.on else 0.0
        self.time = now

    def reboot(self, id: int) -> None:
        """Reset all registers."""
        self.each[id] = Motor()

    def trip(self, id: int, fault: str) -> None:
        """Disable torque and report ``fault``."""
        self.each[id].on, self.each[id].fault = False, fault

    def shaft(self, id: int) -> Shaft:
        """Return the shaft of a motor."""
        return next(shaft for shaft in self.shafts if shaft.id == id)

    def torque_is_on(self, id: int) -> bool:
        """Return whether the motor applies torque."""
        return self.each[id].on

    def _effort(self, motor: Motor, shaft: Shaft, dt: float) -> float:
        if motor.interface == "effort":
            return motor.goal
        speed = motor.goal if motor.interface == "velocity" else 0.0
        by_speed = motor.interface == "velocity"
        motor.target = motor.target + speed * dt if by_speed else motor.goal
        error = motor.target - shaft.q
        return self.K[shaft.id] * error + self.D[shaft.id] * (speed - shaft.v)


class IdealBus(MotorBus):
    """Bus that calls the motors; a read cycle takes ``WIRE``.

    ``gone`` is True while the port is unplugged. ``deaf`` motors receive nothing, ``silent``
    shafts send nothing, ``frozen`` motors repeat their last reading. ``supports_watchdog`` is False
    for motors without a watchdog, ``arms`` for a watchdog that cannot be enabled,
    ``reports_torque`` for motors that do not report whether torque is enabled.
    """

    def __init__(
        self, arm: EmulatedArm, takes: Sequence[str] = ("effort", "position", "velocity")
    ) -> None:
        super().__init__([], {})
        self.arm, self.takes = arm, tuple(takes)
        self.line: IdealMotors = arm.motors  # type: ignore[assignment]
        self.gone, self.is_open = False, False
        self.supports_watchdog = self.arms = True
        self.reports_torque = True
        self.deaf: set[int] = set()
        self.frozen: set[int] = set()
        self.time, self.calls = 0.0, 0
        self._last: dict[int, Reading] = {}

    def now(self) -> float:
        return self.time

    def pass_time(self, dt: float) -> None:
        """Advance the virtual time and the arm."""
        self.time += dt
        self.arm.advance(self.time)

    def open(self) -> None:
        if self.gone:
            raise DriverFault("no such port")
        self.is_open = True

    def discover(self) -> None:
        self._check()
        silent = [shaft.id for shaft in self.line.shafts if shaft.silent]
        if silent:
            raise DriverFault(f"motors {silent} do not answer")

    def prepare(self, interface: str) -> None:
        self._check()
        for motor in self.line.each.values():
            motor.on, motor.interface, motor.goal = False, interface, 0.0

    def interfaces(self, id: int) -> tuple[str, ...]:
        return self.takes

    def read(self) -> Mapping[int, Reading]:
        self._check()
        self.pass_time(WIRE)
        for shaft in self._able():
            motor = self.line.each[shaft.id]
            motor.last_request = self.time
            if shaft.id in self.frozen and shaft.id in self._last:
                continue
            self._last[shaft.id] = Reading(
                self.time, shaft.q, shaft.v, shaft.effort, shaft.temperature, shaft.supply,
                motor.fault, motor.on if self.reports_torque else None,
            )  # fmt: skip
        return {shaft.id: self._last[shaft.id] for shaft in self._able() if shaft.id in self._last}

    def write(self, goals: Mapping[int, MotorCommand]) -> None:
        self._check()
        for id, goal in goals.items():
            motor = self.line.each[id]
            if id not in self.deaf:
                motor.goal, motor.last_request = goal.value, self.time

    def enable_watchdog(self, timeout: float) -> Collection[int]:
        self._check()
        for shaft in self._able():
            motor = self.line.each[shaft.id]
            motor.watchdog, motor.last_request = timeout if self._watchdog_works else 0.0, self.time
        return [shaft.id for shaft in self._able()] if self._watchdog_works else []

    @property
    def _watchdog_works(self) -> bool:
        return self.supports_watchdog and self.arms

    def has_watchdog(self, id: int) -> bool:
        """Return whether the motor has a watchdog, enabled or not."""
        return self.supports_watchdog

    def enable(self, ids: Collection[int]) -> Collection[int]:
        return self._switch(ids, True)

    def disable(self, ids: Collection[int]) -> Collection[int]:
        return self._switch(ids, False)

    def clear_faults(self, ids: Collection[int]) -> Collection[int]:
        self._check()
        for id in ids:
            self.line.each[id].fault = ""
        return ids

    def close(self) -> None:
        self.is_open = False

    def _switch(self, ids: Collection[int], on: bool) -> list[int]:
        self._check()
        done = [shaft.id for shaft in self._able() if shaft.id in ids]
        for id in done:
            motor = self.line.each[id]
            motor.on = on and not motor.fault
            motor.target = self.line.shaft(id).q
        return [id for id in done if self.line.each[id].on is on]

    def _able(self) -> list[Shaft]:
        every = self.line.shafts
        return [shaft for shaft in every if not shaft.silent and shaft.id not in self.deaf]

    def _check(self) -> None:
        self.calls += 1
        if self.gone or not self.is_open:
            raise DriverFault("the port is gone")


def ideal_shafts(count: int, **given: float) -> list[Shaft]:
    """Return ``count`` shafts with the ids 1, 2, ..."""
    return [Shaft(id, "ideal", **given) for id in range(1, count + 1)]  # type: ignore[arg-type]
