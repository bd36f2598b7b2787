"""An arm simulated and led by its tool: poses, velocities, wrenches and paths; in RViz, or not."""

from pathlib import Path

from arm_dynamics.ros import launch_parts as parts

ARGUMENTS = (
    parts.ARM,
    parts.LOCK,
    (
        "controller",
        "",
        "law of the tool; empty: the parameter file's, else task_space",
        ["", "task_space", "resolved_rate", "impedance"],
    ),
    ("rviz", "true", "show the arm, the reference and its axes in RViz", parts.SWITCH),
    parts.USE_SIM_TIME,
    parts.PARAMS_FILE,
)


def generate_launch_description():
    view = Path(__file__).with_name("view.launch.py")
    return parts.description(ARGUMENTS, _nodes, view)


def _nodes(given):
    """The nodes of this package; input that they would refuse ends the launch here."""
    files = parts.params_files(given)
    return [
        parts.simulating(
            "simulator",
            *files,
            parts.simulator_parameters(given) | parts.lockstep(given, "", files),
        ),
        parts.node("task_space_controller", *files, parts.controller_parameters(given)),
    ]
