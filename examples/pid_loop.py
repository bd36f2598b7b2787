"""PID with gravity compensation in a loop of 500 Hz, with a payload that it is not told of."""

import numpy as np

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.hardware.simulation_driver import SimulationDriver

arm = load_arm("five_dof")
target = arm.configuration("initial")
simulation = Simulation(arm.with_payload(0.3), q=target + np.array([0, 0.2, -0.2, 0, 0.2]))
loop = ControlLoop(SimulationDriver(arm, simulation), build_controller(arm, "pid_gravity"))

loop.step()  # takes over and holds the arm where it is
loop.hold(dict(zip(arm.joint_names, target, strict=True)))
for k in range(1500):
    loop.step()
    if k % 250 == 249:
        error = np.abs(simulation.state.q - target).max()
        print(f"{simulation.state.time:.1f} s: worst joint error {error:.1e} rad")
