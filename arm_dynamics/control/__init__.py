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
    from arm_dynamics.control.config import (
        build_controller,
        controller_name,
        node_parameters,
        parameter_file,
    )
    from arm_dynamics.control.control_loop import ControlLoop
    from arm_dynamics.control.controller_warm_up import warm_up_controller
    from arm_dynamics.control.controllers.computed_torque import ComputedTorque
    from arm_dynamics.control.controllers.controller import Controller, Gains
    from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
    from arm_dynamics.control.controllers.impedance import Impedance
    from arm_dynamics.control.controllers.lqr import Lqr
    from arm_dynamics.control.controllers.pid import Pid, PidGravity
    from arm_dynamics.control.controllers.position import PositionController
    from arm_dynamics.control.controllers.resolved_rate import ResolvedRate
    from arm_dynamics.control.controllers.task_space import TaskSpace
    from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
    from arm_dynamics.control.controllers.velocity_pid import VelocityPid
    from arm_dynamics.control.gain_scaling import scale_gains
    from arm_dynamics.control.goals.goal import Constraints, ErrorCode, Goal, GoalResult, Tolerances
    from arm_dynamics.control.goals.goal_handler import GoalHandler, GoalRequest
    from arm_dynamics.control.goals.streams import CommandSettings, Streams
    from arm_dynamics.control.linear_controller import LinearController
    from arm_dynamics.control.lqr_design.gain_table import (
        GainTable,
        build_gain_table,
        load_gain_table,
    )
    from arm_dynamics.control.lqr_design.lqr_gain import LqrWeights, linear_dynamics, lqr_gain
    from arm_dynamics.control.monitors import MaxErrorTracker, ReachabilityMonitor
    from arm_dynamics.control.reference_generator import (
        CartesianReferenceGenerator,
        ReferenceGenerator,
        ScaledClock,
    )
    from arm_dynamics.control.stability_margins import delay_margin, thin_margin
    from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
    from arm_dynamics.control.trajectories.demo_trajectory import demo_trajectory
    from arm_dynamics.control.trajectories.effort_check import (
        check_effort,
        check_path,
        check_wrench,
    )
    from arm_dynamics.control.trajectories.feasibility import (
        FeasibilityReport,
        PathFault,
        require_feasible,
        solve_along,
        solve_feasible,
    )
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
    from arm_dynamics.control.trajectories.online_trajectory import (
        OnlineCartesianTrajectory,
        TargetPose,
        TargetTwist,
    )
    from arm_dynamics.control.trajectories.profiles import Profile, cubic, quintic, trapezoidal
    from arm_dynamics.control.trajectories.time_scaling import time_optimal_trajectory
    from arm_dynamics.control.trajectories.tool_paths import ToolLimits
    from arm_dynamics.control.trajectories.tool_splines import spline_through, timed_spline
    from arm_dynamics.control.trajectories.trajectory import (
        FeedForward,
        StopTrajectory,
        Trajectory,
        default_deceleration,
    )
    from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
    from arm_dynamics.control.trajectories.transition_blend import to_task_reference

_MODULES = {
    "CartesianReferenceGenerator": ".reference_generator",
    "CartesianTrajectory": ".trajectories.cartesian_trajectory",
    "CommandSettings": ".goals.streams",
    "ComputedTorque": ".controllers.computed_torque",
    "Constraints": ".goals.goal",
    "ControlLoop": ".control_loop",
    "Controller": ".controllers.controller",
    "ErrorCode": ".goals.goal",
    "FeasibilityReport": ".trajectories.feasibility",
    "FeedForward": ".trajectories.trajectory",
    "GainTable": ".lqr_design.gain_table",
    "Gains": ".controllers.controller",
    "Goal": ".goals.goal",
    "GoalHandler": ".goals.goal_handler",
    "GoalRequest": ".goals.goal_handler",
    "GoalResult": ".goals.goal",
    "GravityCompensation": ".controllers.gravity_compensation",
    "Impedance": ".controllers.impedance",
    "JointTrajectory": ".trajectories.joint_trajectory",
    "LinearController": ".linear_controller",
    "Lqr": ".controllers.lqr",
    "LqrWeights": ".lqr_design.lqr_gain",
    "MaxErrorTracker": ".monitors",
    "OnlineCartesianTrajectory": ".trajectories.online_trajectory",
    "PathFault": ".trajectories.feasibility",
    "Pid": ".controllers.pid",
    "PidGravity": ".controllers.pid",
    "PositionController": ".controllers.position",
    "Profile": ".trajectories.profiles",
    "ReachabilityMonitor": ".monitors",
    "ReferenceGenerator": ".reference_generator",
    "ResolvedRate": ".controllers.resolved_rate",
    "ScaledClock": ".reference_generator",
    "StopTrajectory": ".trajectories.trajectory",
    "Streams": ".goals.streams",
    "TargetPose": ".trajectories.online_trajectory",
    "TargetTwist": ".trajectories.online_trajectory",
    "TaskSpace": ".controllers.task_space",
    "TaskSpaceController": ".controllers.task_space_base",
    "Tolerances": ".goals.goal",
    "ToolLimits": ".trajectories.tool_paths",
    "Trajectory": ".trajectories.trajectory",
    "VelocityPid": ".controllers.velocity_pid",
    "Waypoint": ".trajectories.joint_trajectory",
    "build_controller": ".config",
    "build_gain_table": ".lqr_design.gain_table",
    "check_effort": ".trajectories.effort_check",
    "check_limits": ".trajectories.joint_trajectory",
    "check_path": ".trajectories.effort_check",
    "check_wrench": ".trajectories.effort_check",
    "controller_name": ".config",
    "cubic": ".trajectories.profiles",
    "cubic_trajectory": ".trajectories.joint_splines",
    "default_deceleration": ".trajectories.trajectory",
    "delay_margin": ".stability_margins",
    "demo_trajectory": ".trajectories.demo_trajectory",
    "scale_gains": ".gain_scaling",
    "linear_dynamics": ".lqr_design.lqr_gain",
    "load_gain_table": ".lqr_design.gain_table",
    "lqr_gain": ".lqr_design.lqr_gain",
    "node_parameters": ".config",
    "parameter_file": ".config",
    "parse_trajectory": ".trajectories.trajectory_parsing",
    "quintic": ".trajectories.profiles",
    "quintic_trajectory": ".trajectories.joint_splines",
    "require_feasible": ".trajectories.feasibility",
    "simulate_closed_loop": ".closed_loop_simulation",
    "solve_along": ".trajectories.feasibility",
    "solve_feasible": ".trajectories.feasibility",
    "spline_through": ".trajectories.tool_splines",
    "spline_trajectory": ".trajectories.joint_splines",
    "thin_margin": ".stability_margins",
    "time_optimal_trajectory": ".trajectories.time_scaling",
    "timed_spline": ".trajectories.tool_splines",
    "to_task_reference": ".trajectories.transition_blend",
    "trapezoidal": ".trajectories.profiles",
    "trapezoidal_trajectory": ".trajectories.joint_splines",
    "warm_up_controller": ".controller_warm_up",
}

__all__ = [
    "CartesianReferenceGenerator",
    "CartesianTrajectory",
    "CommandSettings",
    "ComputedTorque",
    "Constraints",
    "ControlLoop",
    "Controller",
    "ErrorCode",
    "FeasibilityReport",
    "FeedForward",
    "GainTable",
    "Gains",
    "Goal",
    "GoalHandler",
    "GoalRequest",
    "GoalResult",
    "GravityCompensation",
    "Impedance",
    "JointTrajectory",
    "LinearController",
    "Lqr",
    "LqrWeights",
    "MaxErrorTracker",
    "OnlineCartesianTrajectory",
    "PathFault",
    "Pid",
    "PidGravity",
    "PositionController",
    "Profile",
    "ReachabilityMonitor",
    "ReferenceGenerator",
    "ResolvedRate",
    "ScaledClock",
    "StopTrajectory",
    "Streams",
    "TargetPose",
    "TargetTwist",
    "TaskSpace",
    "TaskSpaceController",
    "Tolerances",
    "ToolLimits",
    "Trajectory",
    "VelocityPid",
    "Waypoint",
    "build_controller",
    "build_gain_table",
    "check_effort",
    "check_limits",
    "check_path",
    "check_wrench",
    "controller_name",
    "cubic",
    "cubic_trajectory",
    "default_deceleration",
    "delay_margin",
    "demo_trajectory",
    "linear_dynamics",
    "load_gain_table",
    "lqr_gain",
    "node_parameters",
    "parameter_file",
    "parse_trajectory",
    "quintic",
    "quintic_trajectory",
    "require_feasible",
    "scale_gains",
    "simulate_closed_loop",
    "solve_along",
    "solve_feasible",
    "spline_through",
    "spline_trajectory",
    "thin_margin",
    "time_optimal_trajectory",
    "timed_spline",
    "to_task_reference",
    "trapezoidal",
    "trapezoidal_trajectory",
    "warm_up_controller",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
