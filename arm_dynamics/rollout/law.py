"""A PID law that runs inside a kernel: what it is made for, and its ticks and scores on symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.controllers.pid import Pid
from arm_dynamics.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel

GAINS = tuple(p.name for p in Pid.parameters)
"""Names of the rows "gains.p" ..., in the law's order."""
METRICS = ("iae", "peak_effort", "overshoot", "settled_error")
"""IAE = Σ T |e| [rad s]; max |effort| [N·m]; largest way beyond the reference, seen from the
start, [rad]; max |e| [rad] in the last part of the time. e = q_ref - q at the ends of periods."""


@dataclass(frozen=True, eq=False)
class Law:
    """PID with ``arm`` as the law's own model; what differs by lane is in rows instead.

    gravity: adds g(q) of ``arm``; voltage: the effort goes out as the voltage that gives it;
    delay: a command acts one period late; noise: the measured q and v are disturbed.
    """

    arm: ArmModel
    gravity: bool
    voltage: bool
    delay: bool
    noise: bool

    def __post_init__(self) -> None:
        """Raise InvalidValue for a law by voltage whose model has a motor that tells none."""
        for actuator in self.arm.actuators if self.voltage else ():
            if not hasattr(actuator, "voltage_for"):
                raise InvalidValue(
                    f"joint '{actuator.joint}' of the law's model: actuator"
                    f" {type(actuator).__name__} tells no voltage for an effort; dc_motor, or"
                    " interface 'effort', is expected"
                )

    @property
    def interface(self) -> str:
        """What the commands ask for."""
        return "voltage" if self.voltage else "effort"

    @property
    def key(self) -> tuple[Any, ...]:
        """What a kernel's text depends on, besides the numbers of ``arm``."""
        return self.gravity, self.voltage, self.delay, self.noise

    @property
    def given(self) -> dict[str, int]:
        """Rows that each period is given, and their sizes."""
        n = self.arm.nv
        noise = {"noise_q": n, "noise_v": n} if self.noise else {}
        return {"q_ref": n, "v_ref": n, "running": 1, "late_part": 1, **noise}

    @property
    def kept(self) -> dict[str, int]:
        """Rows that are filled once, or carried from period to period, and their sizes."""
        n = self.arm.nv
        held = ("integral", "filtered", *(("pending",) if self.delay else ()), "way", *METRICS)
        return {"period": 1, **{f"gains.{g}": n for g in GAINS}, **dict.fromkeys(held, n)}

    @property
    def motors(self) -> Vector:
        """Constants of the motors as the law believes them, (nv, constants)."""
        return np.array([actuator.packed() for actuator in self.arm.actuators])
