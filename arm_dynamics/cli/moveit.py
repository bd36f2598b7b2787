"""Write a configuration package of MoveIt for an arm."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import yaml

from arm_dynamics.cli.arm_options import add_arm, add_options, path_argument, require_new_file
from arm_dynamics.collision.link_pairs import collision_matrix
from arm_dynamics.control.config import parameter_file
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.files import output_file
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.dynamics.kinematics.inverse_kinematics import sampling_ranges
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix
from arm_dynamics.model.arm_argument import require_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.model.robot_description import robot_description

CONFIGURATIONS = 200
"""Random configurations of the acceleration limits."""
EFFORT_FRACTION = 0.5
"""Fraction of the effort beyond gravity that a joint accelerates itself with."""
MIN_TIME_TO_LIMIT = 0.05
"""Shortest time [s] in which the acceleration limit reaches the velocity limit."""
FULL_POSE = 6
"""Joints that can reach a pose; with fewer the inverse kinematics reaches positions only."""

PACKAGE_XML = """\
<?xml version="1.0"?>
<package format="3">
  <name>{package}</name>
  <version>0.1.0</version>
  <description>MoveIt configuration of {arm}, executed by arm_dynamics</description>
  <maintainer email="you@example.com">you</maintainer>
  <license>Apache-2.0</license>
  <buildtool_depend>ament_cmake</buildtool_depend>
  <exec_depend>arm_dynamics</exec_depend>
  <exec_depend>moveit_configs_utils</exec_depend>
  <exec_depend>moveit_kinematics</exec_depend>
  <exec_depend>moveit_planners</exec_depend>
  <exec_depend>moveit_ros_move_group</exec_depend>
  <exec_depend>moveit_ros_visualization</exec_depend>
  <exec_depend>moveit_simple_controller_manager</exec_depend>
  <exec_depend>rviz2</exec_depend>
  <export>
    <build_type>ament_cmake</build_type>
  </export>
</package>
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.22)
project({package})
find_package(ament_cmake REQUIRED)
ament_package()
install(DIRECTORY config launch DESTINATION share/${{PROJECT_NAME}})
install(FILES .setup_assistant DESTINATION share/${{PROJECT_NAME}})
"""
LAUNCH = '''\
"""MoveIt with the simulated arm, or with hardware:=true the physical one."""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.conditions import IfCondition, UnlessCondition
from launch.substitutions import LaunchConfiguration, NotSubstitution
from launch_ros.actions import Node, SetParameter
from moveit_configs_utils import MoveItConfigsBuilder
from moveit_configs_utils.launches import generate_move_group_launch


def generate_launch_description():
    config = MoveItConfigsBuilder("{arm}", package_name="{package}").to_moveit_configs()
    folder = Path(get_package_share_directory("{package}"))
    launch = Path(get_package_share_directory("arm_dynamics")) / "launch"
    hardware = LaunchConfiguration("hardware")
    parameters = str(folder / "config" / "arm_dynamics.yaml")
    arguments = {{"arm": {selection}, "params_file": parameters, "rviz": "false"}}.items()
    return LaunchDescription(
        [
            DeclareLaunchArgument("hardware", default_value="false"),
            DeclareLaunchArgument("use_rviz", default_value="true"),
            IncludeLaunchDescription(
                str(launch / "simulation.launch.py"),
                launch_arguments=arguments,
                condition=UnlessCondition(hardware),
            ),
            IncludeLaunchDescription(
                str(launch / "hardware.launch.py"),
                launch_arguments=arguments,
                condition=IfCondition(hardware),
            ),
            SetParameter("use_sim_time", NotSubstitution(hardware)),
            *generate_move_group_launch(config).entities,
            Node(
                package="rviz2",
                executable="rviz2",
                arguments=["-d", str(folder / "config" / "moveit.rviz")],
                parameters=[
                    config.planning_pipelines,
                    config.robot_description_kinematics,
                    config.joint_limits,
                ],
                condition=IfCondition(LaunchConfiguration("use_rviz")),
            ),
        ]
    )
'''


def run(arguments: Sequence[str]) -> int:
    """Write the package; return 0."""
    parser = SuggestingParser(prog="arm-dynamics moveit", description=__doc__)
    add_arm(parser)
    add_options(parser, only=("lock",))
    parser.add_argument(
        "--output",
        type=path_argument,
        metavar="FOLDER",
        help="new folder of the package (default: <arm>_moveit_config)",
    )
    options = parser.parse_args(arguments)
    arm = load_arm(options.arm, options.lock, tool_frame=options.tool_frame)
    require_masses(arm, "moveit")
    package = package_name(arm)
    output = options.output or Path(package)
    require_new_file("--output", output)
    settings = None if options.lock else parameter_file(options.arm)  # gains of all joints
    files = moveit_package(arm, package, settings)
    for name, text in files.items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        with output_file(output / name) as partial:
            partial.write_text(text, encoding="utf-8")
    pairs = files[f"config/{arm.name}.srdf"].count("<disable_collisions")
    print(f"{output}: {len(files)} files, {pairs} pairs of links without collision check")
    print(f"next: colcon build, then ros2 launch {package} demo.launch.py")
    return 0


def package_name(arm: ArmModel) -> str:
    """Return a valid name of a ROS package."""
    name = re.sub(r"_+", "_", re.sub(r"[^a-z0-9]", "_", arm.name.lower())).strip("_")
    return f"{name if name[:1].isalpha() else f'arm_{name}'}_moveit_config"


def moveit_package(arm: ArmModel, package: str, settings: Path | None) -> dict[str, str]:
    """Return the files of a configuration package by their paths.

    ``settings`` is the parameter file of a bundled arm, which the launch file selects by its name;
    of other arms, and with locked joints, it selects the URDF of the package.

    Raises
    ------
    ConfigError
        If the name of the arm cannot be that of a file.

    """
    if not re.fullmatch(r"[\w. -]+", arm.name):
        raise ConfigError(f"robot name = '{arm.name}'; expected letters, digits, '_', '-' or '.'")
    arm_joints, gripper_joints = arm.tool_joints, arm.gripper_joints
    files = {
        "package.xml": PACKAGE_XML.format(package=package, arm=arm.name),
        "CMakeLists.txt": CMAKE.format(package=package),
        "launch/demo.launch.py": LAUNCH.format(
            package=package,
            arm=arm.name,
            selection=f'"{arm.name}"'
            if settings
            else f'str(folder / "config" / "{arm.name}.urdf")',
        ),
        f"config/{arm.name}.urdf": robot_description(arm),
        f"config/{arm.name}.srdf": srdf(arm, arm_joints, gripper_joints),
        "config/moveit.rviz": _yaml(rviz_config(arm)),
    }
    parameters = yaml.safe_load(settings.read_text("utf-8")) if settings else {}
    controller = parameters.setdefault("joint_controller", {}).setdefault("ros__parameters", {})
    controller["allow_partial_joints_goal"] = True  # MoveIt commands the joints of a group
    solver = {
        "kinematics_solver": "kdl_kinematics_plugin/KDLKinematicsPlugin",
        "kinematics_solver_search_resolution": 0.005,
        "kinematics_solver_timeout": 0.05,
        "position_only_ik": len(arm_joints) < FULL_POSE,
    }
    written = {
        ".setup_assistant": {
            "moveit_setup_assistant_config": {
                "urdf": {"package": package, "relative_path": f"config/{arm.name}.urdf"},
                "srdf": {"relative_path": f"config/{arm.name}.srdf"},
            }
        },
        "config/arm_dynamics.yaml": parameters,
        "config/kinematics.yaml": {"arm": solver},
        "config/joint_limits.yaml": joint_limits(arm),
        "config/moveit_controllers.yaml": controllers(arm),
        "config/pilz_cartesian_limits.yaml": {
            "cartesian_limits": {
                "max_trans_vel": 1.0,
                "max_trans_acc": 2.25,
                "max_trans_dec": -5.0,
                "max_rot_vel": 1.57,
            }
        },
    }
    return {**files, **{name: _yaml(content) for name, content in written.items()}}


def srdf(arm: ArmModel, arm_joints: Sequence[str], gripper_joints: Sequence[str]) -> str:
    """Return the semantic description: groups, states, end effector, collision matrix."""
    robot = ElementTree.Element("robot", name=arm.name)

    def add(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
        return ElementTree.SubElement(parent, tag, attributes)

    add(add(robot, "group", name="arm"), "chain", base_link=arm.base_frame, tip_link=arm.tool_frame)
    if gripper_joints:
        gripper = add(robot, "group", name="gripper")
        for joint in gripper_joints:
            add(gripper, "joint", name=joint)
    for name, q in arm.configurations.items():
        positions = dict(zip(arm.joint_names, q.tolist(), strict=True))
        for group, joints in (("arm", arm_joints), ("gripper", gripper_joints)):
            if joints:
                state = add(robot, "group_state", name=name, group=group)
                for joint in joints:
                    add(state, "joint", name=joint, value=f"{positions[joint]:.12g}")
    if gripper_joints:
        model = arm.model
        first = model.frames[model.getFrameId(gripper_joints[0])]
        parent = str(model.frames[first.parentFrame].name)
        add(robot, "end_effector", name="gripper", parent_link=parent, group="gripper")
    for first_link, second_link, reason in collision_matrix(arm):
        add(robot, "disable_collisions", link1=first_link, link2=second_link, reason=reason)
    ElementTree.indent(robot)
    return f'<?xml version="1.0"?>\n{ElementTree.tostring(robot, encoding="unicode")}\n'


def joint_limits(arm: ArmModel) -> dict[str, object]:
    """Return the velocity limits of the URDF and the acceleration limits of the efforts."""
    limits = {}
    for joint, acceleration in zip(arm.joints, acceleration_limits(arm), strict=True):
        given = {"velocity": round(joint.velocity, 6), "acceleration": float(f"{acceleration:.3g}")}
        limits[joint.name] = {f"has_{n}_limits": isfinite(x) for n, x in given.items()} | {
            f"max_{n}": x for n, x in given.items() if isfinite(x)
        }
    return {
        "default_velocity_scaling_factor": 0.1,
        "default_acceleration_scaling_factor": 0.1,
        "joint_limits": limits,
    }


def acceleration_limits(arm: ArmModel) -> Vector:
    """Return an acceleration (nv,) [rad/s² or m/s²] that each joint can have.

    A joint accelerates itself with EFFORT_FRACTION of the effort that gravity leaves, at the worst
    of random configurations that the arm can hold; it reaches the velocity limit in no less than
    MIN_TIME_TO_LIMIT.
    """
    random = np.random.default_rng(0)
    lower, upper = sampling_ranges(arm, arm.configuration("initial"))
    shape = (CONFIGURATIONS, arm.nv)
    least = np.full(arm.nv, np.inf)
    for q in (arm.configuration("initial"), *random.uniform(lower, upper, shape)):
        spare = arm.effort_limit - np.abs(gravity(arm, q))
        possible = EFFORT_FRACTION * spare / np.diag(mass_matrix(arm, q))
        least = np.where(spare > 0, np.minimum(least, possible), least)
    return as_readonly(np.minimum(least, arm.velocity_limit / MIN_TIME_TO_LIMIT))


def controllers(arm: ArmModel) -> dict[str, object]:
    """Return the controllers file: trajectories are executed by joint_controller."""
    manager = "moveit_simple_controller_manager"
    return {
        "moveit_controller_manager": f"{manager}/MoveItSimpleControllerManager",
        manager: {
            "controller_names": ["joint_controller"],
            "joint_controller": {
                "type": "FollowJointTrajectory",
                "action_ns": "follow_joint_trajectory",
                "default": True,
                "joints": list(arm.joint_names),
            },
        },
        # The simulator runs at most in real time: execution takes longer on a slow machine.
        "trajectory_execution": {
            "allowed_execution_duration_scaling": 2.0,
            "allowed_goal_duration_margin": 1.0,
            "allowed_start_tolerance": 0.02,
        },
    }


def rviz_config(arm: ArmModel) -> dict[str, object]:
    """Return the configuration of RViz with the display of MoveIt."""
    display = {
        "Class": "moveit_rviz_plugin/MotionPlanning",
        "Name": "MotionPlanning",
        "Enabled": True,
        "Robot Description": "robot_description",
        "Planning Scene Topic": "monitored_planning_scene",
        "Planning Request": {"Planning Group": "arm"},
    }
    grid = {"Class": "rviz_default_plugins/Grid", "Name": "Grid", "Enabled": True}
    return {
        "Panels": [{"Class": "rviz_common/Displays", "Name": "Displays"}],
        "Visualization Manager": {
            "Displays": [grid, display],
            "Global Options": {"Fixed Frame": arm.base_frame},
            "Tools": [{"Class": "rviz_default_plugins/MoveCamera"}],
        },
    }


def _yaml(content: object) -> str:
    return str(yaml.safe_dump(content, sort_keys=False))
