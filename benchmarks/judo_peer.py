"""Reaching by ``judo-rai``: MPPI with MuJoCo's rollouts of the same arm as MJCF (``mjcf.py``).

Optimizer, spline and controller are judo's. MuJoCo compensates gravity, so that inputs are efforts
in addition to g(q). A sensor of MuJoCo has the value before a time step: positions of the tool are
one period late. judo's rollout backend has a thread per sample; ``cores`` replaces it by one with a
thread per core, which takes less time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import mujoco
import numpy as np
import pinocchio as pin
from judo.controller import Controller, ControllerConfig
from judo.optimizers import MPPI, MPPIConfig
from judo.tasks import Task, TaskConfig
from judo.utils.mj_rollout_backend import MJRolloutBackend
from mjcf import mjcf
from mujoco.rollout import Rollout
from reaching_task import KNOTS, PERIOD, PERIODS, SAMPLES, Efforts, batch_cost

from arm_dynamics import State
from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel


class ReachTask(Task[TaskConfig]):
    """The task of judo; ``arm`` and ``target`` (3,) [m] are set before use."""

    name, config_t = "reach", TaskConfig
    arm: ArmModel
    target: Vector

    def _process_spec(self) -> None:
        """Add gravity compensation, and sensors of the tool and of all efforts."""
        frame = self.arm.model.frames[self.arm.model.getFrameId(self.arm.tool_frame)]
        body = self.spec.joint(self.arm.model.names[frame.parentJoint]).parent
        body.add_site(name="tool", pos=frame.placement.translation)
        sensors, objects = mujoco.mjtSensor, mujoco.mjtObj
        self.spec.add_sensor(
            name="tool", type=sensors.mjSENS_FRAMEPOS, objtype=objects.mjOBJ_SITE, objname="tool"
        )
        for joint in self.spec.joints:
            joint.parent.gravcomp, joint.actgravcomp = 1, True
            self.spec.add_sensor(
                name=joint.name, type=sensors.mjSENS_JOINTACTFRC, objtype=objects.mjOBJ_JOINT,
                objname=joint.name,
            )  # fmt: skip

    def reward(self, states: Any, sensors: Any, controls: Any, system_metadata: Any = None) -> Any:
        """Return the negative cost (samples,)."""
        del controls, system_metadata
        q, v = np.split(states, 2, axis=-1)
        excess = q - np.clip(q, self.arm.lower, self.arm.upper)
        return -batch_cost(sensors[..., :3] - self.target, v, sensors[..., 3:], excess)


class FewThreads(MJRolloutBackend):
    """judo's backend with a number of threads that does not depend on the samples."""

    def __init__(self, model: mujoco.MjModel, samples: int, threads: int) -> None:
        self.num_threads, self.model = samples, model
        self._data = [mujoco.MjData(model) for _ in range(threads)]
        self._rollout_obj = Rollout(nthread=threads if threads > 1 else 0)

    def rollout(self, x0: Any, controls: Any, last_policy_output: Any = None) -> Any:
        """Return states, sensors and no policy."""
        del last_policy_output
        start = np.tile(np.append(0.0, x0), (self.num_threads, 1))
        states, sensors = self._rollout_obj.rollout(self.model, self._data, start, controls)
        return np.array(states)[..., 1:], np.array(sensors), None


class Judo:
    """Planner of judo."""

    def __init__(self, arm: ArmModel, noise: Vector, temperature: float, cores: int = 0) -> None:
        self.arm, self.data = arm, arm.model.createData()
        ReachTask.arm = arm
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "arm.xml"
            path.write_text(mjcf(arm, PERIOD, True))
            # The constructor downloads the meshes of judo's own tasks.
            with patch("judo.tasks.base.download_and_extract_meshes"):
                self.task = ReachTask(path)
        method = MPPIConfig(
            num_rollouts=SAMPLES, num_nodes=KNOTS, sigma=noise, temperature=temperature
        )
        settings = ControllerConfig(horizon=PERIODS * PERIOD, max_num_traces=0)
        self.controller = Controller(settings, self.task, MPPI(method, arm.nv))
        if cores:
            self.controller.rollout_backend = FewThreads(self.task.model, SAMPLES, cores)

    def aim(self, target: Vector) -> None:
        """Start again, with another target (3,) [m]."""
        self.task.target = target
        self.controller.time = 0.0
        self.controller.reset()

    def plan(self, state: State) -> Efforts:
        """Return the plan from a state."""
        controller, model = self.controller, self.arm.model
        controller.current_state = np.concatenate([state.q, state.v])
        controller.time = state.time
        controller.update_action()
        inputs = controller.spline
        return lambda s: inputs(s.time) + pin.computeGeneralizedGravity(model, self.data, s.q)
