"""Gymnasium environments of robot arms: reaching and swing-up, many at a time.

An import registers "arm_dynamics/Reach-v0" and "arm_dynamics/SwingUp-v0". Needs the extra
"gymnasium". May import rollouts, kernels and below. Start reading at ``vector_environment.py``;
``task.py`` has observations, rewards and initial states.
"""

from arm_dynamics.batch.environments.task import Reach, SwingUp, Task
from arm_dynamics.batch.environments.vector_environment import (
    ArmEnvironment,
    ArmVectorEnvironment,
    register_environments,
)
from arm_dynamics.batch.kernels.state_function import ArmState

__all__ = [
    "ArmEnvironment",
    "ArmState",
    "ArmVectorEnvironment",
    "Reach",
    "SwingUp",
    "Task",
]

register_environments()
