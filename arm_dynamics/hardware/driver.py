"""Interface of every arm, simulated or physical, and what a driver reports.

The lifecycle is that of ros2_control: configure, activate, read and write, deactivate, close.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.state import Command, State
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel


class DriverState(Enum):
    """Lifecycle state of a physical arm."""

    UNCONFIGURED = "unconfigured"
    """No connection."""
    INACTIVE = "inactive"
    """Feedback is read, torque is disabled."""
    ACTIVE = "active"
    """Torque is enabled, commands are executed."""
    STOPPED = "stopped"
    """Torque is enabled, commands are not executed: a trip started the stop policy."""
    ERROR = "error"
    """The connection is lost; a new one is tried periodically."""

    @property
    def torque_enabled(self) -> bool:
        """Whether torque is enabled."""
        return self is DriverState.ACTIVE or self is DriverState.STOPPED


@dataclass(frozen=True, slots=True, eq=False)
class ArmFeedback:
    """Feedback of all joints; NaN for what a motor does not report and for missing joints.

    Attributes
    ----------
    time : float
        Time [s] of the newest reading.
    q, v, tau : Vector, shape (nv,)
        Position [rad or m], velocity [rad/s or m/s] and effort [N·m or N] at the joint.
    temperature, supply : Vector, shape (nv,)
        Motor temperature [°C] and supply voltage [V].
    age : Vector, shape (nv,)
        Age [s] of the last reading; infinite before the first.
    fault : tuple of str
        Fault reported by each motor; "" for none.
    enabled : tuple of bool or None
        Whether each motor applies torque; None if it is not reported.

    """

    time: float
    q: Vector
    v: Vector
    tau: Vector
    temperature: Vector
    supply: Vector
    age: Vector
    fault: tuple[str, ...]
    enabled: tuple[bool | None, ...]


MEASURED, ESTIMATED, NONE = "measured", "estimated", "none"


@dataclass(frozen=True, slots=True)
class Capability:
    """Command interfaces of one joint and the source of its effort.

    Attributes
    ----------
    joint : str
        Name of the joint.
    interfaces : tuple of str
        Command interfaces.
    effort_source : str
        "measured" (from a current with a known constant), "estimated" (from the voltage by the
        motor model) or "none".

    """

    joint: str
    interfaces: tuple[str, ...]
    effort_source: str = NONE


class Driver(ABC):
    """Read states from an arm and write commands to it, in joint coordinates.

    Attributes
    ----------
    extra_interfaces : tuple of str
        Command interfaces accepted in addition to those of the arm's actuators.
    check_gains : callable or None
        Checks a controller's gains at positions (nv,) before torque is enabled. If it raises
        InvalidValue, the gains are unstable and the driver is not configured or activated.
    command_epoch : int
        Number of times that commands began to be executed: after each activation and each stop. The
        controller restarts from the measured state when it changes.

    """

    extra_interfaces: tuple[str, ...] = ()
    check_gains: Callable[[Vector], None] | None = None
    command_epoch: int = 0

    def __init__(self, arm: ArmModel) -> None:
        self.arm = check_arm(arm)

    @property
    def held(self) -> Vector | None:
        """Position commands (nv,) [rad or m] that hold the arm now; None if not known."""
        return None

    @property
    def timing(self) -> LoopTiming | None:
        """Control period and delay of the loop that commands the arm; None if not known."""
        return None

    @property
    def inactive(self) -> str:
        """Why commands are not executed, as text; "" while they are, or if it is not known."""
        return ""

    def configure(self) -> None:
        """Connect and check what is connected; nothing moves."""

    def activate(self) -> None:
        """Enable commands at the measured configuration; nothing moves."""

    @abstractmethod
    def read(self) -> State:
        """Return the newest measured state; raises DriverFault if none exists."""

    @abstractmethod
    def write(self, command: Command) -> None:
        """Send a command that the guard has accepted."""

    def idle(self) -> None:
        """Complete a control cycle without a command; the arm's command watchdog acts."""

    def deactivate(self) -> None:
        """Disable commands; reading continues."""

    def controlled_stop(self) -> None:
        """Bring the arm to rest without further commands."""

    def close(self) -> None:
        """Release what ``configure`` opened; never raises, may be called twice."""
