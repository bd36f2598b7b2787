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
    config = MoveItConfigsBuilder("so101", package_name="so101_moveit_config").to_moveit_configs()
    folder = Path(get_package_share_directory("so101_moveit_config"))
    launch = Path(get_package_share_directory("arm_dynamics")) / "launch"
    hardware = LaunchConfiguration("hardware")
    parameters = str(folder / "config" / "arm_dynamics.yaml")
    arguments = {"arm": "so101", "params_file": parameters, "rviz": "false"}.items()
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
