"""From a URDF, or a table of links, to an ArmModel.

May import ``core``. Start with ``load`` (URDF to ArmModel) and ``arm_model`` (joints, actuators,
limits, payload and the Pinocchio model of an arm). ``audit`` finds the modeling errors of a URDF;
``dh`` and ``mdh`` write URDFs from Denavit-Hartenberg tables; ``model_error`` and ``calibration``
change an arm by measured or assumed errors.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.model.arm_model import ArmModel
    from arm_dynamics.model.audit import (
        audit_urdf,
    )
    from arm_dynamics.model.audit.fault import UrdfRejected, format_report
    from arm_dynamics.model.calibration import CalibrationPoints, calibrate
    from arm_dynamics.model.dh import (
        DhLink,
        DhRow,
    )
    from arm_dynamics.model.hardware_info import read_hardware_info
    from arm_dynamics.model.load import (
        load_arm,
        parse_arm,
    )
    from arm_dynamics.model.mdh import (
        MdhLink,
        MdhRow,
    )
    from arm_dynamics.model.mjcf.writer import mjcf_of_arm
    from arm_dynamics.model.model_error import with_model_error
    from arm_dynamics.model.solids import Shape

_MODULES = {
    "ArmModel": ".arm_model",
    "CalibrationPoints": ".calibration",
    "DhLink": ".dh",
    "DhRow": ".dh",
    "MdhLink": ".mdh",
    "MdhRow": ".mdh",
    "Shape": ".solids",
    "UrdfRejected": ".audit.fault",
    "audit_urdf": ".audit",
    "calibrate": ".calibration",
    "format_report": ".audit.fault",
    "load_arm": ".load",
    "mjcf_of_arm": ".mjcf.writer",
    "parse_arm": ".load",
    "read_hardware_info": ".hardware_info",
    "with_model_error": ".model_error",
}

__all__ = [
    "ArmModel",
    "CalibrationPoints",
    "DhLink",
    "DhRow",
    "MdhLink",
    "MdhRow",
    "Shape",
    "UrdfRejected",
    "audit_urdf",
    "calibrate",
    "format_report",
    "load_arm",
    "mjcf_of_arm",
    "parse_arm",
    "read_hardware_info",
    "with_model_error",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
