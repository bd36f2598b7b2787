"""The seam of every motor's protocol: motors by id on one port, each with a result of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import ClassVar

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.model.hardware_info import JointMotor

CORRUPT = "garbled"
"""Model of what answers in pieces: two motors with one id talking at once."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one motor answered, at its output shaft: rad, rad/s, N·m.

    ``time`` [s] is when the answer arrived, on the port's clock. NaN where the motor does not
    tell. ``fault`` is the motor's own word for what tripped it, "" for none; ``enabled`` whether
    it applies torque, None where it does not tell.
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
    """What one motor is asked at its output shaft: N·m, rad, rad/s or V by ``interface``.

    ``feedforward_effort`` [N·m] carries the load of a position or a velocity where a bus ``feeds_effort``.
    """

    interface: str
    value: float
    feedforward_effort: float = 0.0


@dataclass(frozen=True, slots=True)
class DiscoveredMotor:
    """A motor that a scan met: its id, what it says it is, and on which rate it answered.

    Two motors with one id are two of these, or one whose ``model`` is GARBLED; an id of -1 is one
    that could not be made out.
    """

    id: int
    model: str
    firmware: str = ""
    baud: int = 0


class MotorBus(ABC):
    """Speaks one vendor's protocol. One bad motor never costs the others their answers.

    Every method raises DriverFault where the port is gone, and then until ``open`` succeeds.
    Nothing here moves a motor but ``write`` after ``enable``; nothing blocks for longer than
    ``timeout`` a call.
    """

    estimates_effort: ClassVar[bool] = False
    """Whether a Reading's tau is reckoned from a motor model instead of measured."""
    feedback_delay: ClassVar[float] = 0.0
    """Age [control periods] of the Readings of one ``read``: 1 where they answer the last goals."""
    accepts_feedforward_effort: ClassVar[bool] = False
    """Whether goals of position and velocity take an effort beside; others ignore it."""
    setting_names: ClassVar[tuple[str, ...]] = ()
    """Names of settings, NAME_3 meaning motor 3; empty where any name is taken."""
    bauds: ClassVar[tuple[int, ...]] = ()
    """Rates [bit/s] at which a scan looks, the most usual first; empty where it is no matter."""

    def __init__(self, motors: Sequence[JointMotor], settings: Mapping[str, str]) -> None:
        """``settings`` are the URDF's hardware params (port, baud ...), a user's own over them."""
        self.motors = {motor.id: motor for motor in motors}
        self.settings = dict(settings)

    @property
    def remedies(self) -> str:
        """What to do where motors do not answer: the likely causes, settings with their values."""
        return "check power, cable and motor ids"

    @classmethod
    def scan(cls, settings: Mapping[str, str]) -> Sequence[DiscoveredMotor]:
        """Every motor that answers on the line of ``settings``, at its one rate; reads only.

        Raises ConfigError where this kind of motor cannot be looked for, DriverFault where the
        port cannot be opened.
        """
        raise ConfigError(f"{cls.__name__}: this driver cannot look for motors")

    def has_watchdog(self, id: int) -> bool | None:
        """Whether the motor is able to stop by itself when it hears nothing; None: not told."""
        return None

    def missing_watchdog_reason(self, id: int) -> str:
        """Why it is not, and what would help; "" where there is nothing to say."""
        return ""

    @abstractmethod
    def now(self) -> float:
        """The port's clock [s], monotonic: that of every Reading."""

    @abstractmethod
    def open(self) -> None:
        """Open the port for this program alone."""

    @abstractmethod
    def identify(self) -> None:
        """Check that every motor answers, once, as the model that it should be.

        Raises DriverFault naming all that are missing, doubled or of another model; reads only.
        """

    @abstractmethod
    def prepare(self, interface: str) -> None:
        """Set up every motor, torque off, for ``interface``; raises DriverFault if it cannot."""

    @abstractmethod
    def interfaces(self, id: int) -> tuple[str, ...]:
        """What the motor takes: some of "effort", "position", "velocity", "voltage"."""

    @abstractmethod
    def read(self) -> Mapping[int, Reading]:
        """The motors that answered now, by id; those that did not are left out."""

    @abstractmethod
    def write(self, goals: Mapping[int, MotorCommand]) -> None:
        """Send goals to motors that are enabled."""

    @abstractmethod
    def enable_watchdog(self, timeout: float) -> Collection[int]:
        """Have motors stop by themselves after ``timeout`` [s] of silence; those that will."""

    @abstractmethod
    def enable(self, ids: Collection[int]) -> Collection[int]:
        """Torque on; the ids that confirmed it."""

    @abstractmethod
    def disable(self, ids: Collection[int]) -> Collection[int]:
        """Torque off; the ids that confirmed it by reading it back."""

    def clear_faults(self, ids: Collection[int]) -> Collection[int]:
        """Reset tripped motors, torque off; the ids that are free of faults now."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Release the port; never raises, may be called twice, from another thread too."""
