"""Values, errors and compiled mathematics that every other package uses.

Imports no other package of arm_dynamics. Start with ``state`` (State, Reference and Command, the
values of one control cycle), ``errors`` (every exception) and ``parameters`` (a number with unit
and range). ``compiled_math`` and ``small_matrices`` are the vocabulary of compiled functions;
``plugins`` loads actuators, controllers and drivers by name.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
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
    from arm_dynamics.core.plugins import PluginError
    from arm_dynamics.core.state import (
        Command,
        Reference,
        State,
        TaskReference,
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
    "Parameter": ".parameters",
    "PluginError": ".plugins",
    "RecordingError": ".errors",
    "Reference": ".state",
    "State": ".state",
    "TaskReference": ".state",
    "TrajectoryRejected": ".errors",
    "UnknownName": ".errors",
    "Unreachable": ".errors",
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
    "Parameter",
    "PluginError",
    "RecordingError",
    "Reference",
    "State",
    "TaskReference",
    "TrajectoryRejected",
    "UnknownName",
    "Unreachable",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
