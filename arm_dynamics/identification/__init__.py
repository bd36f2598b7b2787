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
    from arm_dynamics.identification.efforts.motion_preparation import prepare_motion
    from arm_dynamics.identification.efforts.torque_fit import fit_torque
    from arm_dynamics.identification.excitation.excitation import Excitation
    from arm_dynamics.identification.excitation.excitation_information import excitation_quality
    from arm_dynamics.identification.excitation.excitation_search import excite
    from arm_dynamics.identification.gravity.gravity_calibration import calibrate_gravity
    from arm_dynamics.identification.gravity.recorded_poses import read_poses, write_poses
    from arm_dynamics.identification.parameters.base_parameter_set import base_parameters
    from arm_dynamics.identification.parameters.dynamic_parameters import (
        nominal_parameters,
        parameter_names,
        regressor,
        with_parameters,
    )
    from arm_dynamics.identification.parameters.uncertainty import uncertainty_yaml
    from arm_dynamics.identification.payload.payload_fit import identify_payload
    from arm_dynamics.identification.results.fit_report import write_fit_report
    from arm_dynamics.identification.servos.position_loops import servo_loops
    from arm_dynamics.identification.servos.servo_friction import ServoFriction
    from arm_dynamics.identification.servos.servo_identification import (
        compare_servos,
        identify_servos,
    )
    from arm_dynamics.identification.servos.servo_motor import bam_differences, with_bam
    from arm_dynamics.identification.servos.servo_parameters import (
        PositionLoop,
        ServoParameters,
        read_bam,
    )
    from arm_dynamics.identification.servos.servo_pendulum import simulate_pendulum

_MODULES = {
    "Excitation": ".excitation.excitation",
    "Identification": ".efforts.arm_identification",
    "PositionLoop": ".servos.servo_parameters",
    "ServoFriction": ".servos.servo_friction",
    "ServoParameters": ".servos.servo_parameters",
    "bam_differences": ".servos.servo_motor",
    "base_parameters": ".parameters.base_parameter_set",
    "calibrate_gravity": ".gravity.gravity_calibration",
    "compare": ".efforts.arm_identification",
    "compare_servos": ".servos.servo_identification",
    "excitation_quality": ".excitation.excitation_information",
    "excite": ".excitation.excitation_search",
    "fit_torque": ".efforts.torque_fit",
    "identify": ".efforts.arm_identification",
    "identify_payload": ".payload.payload_fit",
    "identify_servos": ".servos.servo_identification",
    "nominal_parameters": ".parameters.dynamic_parameters",
    "parameter_names": ".parameters.dynamic_parameters",
    "prepare_motion": ".efforts.motion_preparation",
    "read_bam": ".servos.servo_parameters",
    "read_poses": ".gravity.recorded_poses",
    "regressor": ".parameters.dynamic_parameters",
    "servo_loops": ".servos.position_loops",
    "simulate_pendulum": ".servos.servo_pendulum",
    "uncertainty_yaml": ".parameters.uncertainty",
    "with_bam": ".servos.servo_motor",
    "with_parameters": ".parameters.dynamic_parameters",
    "write_fit_report": ".results.fit_report",
    "write_poses": ".gravity.recorded_poses",
}

__all__ = [
    "Excitation",
    "Identification",
    "PositionLoop",
    "ServoFriction",
    "ServoParameters",
    "bam_differences",
    "base_parameters",
    "calibrate_gravity",
    "compare",
    "compare_servos",
    "excitation_quality",
    "excite",
    "fit_torque",
    "identify",
    "identify_payload",
    "identify_servos",
    "nominal_parameters",
    "parameter_names",
    "prepare_motion",
    "read_bam",
    "read_poses",
    "regressor",
    "servo_loops",
    "simulate_pendulum",
    "uncertainty_yaml",
    "with_bam",
    "with_parameters",
    "write_fit_report",
    "write_poses",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
