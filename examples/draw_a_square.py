"""Move the tool along a square with operational-space control."""

import numpy as np

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.control import CartesianTrajectory, TaskSpace, ToolLimits
from arm_dynamics.dynamics import tool_position
from arm_dynamics.hardware import SimulationDriver

arm, q = load_arm("five_dof"), [0.0, -0.9, 0.0, 0.0, 0.0]
square = CartesianTrajectory.from_configuration(arm, q, start=0.1)
for side in ([0, 0.1, 0], [0, 0.1, -0.1], [0, 0, -0.1], [0, 0, 0]):
    square = square.line(
        square.position + side, ToolLimits(max_linear_velocity=0.2, max_linear_acceleration=1.0)
    )

simulation = Simulation(arm, q=q)
loop = ControlLoop(SimulationDriver(arm, simulation), TaskSpace(arm))
loop.step()
loop.follow(square)  # raises TrajectoryRejected if the arm cannot follow the complete path
distances = []
while simulation.state.time < square.end + 0.5:
    loop.step()
    target = square.at(simulation.state.time).position
    distances.append(np.linalg.norm(tool_position(arm, simulation.state.q) - target))
print(f"{square.end:.2f} s; maximum distance from the square {1e3 * max(distances):.2f} mm")
