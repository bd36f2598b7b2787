"""A physical arm: joints from motors on a bus, states of life, and every safety decision."""

from __future__ import annotations

from collections.abc import Sequence

from arm_dynamics.drivers.base import Driver
from arm_dynamics.drivers.capability import Capability
from arm_dynamics.drivers.feedback import Feedback
from arm_dynamics.drivers.motor_bus import MotorBus
from arm_dynamics.drivers.status import Status
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.wiring import MotorWiring, read_wiring
from arm_dynamics.safety.events import Events
from arm_dynamics.safety.settings import SafetySettings
from arm_dynamics.safety.trips import Trip
from arm_dynamics.state import Command, State


class MotorArm(Driver):
    """Drives an arm's motors through one bus; the only place that decides what they get."""

    def __init__(
        self,
        arm: ArmModel,
        bus: MotorBus,
        *,
        wiring: Sequence[MotorWiring] | None = None,
        interface: str = "effort",
        safety: SafetySettings = SafetySettings(),  # noqa: B008  # frozen
        events: Events | None = None,
    ) -> None:
        super().__init__(arm)
        self.bus = bus
        self.wiring = tuple(read_wiring(arm).motors if wiring is None else wiring)
        self.interface = interface
        self.safety = safety
        self.events = events or Events()
        self.status = Status.UNCONFIGURED
        self.trips: tuple[Trip, ...] = ()
        """What has tripped and still holds, newest last."""
        self.capabilities: tuple[Capability, ...]
        self.feedback: Feedback
        self.engaged = False
        """Whether the emergency stop is latched."""

    def configure(self) -> None:
        """Open the port, check every motor, torque off; nothing moves."""
        raise NotImplementedError

    def activate(self) -> None:
        """Torque on where the arm stands; raises DriverFault, torque off, saying why not."""
        raise NotImplementedError

    def read(self) -> State:
        """One cycle of the bus; joints that are silent for too long are NaN."""
        raise NotImplementedError

    def write(self, command: Command) -> None:
        """Offer a command, and send what safety makes of it."""
        raise NotImplementedError

    def idle(self) -> None:
        """No command this cycle: send what safety says."""
        raise NotImplementedError

    def deactivate(self) -> None:
        """Torque off; reading goes on."""
        raise NotImplementedError

    def safe_stop(self) -> None:
        """Let the stop policy act until ``reset``."""
        raise NotImplementedError

    def emergency_stop(self, source: str) -> None:
        """Latch: torque off from the next cycle on, until ``reset``; from any thread."""
        raise NotImplementedError

    def reset(self) -> None:
        """Release what is latched, torque off; raises DriverFault naming what still holds."""
        raise NotImplementedError

    def close(self) -> None:
        """Torque off as far as the port lets, then release it."""
