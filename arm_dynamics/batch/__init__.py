"""Many simulations together: rollouts, gain tuning, Monte Carlo and stability analysis, planning.

May import control, hardware, simulation and all below. Start reading at
``rollouts/open_loop.py``; ``kernels/`` generates the code that advances the rollouts, ``tuning/``
optimizes gains and draws arms from tolerances, ``stability/`` finds the largest stable time step,
``planning/`` plans motions for predictive control, ``environments/`` has Gymnasium environments.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.batch.environments.task import EnvironmentTask, Reach, SwingUp
    from arm_dynamics.batch.kernels.cost import Cost, Stage
    from arm_dynamics.batch.kernels.derivative import StepDerivative
    from arm_dynamics.batch.planning.horizon import Horizon
    from arm_dynamics.batch.planning.ilqr import Ilqr
    from arm_dynamics.batch.planning.mpc import Mpc
    from arm_dynamics.batch.planning.plan import NoPlan, Plan
    from arm_dynamics.batch.planning.planner import Planner
    from arm_dynamics.batch.planning.sampling_methods import (
        CrossEntropy,
        Mppi,
        PredictiveSampling,
    )
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
    "Cost": ".kernels.cost",
    "CrossEntropy": ".planning.sampling_methods",
    "EnvironmentTask": ".environments.task",
    "Horizon": ".planning.horizon",
    "Ilqr": ".planning.ilqr",
    "MeasurementNoise": ".rollouts.reference_table",
    "Mpc": ".planning.mpc",
    "MonteCarlo": ".tuning.montecarlo",
    "Mppi": ".planning.sampling_methods",
    "NoPlan": ".planning.plan",
    "Plan": ".planning.plan",
    "Planner": ".planning.planner",
    "PredictiveSampling": ".planning.sampling_methods",
    "Reach": ".environments.task",
    "Stage": ".kernels.cost",
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
    "Cost",
    "CrossEntropy",
    "EnvironmentTask",
    "Horizon",
    "Ilqr",
    "MeasurementNoise",
    "MonteCarlo",
    "Mpc",
    "Mppi",
    "NoPlan",
    "Plan",
    "Planner",
    "PredictiveSampling",
    "Reach",
    "Stage",
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
