"""An arm simulated and held by a controller; in RViz, on a browser page, or neither."""

from importlib.util import find_spec
from pathlib import Path

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    Shutdown,
)
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from arm_dynamics import plugins, resources
from arm_dynamics.errors import ConfigError
from arm_dynamics.model.load import find_urdf, load_arm

SWITCH = ["true", "false"]
OF_THE_TOOL = ("task_space", "resolved_rate", "impedance")  # those of task_space.launch.py
ARGUMENTS = (
    ("arm", "five_dof", "bundled arm or URDF file", None),
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
    ("rviz", "true", "show the arm in RViz", SWITCH),
    ("viewer", "false", "show the arm on a page for a browser on this machine", SWITCH),
    ("port", "8080", "port of that page; the next free one if taken", None),
    ("composed", "false", "simulator and controller in one process", SWITCH),
    (
        "lockstep",
        "",
        "the simulator waits for the command that answers each state; empty: as the parameter file"
        " says, else false",
        ["", *SWITCH],
    ),
    (
        "use_sim_time",
        "true",
        "the simulator is the source of /clock; robot_state_publisher and RViz follow it",
        SWITCH,
    ),
    ("params_file", "", "ROS parameters; empty: the arm's config/<arm>.yaml, if any", None),
)


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text, choices=choices)
        for name, default, text, choices in ARGUMENTS
    ]
    view = Path(__file__).with_name("view.launch.py")
    return LaunchDescription(
        [*declared, OpaqueFunction(function=_nodes), IncludeLaunchDescription(str(view))]
    )


def _nodes(context):
    """The nodes of this package; input that they would refuse ends the launch here."""
    given = {name: LaunchConfiguration(name).perform(context) for name, *_ in ARGUMENTS}
    load_arm(given["arm"])
    on = {name for name, value in given.items() if value == "true"}
    if "lockstep" in on and "use_sim_time" not in on:
        raise ConfigError("lockstep:=true needs use_sim_time:=true: commands answer by that time")
    files = _params_files(given["params_file"], given["arm"])
    page = [_viewer(given)] if "viewer" in on else []
    return [*(_composed if "composed" in on else _apart)(files, given, on), *page]


def _apart(files, given, on):
    """Controller and page go by the stamps of the states: following /clock would cost a core."""
    simulator, controller = _parameters(given, on)
    return [
        _node("simulator", [*files, simulator], on_exit=_simulator_ended),
        _node("joint_controller", [*files, controller]),
    ]


def _composed(files, given, on):
    simulator, controller = _parameters(given, on)
    return [_node("composed", [*files, simulator, controller], on_exit=_simulator_ended)]


def _parameters(given, on):
    """Those of the simulator and of the controller; what is empty is left to the file."""
    simulator = {
        "arm": given["arm"],
        "publish_clock": "use_sim_time" in on,
        "use_sim_time": False,  # it would wait for its own /clock
    }
    controller = {"arm": given["arm"]}
    if given["rate"]:
        simulator["rate"] = _positive("rate", given["rate"])
    if given["lockstep"]:
        simulator["lockstep"] = "lockstep" in on
    if given["controller"]:
        controller["controller"] = given["controller"]
    return simulator, controller


def _viewer(given):
    if find_spec("viser") is None or find_spec("yourdfpy") is None:
        return LogInfo(msg="viser is not installed: no page (pip install viser yourdfpy)")
    port = int(_positive("port", given["port"]))
    return _node("viewer", [{"arm": given["arm"], "port": port}])


def _node(executable, parameters, **more):
    return Node(
        package="arm_dynamics",
        executable=executable,
        parameters=parameters,
        output="screen",
        **more,
    )


def _params_files(given, arm):
    """The file to use, as a list: none where none is given and the arm has none."""
    bundled = resources.folder("config") / f"{find_urdf(arm).stem}.yaml"
    if given and not Path(given).is_file():
        raise ConfigError(f"params_file {given}: no such file")
    return [given] if given else [str(bundled)] * bundled.is_file()


def _positive(name, text):
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise ConfigError(f"{name} '{text}': a positive number is expected")
    return number


def _simulator_ended(event, context):
    """Without the arm there is nothing left to do; its failure is that of the launch."""
    if context.is_shutdown:
        return None
    if event.returncode != 0:
        raise RuntimeError(f"{event.process_name} ended with code {event.returncode}")
    return Shutdown(reason="the simulator ended")
