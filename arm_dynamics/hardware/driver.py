"""The states of life of a physical arm.

What an arm's motors told last, joint by joint, and how old that is.

What one joint's motor takes and tells.

The seam of every arm, simulated or physical; the life cycle is ros2_control's.
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
    """What a physical arm does now."""

    UNCONFIGURED = "unconfigured"
    """Nothing is open."""
    INACTIVE = "inactive"
    """Reading only: torque is off."""
    ACTIVE = "active"
    """Torque is on and commands are obeyed."""
    STOPPED = "stopped"
    """Torque is on, commands are not obeyed: the stop policy acts because of a trip."""
    ERROR = "error"
    """The port is gone; it is tried again."""

    @property
    def torque_enabled(self) -> bool:
        """Whether torque is on."""
        return self is DriverState.ACTIVE or self is DriverState.STOPPED


@dataclass(frozen=True, slots=True, eq=False)
class ArmFeedback:
    """Time [s] of the newest reading; q [rad], v [rad/s], tau [N·m] at the joint, each (nv,).

    ``temperature`` [°C], ``supply`` [V] and ``age`` [s] are (nv,) too. What a motor does not
    tell is NaN, and so is everything of a joint that is silent for too long; a joint that never
    answered has an infinite age. ``fault`` is each motor's own word, "" for none; ``enabled``
    whether it applies torque, None where that is not known.
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
    """Command ``interfaces`` of one joint, and how its effort is known.

    ``effort_source`` is "measured" (from a current with a known constant), "estimated" (by the motor's
    law from its voltage) or "none".
    """

    joint: str
    interfaces: tuple[str, ...]
    effort_source: str = NONE


class Driver(ABC):
    """Reads states from an arm and writes commands to it: rad, rad/s, N·m at the joint."""

    extra_interfaces: tuple[str, ...] = ()
    """Command interfaces that may be taken beside those of the arm's actuators."""
    fit: Callable[[Vector], None] | None = None
    """Checks the gains of whoever commands the arm at the positions (nv,), before torque is on.

    Raises InvalidValue where they are unstable: the driver is then not configured or activated."""
    command_epoch: int = 0
    """How often commands began to be obeyed: with torque on, and after every stop. Whoever
    commands the arm then begins anew from where it is."""

    def __init__(self, arm: ArmModel) -> None:
        self.arm = check_arm(arm)

    @property
    def held(self) -> Vector | None:
        """Position goals (nv,) [rad or m] that hold the arm now; None where that is not known."""
        return None

    @property
    def timing(self) -> LoopTiming | None:
        """Control period and delay of the loop that commands the arm; None: not known."""
        return None

    def configure(self) -> None:
        """Open and check what is connected; nothing moves."""

    def activate(self) -> None:
        """Take control of the arm where it stands; nothing moves."""

    @abstractmethod
    def read(self) -> State:
        """The newest measured state; raises DriverFault when there is none."""

    @abstractmethod
    def write(self, command: Command) -> None:
        """Send a command that the guard has passed."""

    def idle(self) -> None:
        """No command this time: the arm's own watch decides what follows."""

    def deactivate(self) -> None:
        """Give up control; reading goes on."""

    def controlled_stop(self) -> None:
        """Bring the arm to rest without further commands."""

    def close(self) -> None:
        """Release what ``configure`` opened; never raises, may be called twice."""
