"""Vector environment of an arm: blocks of a kernel, advanced by a control period a step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from arm_dynamics.batch.environments.task import EnvironmentTask, Reach, SwingUp
from arm_dynamics.batch.kernels.environment_loop import advance_environments
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions
from arm_dynamics.batch.kernels.layout import aligned_zeros
from arm_dynamics.batch.kernels.rollout_loop import addresses
from arm_dynamics.batch.kernels.state_function import StateFunction
from arm_dynamics.batch.rollouts import inputs
from arm_dynamics.batch.rollouts.backends import BLOCK, PRECISIONS
from arm_dynamics.core.arrays import BoolArray, FloatArray, Matrix, Vector, check_float, check_int
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName
from arm_dynamics.model.arm_argument import require_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm

TASKS: dict[str, type[EnvironmentTask]] = {"Reach": Reach, "SwingUp": SwingUp}
PERIOD = 0.002
"""Control period [s]."""
TIME_STEPS = 3
"""Entry of the time steps in the program of ``advance_environments``."""
Answer = tuple[FloatArray, Vector, BoolArray, BoolArray, dict[str, Any]]
"""Observations, rewards, terminations, truncations and info."""


class ArmVectorEnvironment(VectorEnv[Any, Any, Any]):
    """Environments of one arm and task, advanced together by a generated kernel.

    A step is a control period: command = limit clip(action, -1, 1), held for ``time_steps`` time
    steps of ``Plant`` with semi-implicit Euler. An episode is truncated after
    ``max_episode_steps`` periods and never terminates. Autoreset is NEXT_STEP: the step after the
    last one of an episode starts the next episode; its action is ignored, its reward is 0.

    Environment k has a random generator with seed + k: its episodes do not depend on the number of
    environments, and equal those of ``ArmEnvironment`` with that seed.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        task: str | type[EnvironmentTask],
        arm: str | Path | ArmModel,
        num_envs: int = 1,
        *,
        interface: str | None = None,
        dtype: str = "float32",
        period: float = PERIOD,
        time_steps: int = 1,
        max_episode_steps: int | None = None,
    ) -> None:
        """Compile the kernels and allocate the blocks.

        Parameters
        ----------
        task : str or type of EnvironmentTask
            Name in ``TASKS``, or a class.
        arm : str, Path or ArmModel
            Arm, or its name or file as for ``load_arm``.
        num_envs : int
            Number of environments.
        interface : str, optional
            Command interface of the actions, "effort" or "voltage" (default: of the task).
        dtype : str
            Precision, "float32" or "float64".
        period : float
            Control period [s].
        time_steps : int
            Time steps of a control period.
        max_episode_steps : int, optional
            Control periods of an episode; None: no end.

        Raises
        ------
        InvalidValue, UnknownName
            If an argument is invalid, or if the arm has no kernel.

        """
        self.num_envs = check_int("num_envs", num_envs, lower=1)
        self.period = check_float("period [s]", period, above=0)
        steps = check_int("time_steps", time_steps, lower=1)
        if max_episode_steps is not None:
            check_int("max_episode_steps", max_episode_steps, lower=1)
        self.max_episode_steps, self.dtype = max_episode_steps, dtype
        if dtype not in PRECISIONS:
            raise UnknownName("dtype", dtype, PRECISIONS)
        if isinstance(task, str):
            if task not in TASKS:
                raise UnknownName("task", task, tuple(TASKS))
            task = TASKS[task]
        if not (isinstance(task, type) and issubclass(task, EnvironmentTask)):
            raise InvalidValue(f"task = {task!r}; expected a name or a class of EnvironmentTask")
        self.arm = arm if isinstance(arm, ArmModel) else load_arm(arm)
        require_masses(self.arm, "an environment")
        self.task = task(self.arm)
        self.interface = interface or self.task.interface
        inputs.check_commands(self.arm, self.interface, np.zeros(self.arm.nv), self.num_envs)
        self.command_limit = self.task.command_limit(self.interface)
        self._make_blocks(steps)
        n, size = self.arm.nv, self._observations.shape[1]
        self.single_observation_space = Box(-np.inf, np.inf, (size,), np.dtype(dtype).type)
        self.single_action_space = Box(-1.0, 1.0, (n,), np.dtype(dtype).type)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.generators: Sequence[np.random.Generator] = ()
        self._running = False
        self._count = np.zeros(self.num_envs, dtype=int)
        self._finished = np.zeros(self.num_envs, dtype=bool)

    def _make_blocks(self, time_steps: int) -> None:
        """Compile the kernels; allocate their blocks and the buffers, whole blocks each."""
        arm, task, dtype = self.arm, self.task, self.dtype
        options = KernelOptions(interface=self.interface, precision=dtype, lanes=BLOCK)
        kernel = Kernel(arm, options)
        function = StateFunction(arm, task.goal_size, task.traced, dtype, BLOCK)
        blocks, dt = -(-self.num_envs // BLOCK), np.array([self.period / time_steps])
        self._initial_block = kernel.block({"dt": dt, "act": arm.initial_act})
        self._x = _repeated(self._initial_block, blocks)
        self._y = _repeated(function.block(), blocks)
        self._state_rows, self._goal_rows = kernel.layout, function.layout
        self._program = np.array([
            *addresses(dtype, kernel.functions("step")), function.address, BLOCK, time_steps,
            *(kernel.layout.first[name] for name in ("command", "effort")),
            function.layout.first["observation"],
        ])  # fmt: skip
        self._gain = self.command_limit.astype(dtype)
        rows = blocks * BLOCK
        self._actions = np.zeros((rows, arm.nv), dtype)
        self._observations = np.zeros((rows, function.layout.sizes["observation"]), dtype)
        self._rewards = np.zeros(rows)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Start an episode in every environment.

        Parameters
        ----------
        seed : int, sequence of int, optional
            Seed of environment 0, the next ones follow; or one per environment. None continues the
            random numbers.
        options : dict, optional
            Empty.

        Returns
        -------
        tuple
            Observations (num_envs, size) and info.

        Raises
        ------
        InvalidValue
            If the number of seeds differs, or if there are options.

        """
        if options:
            raise InvalidValue(f"reset: options = {list(options)}; expected none")
        if seed is not None or len(self.generators) != self.num_envs:
            first = seed if not isinstance(seed, Sequence) else None
            seeds = [None if first is None else first + k for k in range(self.num_envs)]
            seeds = list(seed) if isinstance(seed, Sequence) else seeds
            if len(seeds) != self.num_envs:
                raise InvalidValue(f"reset: seeds = {len(seeds)}; expected {self.num_envs}")
            self.generators = [np_random(one)[0] for one in seeds]
            self._np_random, self._np_random_seed = self.generators[0], seeds[0]
        self._x[:], self._running = self._initial_block, True
        self._restart(np.arange(self.num_envs))
        return self._observed(), {}

    def step(self, actions: Any) -> Answer:
        """Advance every environment by a control period, or start its next episode.

        Parameters
        ----------
        actions : array_like
            Normalized actions, shape (num_envs, nv); clipped to [-1, 1].

        Returns
        -------
        tuple
            Observations (num_envs, size), rewards, terminations and truncations (num_envs,), info.

        Raises
        ------
        CommandRejected
            If an action has another shape or is not finite; no environment has moved.
        InvalidValue
            Before ``reset``, or if an environment diverged; ``reset`` starts again.

        """
        if not self._running:
            raise InvalidValue("step: no episode; call reset")
        self._actions[: self.num_envs] = self._checked(actions)
        self._count += 1
        self._advance(self._program)
        rewards, finished = self._rewards[: self.num_envs].copy(), np.flatnonzero(self._finished)
        if finished.size:
            self._restart(finished)
            rewards[finished] = 0.0
        limit = self.max_episode_steps
        truncated = np.zeros(self.num_envs, bool) if limit is None else self._count >= limit
        self._finished, terminated = truncated.copy(), np.zeros(self.num_envs, dtype=bool)
        return self._observed(), rewards, terminated, truncated, {}

    def _observed(self) -> FloatArray:
        observations: FloatArray = self._observations[: self.num_envs].copy()
        return observations

    def _checked(self, actions: Any) -> Matrix:
        values: Matrix = np.asarray(actions, dtype=self.dtype)
        if values.shape != (self.num_envs, self.arm.nv):
            raise CommandRejected(
                f"step: shape of the actions = {values.shape}; expected"
                f" {(self.num_envs, self.arm.nv)}"
            )
        if not np.isfinite(values).all():
            k, i = np.argwhere(~np.isfinite(values))[0].tolist()
            raise CommandRejected(
                f"step, environment {k}, joint '{self.arm.joint_names[i]}': action ="
                f" {values[k, i]}; expected a finite number"
            )
        return values

    def _advance(self, program: Any) -> None:
        """Execute the compiled loop; raises InvalidValue if an environment diverged."""
        diverged = advance_environments(
            program, self._x, self._y, self._actions, self._gain, self._observations, self._rewards
        )
        if not diverged:
            return
        v = self._x.reshape(len(self._x), -1, BLOCK)[:, self._state_rows.block("v")]
        failed = np.argwhere(~np.isfinite(v.transpose(0, 2, 1).reshape(-1, self.arm.nv)))
        if len(failed) and failed[0, 0] < self.num_envs:  # the last block may not be full
            k, i = failed[0].tolist()
            self._running = False
            raise InvalidValue(
                f"simulation diverged: environment {k}, joint '{self.arm.joint_names[i]}' is not"
                f" finite after {self._count[k]} control periods; increase time_steps, and reset"
            )

    def _restart(self, which: Any) -> None:
        """Start episodes in the environments ``which``, and evaluate all observations again."""
        random = np.array([self.generators[k].random(self.task.draws) for k in which])
        q, goals = self.task.start(random)
        x, y = (blocks.reshape(len(blocks), -1, BLOCK) for blocks in (self._x, self._y))
        b, column = which // BLOCK, which % BLOCK
        act = np.broadcast_to(self.arm.initial_act, (len(which), self.arm.na))
        values = {"q": q, "v": np.zeros_like(q), "act": act}
        for name, rows in values.items():
            x[b, self._state_rows.block(name), column] = rows
        y[b, self._goal_rows.block("goal"), column] = goals
        self._actions[which], self._count[which], self._finished[which] = 0.0, 0, False
        program = self._program.copy()
        program[TIME_STEPS] = 0
        self._advance(program)


class ArmEnvironment(gymnasium.Env[Any, Any]):
    """One environment of an arm: a vector environment with one entry; the wrapper truncates."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self, task: str | type[EnvironmentTask], arm: str | Path | ArmModel, **options: Any
    ) -> None:
        """Take the arguments of ``ArmVectorEnvironment`` without ``num_envs``."""
        self.vector = ArmVectorEnvironment(task, arm, 1, **options)
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Start an episode, see ``ArmVectorEnvironment.reset``."""
        super().reset(seed=seed)
        self.vector.generators = (self.np_random,)
        observations, info = self.vector.reset(options=options)
        return observations[0], info

    def step(self, action: Any) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Advance by a control period, see ``ArmVectorEnvironment.step``."""
        observations, rewards, _, truncated, info = self.vector.step(np.asarray(action)[None])
        return observations[0], float(rewards[0]), False, bool(truncated[0]), info


def _repeated(block: Vector, count: int) -> Matrix:
    """Return ``count`` copies of a block, aligned to a cache line."""
    blocks = aligned_zeros(count * block.size, block.dtype).reshape(count, -1)
    blocks[:] = block
    return blocks
