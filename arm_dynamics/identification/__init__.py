"""Identification of an arm from recorded motion: excitation, regression, physical consistency.

May import batch, recording and all below. Start reading at ``dynamic_parameters.py`` (the linear
equation of the efforts) and ``base_parameter_set.py`` (what a motion determines).
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.identification.arm_identification import (
        Identification,
        Prediction,
        compare,
        identify,
    )
    from arm_dynamics.identification.base_parameter_set import BaseParameters, base_parameters
    from arm_dynamics.identification.drive_gain_fit import DriveGains, drive_gains
    from arm_dynamics.identification.dynamic_parameters import (
        nominal_parameters,
        parameter_names,
        regressor,
        with_parameters,
    )
    from arm_dynamics.identification.effort_equations import EffortEquations
    from arm_dynamics.identification.excitation import Excitation
    from arm_dynamics.identification.excitation_information import (
        ExcitationQuality,
        excitation_quality,
        unrevealed,
    )
    from arm_dynamics.identification.excitation_limits import extreme_values
    from arm_dynamics.identification.excitation_search import excite
    from arm_dynamics.identification.fit_report import (
        fit_html,
        fit_tables,
        fit_text,
        write_fit_report,
    )
    from arm_dynamics.identification.fit_summary import FitSummary, JointFit, ParameterFit
    from arm_dynamics.identification.friction_terms import JointFriction
    from arm_dynamics.identification.gravity_calibration import (
        GravityFit,
        StaticPose,
        calibrate_gravity,
    )
    from arm_dynamics.identification.motion_checks import check_units
    from arm_dynamics.identification.motion_data import MotionData
    from arm_dynamics.identification.motion_preparation import PreparedMotion, prepare_motion
    from arm_dynamics.identification.motion_readers import load_motion
    from arm_dynamics.identification.motor_constants import MotorConstants, identify_motors
    from arm_dynamics.identification.payload_fit import PayloadFit, identify_payload
    from arm_dynamics.identification.pose_measurement import measure_poses, plan_legs
    from arm_dynamics.identification.pose_selection import approach_distance, choose_poses
    from arm_dynamics.identification.position_loops import ServoLoops, servo_loops, with_servo_gains
    from arm_dynamics.identification.recorded_poses import read_poses, static_poses, write_poses
    from arm_dynamics.identification.servo_fit import PositionPrediction
    from arm_dynamics.identification.servo_friction import ServoFriction
    from arm_dynamics.identification.servo_identification import (
        ServoIdentification,
        compare_servos,
        identify_servos,
    )
    from arm_dynamics.identification.servo_motor import bam_differences, with_bam
    from arm_dynamics.identification.servo_parameters import PositionLoop, ServoParameters, read_bam
    from arm_dynamics.identification.servo_pendulum import PendulumMotion, simulate_pendulum
    from arm_dynamics.identification.torque_fit import TorqueFit, fit_torque
    from arm_dynamics.identification.uncertainty import uncertainty_yaml

_MODULES = {
    "BaseParameters": ".base_parameter_set",
    "DriveGains": ".drive_gain_fit",
    "EffortEquations": ".torque_fit",
    "Excitation": ".excitation",
    "ExcitationQuality": ".excitation_information",
    "FitSummary": ".fit_summary",
    "GravityFit": ".gravity_calibration",
    "Identification": ".arm_identification",
    "JointFit": ".fit_summary",
    "JointFriction": ".friction_terms",
    "MotionData": ".motion_data",
    "MotorConstants": ".motor_constants",
    "ParameterFit": ".fit_summary",
    "PayloadFit": ".payload_fit",
    "PendulumMotion": ".servo_pendulum",
    "PositionLoop": ".servo_parameters",
    "PositionPrediction": ".servo_fit",
    "Prediction": ".arm_identification",
    "PreparedMotion": ".motion_preparation",
    "ServoFriction": ".servo_friction",
    "ServoIdentification": ".servo_identification",
    "ServoLoops": ".position_loops",
    "ServoParameters": ".servo_parameters",
    "StaticPose": ".gravity_calibration",
    "TorqueFit": ".torque_fit",
    "approach_distance": ".pose_selection",
    "bam_differences": ".servo_motor",
    "base_parameters": ".base_parameter_set",
    "calibrate_gravity": ".gravity_calibration",
    "check_units": ".motion_checks",
    "choose_poses": ".pose_selection",
    "compare": ".arm_identification",
    "compare_servos": ".servo_identification",
    "drive_gains": ".drive_gain_fit",
    "excitation_quality": ".excitation_information",
    "excite": ".excitation_search",
    "extreme_values": ".excitation_limits",
    "fit_html": ".fit_report",
    "fit_tables": ".fit_report",
    "fit_text": ".fit_report",
    "fit_torque": ".torque_fit",
    "identify": ".arm_identification",
    "identify_motors": ".motor_constants",
    "identify_payload": ".payload_fit",
    "identify_servos": ".servo_identification",
    "load_motion": ".motion_readers",
    "measure_poses": ".pose_measurement",
    "nominal_parameters": ".dynamic_parameters",
    "parameter_names": ".dynamic_parameters",
    "plan_legs": ".pose_measurement",
    "prepare_motion": ".motion_preparation",
    "read_bam": ".servo_parameters",
    "read_poses": ".recorded_poses",
    "regressor": ".dynamic_parameters",
    "servo_loops": ".position_loops",
    "simulate_pendulum": ".servo_pendulum",
    "static_poses": ".recorded_poses",
    "uncertainty_yaml": ".uncertainty",
    "unrevealed": ".excitation_information",
    "with_bam": ".servo_motor",
    "with_parameters": ".dynamic_parameters",
    "with_servo_gains": ".position_loops",
    "write_fit_report": ".fit_report",
    "write_poses": ".recorded_poses",
}

__all__ = [
    "BaseParameters",
    "DriveGains",
    "EffortEquations",
    "Excitation",
    "ExcitationQuality",
    "FitSummary",
    "GravityFit",
    "Identification",
    "JointFit",
    "JointFriction",
    "MotionData",
    "MotorConstants",
    "ParameterFit",
    "PayloadFit",
    "PendulumMotion",
    "PositionLoop",
    "PositionPrediction",
    "Prediction",
    "PreparedMotion",
    "ServoFriction",
    "ServoIdentification",
    "ServoLoops",
    "ServoParameters",
    "StaticPose",
    "TorqueFit",
    "approach_distance",
    "bam_differences",
    "base_parameters",
    "calibrate_gravity",
    "check_units",
    "choose_poses",
    "compare",
    "compare_servos",
    "drive_gains",
    "excitation_quality",
    "excite",
    "extreme_values",
    "fit_html",
    "fit_tables",
    "fit_text",
    "fit_torque",
    "identify",
    "identify_motors",
    "identify_payload",
    "identify_servos",
    "load_motion",
    "measure_poses",
    "nominal_parameters",
    "parameter_names",
    "plan_legs",
    "prepare_motion",
    "read_bam",
    "read_poses",
    "regressor",
    "servo_loops",
    "simulate_pendulum",
    "static_poses",
    "uncertainty_yaml",
    "unrevealed",
    "with_bam",
    "with_parameters",
    "with_servo_gains",
    "write_fit_report",
    "write_poses",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
