"""Batch simulation of 512 arms with motor constants that vary by up to 10 %."""

import numpy as np

from arm_dynamics import load_arm
from arm_dynamics.batch import rollout
from arm_dynamics.dynamics import tool_position

arm, count = load_arm("five_dof"), 512
states = np.zeros((count, 2 * arm.nv))  # q, v of every arm
states[:, : arm.nv] = arm.configuration("initial")
scatter = np.random.default_rng(0).uniform(0.9, 1.1, (count, arm.nv))
kt = scatter * [10.0, 10.0, 10.0, 1.0, 1.0]

end = rollout(
    arm, states, np.full((count, arm.nv), 1.0), 1e-4,
    interface="voltage", steps_per_command=5000, record_every=5000, vary={"motor.kt": kt},
)  # fmt: skip
tools = np.array([tool_position(arm, q) for q in end.q[:, -1]])
print(f"after 0.5 s at 1 V: tools within {1e3 * np.ptp(tools, axis=0).max():.0f} mm of each other")
print("mean", tools.mean(axis=0).round(3), "m, standard deviation", tools.std(axis=0).round(4), "m")
