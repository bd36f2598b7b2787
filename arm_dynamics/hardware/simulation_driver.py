"""The simulator as a driver: writing a command lets one control period pass."""

from __future__ import annotations

from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.simulation import Simulation


class SimulationDriver(Driver):
    """Lockstep by construction: the plant moves only when it is written to or left idle."""

    def __init__(self, arm: ArmModel, simulation: Simulation | None = None) -> None:
        super().__init__(arm)
        self.simulation = simulation or Simulation(arm)

    def read(self) -> State:
        """The present state of the simulation."""
        return self.simulation.state

    def write(self, command: Command) -> None:
        """Apply the command for one control period."""
        self.simulation.submit(command)
        self.simulation.advance()

    def idle(self) -> None:
        """Let one control period pass: the watch stops the arm when no command comes."""
        self.simulation.advance()

    def controlled_stop(self) -> None:
        """Let time pass without commands until the watch has stopped the arm."""
        self.simulation.watch.restart()
        for _ in range(round(1.0 / self.simulation.period)):
            self.simulation.advance()
