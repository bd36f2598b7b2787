"""Teleoperator ``arm_dynamics`` of LeRobot: a leader arm, simulated or physical.

``lerobot-teleoperate`` and ``lerobot-record`` import this package by its name and find the
teleoperator as ``--teleop.type=arm_dynamics``. Start with
``teleoperator.ArmDynamicsTeleoperator``.
"""

from lerobot_teleoperator_arm_dynamics.teleoperator import (
    ArmDynamicsTeleoperator,
    ArmDynamicsTeleoperatorConfig,
)

__all__ = ["ArmDynamicsTeleoperator", "ArmDynamicsTeleoperatorConfig"]
