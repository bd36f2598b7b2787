"""Values, errors and compiled mathematics that every other package uses.

Imports no other package of arm_dynamics. Start with ``state`` (State, Reference and Command, the
values of one control cycle), ``errors`` (every exception) and ``parameters`` (a number with unit
and range). ``compiled_math`` and ``small_matrices`` are the vocabulary of compiled functions;
``plugins`` loads actuators, controllers and drivers by name.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.core.arrays import (
        Vector,
        as_readonly,
        check_float,
        check_int,
        check_vector,
    )
    from arm_dynamics.core.errors import (
        ArmDynamicsError,
        CommandRejected,
        ConfigError,
        ControllerFault,
        DriverFault,
        GoalRejected,
        InvalidValue,
        RecordingError,
        TrajectoryRejected,
        UnknownName,
        Unreachable,
    )
    from arm_dynamics.core.parameters import (
        Parameter,
    )
    from arm_dynamics.core.plugins import (
        PluginError,
        load_class,
        registered_names,
    )
    from arm_dynamics.core.resources import (
        resource_folder,
        resource_names,
    )
    from arm_dynamics.core.rotations import (
        quaternion_from_rotation,
        rotation_from_quaternion,
        rotation_vector,
    )
    from arm_dynamics.core.state import (
        Command,
        Reference,
        State,
        TaskReference,
    )
    from arm_dynamics.core.timing import (
        LoopTiming,
        StepClock,
    )

_MODULES = {
    "ArmDynamicsError": ".errors",
    "Command": ".state",
    "CommandRejected": ".errors",
    "ConfigError": ".errors",
    "ControllerFault": ".errors",
    "DriverFault": ".errors",
    "GoalRejected": ".errors",
    "InvalidValue": ".errors",
    "LoopTiming": ".timing",
    "Parameter": ".parameters",
    "PluginError": ".plugins",
    "RecordingError": ".errors",
    "Reference": ".state",
    "State": ".state",
    "StepClock": ".timing",
    "TaskReference": ".state",
    "TrajectoryRejected": ".errors",
    "UnknownName": ".errors",
    "Unreachable": ".errors",
    "Vector": ".arrays",
    "as_readonly": ".arrays",
    "check_float": ".arrays",
    "check_int": ".arrays",
    "check_vector": ".arrays",
    "load_class": ".plugins",
    "quaternion_from_rotation": ".rotations",
    "registered_names": ".plugins",
    "resource_folder": ".resources",
    "resource_names": ".resources",
    "rotation_from_quaternion": ".rotations",
    "rotation_vector": ".rotations",
}

__all__ = [
    "ArmDynamicsError",
    "Command",
    "CommandRejected",
    "ConfigError",
    "ControllerFault",
    "DriverFault",
    "GoalRejected",
    "InvalidValue",
    "LoopTiming",
    "Parameter",
    "PluginError",
    "RecordingError",
    "Reference",
    "State",
    "StepClock",
    "TaskReference",
    "TrajectoryRejected",
    "UnknownName",
    "Unreachable",
    "Vector",
    "as_readonly",
    "check_float",
    "check_int",
    "check_vector",
    "load_class",
    "quaternion_from_rotation",
    "registered_names",
    "resource_folder",
    "resource_names",
    "rotation_from_quaternion",
    "rotation_vector",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
