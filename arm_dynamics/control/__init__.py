"""Control: the loop, controllers, trajectories, goals, LQR design and parameter files.

It imports hardware, simulation and everything below, but nothing above (batch, recording, ROS).
Start with ``control_loop.ControlLoop.step``: read, update, guard, write. ``controllers/`` has one
class per file, ``trajectories/`` the references, ``goals/`` the rules of
joint_trajectory_controller. The names below are imported at their first use.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
    from arm_dynamics.control.config import build_controller
    from arm_dynamics.control.control_loop import ControlLoop
    from arm_dynamics.control.control_thread import ControlThread
    from arm_dynamics.control.controllers.computed_torque import ComputedTorque
    from arm_dynamics.control.controllers.controller import Controller
    from arm_dynamics.control.controllers.force_feedback import ForceFeedback
    from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
    from arm_dynamics.control.controllers.impedance import Impedance
    from arm_dynamics.control.controllers.lqr import Lqr
    from arm_dynamics.control.controllers.pid import Pid, PidGravity
    from arm_dynamics.control.controllers.position import PositionController
    from arm_dynamics.control.controllers.resolved_rate import ResolvedRate
    from arm_dynamics.control.controllers.task_space import TaskSpace
    from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
    from arm_dynamics.control.controllers.velocity_pid import VelocityPid
    from arm_dynamics.control.gripper import GripperCommand
    from arm_dynamics.control.guided_arm import GuidedArm, sine_motion
    from arm_dynamics.control.lqr_design.gain_table import build_gain_table, load_gain_table
    from arm_dynamics.control.lqr_design.lqr_gain import LqrWeights, lqr_gain
    from arm_dynamics.control.stability_margins import delay_margin
    from arm_dynamics.control.teleoperation import (
        Coupling,
        PassiveLeader,
        Teleoperation,
        WeightlessLeader,
    )
    from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
    from arm_dynamics.control.trajectories.effort_check import check_effort
    from arm_dynamics.control.trajectories.joint_splines import (
        cubic_trajectory,
        quintic_trajectory,
        spline_trajectory,
        trapezoidal_trajectory,
    )
    from arm_dynamics.control.trajectories.joint_trajectory import (
        JointTrajectory,
        Waypoint,
        check_limits,
    )
    from arm_dynamics.control.trajectories.online_trajectory import OnlineCartesianTrajectory
    from arm_dynamics.control.trajectories.profiles import cubic, quintic, trapezoidal
    from arm_dynamics.control.trajectories.time_scaling import time_optimal_trajectory
    from arm_dynamics.control.trajectories.tool_paths import ToolLimits
    from arm_dynamics.control.trajectories.transition_blend import to_task_reference

_MODULES = {
    "CartesianTrajectory": ".trajectories.cartesian_trajectory",
    "ComputedTorque": ".controllers.computed_torque",
    "ControlLoop": ".control_loop",
    "ControlThread": ".control_thread",
    "Controller": ".controllers.controller",
    "Coupling": ".teleoperation",
    "ForceFeedback": ".controllers.force_feedback",
    "GravityCompensation": ".controllers.gravity_compensation",
    "GripperCommand": ".gripper",
    "GuidedArm": ".guided_arm",
    "Impedance": ".controllers.impedance",
    "JointTrajectory": ".trajectories.joint_trajectory",
    "Lqr": ".controllers.lqr",
    "LqrWeights": ".lqr_design.lqr_gain",
    "OnlineCartesianTrajectory": ".trajectories.online_trajectory",
    "PassiveLeader": ".teleoperation",
    "Pid": ".controllers.pid",
    "PidGravity": ".controllers.pid",
    "PositionController": ".controllers.position",
    "ResolvedRate": ".controllers.resolved_rate",
    "TaskSpace": ".controllers.task_space",
    "TaskSpaceController": ".controllers.task_space_base",
    "Teleoperation": ".teleoperation",
    "ToolLimits": ".trajectories.tool_paths",
    "VelocityPid": ".controllers.velocity_pid",
    "Waypoint": ".trajectories.joint_trajectory",
    "WeightlessLeader": ".teleoperation",
    "build_controller": ".config",
    "build_gain_table": ".lqr_design.gain_table",
    "check_effort": ".trajectories.effort_check",
    "check_limits": ".trajectories.joint_trajectory",
    "cubic": ".trajectories.profiles",
    "cubic_trajectory": ".trajectories.joint_splines",
    "delay_margin": ".stability_margins",
    "load_gain_table": ".lqr_design.gain_table",
    "lqr_gain": ".lqr_design.lqr_gain",
    "quintic": ".trajectories.profiles",
    "quintic_trajectory": ".trajectories.joint_splines",
    "simulate_closed_loop": ".closed_loop_simulation",
    "sine_motion": ".guided_arm",
    "spline_trajectory": ".trajectories.joint_splines",
    "time_optimal_trajectory": ".trajectories.time_scaling",
    "to_task_reference": ".trajectories.transition_blend",
    "trapezoidal": ".trajectories.profiles",
    "trapezoidal_trajectory": ".trajectories.joint_splines",
}

__all__ = [
    "CartesianTrajectory",
    "ComputedTorque",
    "ControlLoop",
    "ControlThread",
    "Controller",
    "Coupling",
    "ForceFeedback",
    "GravityCompensation",
    "GripperCommand",
    "GuidedArm",
    "Impedance",
    "JointTrajectory",
    "Lqr",
    "LqrWeights",
    "OnlineCartesianTrajectory",
    "PassiveLeader",
    "Pid",
    "PidGravity",
    "PositionController",
    "ResolvedRate",
    "TaskSpace",
    "TaskSpaceController",
    "Teleoperation",
    "ToolLimits",
    "VelocityPid",
    "Waypoint",
    "WeightlessLeader",
    "build_controller",
    "build_gain_table",
    "check_effort",
    "check_limits",
    "cubic",
    "cubic_trajectory",
    "delay_margin",
    "load_gain_table",
    "lqr_gain",
    "quintic",
    "quintic_trajectory",
    "simulate_closed_loop",
    "sine_motion",
    "spline_trajectory",
    "time_optimal_trajectory",
    "to_task_reference",
    "trapezoidal",
    "trapezoidal_trajectory",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
