"""Driver plugin from outside of the package with invented motors, for tests of the hardware node.

The motors move a plant in real time. Their port is a folder. A file in it injects a fault:
``unplugged``, ``silent-<id>``, ``fault-<id>``, ``stubborn`` (torque stays enabled), ``soft``
(gravity causes a position error). Without torque the gears hold the joints. The file ``disabled``
is written when the torque of all motors has been disabled.
"""

import os
import time
from pathlib import Path

import numpy as np

from arm_dynamics import load_arm
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.hardware.motor_bus import MotorBus, Reading
from arm_dynamics.simulation.plant import Plant

DT = 1e-3
STIFFNESS, DAMPING = 300.0, 30.0


class ToyMotors(MotorBus):
    """Motors that accept efforts and positions."""

    def __init__(self, motors, settings, port=None):
        super().__init__(motors, settings)
        self._folder = Path(self.settings["port"])
        self._arm = load_arm(os.environ["TOY_ARM"])
        limp = self._arm
        for joint in limp.joint_names:
            limp = limp.with_joint(joint, friction=1e3)
        self._plants = {True: Plant(self._arm), False: Plant(limp)}
        self._ids = [motor.id for motor in motors]
        self._state = State.of(self._arm.configuration("initial"))
        self._goals, self._on, self._at = {}, set(), self.now()

    def now(self):
        return time.monotonic()

    def _broken(self, name):
        return (self._folder / name).exists()

    def _require_plugged(self):
        if not self._folder.is_dir() or self._broken("unplugged"):
            raise DriverFault(f"port {self._folder} is gone")

    def open(self):
        self._require_plugged()
        self._at = self.now()

    def discover(self):
        self._require_plugged()
        silent = [id for id in self._ids if self._broken(f"silent-{id}")]
        if silent:
            raise DriverFault(f"motor {silent[0]} does not answer")

    def prepare(self, interface):
        self._on.clear()

    def interfaces(self, id):
        return (self.settings.get("takes") or "effort position").split()

    def read(self):
        self._require_plugged()
        self._advance()
        readings = zip(self._ids, self._state.q, self._state.v, self._state.tau, strict=True)
        return {
            id: Reading(
                self.now(), q, v, tau, 31.0, 12.0, "overheating" * self._broken(f"fault-{id}"),
                id in self._on,
            )
            for id, q, v, tau in readings
            if not self._broken(f"silent-{id}")
        }  # fmt: skip

    def write(self, goals):
        self._require_plugged()
        self._goals.update(goals)

    def enable_watchdog(self, timeout):
        return self._ids

    def enable(self, ids):
        self._on |= set(ids)
        return ids

    def disable(self, ids):
        self._require_plugged()
        if not self._broken("stubborn"):
            self._on -= set(ids)
            if not self._on:
                (self._folder / "disabled").touch()
        return [id for id in ids if id not in self._on]

    def clear_faults(self, ids):
        return [id for id in ids if not self._broken(f"fault-{id}")]

    def close(self):
        self._on.clear()

    def _advance(self):
        steps = int((self.now() - self._at) / DT)
        self._at += steps * DT
        driven = bool(self._on) and set(self._on) <= set(self._goals)
        for _ in range(min(steps, 100)):
            tau = self._effort() if driven else np.zeros(len(self._ids))
            command = Command.checked("effort", tau, len(self._ids))
            self._state = self._plants[driven].step(self._state, command, DT, 1)

    def _effort(self):
        gravity_torque = gravity(self._arm, self._state.q) * (not self._broken("soft"))
        efforts = []
        for i, id in enumerate(self._ids):
            goal = self._goals[id]
            servo = STIFFNESS * (goal.value - self._state.q[i]) - DAMPING * self._state.v[i]
            efforts.append(goal.value if goal.interface == "effort" else servo + gravity_torque[i])
        limit = self._arm.effort_limit
        return np.clip(efforts, -limit, limit)
