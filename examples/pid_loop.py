"""PID with gravity compensation at 500 Hz, with a payload that the controller's model lacks."""

import numpy as np

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.control import build_controller
from arm_dynamics.hardware import SimulationDriver

arm = load_arm("five_dof")
target = arm.configuration("initial")
simulation = Simulation(arm.with_payload(0.3), q=target + np.array([0, 0.2, -0.2, 0, 0.2]))
loop = ControlLoop(SimulationDriver(arm, simulation), build_controller(arm, "pid_gravity"))

loop.step()  # start from the measured state and hold it
loop.hold(dict(zip(arm.joint_names, target, strict=True)))
for k in range(1500):
    loop.step()
    if k % 250 == 249:
        error = np.abs(simulation.state.q - target).max()
        print(f"{simulation.state.time:.1f} s: max joint error {error:.1e} rad")
