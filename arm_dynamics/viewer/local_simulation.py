"""Simulated arm of this process, as a page controls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.joint_motions import DemoMotion
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.model.model_error import require_holdable
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import Simulation
from arm_dynamics.simulation.simulation_control import SimulationControl, push_parameters
from arm_dynamics.simulation.simulation_parameters import PAYLOAD
from arm_dynamics.viewer.controls import Controls
from arm_dynamics.viewer.simulation_controls import (
    GAINS,
    LOADS,
    Setting,
    SettingFields,
    Settings,
    load_settings,
)


class LoopOutput:
    """Sends motions to a control loop of this process."""

    ready = True

    def __init__(self, loop: ControlLoop, requests: LoopRequests) -> None:
        self._loop, self._requests = loop, requests

    def send(self, points: Sequence[Waypoint]) -> None:
        """Start a motion through waypoints with velocities in the next cycle."""
        self._requests.post(lambda: self._follow(points))

    def reference(self) -> tuple[Vector, Vector] | None:
        """Return the reference of the last cycle and its velocity, (nv,) each."""
        reference = self._loop.reference
        return None if reference is None else (reference.q, reference.v)

    def _follow(self, points: Sequence[Waypoint]) -> None:
        try:
            now = self._loop.present()[0].time
            waypoints = tuple(replace(point, time=point.time + now) for point in points)
            self._loop.follow(JointTrajectory(waypoints))
        except TrajectoryRejected as error:
            self._loop.events.report("trajectory_rejected", str(error))


class LocalSimulation:
    """Simulation and control loop of this process as a SimulatedArm."""

    ready = True

    def __init__(
        self,
        simulation: Simulation,
        loop: ControlLoop,
        control: SimulationControl,
        requests: LoopRequests,
        demo: DemoMotion,
    ) -> None:
        self._simulation, self._loop, self._control = simulation, loop, control
        self._requests, self._demo = requests, demo
        self._nominal = loop.controller.arm
        self._push = {axis: default for axis, (_, default) in push_parameters(simulation).items()}
        self._changed = True

    @property
    def demo_running(self) -> bool:
        """Whether the demo motion runs."""
        return self._demo.running

    def output(self) -> LoopOutput:
        """Return the output of joint targets."""
        return LoopOutput(self._loop, self._requests)

    def pause(self, paused: bool) -> str:
        """Pause or continue the simulation."""
        return self._control.pause(paused)

    def reset(self) -> str:
        """Set the arm to rest at its initial configuration."""
        return self._control.reset(self._loop.arm.configuration("initial"), "initial")

    def push(self) -> str:
        """Apply the impulse of the fields to the tool."""
        return self._control.push([self._push[axis] for axis in "xyz"])

    def release(self) -> str:
        """Reset the emergency stop."""
        return self._requests.call(self._control.reset_emergency_stop)

    def set_demo(self, running: bool) -> str:
        """Start or stop the demo motion."""
        return self._demo.set_running(running)

    def end_demo(self) -> bool:
        """End the demo motion; return True."""
        self._demo.set_running(False)
        return True

    def show_settings(self, controls: Controls) -> Callable[[], None]:
        """Add payload, push and gains; return the function that updates them."""
        folders = (
            SettingFields(controls, LOADS, self._loads),
            SettingFields(controls, GAINS, self._gains),
        )

        def update() -> None:
            if self._changed:
                self._changed = False
                for folder in folders:
                    folder.read()

        return update

    def _loads(self) -> Settings:
        push = {
            axis: Setting(number, partial(self._set_push, axis))
            for axis, number in self._push.items()
        }
        arm, model = self._simulation.arm, self._loop.controller.arm
        return load_settings(
            push,
            Setting(arm.payload.mass, self._load_arm),
            Setting(model.payload.mass, self._load_model),
        )

    def _set_push(self, axis: str, value: float) -> None:
        parameter, _ = push_parameters(self._simulation)[axis]
        self._push[axis] = parameter.check("simulator", value)

    def _load_arm(self, value: float) -> None:
        simulation, mass = self._simulation, PAYLOAD.check("simulator", value)
        arm = simulation.arm.with_payload(mass)
        Plant(arm).require_stable(simulation.state.q, simulation.dt)
        self._requests.call(lambda: simulation.set_arm(arm))

    def _load_model(self, value: float) -> None:
        mass = PAYLOAD.check("joint_controller", value)
        self._loop.controller.set_model(require_holdable(self._nominal.with_payload(mass)))

    def _gains(self) -> Settings:
        return {
            (group, name): Setting(value, partial(self._set_gain, group, name))
            for group, row in self._loop.controller.values.items()
            for name, value in row.items()
        }

    def _set_gain(self, group: str, name: str, value: float) -> None:
        """Set one gain; the defaults of others may follow it."""
        gains = {owner: dict(row) for owner, row in self._loop.controller.given.items()}
        gains.setdefault(group, {})[name] = value
        self._loop.gain_scaling.take(gains)
        self._changed = True
