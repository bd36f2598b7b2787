"""How far a sampled control loop is from unstable, with a given integrator and time step."""

from arm_dynamics.batch.stability.analyzed_loops import (
    controlled_loop,
    published_loop,
    published_stability_limit,
)
from arm_dynamics.batch.stability.stability_report import (
    LinearLoop,
    StabilityReport,
    analyze_stability,
    discrete_map,
)
from arm_dynamics.batch.stability.stable_set import StableSet, largest_stable_dt, stable_set
from arm_dynamics.control.linear_controller import (
    LinearController,
    Mode,
    closed_loop_map,
    is_stable,
    linear_controller,
    modes,
    voltage_pi_controller,
)

__all__ = [
    "LinearController",
    "LinearLoop",
    "Mode",
    "StabilityReport",
    "StableSet",
    "analyze_stability",
    "closed_loop_map",
    "controlled_loop",
    "discrete_map",
    "is_stable",
    "largest_stable_dt",
    "linear_controller",
    "modes",
    "published_loop",
    "published_stability_limit",
    "stable_set",
    "voltage_pi_controller",
]
