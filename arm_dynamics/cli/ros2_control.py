"""Write the files with which controller_manager of ros2_control drives an arm.

The new folder contains the URDF with a <ros2_control> block, the parameters of controller_manager,
joint_state_broadcaster and joint_trajectory_controller, and a launch file that starts them with the
simulated or the physical arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import yaml

from arm_dynamics.cli.arm_options import add_arm, add_options, path_argument, require_new_file
from arm_dynamics.control.config import PERIOD
from arm_dynamics.control.controllers.pid import BANDWIDTH, DAMPING, uniform_bandwidth
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.files import output_file
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.arm_argument import require_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.model.ros2_control import COMMANDS, PLUGINS, with_ros2_control
from arm_dynamics.model.xml_source import parse_xml

CONTROLLER, BROADCASTER = "joint_trajectory_controller", "joint_state_broadcaster"
MAX_DAMPING_RATE = 80.0
"""Maximum damping rate of the effort gains [1/s]: stable with a delay of three periods."""
GOAL_TOLERANCE, GOAL_TIME = 0.02, 2.0
"""Tolerance of a goal [rad or m] and time to reach it after the trajectory [s]."""

HEADER = """\
# ros2_control of {arm}: controller_manager with {controller} ({command} commands).
# The node of the arm publishes joint_states, therefore the broadcaster uses its own namespace.
"""
GAINS_HEADER = """\
# The controller has no gravity compensation: its integral supports the arm.
# p [N·m/rad], i [N·m/(rad·s)], d [N·m·s/rad]; u_clamp and i_clamp [N·m] are the effort limits.
"""
LAUNCH = '''\
"""controller_manager and its controllers with the simulated or the physical arm."""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

FOLDER = Path(__file__).resolve().parent


def generate_launch_description():
    arm = Path(get_package_share_directory("arm_dynamics")) / "launch" / "hardware.launch.py"
    controllers = str(FOLDER / "controllers.yaml")
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "driver",
                default_value="{driver}",
                description="driver of the motors; simulated: the simulator; empty: the URDF's",
            ),
            DeclareLaunchArgument(
                "port", default_value="", description="port of the motors; empty: the URDF's"
            ),
            IncludeLaunchDescription(
                str(arm),
                launch_arguments={{
                    "arm": str(FOLDER / "{arm}.urdf"),
                    "driver": LaunchConfiguration("driver"),
                    "port": LaunchConfiguration("port"),
                    "command_interface": "{command}",
                    "controller": "none",
                    "auto_configure": "true",
                    "rviz": "false",
                }}.items(),
            ),
            Node(
                package="controller_manager",
                executable="ros2_control_node",
                parameters=[controllers],
                output="screen",
            ),
            Node(
                package="controller_manager",
                executable="spawner",
                arguments=[
                    "{broadcaster}",
                    "{controller}",
                    "--param-file",
                    controllers,
                ],
                output="screen",
            ),
        ]
    )
'''


def run(arguments: Sequence[str]) -> int:
    """Write the folder; return 0."""
    parser = SuggestingParser(prog="arm-dynamics ros2-control", description=__doc__)
    add_arm(parser)
    add_options(parser, only=("lock",))
    parser.add_argument(
        "--plugin",
        choices=PLUGINS,
        default=PLUGINS[0],
        help="hardware component of ros2_control (default: %(default)s)",
    )
    parser.add_argument(
        "--command-interface",
        choices=COMMANDS,
        help="command interface of every joint (default: the first that the actuators accept)",
    )
    parser.add_argument(
        "--output",
        type=path_argument,
        metavar="FOLDER",
        help="new folder of the files (default: <arm>_ros2_control)",
    )
    options = parser.parse_args(arguments)
    arm = load_arm(options.arm, options.lock, tool_frame=options.tool_frame)
    if "/" in arm.name:
        raise ConfigError(f"robot name = '{arm.name}'; expected the name of a file")
    command = command_interface(arm, options.command_interface)
    output = options.output or Path(f"{arm.name}_ros2_control")
    require_new_file("--output", output)
    files = ros2_control_files(arm, options.plugin, command)
    for name, text in files.items():
        with output_file(output / name) as partial:
            partial.parent.mkdir(exist_ok=True)
            partial.write_text(text, encoding="utf-8")
    print(f"{output}: {', '.join(files)}; {command} commands of {arm.nv} joints")
    print(f"next: ros2 launch {output}/ros2_control.launch.py")
    return 0


def command_interface(arm: ArmModel, desired: str | None) -> str:
    """Return the command interface of every joint; raise ConfigError if the arm rejects it.

    An arm with a ``driver`` in its URDF accepts those of its motors too, which only a connected
    motor reports.
    """
    accepted = [c for c in COMMANDS if all(c in actuator.interfaces for actuator in arm.actuators)]
    if desired in accepted or (desired is not None and has_driver(arm)):
        return desired
    if desired is not None or not accepted:
        raise ConfigError(
            f"--command-interface = {desired or 'none'}; expected"
            f" {' or '.join(accepted) or 'one that the actuators of all joints accept'}"
        )
    return accepted[0]


def has_driver(arm: ArmModel) -> bool:
    """Return whether the ``<ros2_control>`` block names a driver of motors."""
    blocks = parse_xml(arm.urdf).find_all("ros2_control")
    hardware = [node for block in blocks for node in block.find_all("hardware")]
    return any(p.get("name") == "driver" for node in hardware for p in node.find_all("param"))


def ros2_control_files(arm: ArmModel, plugin: str, command: str) -> dict[str, str]:
    """Return URDF, parameters and launch file by their names."""
    simulated = all(command in actuator.interfaces for actuator in arm.actuators)
    header = HEADER.format(arm=arm.name, controller=CONTROLLER, command=command)
    content = yaml.safe_dump(parameters(arm, command), sort_keys=False)
    return {
        f"{arm.name}.urdf": with_ros2_control(arm, plugin, command),
        "controllers.yaml": header + (GAINS_HEADER if command != "position" else "") + content,
        "ros2_control.launch.py": LAUNCH.format(
            arm=arm.name,
            command=command,
            driver="simulated" if simulated else "",
            broadcaster=BROADCASTER,
            controller=CONTROLLER,
        ),
    }


def parameters(arm: ArmModel, command: str) -> dict[str, object]:
    """Return the parameters of controller_manager and of both controllers by node."""
    names = list(arm.joint_names)
    controller: dict[str, object] = {
        "joints": names,
        "command_interfaces": [command],
        "state_interfaces": ["position", "velocity"],
        "allow_partial_joints_goal": True,  # MoveIt commands the joints of a group
        "constraints": {
            "goal_time": GOAL_TIME,
            "stopped_velocity_tolerance": GOAL_TOLERANCE,
            **{name: {"goal": GOAL_TOLERANCE} for name in names},
        },
    }
    if command != "position":
        controller["gains"] = effort_gains(arm) if command == "effort" else velocity_gains(arm)
    types = {
        BROADCASTER: f"{BROADCASTER}/JointStateBroadcaster",
        CONTROLLER: f"{CONTROLLER}/JointTrajectoryController",
    }
    nodes = {
        "controller_manager": {
            "update_rate": round(1 / PERIOD),
            **{name: {"type": kind} for name, kind in types.items()},
        },
        BROADCASTER: {"use_local_topics": True},
        CONTROLLER: controller,
    }
    return {name: {"ros__parameters": entries} for name, entries in nodes.items()}


def effort_gains(arm: ArmModel) -> dict[str, dict[str, float | str]]:
    """Return the gains of the controller's PID by joint, of uniform bandwidth w.

    kp = w² m, ki = w³ m / 6, kd = 1.6 w m, as ``Pid`` without gains, with a lower damping rate:
    commands and states pass two topics, a delay of up to three periods.
    """
    require_masses(arm, "effort commands")
    w, inertia = uniform_bandwidth(arm, BANDWIDTH, MAX_DAMPING_RATE)
    gains = {}
    for joint, m in zip(arm.joints, inertia.tolist(), strict=True):
        values = {"p": w**2 * m, "i": w**3 / 6 * m, "d": DAMPING * w * m}
        gains[joint.name] = _gains(values, joint.effort)
    return gains


def velocity_gains(arm: ArmModel) -> dict[str, dict[str, float | str]]:
    """Return the gains [1/s] of the controller's PID by joint: feedforward and 5 x the error."""
    values = {"p": 5.0, "i": 0.0, "d": 0.0, "ff_velocity_scale": 1.0}
    return {joint.name: _gains(values, joint.velocity) for joint in arm.joints}


def _gains(values: dict[str, float], limit: float) -> dict[str, float | str]:
    """Return gains of four digits with the clamps of output and integral."""
    clamps = {"u_clamp_max": limit, "u_clamp_min": -limit}
    clamps |= {"i_clamp_max": limit, "i_clamp_min": -limit}
    return {
        **{name: float(f"{value:.4g}") for name, value in values.items()},
        **(clamps if isfinite(limit) else {}),
        "antiwindup_strategy": "conditional_integration",
    }
