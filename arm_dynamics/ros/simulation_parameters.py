"""What the simulator is told at its start: rate, step, method, start pose, and two live numbers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from rclpy.node import Node

from arm_dynamics.control.config import node_parameters
from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.ros_parameters import declare_fixed, declare_list, declare_number
from arm_dynamics.simulation.simulation import Simulation

FACTOR = Parameter(
    "real_time_factor", 1.0, "1", "simulated seconds per second", lower=0.01, upper=1000
)
TIMEOUT = Parameter("command_timeout", 0.1, "s", "age at which a command ends", above=0, upper=10)
LIVE = (FACTOR, TIMEOUT)


def declared_simulation(
    node: Node,
    arm: ArmModel,
    nominal: ArmModel,
    shown: Callable[[Vector], AbstractContextManager[None]],
) -> tuple[Simulation, float]:
    """The simulation of ``arm`` that the parameters ask for, and its real-time factor.

    ``nominal`` is the arm that its safe stop knows. Raises ConfigError for a rate that has no
    whole number of steps, and the errors of ``Simulation``. The context ``shown`` gets the initial
    configuration (nv,), and lasts while the simulation is compiled.
    """
    rate = declare_fixed(node, "rate", 500.0, "states published per simulated second [Hz]")
    dt = check_float("dt [s]", declare_fixed(node, "dt", 1e-4, "step of the physics [s]"), above=0)
    method = declare_fixed(node, "integrator", "semi_implicit_euler", "integration method")
    start = declare_list(
        node, "initial_positions", "start pose; empty: the arm's own", read_only=True
    )
    timeout = declare_number(node, TIMEOUT.name, TIMEOUT, 0.1)
    factor = declare_number(node, FACTOR.name, FACTOR, 1.0)
    q = arm.check_position("initial q", start) if start else arm.configuration("initial")
    period = _period(rate, dt)
    with shown(q):
        simulation = Simulation(
            arm, q=q, dt=dt, period=period, timeout=timeout, integrator=method, nominal=nominal
        )
    return simulation, factor


def lockstep_by_default(file: str | Path | None) -> bool:
    """Whether ``sim`` and the launch files simulate in lockstep, unless told otherwise.

    They do unless the parameter ``file`` sets ``lockstep`` or ``publish_clock`` to false: a busy
    machine then slows simulated time down, and delays no command.
    """
    given = {} if file is None else node_parameters(file, "simulator")
    return bool(given.get("lockstep", given.get("publish_clock", True)))


def _period(rate: float, dt: float) -> float:
    """1 / rate [s]; raises ConfigError naming the nearest rate with a whole number of steps."""
    if not 0 < rate * dt <= 1:
        raise ConfigError(f"rate = {rate:g} Hz: above 0 and at most 1 / dt = {1 / dt:g} Hz")
    steps = round(1 / (rate * dt))
    if abs(steps * dt * rate - 1) > 1e-9:
        nearest = 1 / (steps * dt)
        raise ConfigError(
            f"rate = {rate:g} Hz: 1 / rate must be a whole multiple of dt = {dt:g} s;"
            f" nearest allowed: {nearest:.6g} Hz"
        )
    return 1 / rate
