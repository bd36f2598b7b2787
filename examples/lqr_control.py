"""LQR with gains from a table over the configuration, solved for in a second."""

import numpy as np

from arm_dynamics import Plant, State, load_arm
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.lqr_design.gain_table import build_gain_table
from arm_dynamics.core.state import Reference

arm = load_arm("four_joint")
law = Lqr(arm)  # weights from the model; gains={"J1": {"position_weight": ...}} sets others
grid = {"J2": (-0.4, 1.0, 5), "J3": (0.2, 1.6, 5), "J4": (-0.8, 0.8, 5)}
law.set_gain_table(build_gain_table(arm, law.weights, grid))

target = np.array([1.0, 0.3, 0.9, 0.2])
plant, state = Plant(arm), State.of(arm.configuration("initial"))
for k in range(2000):
    command = law.update(state, Reference.hold(target), dt=1e-3)
    state = plant.step(state, command, dt=1e-4, steps=10)
    if k % 400 == 399:
        error = np.abs(state.q - target).max()
        print(f"{state.time:.1f} s: worst joint error {error:.1e} rad")
