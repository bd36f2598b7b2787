"""How far a sampled control loop is from unstable, with a given integrator and time step."""

from arm_dynamics.batch.stability.analyzed_loops import (
    controlled_loop,
    published_edge,
    published_loop,
)
from arm_dynamics.batch.stability.stability_report import Advice, Loop, advise, discrete_map
from arm_dynamics.batch.stability.stable_set import StableSet, largest_stable_dt, stable_set
from arm_dynamics.control.linear_controller import (
    Law,
    Mode,
    closed_loop_map,
    is_stable,
    law_of,
    modes,
    voltage_law,
)

__all__ = [
    "Advice",
    "Law",
    "Loop",
    "Mode",
    "StableSet",
    "advise",
    "closed_loop_map",
    "controlled_loop",
    "discrete_map",
    "is_stable",
    "largest_stable_dt",
    "law_of",
    "modes",
    "published_edge",
    "published_loop",
    "stable_set",
    "voltage_law",
]
