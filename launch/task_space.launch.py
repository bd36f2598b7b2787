"""Simulated arm with a task-space controller: poses, velocities, wrenches and paths."""

from pathlib import Path

from arm_dynamics.ros.runtime import launch_parts as parts
from arm_dynamics.ros.runtime.launch_simulation import SIMULATION, simulated_arm

ARGUMENTS = (
    *parts.COMMON,
    (
        "controller",
        "",
        "task-space controller; empty: the parameter file's, else task_space",
        ["", "resolved_rate", "task_space", "impedance", "task_space_mpc"],
    ),
    *SIMULATION,
)


def generate_launch_description():
    view = Path(__file__).with_name("view.launch.py")
    return parts.description(ARGUMENTS, _nodes, view)


def _nodes(arguments):
    """Return the nodes of this package; invalid arguments end the launch."""
    files = parts.params_files(arguments)
    executables = ("task_space_controller", "task_space_composed")
    controller = parts.controller_parameters(arguments)
    return simulated_arm(arguments, files, executables, controller, controls=False)
