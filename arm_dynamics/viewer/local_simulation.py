"""Simulated arm of this process, as a page controls it."""

from __future__ import annotations

from functools import partial

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_choice import successor
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.joint_motions import DemoMotion
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.core.timing import Pacer
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.model_error import require_holdable
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import Simulation
from arm_dynamics.simulation.simulation_control import SimulationControl, push_parameters
from arm_dynamics.simulation.simulation_parameters import FACTOR, PAYLOAD
from arm_dynamics.viewer.loop_controls import LoopOutput
from arm_dynamics.viewer.simulation_controls import Setting, Settings, load_settings


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
        pacer: Pacer,
    ) -> None:
        self._simulation, self._loop, self._control = simulation, loop, control
        self._requests, self._demo, self._pacer = requests, demo, pacer
        self._nominal = loop.controller.arm
        self._push = {axis: default for axis, (_, default) in push_parameters(simulation).items()}
        self.changes = 0

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

    def step(self, duration: float) -> str:
        """Simulate ``duration`` [s], at least one control period, while paused."""
        return self._control.step(max(1, round(duration / self._simulation.period)))

    def reset(self) -> str:
        """Set the arm to rest at its initial configuration."""
        return self._control.reset(self._loop.arm.configuration("initial"), "initial")

    def push(self) -> str:
        """Apply the impulse of the fields to the tool."""
        return self._control.push([self._push[axis] for axis in "xyz"])

    def pull(self, link: str, wrench: Vector) -> None:
        """Apply a wrench on a link until the next call, at most for PULL_TIME."""
        self._control.pull(link, wrench)

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

    def speed(self) -> Setting:
        """Return the real-time factor."""
        return Setting(self._pacer.factor, self._set_speed)

    def controller(self) -> tuple[Controller, ArmModel, float]:
        """Return the newest controller, the simulated arm, and the control period [s]."""
        return self._loop.newest_controller, self._simulation.arm, self._simulation.period

    def set_controller(self, name: str) -> str:
        """Switch to another controller, compiled before; gains of the same meaning stay."""
        controller = successor(self._loop.newest_controller, name, self._nominal)
        warm_up_controller(controller, every_function=False)
        self._loop.switch_controller(controller)
        self.changes += 1
        return f"controller: {name}"

    def loads(self) -> Settings:
        """Return payload and push."""
        push = {
            axis: Setting(number, partial(self._set_push, axis))
            for axis, number in self._push.items()
        }
        arm, model = self._simulation.arm, self._loop.newest_controller.arm
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
        self.changes += 1

    def _load_model(self, value: float) -> None:
        mass = PAYLOAD.check("joint_controller", value)
        model = require_holdable(self._nominal.with_payload(mass))
        self._loop.newest_controller.set_model(model)
        self.changes += 1

    def _set_speed(self, factor: float) -> None:
        self._pacer.factor = FACTOR.check("simulator", factor)

    def gains(self) -> Settings:
        """Return the gains of the newest controller."""
        return {
            (group, name): Setting(value, partial(self._set_gain, group, name))
            for group, row in self._loop.newest_controller.values.items()
            for name, value in row.items()
        }

    def _set_gain(self, group: str, name: str, value: float) -> None:
        """Set one gain; the defaults of others may follow it."""
        gains = {owner: dict(row) for owner, row in self._loop.newest_controller.given.items()}
        gains.setdefault(group, {})[name] = value
        self._loop.gain_scaling.take(gains)
        self.changes += 1
