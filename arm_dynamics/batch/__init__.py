"""Many simulations together: rollouts, gain tuning, Monte Carlo analysis and stability analysis.

May import control, hardware, simulation and all below. Start reading at
``rollouts/open_loop.py``; ``kernels/`` generates the code that advances the rollouts, ``tuning/``
optimizes gains and draws arms from tolerances, ``stability/`` finds the largest stable time step,
``environments/`` offers the kernels to Gymnasium.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.batch.environments.task import EnvironmentTask, Reach, SwingUp
    from arm_dynamics.batch.kernels.derivative import StepDerivative
    from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
    from arm_dynamics.batch.rollouts.open_loop import rollout
    from arm_dynamics.batch.rollouts.reference_table import MeasurementNoise
    from arm_dynamics.batch.stability.stability_report import analyze_stability, controlled_loop
    from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
    from arm_dynamics.batch.tuning.gain_optimizer import Budget
    from arm_dynamics.batch.tuning.gain_search import TuningTask, tune
    from arm_dynamics.batch.tuning.montecarlo import MonteCarlo, montecarlo
    from arm_dynamics.batch.tuning.tolerance import Tolerance, data_sheet_tolerances
    from arm_dynamics.batch.variation import variable_names

_MODULES = {
    "Budget": ".tuning.gain_optimizer",
    "CaseDistribution": ".tuning.case_distribution",
    "EnvironmentTask": ".environments.task",
    "MeasurementNoise": ".rollouts.reference_table",
    "MonteCarlo": ".tuning.montecarlo",
    "Reach": ".environments.task",
    "StepDerivative": ".kernels.derivative",
    "SwingUp": ".environments.task",
    "Tolerance": ".tuning.tolerance",
    "TuningTask": ".tuning.gain_search",
    "analyze_stability": ".stability.stability_report",
    "controlled_loop": ".stability.stability_report",
    "data_sheet_tolerances": ".tuning.tolerance",
    "montecarlo": ".tuning.montecarlo",
    "rollout": ".rollouts.open_loop",
    "rollout_closed_loop": ".rollouts.closed_loop",
    "tune": ".tuning.gain_search",
    "variable_names": ".variation",
}

__all__ = [
    "Budget",
    "CaseDistribution",
    "EnvironmentTask",
    "MeasurementNoise",
    "MonteCarlo",
    "Reach",
    "StepDerivative",
    "SwingUp",
    "Tolerance",
    "TuningTask",
    "analyze_stability",
    "controlled_loop",
    "data_sheet_tolerances",
    "montecarlo",
    "rollout",
    "rollout_closed_loop",
    "tune",
    "variable_names",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
