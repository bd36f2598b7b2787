"""The seam of every arm, simulated or physical; the life cycle is ros2_control's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from arm_dynamics.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import given_arm
from arm_dynamics.state import Command, State
from arm_dynamics.timing import LoopTiming


class Driver(ABC):
    """Reads states from an arm and writes commands to it: rad, rad/s, N·m at the joint."""

    also: tuple[str, ...] = ()
    """Command interfaces that may be taken beside those of the arm's actuators."""
    fit: Callable[[Vector], None] | None = None
    """Checks the gains of whoever commands the arm at the positions (nv,), before torque is on.

    Raises InvalidValue where they are unstable: the driver is then not configured or activated."""
    begun: int = 0
    """How often commands began to be obeyed: with torque on, and after every stop. Whoever
    commands the arm then begins anew from where it is."""

    def __init__(self, arm: ArmModel) -> None:
        self.arm = given_arm(arm)

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

    def safe_stop(self) -> None:
        """Bring the arm to rest without further commands."""

    def close(self) -> None:
        """Release what ``configure`` opened; never raises, may be called twice."""
