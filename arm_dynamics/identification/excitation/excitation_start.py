"""Motion of an arm that runs an excitation trajectory: first to its start, then the trajectory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from arm_dynamics.control.trajectories.demo_trajectory import move_time
from arm_dynamics.control.trajectories.joint_trajectory import (
    JointTrajectory,
    Waypoint,
    check_limits,
)
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import Reference
from arm_dynamics.identification.excitation.excitation import Excitation
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns

REST = 0.5
"""Time at rest [s] before each part of the motion."""
AT_START = 1e-3
"""Distance from the start configuration [rad or m] that needs no motion to it."""


@dataclass(frozen=True, eq=False)
class ExcitationMotion:
    """Trajectory: a motion to the start configuration, then an excitation trajectory.

    Parameters
    ----------
    approach : JointTrajectory
        Motion to the start.
    excitation : JointTrajectory
        Excitation trajectory from time 0, as ``checked_excitation`` returns it.
    begin : float
        Time [s] at which it begins.
    turns : (nv,) array
        Whole turns [rad] that are added to it.

    """

    approach: JointTrajectory
    excitation: JointTrajectory
    begin: float
    turns: Vector

    @property
    def start(self) -> float:
        """Time of the first waypoint [s]."""
        return self.approach.start

    @property
    def end(self) -> float:
        """Time of the last waypoint [s]."""
        return self.begin + self.excitation.end

    @property
    def waypoints(self) -> tuple[Waypoint, ...]:
        """Waypoints of the whole motion."""
        series = (
            replace(w, time=w.time + self.begin, q=as_readonly(w.q + self.turns))
            for w in self.excitation.waypoints
        )
        return (*(w for w in self.approach.waypoints if w.time < self.begin), *series)

    def at(self, time: float) -> Reference:
        """Return the reference at ``time`` [s]."""
        if time < self.begin:
            return self.approach.at(time)
        reference = self.excitation.at(time - self.begin)
        return replace(reference, q=as_readonly(reference.q + self.turns))

    def starting_from(self, now: float, current_reference: Reference) -> ExcitationMotion:
        """Return the motion with an approach that starts at ``now`` [s] from a reference."""
        return replace(self, approach=self.approach.starting_from(now, current_reference))

    def check(self, arm: ArmModel) -> None:
        """Raise TrajectoryRejected if the approach exceeds a limit; the rest is checked already."""
        self.approach.check(arm)


def checked_excitation(arm: ArmModel, excitation: Excitation) -> JointTrajectory:
    """Return an excitation trajectory from time 0, checked against all limits of an arm.

    Call it before torque is enabled: it takes a second per 50,000 waypoints.

    Raises
    ------
    InvalidValue
        If the joints differ.
    TrajectoryRejected
        If the trajectory exceeds a limit.

    """
    trajectory = excitation.require_joints(arm).trajectory()
    check_limits(arm, trajectory, np.clip(excitation.start, arm.lower, arm.upper))
    return trajectory


def excitation_motion(
    arm: ArmModel, excitation: JointTrajectory, q: Vector, now: float
) -> ExcitationMotion:
    """Return the motion from rest at ``q`` to the start, then the excitation trajectory.

    The motion to the start configuration is quintic and uses 5/8 of the velocity limits at most. It
    is not checked for self-collision. The time of this call does not depend on the length of the
    excitation trajectory.

    Parameters
    ----------
    arm : ArmModel
        Arm of the trajectory.
    excitation : JointTrajectory
        Result of ``checked_excitation``.
    q : (nv,) array
        Present configuration [rad or m]; continuous joints keep its turns.
    now : float
        Time [s]; the motion begins REST later.

    """
    origin = excitation.waypoints[0].q
    turns, zero = whole_turns(arm, origin, q), as_readonly(np.zeros(arm.nv))
    start, begin = as_readonly(origin + turns), now + REST
    points = [Waypoint(begin, as_readonly(q), zero, zero)]
    if np.abs(start - q).max() > AT_START:
        begin += move_time(arm, q, start)
        points.append(Waypoint(begin, start, zero, zero))
        begin += REST
    return ExcitationMotion(JointTrajectory(tuple(points)), excitation, begin, turns)
