"""A physical arm: its motors' driver, a controller, and a picture in RViz or on a page.

Nothing has torque until somebody activates the node hardware.
"""

from pathlib import Path

from launch.actions import LogInfo

from arm_dynamics.core import plugins
from arm_dynamics.ros import launch_parts as parts
from arm_dynamics.ros.launch_controller import SIMULATED, select_controller
from arm_dynamics.ros.launch_simulation import simulator_parameters

OF_THE_TOOL = ("task_space", "resolved_rate", "impedance")  # those of task_space.launch.py
NOT_MOTORS = ("topic",)
ARGUMENTS = (
    *parts.COMMON,
    (
        "driver",
        "",
        "driver of the motors; empty: the URDF's; simulated: the simulator instead",
        ["", *(name for name in plugins.registered_names("drivers") if name not in NOT_MOTORS)],
    ),
    ("port", "", "serial port or CAN channel of the motors; empty: the URDF's", None),
    ("settings", "", "the driver's own over the URDF's: 'name=value ...'", None),
    (
        "interface",
        "",
        "what the motors are commanded; empty: what the controller given here commands, else the"
        " parameter file's, else effort",
        ["", "effort", "position", "velocity", "voltage"],
    ),
    (
        "controller",
        "",
        "control law; empty: the parameter file's, else computed_torque, or position where the"
        " motors take positions; none: no controller",
        [
            *("", "none"),
            *(name for name in plugins.registered_names("controllers") if name not in OF_THE_TOOL),
        ],
    ),
    ("rate", "", "cycles a second [Hz]; empty: the parameter file's, else the node's", None),
    ("autostart", "false", "open the port by itself, to read; never torque", parts.SWITCH),
    (
        "move_on_release",
        "false",
        "what is dragged in RViz moves when the mouse button is released; false: by its menu",
        parts.SWITCH,
    ),
    ("page", "false", "a page for a browser here, with an emergency stop", parts.SWITCH),
    ("page_port", "8080", "port of that page; the next free one if taken", None),
    parts.PARAMS_FILE,
)


def generate_launch_description():
    view = Path(__file__).with_name("view.launch.py")
    return parts.description(ARGUMENTS, _nodes, view)


def _nodes(given):
    """The nodes of this package; input that they would refuse ends the launch here."""
    files = parts.params_files(given)
    controller = [] if given["controller"] == "none" else _controller(given, files)
    shown = {**given, "port": given["page_port"]}
    page = [parts.viewer_node("viewer", shown, "page")] if given["page"] == "true" else []
    return [_arm(given, files), *controller, *page]


def _controller(given, files):
    """A controller with a law that the arm can follow, and a word where another one is wanted."""
    law, words = select_controller(given, files)
    parameters = parts.controller_parameters({**given, "controller": law})
    said = [LogInfo(msg=words)] if words else []
    return [*said, parts.node("joint_controller", given, *files, parameters)]


def _is_law(name):
    return name not in ("", "none")


def _arm(given, files):
    """The arm; with the driver simulated the same topics, at the computer's time."""
    if given["driver"] == SIMULATED:
        time = {"use_sim_time": "false", "publish_clock": "false", "real_time_factor": ""}
        simulator = simulator_parameters({**given, **time})
        return parts.required_node("simulator", given, *files, simulator)
    rate = {"rate": parts.positive_argument("rate", given["rate"])} if given["rate"] else {}
    names = ("driver", "port", "settings", "interface")
    law = given["controller"]
    asked = {"interface": plugins.load_class("controllers", law).interface} if _is_law(law) else {}
    motors = asked | {name: given[name] for name in names if given[name]}
    autostart = {"autostart": given["autostart"] == "true"}
    start = {**parts.model_parameters(given), **parts.description_parameters(), **autostart}
    return parts.required_node("hardware", given, *files, start | motors | rate)
