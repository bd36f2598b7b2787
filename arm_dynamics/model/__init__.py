"""From a URDF, or a table of links, to an ArmModel.

May import ``core``. Start with ``load`` (URDF to ArmModel) and ``arm_model`` (joints, actuators,
limits, payload and the Pinocchio model of an arm). ``audit`` finds the modeling errors of a URDF;
``dh`` and ``mdh`` write URDFs from Denavit-Hartenberg tables; ``model_error`` and ``calibration``
change an arm by measured or assumed errors.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.model.arm_model import (
        ArmModel,
        Joint,
        Payload,
    )
    from arm_dynamics.model.audit import (
        audit_urdf,
    )
    from arm_dynamics.model.audit.fault import (
        Fault,
        UrdfRejected,
        format_report,
    )
    from arm_dynamics.model.calibration import (
        CalibrationPoints,
        calibrate,
        calibration_warnings,
    )
    from arm_dynamics.model.dh import (
        DhLink,
        DhRow,
    )
    from arm_dynamics.model.hardware_info import (
        HardwareInfo,
        JointMotor,
        read_hardware_info,
    )
    from arm_dynamics.model.load import (
        load_arm,
        parse_arm,
    )
    from arm_dynamics.model.mdh import (
        MdhLink,
        MdhRow,
    )
    from arm_dynamics.model.model_error import (
        require_holdable,
        with_model_error,
    )
    from arm_dynamics.model.solids import (
        Inertial,
        Solid,
        box,
        compose,
        cylinder,
        flat_bar,
        point_mass,
        rod,
        sphere,
    )
    from arm_dynamics.model.urdf_text import (
        with_params,
    )
    from arm_dynamics.model.urdf_writer import (
        ArmDescription,
        ChainSegment,
        JointSpec,
        MotorSpec,
        format_urdf,
    )
    from arm_dynamics.model.visuals import (
        Visual,
    )
    from arm_dynamics.model.xml_source import (
        XmlSyntaxError,
    )

_MODULES = {
    "ArmDescription": ".urdf_writer",
    "ArmModel": ".arm_model",
    "CalibrationPoints": ".calibration",
    "ChainSegment": ".urdf_writer",
    "DhLink": ".dh",
    "DhRow": ".dh",
    "Fault": ".audit.fault",
    "HardwareInfo": ".hardware_info",
    "Inertial": ".solids",
    "Joint": ".arm_model",
    "JointMotor": ".hardware_info",
    "JointSpec": ".urdf_writer",
    "MdhLink": ".mdh",
    "MdhRow": ".mdh",
    "MotorSpec": ".urdf_writer",
    "Payload": ".arm_model",
    "Solid": ".solids",
    "UrdfRejected": ".audit.fault",
    "Visual": ".visuals",
    "XmlSyntaxError": ".xml_source",
    "audit_urdf": ".audit",
    "box": ".solids",
    "calibrate": ".calibration",
    "calibration_warnings": ".calibration",
    "compose": ".solids",
    "cylinder": ".solids",
    "flat_bar": ".solids",
    "format_report": ".audit.fault",
    "format_urdf": ".urdf_writer",
    "load_arm": ".load",
    "parse_arm": ".load",
    "point_mass": ".solids",
    "read_hardware_info": ".hardware_info",
    "require_holdable": ".model_error",
    "rod": ".solids",
    "sphere": ".solids",
    "with_model_error": ".model_error",
    "with_params": ".urdf_text",
}

__all__ = [
    "ArmDescription",
    "ArmModel",
    "CalibrationPoints",
    "ChainSegment",
    "DhLink",
    "DhRow",
    "Fault",
    "HardwareInfo",
    "Inertial",
    "Joint",
    "JointMotor",
    "JointSpec",
    "MdhLink",
    "MdhRow",
    "MotorSpec",
    "Payload",
    "Solid",
    "UrdfRejected",
    "Visual",
    "XmlSyntaxError",
    "audit_urdf",
    "box",
    "calibrate",
    "calibration_warnings",
    "compose",
    "cylinder",
    "flat_bar",
    "format_report",
    "format_urdf",
    "load_arm",
    "parse_arm",
    "point_mass",
    "read_hardware_info",
    "require_holdable",
    "rod",
    "sphere",
    "with_model_error",
    "with_params",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
