"""Interface of every motor protocol: motors by id on one port, with a separate result for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import ClassVar

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.model.hardware_info import JointMotor

CORRUPT = "corrupt"
"""Model of a motor whose replies are corrupt: two motors with one id reply at the same time."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Reply of one motor, at its output shaft; NaN for what it does not report.

    Attributes
    ----------
    time : float
        Arrival [s] of the reply on the port's clock.
    q, v, tau : float
        Position [rad], velocity [rad/s] and torque [N·m].
    temperature, supply : float
        Motor temperature [°C] and supply voltage [V].
    fault : str
        Fault in the manufacturer's words; "" for none.
    enabled : bool or None
        Whether the motor applies torque; None if it does not report that.

    """

    time: float
    q: float
    v: float
    tau: float = nan
    temperature: float = nan
    supply: float = nan
    fault: str = ""
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class MotorCommand:
    """Command of one motor at its output shaft.

    Attributes
    ----------
    interface : str
        "effort", "position", "velocity" or "voltage".
    value : float
        In N·m, rad, rad/s or V.
    feedforward_effort : float
        Torque [N·m] in addition to a position or velocity, if the bus
        ``accepts_feedforward_effort``.

    """

    interface: str
    value: float
    feedforward_effort: float = 0.0


@dataclass(frozen=True, slots=True)
class StoredRange:
    """Position range stored in a motor: it silently limits the goals of position commands.

    Attributes
    ----------
    lower, upper : float
        Limits [rad] of the position at the output shaft, homing offset included.
    homing_offset : float
        Homing offset [rad] stored in the motor.

    """

    lower: float
    upper: float
    homing_offset: float = 0.0


@dataclass(frozen=True, slots=True)
class DiscoveredMotor:
    """Motor that replied to a scan.

    Two motors with one id are two of these, or one whose model is CORRUPT.

    Attributes
    ----------
    id : int
        Id; -1 if it could not be decoded.
    model, firmware : str
        Name of the model, or CORRUPT; firmware version, "" if not reported.
    baud : int
        Rate of the reply [bit/s].

    """

    id: int
    model: str
    firmware: str = ""
    baud: int = 0


class MotorBus(ABC):
    """One vendor's protocol. One bad motor never costs the others their replies.

    Every method raises DriverFault if the connection is lost, and then until ``open`` succeeds.
    Only ``write`` after ``enable`` moves a motor. No call blocks for longer than its time-out.

    Attributes
    ----------
    estimates_effort : bool
        Whether ``Reading.tau`` is computed by a motor model instead of measured.
    feedback_delay : float
        Age [control periods] of the readings of one ``read``: 1 if they reply to the last commands.
    accepts_feedforward_effort : bool
        Whether position and velocity commands carry an additional effort; others ignore it.
    setting_names : tuple of str
        Names of settings, NAME_3 for motor 3; empty if any name is accepted.
    bauds : tuple of int
        Rates [bit/s] for a scan, the most common first; empty if the rate does not matter.

    """

    estimates_effort: ClassVar[bool] = False
    feedback_delay: ClassVar[float] = 0.0
    accepts_feedforward_effort: ClassVar[bool] = False
    setting_names: ClassVar[tuple[str, ...]] = ()
    bauds: ClassVar[tuple[int, ...]] = ()

    def __init__(self, motors: Sequence[JointMotor], settings: Mapping[str, str]) -> None:
        """Store ``motors`` by id and the ``settings`` (port, baud ...) of the URDF and the user."""
        self.motors = {motor.id: motor for motor in motors}
        self.settings = dict(settings)

    @property
    def remedies(self) -> str:
        """Remedies if motors do not reply: the likely causes, settings with their values."""
        return "check power, cable and motor ids"

    @classmethod
    def scan(cls, settings: Mapping[str, str]) -> Sequence[DiscoveredMotor]:
        """Return every motor that replies on the port of ``settings``, at its one rate; reads only.

        Raises ConfigError if this protocol has no scan, DriverFault if the port cannot be opened.
        """
        raise ConfigError(f"{cls.__name__}: scan is not supported by this driver")

    def has_watchdog(self, id: int) -> bool | None:
        """Return whether the motor can stop automatically without commands; None if not known."""
        return None

    def missing_watchdog_reason(self, id: int) -> str:
        """Return why the motor has no watchdog, and a remedy; "" if there is nothing to report."""
        return ""

    def stored_ranges(self) -> Mapping[int, StoredRange]:
        """Return the position ranges of the motors that limit their goals, by id; reads only."""
        return {}

    @abstractmethod
    def now(self) -> float:
        """Return the time [s] on the port's monotonic clock, that of every Reading."""

    @abstractmethod
    def open(self) -> None:
        """Open the port for this program exclusively."""

    @abstractmethod
    def discover(self) -> None:
        """Check that every motor replies, once, with the configured model; reads only.

        Raises DriverFault naming all that are missing, duplicated or of another model.
        """

    @abstractmethod
    def prepare(self, interface: str) -> None:
        """Set up every motor for ``interface``, torque disabled; raises DriverFault on failure."""

    @abstractmethod
    def interfaces(self, id: int) -> tuple[str, ...]:
        """Return the motor's command interfaces, of "effort", "position", "velocity", "voltage"."""

    @abstractmethod
    def read(self) -> Mapping[int, Reading]:
        """Return the readings of the motors that replied now, by id."""

    @abstractmethod
    def write(self, goals: Mapping[int, MotorCommand]) -> None:
        """Send commands to enabled motors, by id."""

    @abstractmethod
    def enable_watchdog(self, timeout: float) -> Collection[int]:
        """Enable the watchdog with ``timeout`` [s]; return the ids that confirmed it."""

    @abstractmethod
    def enable(self, ids: Collection[int]) -> Collection[int]:
        """Enable torque; return the ids that confirmed it."""

    @abstractmethod
    def disable(self, ids: Collection[int]) -> Collection[int]:
        """Disable torque; return the ids that confirmed it when read back."""

    def clear_faults(self, ids: Collection[int]) -> Collection[int]:
        """Reset motors with faults, torque disabled; return the ids without a fault now."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Release the port; never raises, may be called twice, from another thread too."""
