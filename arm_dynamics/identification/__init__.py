"""Identification of an arm from recorded motion: excitation, regression, physical consistency.

May import batch, recording and all below. Start reading at ``dynamic_parameters.py`` (the linear
equation of the efforts) and ``base_parameters.py`` (what a motion determines).
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.identification.base_parameters import BaseParameters, base_parameters
    from arm_dynamics.identification.dynamic_parameters import (
        nominal_parameters,
        parameter_names,
        regressor,
        with_parameters,
    )
    from arm_dynamics.identification.excitation import Excitation
    from arm_dynamics.identification.excitation_information import (
        ExcitationQuality,
        excitation_quality,
        unrevealed,
    )
    from arm_dynamics.identification.excitation_limits import extreme_values
    from arm_dynamics.identification.excitation_search import excite

_MODULES = {
    "BaseParameters": ".base_parameters",
    "base_parameters": ".base_parameters",
    "Excitation": ".excitation",
    "ExcitationQuality": ".excitation_information",
    "excitation_quality": ".excitation_information",
    "excite": ".excitation_search",
    "extreme_values": ".excitation_limits",
    "unrevealed": ".excitation_information",
    "nominal_parameters": ".dynamic_parameters",
    "parameter_names": ".dynamic_parameters",
    "regressor": ".dynamic_parameters",
    "with_parameters": ".dynamic_parameters",
}

__all__ = [
    "BaseParameters",
    "Excitation",
    "ExcitationQuality",
    "base_parameters",
    "excitation_quality",
    "excite",
    "extreme_values",
    "nominal_parameters",
    "parameter_names",
    "regressor",
    "unrevealed",
    "with_parameters",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
