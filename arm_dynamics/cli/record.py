"""``arm-dynamics record FOLDER``: simulate an arm on its walk and write down all of it."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace

from arm_dynamics.cli.arm_options import (
    add_options,
    build_arm,
    controller_of,
    loaded,
    path_argument,
)
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.trajectories.demo_trajectory import demo_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import RecordingError
from arm_dynamics.core.number_option import check_steps, seconds
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.recording.recorder import Recorder
from arm_dynamics.simulation.integrators import INTEGRATORS
from arm_dynamics.simulation.simulation import Simulation


def run(arguments: Sequence[str]) -> int:
    """Record for --duration, or until Ctrl-C; what is recorded by then can be replayed."""
    given = _parser().parse_args(arguments)
    simulation, loop = _build(given)
    duration = check_float("--duration [s]", given.duration, lower=simulation.period)
    check_steps("--duration / --dt", duration / simulation.dt)
    stopped = _stop_on_signals()
    text = f"simulating {duration:g} s of {simulation.arm.name}"
    with Recorder(simulation, given.folder) as recorder, waiting(text):
        while recorder.periods * simulation.period < duration - simulation.dt / 2:
            if stopped() or recorder.fault:
                break
            _tick(loop)
    if recorder.fault:
        raise RecordingError(recorder.fault)
    print(
        f"{recorder.periods * simulation.period:.3f} s of {simulation.arm.name} in {given.folder}:"
        f" {recorder.periods} periods of {simulation.steps} steps of {simulation.dt:g} s"
        f" ({given.integrator}){', stopped early' if stopped() else ''}"
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-dynamics record", description=__doc__)
    add = parser.add_argument
    add("folder", type=path_argument, help="the recording: a folder that does not exist yet")
    add("--arm", default="five_dof", help="bundled arm or path of a URDF (default: five_dof)")
    add_options(parser)
    add(
        "--duration",
        type=seconds("--duration"),
        default=5.0,
        metavar="S",
        help="simulated seconds; default: 5",
    )
    add(
        "--period",
        type=seconds("--period"),
        default=2e-3,
        metavar="S",
        help="of control; default: 2e-3",
    )
    methods = sorted(INTEGRATORS)
    add("--integrator", default="semi_implicit_euler", choices=methods, help="of integration")
    return parser


def _build(given: argparse.Namespace) -> tuple[Simulation, ControlLoop]:
    """The arm in simulation, and its controller's loop around it."""
    arm = build_arm(given)
    simulation = Simulation(
        loaded(arm, given),
        dt=given.dt,
        period=given.period,
        integrator=given.integrator,
        nominal=arm,
    )
    return simulation, ControlLoop(SimulationDriver(arm, simulation), controller_of(arm, given))


def _tick(loop: ControlLoop) -> None:
    """One period of control; a new round of the walk where the last one is over."""
    loop.step()
    now, trajectory = loop.driver.read().time, loop.trajectory
    if trajectory is not None and now >= trajectory.end:
        loop.follow(
            JointTrajectory(tuple(replace(w, time=w.time + now) for w in demo_trajectory(loop.arm)))
        )


def _stop_on_signals() -> Callable[[], bool]:
    """Whether SIGINT or SIGTERM came, from now on: never in the middle of a message."""
    came: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: came.append(n))
    return lambda: bool(came)
