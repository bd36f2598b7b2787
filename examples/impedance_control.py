"""Impedance control: a force F deflects the tool by F / K; without the force it returns."""

import numpy as np

from arm_dynamics import Command, Plant, Reference, State, load_arm
from arm_dynamics.control import Impedance
from arm_dynamics.dynamics import jacobian, tool_position

arm, q = load_arm("two_link"), [-0.8, 1.6]
spring = {"stiffness": 200.0, "damping": 40.0}  # N/m, N·s/m
free = {"stiffness": 0.0, "damping": 0.0}
controller = Impedance(arm, {"tool.x": spring, "tool.z": spring, "tool.ry": free})

plant, state, start = Plant(arm), State.of(q), tool_position(arm, q)
controller.reset(state)
given = {}
for k in range(6000):
    force = np.array([0.0, 0.0, -5.0 if k < 3000 else 0.0])  # N
    command = controller.update(state, Reference.hold(q), dt=1e-3)
    effort = command.value + jacobian(arm, state.q)[:3].T @ force
    state = plant.step(state, Command.checked("effort", effort, arm.nv), dt=1e-4, steps=10)
    given[k] = tool_position(arm, state.q) - start
for k in (0, 100, 500, 2999, 3500, 5999):
    print(f"{(k + 1) / 1e3:.1f} s: tool moved by {1e3 * given[k][2]:.2f} mm")
