"""Identification of an arm from recorded motion: excitation, regression, physical consistency.

May import batch, recording and all below. Start reading at ``dynamic_parameters.py`` (the linear
equation of the efforts) and ``base_parameter_set.py`` (what a motion determines).
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.identification.efforts.arm_identification import (
        Identification,
        compare,
        identify,
    )
    from arm_dynamics.identification.efforts.drive_gain_fit import DriveGains, drive_gains
    from arm_dynamics.identification.efforts.effort_equations import EffortEquations
    from arm_dynamics.identification.efforts.effort_prediction import Prediction
    from arm_dynamics.identification.efforts.friction_terms import JointFriction
    from arm_dynamics.identification.efforts.motion_preparation import (
        PreparedMotion,
        prepare_motion,
    )
    from arm_dynamics.identification.efforts.motor_constants import MotorConstants, identify_motors
    from arm_dynamics.identification.efforts.torque_fit import TorqueFit, fit_torque
    from arm_dynamics.identification.excitation.excitation import Excitation
    from arm_dynamics.identification.excitation.excitation_information import (
        ExcitationQuality,
        excitation_quality,
        unidentifiable,
    )
    from arm_dynamics.identification.excitation.excitation_limits import extreme_values
    from arm_dynamics.identification.excitation.excitation_search import excite
    from arm_dynamics.identification.gravity.gravity_calibration import (
        GravityFit,
        StaticPose,
        calibrate_gravity,
    )
    from arm_dynamics.identification.gravity.pose_measurement import measure_poses, plan_legs
    from arm_dynamics.identification.gravity.pose_selection import approach_distance, choose_poses
    from arm_dynamics.identification.gravity.recorded_poses import (
        read_poses,
        static_poses,
        write_poses,
    )
    from arm_dynamics.identification.parameters.base_parameter_set import (
        BaseParameters,
        base_parameters,
    )
    from arm_dynamics.identification.parameters.dynamic_parameters import (
        ParameterLayout,
        nominal_parameters,
        parameter_names,
        regressor,
        with_parameters,
    )
    from arm_dynamics.identification.parameters.uncertainty import uncertainty_yaml
    from arm_dynamics.identification.payload.payload_fit import PayloadFit, identify_payload
    from arm_dynamics.identification.results.fit_report import (
        fit_html,
        fit_tables,
        fit_text,
        write_fit_report,
    )
    from arm_dynamics.identification.results.fit_summary import FitSummary, JointFit, ParameterFit
    from arm_dynamics.identification.servos.position_loops import (
        ServoLoops,
        servo_loops,
        with_servo_gains,
    )
    from arm_dynamics.identification.servos.servo_fit import PositionPrediction
    from arm_dynamics.identification.servos.servo_friction import ServoFriction
    from arm_dynamics.identification.servos.servo_identification import (
        ServoIdentification,
        compare_servos,
        identify_servos,
    )
    from arm_dynamics.identification.servos.servo_motor import bam_differences, with_bam
    from arm_dynamics.identification.servos.servo_parameters import (
        PositionLoop,
        ServoParameters,
        read_bam,
    )
    from arm_dynamics.identification.servos.servo_pendulum import PendulumMotion, simulate_pendulum

_MODULES = {
    "BaseParameters": ".parameters.base_parameter_set",
    "DriveGains": ".efforts.drive_gain_fit",
    "EffortEquations": ".efforts.torque_fit",
    "Excitation": ".excitation.excitation",
    "ExcitationQuality": ".excitation.excitation_information",
    "FitSummary": ".results.fit_summary",
    "GravityFit": ".gravity.gravity_calibration",
    "Identification": ".efforts.arm_identification",
    "JointFit": ".results.fit_summary",
    "JointFriction": ".efforts.friction_terms",
    "MotorConstants": ".efforts.motor_constants",
    "ParameterFit": ".results.fit_summary",
    "ParameterLayout": ".parameters.dynamic_parameters",
    "PayloadFit": ".payload.payload_fit",
    "PendulumMotion": ".servos.servo_pendulum",
    "PositionLoop": ".servos.servo_parameters",
    "PositionPrediction": ".servos.servo_fit",
    "Prediction": ".efforts.effort_prediction",
    "PreparedMotion": ".efforts.motion_preparation",
    "ServoFriction": ".servos.servo_friction",
    "ServoIdentification": ".servos.servo_identification",
    "ServoLoops": ".servos.position_loops",
    "ServoParameters": ".servos.servo_parameters",
    "StaticPose": ".gravity.gravity_calibration",
    "TorqueFit": ".efforts.torque_fit",
    "approach_distance": ".gravity.pose_selection",
    "bam_differences": ".servos.servo_motor",
    "base_parameters": ".parameters.base_parameter_set",
    "calibrate_gravity": ".gravity.gravity_calibration",
    "choose_poses": ".gravity.pose_selection",
    "compare": ".efforts.arm_identification",
    "compare_servos": ".servos.servo_identification",
    "drive_gains": ".efforts.drive_gain_fit",
    "excitation_quality": ".excitation.excitation_information",
    "excite": ".excitation.excitation_search",
    "extreme_values": ".excitation.excitation_limits",
    "fit_html": ".results.fit_report",
    "fit_tables": ".results.fit_report",
    "fit_text": ".results.fit_report",
    "fit_torque": ".efforts.torque_fit",
    "identify": ".efforts.arm_identification",
    "identify_motors": ".efforts.motor_constants",
    "identify_payload": ".payload.payload_fit",
    "identify_servos": ".servos.servo_identification",
    "measure_poses": ".gravity.pose_measurement",
    "nominal_parameters": ".parameters.dynamic_parameters",
    "parameter_names": ".parameters.dynamic_parameters",
    "plan_legs": ".gravity.pose_measurement",
    "prepare_motion": ".efforts.motion_preparation",
    "read_bam": ".servos.servo_parameters",
    "read_poses": ".gravity.recorded_poses",
    "regressor": ".parameters.dynamic_parameters",
    "servo_loops": ".servos.position_loops",
    "simulate_pendulum": ".servos.servo_pendulum",
    "static_poses": ".gravity.recorded_poses",
    "uncertainty_yaml": ".parameters.uncertainty",
    "unidentifiable": ".excitation.excitation_information",
    "with_bam": ".servos.servo_motor",
    "with_parameters": ".parameters.dynamic_parameters",
    "with_servo_gains": ".servos.position_loops",
    "write_fit_report": ".results.fit_report",
    "write_poses": ".gravity.recorded_poses",
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
    "MotorConstants",
    "ParameterFit",
    "ParameterLayout",
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
    "unidentifiable",
    "with_bam",
    "with_parameters",
    "with_servo_gains",
    "write_fit_report",
    "write_poses",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
