"""The simulation as a driver: each write or idle advances it by one control period."""

from __future__ import annotations

from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.simulation import Simulation
from arm_dynamics.simulation.simulation_control import SimulationControl


class SimulationDriver(Driver):
    """Drive a simulated arm in lockstep: time advances only by ``write`` and ``idle``.

    Parameters
    ----------
    arm : ArmModel
        The controller's model of the arm.
    simulation : Simulation, optional
        The simulated arm; by default a simulation of ``arm``.
    control : SimulationControl, optional
        Control of the simulation, whose emergency stops the control loop restarts after.

    """

    def __init__(
        self,
        arm: ArmModel,
        simulation: Simulation | None = None,
        control: SimulationControl | None = None,
    ) -> None:
        super().__init__(arm)
        self.simulation = simulation or Simulation(arm)
        self._control = control

    @property
    def inactive(self) -> str:
        """Text of an active emergency stop, "" without one."""
        return self._control.stopped() if self._control else ""

    def read(self) -> State:
        """Return the present state of the simulation."""
        if self._control:
            self.command_epoch = self._control.emergency_stops  # time stood still since the last
        return self.simulation.state

    def write(self, command: Command) -> None:
        """Apply the command for one control period."""
        self.simulation.submit(command)
        self.simulation.advance()

    def idle(self) -> None:
        """Advance one control period; the command watchdog stops the arm without commands."""
        self.simulation.advance()

    def controlled_stop(self) -> None:
        """Advance 1 s without commands, until the command watchdog has stopped the arm."""
        self.simulation.watchdog.restart()
        for _ in range(round(1.0 / self.simulation.period)):
            self.simulation.advance()
