"""Robot ``arm_dynamics`` of LeRobot: an arm with the control loop of the package arm_dynamics.

``lerobot-teleoperate``, ``lerobot-record`` and ``lerobot-replay`` import this package by its name
and find the robot as ``--robot.type=arm_dynamics``. It imports the public packages of
arm_dynamics only. Start with ``robot.ArmDynamicsRobot``; ``arm_port`` is also used by the
teleoperator.
"""

from lerobot_robot_arm_dynamics.camera import ArmDynamicsCamera, ArmDynamicsCameraConfig
from lerobot_robot_arm_dynamics.robot import ArmDynamicsRobot, ArmDynamicsRobotConfig

__all__ = [
    "ArmDynamicsCamera",
    "ArmDynamicsCameraConfig",
    "ArmDynamicsRobot",
    "ArmDynamicsRobotConfig",
]
