"""Simulate an arm on its demo, an excitation trajectory or static poses, and record it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace

from arm_dynamics.cli.arm_options import (
    add_excitation,
    add_options,
    add_tool_frame,
    build_arm,
    controller_of,
    path_argument,
    with_payload,
)
from arm_dynamics.cli.interrupt import interruption
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.trajectories.demo_trajectory import demo_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import ConfigError, RecordingError
from arm_dynamics.core.number_option import Number, check_steps, seconds
from arm_dynamics.core.signals import STOP_SIGNALS, ShutdownFlag, handling
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.identification.excitation.excitation import Excitation
from arm_dynamics.identification.excitation.excitation_start import (
    REST,
    ExcitationMotion,
    checked_excitation,
    excitation_motion,
)
from arm_dynamics.identification.gravity.pose_measurement import Leg, measure_poses, plan_legs
from arm_dynamics.identification.gravity.pose_selection import choose_poses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.recorder import Recorder
from arm_dynamics.simulation.integrators import INTEGRATORS
from arm_dynamics.simulation.simulation import Simulation

POSE_SPEED = 1.0
"""Largest velocity [rad/s or m/s] between static poses."""


def run(arguments: Sequence[str]) -> int:
    """Record for --duration, through --poses, or until Ctrl-C; return 0.

    After Ctrl-C the recording is complete until then.
    """
    args = command_parser().parse_args(arguments)
    simulation, loop = build_loop(args)
    excitation, legs = _excitation(args, loop.arm), _legs(args, loop.arm)
    usual = 5.0 if excitation is None else excitation.end + REST
    duration = usual if args.duration is None else args.duration
    duration = check_float("--duration [s]", duration, lower=simulation.period)
    check_steps("--duration / --dt", duration / simulation.dt)
    # A flag, because a signal must not interrupt the write of a message.
    stop = ShutdownFlag(interruption("record"))
    length = f"{args.poses:g} static poses" if legs else f"{duration:g} s"
    text = f"simulating {length} of {simulation.arm.name}"
    with (
        handling(stop, *STOP_SIGNALS),
        Recorder(simulation, args.folder, loop=loop) as recorder,
        waiting(text),
    ):

        def step(_: str = "") -> bool:
            loop.step()
            return not (stop.is_set() or recorder.fault)

        def step_within_duration() -> bool:
            time = recorder.periods * simulation.period
            return time < duration - simulation.dt / 2 and step()

        if legs:
            measure_poses(loop, legs, step)
        else:
            follow_motion(loop, excitation, step_within_duration)
    if recorder.fault:
        raise RecordingError(recorder.fault)
    print(
        f"{recorder.periods * simulation.period:.3f} s of {simulation.arm.name} in {args.folder}:"
        f" {recorder.periods} periods of {simulation.steps} steps of {simulation.dt:g} s"
        f" ({args.integrator}){', stopped early' if stop.is_set() else ''}"
    )
    if legs:
        print(f"arm-dynamics identify gravity {args.arm} {args.folder} reads it")
    return 0


def _excitation(args: argparse.Namespace, arm: ArmModel) -> ExcitationMotion | None:
    """Return the excitation trajectory of --excitation from the initial configuration."""
    if args.excitation is None:
        return None
    known = checked_excitation(arm, Excitation.load(args.excitation))
    return excitation_motion(arm, known, arm.configuration("initial"), 0.0)


def _legs(args: argparse.Namespace, arm: ArmModel) -> tuple[Leg, ...]:
    """Return the motions through the static poses of --poses; without it none."""
    if args.poses is None:
        return ()
    if args.excitation is not None or args.duration is not None:
        raise ConfigError(f"--poses = {args.poses:g}; expected without --excitation and --duration")
    with waiting("choosing poses without self-collision"):
        return plan_legs(arm, choose_poses(arm, int(args.poses)), POSE_SPEED)


def follow_motion(
    loop: ControlLoop, excitation: ExcitationMotion | None, step: Callable[[], bool]
) -> None:
    """Step the loop while ``step`` returns true, along the excitation or the repeated demo."""
    followed = False
    while step():
        now, trajectory = loop.driver.read().time, loop.trajectory
        if excitation is not None and not followed:
            loop.follow(excitation)
            followed = True
        elif excitation is None and trajectory is not None and now >= trajectory.end:
            waypoints = demo_trajectory(loop.arm)
            loop.follow(JointTrajectory(tuple(replace(w, time=w.time + now) for w in waypoints)))


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics record", description=__doc__)
    add = parser.add_argument
    add("folder", type=path_argument, metavar="FOLDER", help="recording: a new folder")
    add("--arm", default="five_dof", help="bundled arm or path of a file (default: five_dof)")
    add_tool_frame(parser)
    add_options(parser)
    add_excitation(parser)
    text = "static poses for gravity calibration, each approached from both sides: their number"
    add("--poses", type=Number("--poses", 3, 100, whole=True), metavar="COUNT", help=text)
    text = "simulated time [s] (default: 5, or the end of the excitation trajectory)"
    add("--duration", type=seconds("--duration"), metavar="S", help=text)
    text = "control period [s] (default: 2e-3)"
    add("--period", type=seconds("--period"), default=2e-3, metavar="S", help=text)
    text = "integrator (default: semi_implicit_euler)"
    add("--integrator", default="semi_implicit_euler", choices=sorted(INTEGRATORS), help=text)
    return parser


def build_loop(args: argparse.Namespace) -> tuple[Simulation, ControlLoop]:
    """Return the simulation of the arm with its payload, and the control loop around it."""
    arm = build_arm(args)
    simulation = Simulation(
        with_payload(arm, args),
        dt=args.dt,
        period=args.period,
        integrator=args.integrator,
        nominal=arm,
    )
    return simulation, ControlLoop(SimulationDriver(arm, simulation), controller_of(arm, args))
