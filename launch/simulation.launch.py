"""An arm simulated and held by a controller; in RViz, on a browser page, or neither."""

from pathlib import Path

from arm_dynamics import plugins
from arm_dynamics.errors import ConfigError
from arm_dynamics.ros import launch_parts as parts

OF_THE_TOOL = ("task_space", "resolved_rate", "impedance")  # those of task_space.launch.py
ARGUMENTS = (
    parts.ARM,
    parts.LOCK,
    (
        "controller",
        "",
        "control law; empty: the parameter file's; without a file computed_torque",
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
        "the simulator waits for the command that answers each state, so that a busy machine slows"
        " time down and delays no command; empty: as the parameter file says, else true with"
        " use_sim_time",
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
    files = parts.params_files(given)
    simulator = _simulator(given, files)
    controller = parts.controller_parameters(given | parts.usual_controller(given, files))
    wanted = given["viewer"] == "true"
    page = [parts.page("viewer", given, "page", controls=True)] if wanted else []
    if given["composed"] == "true":
        return [parts.simulating("composed", *files, simulator, controller), *page]
    # Controller and page go by the stamps of the states: following /clock would cost a core.
    return [
        parts.simulating("simulator", *files, simulator),
        parts.node("joint_controller", *files, controller),
        *page,
    ]


def _simulator(given, files):
    """Its parameters; what is empty is left to the file."""
    rate = {"rate": parts.positive("rate", given["rate"])} if given["rate"] else {}
    lockstep = parts.lockstep(given, given["lockstep"], files)
    return parts.simulator_parameters(given) | rate | lockstep
