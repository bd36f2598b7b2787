"""Identification of a Puma 560 whose description is 20 % wrong, and a square before and after."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.feasibility import solve_along
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.figure_style import INK, PALETTE, figure, heading, label, legend, styled
from arm_dynamics.core.state import State
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult, format_row
from arm_dynamics.demos.square import upright_square
from arm_dynamics.identification.efforts.arm_identification import Identification, compare, identify
from arm_dynamics.identification.efforts.effort_prediction import Prediction
from arm_dynamics.identification.excitation.excitation_search import excite
from arm_dynamics.identification.parameters.dynamic_parameters import (
    nominal_parameters,
    with_parameters,
)
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.recording.motions.motion_data import MotionData
from arm_dynamics.simulation.trace import MotionRecord

ERROR = 0.2
"""Relative error of all masses, inertias and rotor inertias of the description."""
EXCITATION_TIME, SEED, EVALUATIONS = 20.0, 0, 200
"""Duration [s] of the excitation trajectory, seed and number of motions of its search."""
POSITION_NOISE, EFFORT_NOISE = 1e-4, 0.01
"""Standard deviations in a recording: position [rad]; effort relative to its rms."""
START = (0.0, 0.7, -2.4, 0.0, 0.8, 0.0)
"""Configuration [rad] in the middle of the top side of the square."""
SIDE, SIDE_TIME, REST = 0.2, 1.0, 0.5
"""Side of the square [m], time of one side [s], and time at rest after it [s]."""
SPACING = 5e-3
"""Time [s] between two waypoints of the square in joint space."""
PERIOD, DT, INTEGRATOR = 2e-3, 5e-4, "semi_implicit_euler"
MAGNIFICATION, MIN_DISTANCE = 10, 1e-3
"""Factor of the tool error in the figure of the path; smallest tool error of the figure [mm]."""
CUTOFF = 12.0
"""Cut-off frequency [Hz] of the compared efforts: the square is faster than the excitation."""
SHOWN = ("J1", "J2")
"""Joints of the figure: J1 carries no weight, only friction and inertia."""
BEFORE, AFTER = "description", "identified"
STOPPED: dict[str, Any] = {"color": "#EFEFEF", "linewidth": 0, "step": "mid"}
COLORS = {BEFORE: PALETTE[1], AFTER: PALETTE[0]}


def described() -> ArmModel:
    """Return the arm of the description: inertial parameters 20 % too large, no friction."""
    arm = load_arm("puma560")
    values = (1 + ERROR) * nominal_parameters(arm)
    values[11 * arm.nv :] = 0.0
    return with_parameters(arm, values)


def square() -> CartesianTrajectory:
    """Return the upright square in front of the arm, with a constant orientation of the tool."""
    return upright_square(load_arm("puma560"), START, SIDE, SIDE_TIME)


def simulate(model: ArmModel, trajectory: JointTrajectory, seconds: float) -> MotionRecord:
    """Simulate the physical arm along a trajectory under computed torque with ``model``."""
    return simulate_closed_loop(
        load_arm("puma560"), ComputedTorque(model), trajectory, State.of(trajectory.at(0.0).q),
        seconds=seconds, period=PERIOD, dt=DT, integrator=INTEGRATOR,
    )  # fmt: skip


def recorded(motion: MotionRecord, seed: int, source: str) -> MotionData:
    """Return the positions and efforts of a motion with noise."""
    random, size = np.random.default_rng(seed), motion.q.shape
    effort_noise = EFFORT_NOISE * np.sqrt(np.mean(motion.tau**2, axis=0))
    return MotionData(
        motion.arm.joint_names,
        motion.time,
        as_readonly(motion.q + POSITION_NOISE * random.normal(size=size)),
        as_readonly(motion.tau + effort_noise * random.normal(size=size)),
        source,
    )


@dataclass(frozen=True, eq=False)
class Experiment:
    """Identification, motions along the square, and predicted efforts of the first of them.

    The names of both are BEFORE and AFTER: the model of the controller, and of the prediction.
    """

    identification: Identification
    squares: dict[str, MotionRecord]
    predictions: dict[str, Prediction]

    @cached_property
    def desired(self) -> Matrix:
        """Positions of the reference (n, 3) [m]."""
        path, time = square(), self.squares[BEFORE].time
        return as_readonly([path.at(t).position for t in time.tolist()])

    def tool_error(self, run: str) -> Vector:
        """Return the distance (n,) [m] of the tool from its reference."""
        return as_readonly(np.linalg.norm(self.squares[run].tool - self.desired, axis=1))


def experiment() -> Experiment:
    """Record an excitation trajectory, identify the arm, and repeat the held-out square.

    Both recordings are made with the wrong description; the square is not fitted.
    """
    arm = described()
    excitation = excite(arm, EXCITATION_TIME, seed=SEED, evaluations=EVALUATIONS)
    run = simulate(arm, excitation.trajectory(), EXCITATION_TIME)
    path = solve_along(load_arm("puma560"), square(), period=SPACING).joints()
    before = simulate(arm, path, path.end + REST)
    held_out = recorded(before, 2, "square")
    found = identify(arm, [recorded(run, 1, "excitation")], [held_out])
    after = simulate(found.identified, path, path.end + REST)
    models = {BEFORE: arm, AFTER: found.identified}
    predictions = {name: compare(model, held_out, cutoff=CUTOFF) for name, model in models.items()}
    return Experiment(found, {BEFORE: before, AFTER: after}, predictions)


@styled
def show() -> DemoResult:
    """Draw the square, the tool error and the efforts before and after the identification."""
    done = experiment()
    return DemoResult("Identification of a Puma 560", (square_figure(done),), key_figures(done))


def key_figures(done: Experiment) -> tuple[tuple[str, str], ...]:
    """Return tool errors, errors of predicted efforts, and the Coulomb friction."""
    found, rows = done.identification, []
    for run, prediction in done.predictions.items():
        error = 1e3 * done.tool_error(run)
        rms = np.sqrt(np.mean(error**2))
        rows.append((f"{run}: rms, largest tool error", f"{rms:.3f}, {error.max():.3f} mm"))
        relative = format_row(100 * prediction.relative_error)
        rows.append((f"{run}: error of efforts by joint", f"{relative} %"))
    nv = found.arm.nv
    dry = slice(12 * nv, 13 * nv)
    rows.append(
        ("Coulomb friction, actual", _torques(nominal_parameters(load_arm("puma560"))[dry]))
    )
    rows.append(("Coulomb friction, identified", _torques(found.fit.parameters[dry])))
    return tuple(rows)


def _torques(values: Vector) -> str:
    return f"{format_row(values)} N·m"


@styled
def square_figure(done: Experiment) -> DemoFigure:
    """Draw the square, the tool error, and measured and predicted efforts."""
    drawn, ((path, distance), efforts) = figure("A square by the tool of the Puma 560", 2, 2, 7.0)
    path.plot(*done.desired[:, 1:].T, "--", color=INK, linewidth=1.0, label="reference")
    for run, trace in done.squares.items():
        magnified = done.desired + MAGNIFICATION * (trace.tool - done.desired)
        path.plot(*magnified[:, 1:].T, color=COLORS[run], linewidth=1.3)
        error = 1e3 * done.tool_error(run)
        distance.semilogy(trace.time[1:], error[1:], color=COLORS[run], label=run)
    path.set_aspect("equal")
    distance.set_ylim(bottom=MIN_DISTANCE)
    heading(path, f"path, error x {MAGNIFICATION}")
    heading(distance, "tool error")
    label(path, "y [m]", "z [m]")
    label(distance, "time [s]", "tool error [mm]")
    legend(path)
    legend(distance)
    first = done.predictions[BEFORE]
    for axes, joint in zip(efforts, SHOWN, strict=True):
        i, time = done.identification.arm.index(joint), first.time
        stopped = ~first.counted[:, i]
        across = axes.get_xaxis_transform()
        axes.fill_between(time, 0, 1, where=stopped.tolist(), transform=across, **STOPPED)
        axes.plot(time, first.measured[:, i], color=INK, label="measured", linewidth=2.8)
        for run, prediction in done.predictions.items():
            axes.plot(time, prediction.predicted[:, i], color=COLORS[run], label=run, linewidth=1.4)
        heading(axes, f"effort of {joint}")
        label(axes, "time [s]", "effort [N·m]")
        legend(axes)
    caption = (
        "Computed torque at 500 Hz along a square of 0.2 m, 1 s a side. The description has masses,"
        " inertias and rotor inertias 20 % too large and no friction. The identified model comes"
        " from 20 s of excitation, with noise of 0.1 mrad and 1 % of the efforts; the square is not"
        " fitted. Below: efforts of the first square after the low-pass filter, measured and"
        " predicted by both models. Gray: near stops of the joint its dry friction is unknown, so"
        " these samples do not count."
    )
    return DemoFigure("identification_square", caption, drawn)
