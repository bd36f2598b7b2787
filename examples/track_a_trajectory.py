"""Computed torque along a quintic trajectory, with the nominal model and with +20 % mass."""

import numpy as np

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.control import ComputedTorque, quintic_trajectory
from arm_dynamics.hardware import SimulationDriver
from arm_dynamics.model import with_model_error

arm = load_arm("four_joint")
start, end = np.array([0.0, 0.2, 0.6, 0.3]), np.array([1.5, 0.6, 1.2, -0.2])
trajectory = quintic_trajectory([start, end, start], [0.1, 1.6, 3.1])

worst = {}
for name, model in {"nominal": arm, "+20 % mass": with_model_error(arm, mass=20)}.items():
    simulation = Simulation(arm, q=start, period=1e-3)
    loop = ControlLoop(SimulationDriver(arm, simulation), ComputedTorque(model))
    loop.step()
    loop.follow(trajectory)  # raises TrajectoryRejected if a limit would be exceeded
    errors = []
    while simulation.state.time < trajectory.end:
        loop.step()
        errors.append(simulation.state.q - trajectory.at(simulation.state.time).q)
    worst[name] = np.abs(errors).max()
    print(f"{name} model: max joint error {worst[name]:.1e} rad")
