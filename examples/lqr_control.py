"""LQR with gains interpolated in a table over the configuration."""

import numpy as np

from arm_dynamics import Plant, Reference, State, load_arm
from arm_dynamics.control import Lqr, build_gain_table

arm = load_arm("four_joint")
controller = Lqr(arm)  # default weights; gains={"J1": {"position_weight": ...}} sets others
grid = {"J2": (-0.4, 1.0, 5), "J3": (0.2, 1.6, 5), "J4": (-0.8, 0.8, 5)}
controller.set_gain_table(build_gain_table(arm, controller.weights, grid))

target = np.array([1.0, 0.3, 0.9, 0.2])
plant, state = Plant(arm), State.of(arm.configuration("initial"))
for k in range(2000):
    command = controller.update(state, Reference.hold(target), dt=1e-3)
    state = plant.step(state, command, dt=1e-4, steps=10)
    if k % 400 == 399:
        error = np.abs(state.q - target).max()
        print(f"{state.time:.1f} s: max joint error {error:.1e} rad")
