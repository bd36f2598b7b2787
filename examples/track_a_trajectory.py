"""Computed torque along a quintic, with a true model and with one whose masses are 20 % off."""

import numpy as np

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.trajectories.joint_splines import quintic_trajectory
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.model_error import with_model_error

arm = load_arm("four_joint")
start, end = np.array([0.0, 0.2, 0.6, 0.3]), np.array([1.5, 0.6, 1.2, -0.2])
trajectory = quintic_trajectory([start, end, start], [0.1, 1.6, 3.1])

worst = {}
for name, told in {"true": arm, "20 % off": with_model_error(arm, mass=20)}.items():
    simulation = Simulation(arm, q=start, period=1e-3)
    loop = ControlLoop(SimulationDriver(arm, simulation), ComputedTorque(told))
    loop.step()
    loop.follow(trajectory)  # refused here if any limit would be exceeded
    errors = []
    while simulation.state.time < trajectory.end:
        loop.step()
        errors.append(simulation.state.q - trajectory.at(simulation.state.time).q)
    worst[name] = np.abs(errors).max()
    print(f"model {name}: worst joint error {worst[name]:.1e} rad")
