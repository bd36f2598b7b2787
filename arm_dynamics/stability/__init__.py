"""How far a sampled control loop is from unstable, with a given integrator and time step."""

from arm_dynamics.stability.advice import Advice, Loop, advise
from arm_dynamics.stability.discrete import discrete_map
from arm_dynamics.stability.law import Law, law_of, voltage_law
from arm_dynamics.stability.loop import Mode, closed_loop_map, is_stable, modes
from arm_dynamics.stability.loops import controlled_loop, published_edge, published_loop
from arm_dynamics.stability.search import StableSet, largest_stable_dt, stable_set

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
