"""Many arms at once: one straight-line kernel an arm, traced from the plant's own laws."""

from arm_dynamics.batch.rollout.batch import RolloutResult
from arm_dynamics.batch.rollout.closed_loop import rollout_closed_loop
from arm_dynamics.batch.rollout.reference_table import MeasurementNoise
from arm_dynamics.batch.rollout.rollout import rollout
from arm_dynamics.batch.rollout.simulate import simulate

__all__ = ["MeasurementNoise", "RolloutResult", "rollout", "rollout_closed_loop", "simulate"]
