"""Simulated arm with a joint-space controller; view in RViz, on a browser page, or none."""

from pathlib import Path

from arm_dynamics.core import plugins
from arm_dynamics.ros.runtime import launch_parts as parts
from arm_dynamics.ros.runtime.launch_simulation import SIMULATION, simulated_arm

TASK_SPACE = ("task_space", "resolved_rate", "impedance", "task_space_mpc")
"""Controllers of task_space.launch.py."""
ARGUMENTS = (
    *parts.COMMON,
    (
        "controller",
        "",
        "controller; empty: the parameter file's; without a file computed_torque",
        [
            "",
            *(name for name in plugins.registered_names("controllers") if name not in TASK_SPACE),
        ],
    ),
    *SIMULATION,
)


def generate_launch_description():
    view = Path(__file__).with_name("view.launch.py")
    return parts.description(ARGUMENTS, _nodes, view)


def _nodes(arguments):
    """Return the nodes of this package; invalid arguments end the launch."""
    files = parts.params_files(arguments)
    controller = parts.controller_parameters(arguments | parts.default_controller(arguments, files))
    executables = ("joint_controller", "composed")
    return simulated_arm(arguments, files, executables, controller, controls=True)
