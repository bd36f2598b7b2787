"""Commands of every registered controller along a rough motion; print them as JSON.

With the environment variable NUMBA_DISABLE_JIT=1 the same functions run in Python.
"""

import json

import numpy as np

from arm_dynamics import Reference, State, load_arm
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.lqr_design.gain_table import build_gain_table
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core import plugins

CONFIGURATIONS = {
    "five_dof": (0.1, -0.9, 0.3, 0.2, 0.1),
    "puma560": (0.1, 0.7, -2.4, 0.2, 0.0, 0.3),
}
"""The puma560 starts at a singular configuration of its wrist."""
UPDATES = 8


def commands(arm, controller, q):
    """Return the commands (UPDATES, nv) for states around ``q``, the last ones saturated."""
    rng, values = np.random.default_rng(0), []
    controller.reset(State.of(q, 0.1 * rng.normal(size=arm.nv), rng.normal(size=arm.nv)))
    for k in range(UPDATES):
        near = 3e-3 if k < UPDATES // 2 else 0.5
        v, a = rng.normal(size=(2, arm.nv))
        reference = Reference(q + near * rng.normal(size=arm.nv), near * v, near * a)
        if isinstance(controller, TaskSpaceController):
            reference = to_task_reference(arm, reference)
        state = State.of(q + near * rng.normal(size=arm.nv), near * v[::-1])
        values.append(controller.update(state, reference, 2e-3 * (k > 0)).value.tolist())
    return values


def every_command():
    """Return the commands by arm and controller; of "lqr" with a gain table too."""
    found = {}
    for name, configuration in CONFIGURATIONS.items():
        arm, q = load_arm(name), np.array(configuration)
        for kind in plugins.registered_names("controllers"):
            if kind in ("mpc", "task_space_mpc"):
                continue  # their kernels are generated, and checked before their first use
            built = plugins.load_class("controllers", kind)(arm)
            found[f"{name} {kind}"] = commands(arm, built, q)
            if isinstance(built, Lqr):
                grid = dict.fromkeys(arm.joint_names[1:3], (-3.0, 3.0, 2))
                built.set_gain_table(build_gain_table(arm, built.weights, grid, q))
                found[f"{name} {kind}, gain table"] = commands(arm, built, q)
    return found


if __name__ == "__main__":
    print(json.dumps(every_command()))
