"""Identification of an arm from recorded motion: excitation, regression, physical consistency.

May import batch, recording and all below. Start reading at ``dynamic_parameters.py`` (the linear
equation of the efforts) and ``base_parameter_set.py`` (what a motion determines).
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.identification.base_parameter_set import BaseParameters, base_parameters
    from arm_dynamics.identification.dynamic_parameters import (
        nominal_parameters,
        parameter_names,
        regressor,
        with_parameters,
    )
    from arm_dynamics.identification.fit_report import (
        FitSummary,
        JointFit,
        ParameterFit,
        fit_html,
        fit_tables,
        fit_text,
        write_fit_report,
    )
    from arm_dynamics.identification.uncertainty import uncertainty_yaml

_MODULES = {
    "BaseParameters": ".base_parameter_set",
    "FitSummary": ".fit_report",
    "JointFit": ".fit_report",
    "ParameterFit": ".fit_report",
    "base_parameters": ".base_parameter_set",
    "fit_html": ".fit_report",
    "fit_tables": ".fit_report",
    "fit_text": ".fit_report",
    "nominal_parameters": ".dynamic_parameters",
    "parameter_names": ".dynamic_parameters",
    "regressor": ".dynamic_parameters",
    "uncertainty_yaml": ".uncertainty",
    "with_parameters": ".dynamic_parameters",
    "write_fit_report": ".fit_report",
}

__all__ = [
    "BaseParameters",
    "FitSummary",
    "JointFit",
    "ParameterFit",
    "base_parameters",
    "fit_html",
    "fit_tables",
    "fit_text",
    "nominal_parameters",
    "parameter_names",
    "regressor",
    "uncertainty_yaml",
    "with_parameters",
    "write_fit_report",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
