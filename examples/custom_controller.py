"""Custom controller with a bounded correction along a sliding surface."""

import numpy as np

from arm_dynamics import Command, ControlLoop, Parameter, Reference, Simulation, State, load_arm
from arm_dynamics.control import Controller
from arm_dynamics.hardware import SimulationDriver


class Sliding(Controller):
    """tau = k tanh(2 s) + C q̇ + g,  s = ė + 5 e."""

    parameters = (Parameter("k", 8.0, "N·m", "maximum correction", above=0),)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m]."""
        s = reference.v - state.v + 5 * (reference.q - state.q)
        effort = self.gains["k"] * np.tanh(2 * s) + self.dynamics.nle(state.q, state.v)
        return self.effort_command(effort, state)


arm = load_arm("two_link")
simulation = Simulation(arm, q=[0.0, 1.0])
loop = ControlLoop(SimulationDriver(arm, simulation), Sliding(arm, {"J2": {"k": 4.0}}))
loop.step()
loop.hold({"J1": 0.8, "J2": 0.4})
for _ in range(1500):
    loop.step()
print(f"after {simulation.state.time:.1f} s:", np.round(simulation.state.q, 4), "rad")
