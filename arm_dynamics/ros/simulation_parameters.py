"""Update rate, time step, integrator and initial configuration of a simulator."""

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
TIMEOUT = Parameter(
    "command_timeout", 0.1, "s", "age at which a command expires", above=0, upper=10
)
LIVE = (FACTOR, TIMEOUT)


def declared_simulation(
    node: Node,
    arm: ArmModel,
    nominal: ArmModel,
    shown: Callable[[Vector], AbstractContextManager[None]],
) -> tuple[Simulation, float]:
    """Return the simulation of ``arm`` that the parameters define, and its real-time factor.

    ``nominal`` is the model of its controlled stop. Raise ConfigError for a period that is not a
    multiple of the time step, and the errors of ``Simulation``. The context ``shown`` receives the
    initial configuration (nv,) and lasts while the simulation is compiled.
    """
    rate = declare_fixed(node, "update_rate", 500.0, "control cycles per simulated second [Hz]")
    dt = check_float(
        "dt [s]", declare_fixed(node, "dt", 1e-4, "time step of the integrator [s]"), above=0
    )
    method = declare_fixed(node, "integrator", "semi_implicit_euler", "integrator")
    start = declare_list(
        node,
        "initial_positions",
        "initial positions; empty: the arm's configuration initial",
        read_only=True,
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
    """Return whether ``sim`` and the launch files simulate in lockstep by default.

    They do unless the parameter ``file`` sets ``lockstep`` or ``publish_clock`` to false.
    In lockstep a busy machine slows simulated time down and delays no command.
    """
    given = {} if file is None else node_parameters(file, "simulator")
    return bool(given.get("lockstep", given.get("publish_clock", True)))


def _period(rate: float, dt: float) -> float:
    """Return 1 / rate [s]; raise ConfigError with the nearest rate that divides into time steps."""
    if not 0 < rate * dt <= 1:
        raise ConfigError(
            f"update_rate = {rate:g} Hz; expected above 0 and at most 1 / dt = {1 / dt:g} Hz"
        )
    steps = round(1 / (rate * dt))
    if abs(steps * dt * rate - 1) > 1e-9:
        nearest = 1 / (steps * dt)
        raise ConfigError(
            f"update_rate = {rate:g} Hz; expected a period that is a multiple of dt = {dt:g} s;"
            f" set {nearest:.6g} Hz"
        )
    return 1 / rate
