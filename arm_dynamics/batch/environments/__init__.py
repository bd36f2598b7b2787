"""Gymnasium environments of robot arms: reaching and swing-up, many at a time.

An import registers "arm_dynamics/Reach-v0" and "arm_dynamics/SwingUp-v0". Needs the extra
"gymnasium". May import rollouts, kernels and below. Start reading at ``vector_environment.py``;
``task.py`` has observations, rewards and initial states.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.batch.environments.task import EnvironmentTask, Reach, SwingUp
    from arm_dynamics.batch.environments.vector_environment import (
        ArmEnvironment,
        ArmVectorEnvironment,
    )

_MODULES = {
    "ArmEnvironment": ".vector_environment",
    "ArmVectorEnvironment": ".vector_environment",
    "EnvironmentTask": ".task",
    "Reach": ".task",
    "SwingUp": ".task",
}

__all__ = ["ArmEnvironment", "ArmVectorEnvironment", "EnvironmentTask", "Reach", "SwingUp"]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)

EPISODES = {"Reach": ("so101", 1000), "SwingUp": ("two_link", 5000)}
"""Task to its arm and the control periods of an episode, by default."""

if find_spec("gymnasium") is not None:
    import gymnasium

    for _task, (_arm, _steps) in EPISODES.items():
        gymnasium.register(
            id=f"arm_dynamics/{_task}-v0",
            entry_point=f"{__name__}.vector_environment:ArmEnvironment",
            vector_entry_point=f"{__name__}.vector_environment:ArmVectorEnvironment",
            max_episode_steps=_steps,
            kwargs={"task": _task, "arm": _arm},
        )
