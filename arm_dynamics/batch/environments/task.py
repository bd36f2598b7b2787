"""Tasks of environments: observation, reward, initial states and goals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from arm_dynamics.batch.kernels.cost import Stage, cost_errors
from arm_dynamics.batch.rollouts.task_runner import tool_positions
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics import rigid_body as dynamics
from arm_dynamics.model.arm_model import ArmModel

INITIAL_SPREAD = 0.1
"""Largest distance of an initial position from the initial configuration [rad or m]."""
CONFIGURATIONS = 200
"""Random configurations from the best of which a maximum is searched."""


class EnvironmentTask(ABC):
    """A task of an arm.

    ``observation`` and ``reward`` are functions of a ``Stage``, compiled from a trace as costs are:
    arithmetic, functions of numpy and of ``math``, no branches on values. Called with numbers they
    return the same values.
    """

    interface: ClassVar[str]
    """Command interface by default."""
    goal_size: ClassVar[int] = 0
    """Number of values of a goal."""

    def __init__(self, arm: ArmModel) -> None:
        self.arm = arm

    @abstractmethod
    def observation(self, stage: Stage, goal: Any) -> list[Any]:
        """Return the observed values of the state after a control period, and of the goal."""

    @abstractmethod
    def reward(self, stage: Stage, action: Any, goal: Any) -> Any:
        """Return the reward of a control period: state after it, normalized action, goal."""

    def traced(self, stage: Stage, action: Any, goal: Any) -> dict[str, Any]:
        """Return observation and reward on symbols; raises InvalidValue that names a line."""
        from arm_dynamics.batch.kernels.symbolic_math import traced  # noqa: PLC0415 - needs CasADi

        observation, reward = type(self).observation, type(self).reward
        with cost_errors(observation):
            observed = traced(observation)(self, stage, goal)
        with cost_errors(reward):
            value = traced(reward)(self, stage, action, goal)
        return {"observation": observed, "reward": [value]}

    @property
    def draws(self) -> int:
        """Random numbers of an episode."""
        return self.arm.nv

    def start(self, random: Matrix) -> tuple[Matrix, Matrix]:
        """Return initial positions (batch, nv) and goals (batch, goal_size) of episodes at rest.

        Parameters
        ----------
        random : Matrix
            Uniform numbers of [0, 1), shape (batch, draws).

        """
        n, initial = self.arm.nv, np.array(self.arm.configuration("initial"))
        q = initial + INITIAL_SPREAD * (2 * random[:, :n] - 1)
        return np.clip(q, self.arm.lower, self.arm.upper), np.empty((len(q), 0))

    def command_limit(self, interface: str) -> Vector:
        """Return the commands (nv,) of action 1 [N·m, N or V]; those of -1 are opposite.

        Raises
        ------
        InvalidValue
            If the arm has no finite limit.

        """
        limits = [actuator.command_limit(interface) for actuator in self.arm.actuators]
        for joint, limit in zip(self.arm.joint_names, limits, strict=True):
            if not np.isfinite(limit):
                raise InvalidValue(
                    f"environment, joint '{joint}': {interface} limit = {limit}; expected a finite"
                    " one; set effort in <limit>, or supply_voltage of the motor"
                )
        return np.array(limits)


class Reach(EnvironmentTask):
    """The tool reaches a random position.

    r = -‖p_goal - p_tool‖ / m - 0.01 ‖a‖² / nv with the normalized action a. The observation is
    q, v, p_tool and p_goal. The goal is the tool position of a random configuration within the
    joint limits (within ±π without limits), and therefore reachable.
    """

    interface, goal_size = "effort", 3

    def observation(self, stage: Stage, goal: Any) -> list[Any]:
        """Return q, v, tool position and goal: 2 nv + 6 values."""
        return [*stage.q, *stage.v, *stage.tool_position, *goal]

    def reward(self, stage: Stage, action: Any, goal: Any) -> Any:
        """Return the negative distance to the goal, less the cost of the action."""
        error, cost = goal - stage.tool_position, 0.01 / self.arm.nv
        return -np.sqrt(error @ error) - cost * (action @ action)

    @property
    def draws(self) -> int:
        """Random numbers of an episode: initial configuration and that of the goal."""
        return 2 * self.arm.nv

    def start(self, random: Matrix) -> tuple[Matrix, Matrix]:
        """Return initial positions and goals."""
        q, _ = super().start(random)
        lower, upper = _range(self.arm)
        goals = lower + (upper - lower) * random[:, self.arm.nv :]
        return q, tool_positions(self.arm, goals)


class SwingUp(EnvironmentTask):
    """The arm moves from hanging to upright with less effort than gravity demands.

    r = (U - U_min) / (U_max - U_min) - 0.001 ‖v‖² - 0.001 ‖a‖² with the potential energy U and the
    normalized action a. The observation is sin q, cos q and v. Action 1 is ``effort_fraction`` of
    the largest gravity torque of the joint.
    """

    interface = "effort"

    def __init__(self, arm: ArmModel, effort_fraction: float = 0.5) -> None:
        super().__init__(arm)

        def energy(q: Vector) -> float:
            return dynamics.potential_energy(arm, q)

        self.effort_fraction = effort_fraction
        highest, self.hanging = _maximum(arm, energy), _maximum(arm, lambda q: -energy(q))
        self.lowest_energy, self.highest_energy = energy(self.hanging), energy(highest)
        if self.highest_energy - self.lowest_energy < 1e-9:
            raise InvalidValue(
                f"environment, arm '{arm.name}': change of the potential energy ="
                f" {self.highest_energy - self.lowest_energy:.2g} J; expected above 0 for swing-up"
            )

    def observation(self, stage: Stage, goal: Any) -> list[Any]:
        """Return sin q, cos q and v: 3 nv values."""
        return [*np.sin(stage.q), *np.cos(stage.q), *stage.v]

    def reward(self, stage: Stage, action: Any, goal: Any) -> Any:
        """Return the height between hanging and upright, less the costs of velocity and action."""
        span = self.highest_energy - self.lowest_energy
        height = (stage.potential_energy - self.lowest_energy) / span
        return height - 0.001 * (stage.v @ stage.v) - 0.001 * (action @ action)

    def start(self, random: Matrix) -> tuple[Matrix, Matrix]:
        """Return initial positions near the hanging configuration."""
        q = self.hanging + INITIAL_SPREAD * (2 * random - 1)
        return np.clip(q, self.arm.lower, self.arm.upper), np.empty((len(q), 0))

    def command_limit(self, interface: str) -> Vector:
        """Return ``effort_fraction`` max |g(q)|, at most the effort limit; raises InvalidValue."""
        if interface != "effort":
            raise InvalidValue(f"swing-up: interface = '{interface}'; expected 'effort'")
        arm, limits = self.arm, []
        for i in range(arm.nv):

            def torque(q: Vector, i: int = i) -> float:
                return float(abs(dynamics.gravity(arm, q)[i]))

            limits.append(self.effort_fraction * torque(_maximum(arm, torque)))
        return np.minimum(limits, arm.effort_limit)


def _range(arm: ArmModel) -> tuple[Vector, Vector]:
    """Return the limits of the positions, ±π for joints without limits."""
    finite = np.isfinite(arm.lower) & np.isfinite(arm.upper)
    return np.where(finite, arm.lower, -np.pi), np.where(finite, arm.upper, np.pi)


def _maximum(arm: ArmModel, function: Callable[[Vector], float]) -> Vector:
    """Return the configuration of the largest value: the best random one, then L-BFGS-B."""
    lower, upper = _range(arm)
    q = np.random.default_rng(0).uniform(lower, upper, (CONFIGURATIONS, arm.nv))
    best = max(q, key=function)
    bounds = list(zip(lower, upper, strict=True))
    options = {"ftol": 1e-15, "gtol": 1e-10}
    found = minimize(lambda q: -function(q), best, bounds=bounds, options=options)
    return np.array(found.x)
