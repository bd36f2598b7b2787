"""An arm simulated and held by a controller; in RViz, on a browser page, or neither."""

from pathlib import Path

from arm_dynamics import plugins
from arm_dynamics.errors import ConfigError
from arm_dynamics.ros import launch_parts as parts

OF_THE_TOOL = ("task_space", "resolved_rate", "impedance")  # those of task_space.launch.py
ARGUMENTS = (
    parts.ARM,
    (
        "controller",
        "",
        "control law; empty: the parameter file's, else pid_gravity",
        ["", *(name for name in plugins.names("controllers") if name not in OF_THE_TOOL)],
    ),
    (
        "rate",
        "",
        "joint states and commands per simulated second [Hz]; empty: the parameter file's or 500",
        None,
    ),
    parts.RVIZ,
    ("viewer", "false", "show the arm on a page for a browser on this machine", parts.SWITCH),
    ("port", "8080", "port of that page; the next free one if taken", None),
    ("composed", "false", "simulator and controller in one process", parts.SWITCH),
    (
        "lockstep",
        "",
        "the simulator waits for the command that answers each state; empty: as the parameter file"
        " says, else false",
        ["", *parts.SWITCH],
    ),
    parts.USE_SIM_TIME,
    parts.PARAMS_FILE,
)


def generate_launch_description():
    view = Path(__file__).with_name("view.launch.py")
    return parts.description(ARGUMENTS, _nodes, view)


def _nodes(given):
    """The nodes of this package; input that they would refuse ends the launch here."""
    if given["lockstep"] == "true" and given["use_sim_time"] == "false":
        raise ConfigError("lockstep:=true needs use_sim_time:=true: commands answer by that time")
    files, simulator = parts.params_files(given), _simulator(given)
    controller = parts.controller_parameters(given)
    page = [parts.page("viewer", given, "page")] if given["viewer"] == "true" else []
    if given["composed"] == "true":
        return [parts.simulating("composed", *files, simulator, controller), *page]
    # Controller and page go by the stamps of the states: following /clock would cost a core.
    return [
        parts.simulating("simulator", *files, simulator),
        parts.node("joint_controller", *files, controller),
        *page,
    ]


def _simulator(given):
    """Its parameters; what is empty is left to the file."""
    rate = {"rate": parts.positive("rate", given["rate"])} if given["rate"] else {}
    lockstep = {"lockstep": given["lockstep"] == "true"} if given["lockstep"] else {}
    return parts.simulator_parameters(given) | rate | lockstep
