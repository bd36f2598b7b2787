"""Inverse kinematics: configuration for a tool pose; nearest point to an unreachable target."""

import numpy as np

from arm_dynamics import ArmDynamicsError, inverse_kinematics, load_arm, nearest_reachable
from arm_dynamics.dynamics import tool_pose

arm = load_arm("puma560")
position, rotation = tool_pose(arm, [0.3, -0.4, -2.0, 0.2, 0.5, -0.1])

found = inverse_kinematics(arm, position, rotation)
print("joints [rad]:", np.round(found.q, 4))
print(f"errors: {found.position_error:.1e} m, {found.orientation_error:.1e} rad")

far = np.array([1.5, 0.0, 0.5])
try:
    inverse_kinematics(arm, far)
except ArmDynamicsError as error:
    print("unreachable:", error)
nearest = nearest_reachable(arm, far)
print(f"nearest point {np.round(nearest.position, 3)} m, {nearest.position_error:.3f} m away")
