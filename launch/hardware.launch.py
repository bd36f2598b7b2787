"""Physical arm: driver of its motors, controller, and view in RViz or on a browser page.

Torque is disabled until a user activates the node hardware.
"""

from pathlib import Path

from launch.actions import LogInfo

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.identification.excitation.excitation import Excitation
from arm_dynamics.ros.runtime import launch_parts as parts
from arm_dynamics.ros.runtime.launch_parts import SIMULATED, select_controller
from arm_dynamics.ros.runtime.launch_simulation import simulator_parameters

TASK_SPACE = ("task_space", "resolved_rate", "impedance", "task_space_mpc")
"""Controllers of task_space.launch.py."""
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
    (
        "driver_settings",
        "",
        "settings of the driver, in addition to the URDF's: 'name=value ...'",
        None,
    ),
    (
        "command_interface",
        "",
        "command interface of the motors; empty: that of the controller given here, else the"
        " parameter file's, else effort",
        ["", "effort", "position", "velocity", "voltage"],
    ),
    (
        "controller",
        "",
        "controller; empty: the parameter file's, else computed_torque, or position if the motors"
        " accept positions; none: no controller",
        [
            *("", "none"),
            *(name for name in plugins.registered_names("controllers") if name not in TASK_SPACE),
        ],
    ),
    ("update_rate", "", "control cycles per second [Hz]; empty: the parameter file's or 100", None),
    (
        "auto_configure",
        "false",
        "open the port automatically, to read; never enable torque",
        parts.SWITCH,
    ),
    (
        "move_on_release",
        "false",
        "move to a target dragged in RViz when the mouse button is released; false: by its menu",
        parts.SWITCH,
    ),
    parts.SCENE,
    ("record", "", "new folder to record states and commands into; empty: none", None),
    (
        "excitation",
        "",
        "YAML file of arm-dynamics excite: once active, the arm moves to its start and runs it",
        None,
    ),
    ("viewer", "false", "show the arm on a browser page on this machine", parts.SWITCH),
    ("viewer_port", "8080", "port of that page; the next free one if in use", None),
    parts.PARAMS_FILE,
)


def generate_launch_description():
    view = Path(__file__).with_name("view.launch.py")
    return parts.description(ARGUMENTS, _nodes, view, use_sim_time="false")


def _nodes(arguments):
    """Return the nodes of this package; invalid arguments end the launch."""
    files = parts.params_files(arguments)
    controller = [] if arguments["controller"] == "none" else _controller(arguments, files)
    viewer = (
        [parts.viewer_node("viewer", arguments, "page")] if arguments["viewer"] == "true" else []
    )
    return [_arm(arguments, files), *controller, *_excitation(arguments), *viewer]


def _excitation(arguments):
    """Return the node that sends the excitation trajectory, if any."""
    file = arguments["excitation"]
    if not file:
        return []
    if arguments["controller"] == "none":
        raise ConfigError("excitation: controller = none; expected a controller")
    Excitation.load(file).require_joints(parts.loaded_arm(arguments))
    waits = {"wait_for_activation": False} if arguments["driver"] == SIMULATED else {}
    parameters = {**parts.model_parameters(arguments), "file": file}
    # It ends after its motion, which must not be repeated.
    return [parts.node("excitation", arguments, parameters, waits, respawn=False)]


def _controller(arguments, files):
    """Return a controller that the arm accepts, and a message if it replaces another one."""
    controller, message = select_controller(arguments, files)
    parameters = parts.controller_parameters({**arguments, "controller": controller})
    log = [LogInfo(msg=message)] if message else []
    return [*log, parts.node("joint_controller", arguments, *files, parameters)]


def _arm(arguments, files):
    """Return the arm's node; the driver simulated has the same topics, at wall-clock time."""
    record = {"recording_path": arguments["record"]} if arguments["record"] else {}
    rate = arguments["update_rate"]
    rates = {"update_rate": parts.positive_argument("update_rate", rate)} if rate else {}
    if arguments["driver"] == SIMULATED:
        time = {"use_sim_time": "false", "publish_clock": "false", "real_time_factor": ""}
        simulator = simulator_parameters({**arguments, **time, "rate": ""})
        return parts.required_node("simulator", arguments, *files, simulator | rates | record)
    names = ("driver", "port", "driver_settings", "command_interface")
    controller = arguments["controller"]
    motors = {}
    if controller not in ("", "none"):
        motors["command_interface"] = plugins.load_class("controllers", controller).interface
    motors |= {name: arguments[name] for name in names if arguments[name]}
    configure = {"auto_configure": arguments["auto_configure"] == "true"}
    start = {
        **parts.model_parameters(arguments),
        **parts.scene_parameters(arguments),
        **parts.description_parameters(),
        **configure,
    }
    return parts.required_node("hardware", arguments, *files, start | motors | rates | record)
