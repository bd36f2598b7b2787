"""Work of the page in another process: excitation, fits, choice of poses, recorded motion.

Each function reports its progress as a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.identification.efforts.arm_identification import identify
from arm_dynamics.identification.excitation.excitation import Excitation
from arm_dynamics.identification.excitation.excitation_information import excitation_quality
from arm_dynamics.identification.excitation.excitation_search import EVALUATIONS, excite
from arm_dynamics.identification.excitation.excitation_start import checked_excitation
from arm_dynamics.identification.gravity.gravity_calibration import StaticPose, calibrate_gravity
from arm_dynamics.identification.gravity.pose_measurement import Leg, plan_legs
from arm_dynamics.identification.gravity.pose_selection import choose_poses
from arm_dynamics.identification.results.identification_result import (
    IdentificationResult,
    Report,
    new_faults,
)
from arm_dynamics.identification.servos.servo_identification import identify_servos
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_checks import check_units
from arm_dynamics.recording.motions.motion_readers import load_motion

Progress = Callable[[str], None]
GHOST_RATE = 30.0
"""Rate [Hz] of a motion that the ghost shows."""


class ShownMotion(NamedTuple):
    """Motion of the ghost: times (n,) [s] from 0, and configurations (n, nv) [rad or m]."""

    times: Vector
    q: Matrix


class FoundExcitation(NamedTuple):
    """Excitation trajectory, checked against all limits, with a text of its quality."""

    excitation: Excitation
    trajectory: JointTrajectory
    quality: str
    motion: ShownMotion


class Fit(NamedTuple):
    """Report of a fit, its warnings, and the URDF of the identified arm."""

    report: Report
    warnings: tuple[str, ...]
    urdf: str
    remarks: tuple[str, ...]
    """Warnings of the audit about the URDF."""


def search_excitation(
    report: Progress, arm: ArmModel, duration: float, evaluations: int = EVALUATIONS
) -> FoundExcitation:
    """Return an excitation trajectory of ``duration`` [s] from the initial configuration."""

    def progress(done: int, total: int) -> None:
        report(f"searching: {done} of {total} motions compared")

    found = excite(arm, duration, evaluations=evaluations, progress=progress)
    report("checking limits and self-collision")
    trajectory = checked_excitation(arm, found)
    quality = excitation_quality(arm, found)
    hidden = len(quality.unidentifiable)
    text = (
        f"{found.duration:g} s within the limits, without self-collision;"
        f" {quality.base.size - hidden} of {quality.base.size} base parameters identifiable,"
        f" condition number {quality.condition:.3g}"
    )
    times = np.arange(0.0, found.duration, 1 / GHOST_RATE)
    return FoundExcitation(found, trajectory, text, ShownMotion(times, found.sample(times)[0]))


def recorded_motion(report: Progress, arm: ArmModel, folder: Path) -> ShownMotion:
    """Return the motion of a recording for the ghost."""
    report(f"reading {folder.name}")
    motion = load_motion(arm, folder)
    times = motion.time - motion.time[0]
    sampled = np.arange(0.0, times[-1], 1 / GHOST_RATE)
    index = np.minimum(np.searchsorted(times, sampled), len(times) - 1)
    return ShownMotion(sampled, motion.q[index])


def fit_recording(report: Progress, arm: ArmModel, folder: Path) -> Fit:
    """Fit efforts, or the position servos of an arm without measured efforts, to a recording."""
    report(f"reading {folder.name}")
    motion = load_motion(arm, folder)
    result: IdentificationResult
    if motion.effort is None and motion.current is None:
        report("fitting the positions")
        result = identify_servos(arm, [motion])
    else:
        result = identify(arm, [motion], stage=report)
    return _fit(arm, result, (*check_units(arm, motion),))


def fit_poses(
    report: Progress, arm: ArmModel, poses: Sequence[StaticPose], stiffness: float | None
) -> Fit:
    """Calibrate gravity from static poses."""
    report("fitting the poses")
    result = calibrate_gravity(arm, poses, [f"{len(poses)} static poses"])
    return _fit(arm, result, (), result.report(stiffness))


def plan_poses(report: Progress, arm: ArmModel, count: int, speed: float) -> tuple[Leg, ...]:
    """Return the motions through ``count`` static poses at ``speed`` [rad/s or m/s] at most."""
    report("choosing poses without self-collision")
    return plan_legs(arm, choose_poses(arm, count), speed)


def _fit(
    arm: ArmModel,
    result: IdentificationResult,
    warnings: tuple[str, ...],
    report: Report | None = None,
) -> Fit:
    urdf = result.urdf_text()
    folder = arm.source.parent if arm.source else Path.cwd()
    faults = new_faults(arm, urdf, folder / "identified.urdf")
    return Fit(
        report or result.report(), (*warnings, *result.warnings), urdf, tuple(map(str, faults))
    )
