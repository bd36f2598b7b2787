"""Trajectories and commands of a stream on a control loop: joined within the limits, never lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.trajectories.joint_trajectory import (
    JointTrajectory,
    Waypoint,
    check_limits,
)
from arm_dynamics.control.trajectories.limited_move import Track
from arm_dynamics.control.trajectories.stream_tracks import (
    Sample,
    StreamFit,
    fitted,
    smooth,
    through,
)
from arm_dynamics.control.trajectories.stream_trajectory import (
    FADE,
    StreamTrajectory,
    VelocityStream,
    joint_limits,
)
from arm_dynamics.core.arrays import as_readonly, check_vector
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected

GAP = 0.25
"""Time [s] between two messages beyond which the second one begins another stream."""
AHEAD = 0.25
"""Time [s] up to which a single waypoint ahead is one of a stream."""
LATE = 0.1
"""Age [s] up to which a last waypoint counts as due now."""
MISSED = 1.5
"""Periods beyond the longest of the last times between messages for which a stream's motion
continues without one: a message may be lost."""
FIRST = 0.05
"""Time [s] for which a first message is waited for another one."""
MAX_EXTRAPOLATION_TIME = 0.1
"""Time [s] for which it continues at most."""
SLOW = 2.5
"""Periods of a slow stream in which a difference fades out."""
INTERVALS = 16
"""Times between messages of which the mean is the stream's period."""
MIN_PERIOD = 0.002
"""Period [s] at least, and where it is not known yet."""


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """How ``~/commands`` are read: ``interface`` position or velocity, ``timeout`` [s]."""

    interface: str = "position"
    timeout: float = 0.25


class Streams:
    """What comes on ``~/joint_trajectory`` and ``~/commands``.

    ``observe`` is called after every tick by the loop's thread, all others by one other thread.
    """

    def __init__(self, loop: ControlLoop) -> None:
        self.loop = loop
        self.timeout = 0.0
        """cmd_timeout [s]; 0: none."""
        self.commands = CommandSettings()
        self._limits = joint_limits(loop.arm)
        self._fit = StreamFit(loop.arm.velocity_limit)
        self._intervals: deque[float] = deque(maxlen=INTERVALS)
        self._last = -np.inf
        self._reported: object = None
        self._timed_out: object = None

    @property
    def period(self) -> float:
        """Time [s] between two messages: their mean; LEAST where there are none."""
        return (
            max(sum(self._intervals) / len(self._intervals), MIN_PERIOD)
            if self._intervals
            else MIN_PERIOD
        )

    def take(self, trajectory: JointTrajectory, *, integrated: bool = False) -> None:
        """Follow waypoints of ``~/joint_trajectory`` from the next tick on.

        Raises TrajectoryRefused where they leave the arm's limits by themselves, or are due in
        the past; the active trajectory then continues. ``integrated``: only velocities were given.
        """
        state, present = self.loop.present()
        now, trajectory = state.time, trajectory.near(self.loop.arm, present.q, state.time)
        if trajectory.end <= now - LATE:
            raise TrajectoryRejected(
                f"the last waypoint is due at {trajectory.end:.6g} s and it is {now:.6g} s:"
                f" a time later than now is expected"
            )
        streaming = self._continues(now)
        coast = self._coast(now, trajectory.end)
        near = AHEAD if streaming else FADE
        if integrated:
            self.loop.follow(self._velocities(trajectory, now, coast))
        elif len(trajectory.waypoints) == 1 and trajectory.end < now + near:
            self.loop.follow(self._single(trajectory, coast))
        else:
            self.loop.follow(self._window(trajectory, now, coast, streaming=streaming))

    def _continues(self, now: float) -> bool:
        """Note a message; whether it continues a stream."""
        interval, self._last = now - self._last, now
        if not 0 <= interval <= GAP:
            self._intervals.clear()
            self._fit.restart()
            return False
        self._intervals.append(interval)
        return True

    def _coast(self, now: float, end: float) -> float:
        """Time [s] after a last waypoint for which its motion continues."""
        wait = max(self._intervals, default=FIRST) + MISSED * self.period
        return min(max(now + wait - end, 0.0), MAX_EXTRAPOLATION_TIME)

    def _single(self, trajectory: JointTrajectory, coast: float) -> StreamTrajectory:
        point = trajectory.waypoints[0]
        check_limits(self.loop.arm, trajectory, self.loop.present()[1].q)
        self._fit.add(Sample(point.time, point.q, point.v), self.period)
        return self._of(trajectory, fitted(self._fit.fit(), point, self._limits, coast), coast)

    def _window(
        self, trajectory: JointTrajectory, now: float, coast: float, *, streaming: bool
    ) -> StreamTrajectory:
        present = self.loop.present()[1]
        begun = max(sum(w.time <= now for w in trajectory.waypoints) - 1, 0)
        points = trajectory.waypoints[begun:]
        positions_only = points[0].v is None
        if streaming and positions_only and len(points) > 1 and self._keeps(smooth(points)):
            points = smooth(points)
        check_limits(self.loop.arm, JointTrajectory(points), present.q)
        led = JointTrajectory(points).starting_from(now, present).waypoints
        if points[0].time >= now + FADE and self._keeps(led):
            points = led
        ended = through(points, self._limits, coast, to_rest=positions_only)
        return self._of(trajectory, ended, coast)

    def _keeps(self, points: tuple[Waypoint, ...]) -> bool:
        try:
            check_limits(self.loop.arm, JointTrajectory(points), self.loop.present()[1].q)
        except TrajectoryRejected:
            return False
        return True

    def _of(
        self, trajectory: JointTrajectory, ended: tuple[tuple[Track, ...], bool], coast: float
    ) -> StreamTrajectory:
        (tracks, moving), end = ended, trajectory.end + coast
        fade, effort = max(FADE, SLOW * self.period), trajectory.effort
        return StreamTrajectory(self._limits, tracks, trajectory.start, end, moving, effort, fade)

    def _velocities(self, trajectory: JointTrajectory, now: float, coast: float) -> VelocityStream:
        arm, rows = self.loop.arm, []
        for point in trajectory.waypoints:
            v = np.zeros(arm.nv) if point.v is None else point.v
            for i in np.flatnonzero(np.abs(v) > arm.velocity_limit * (1 + 1e-6)).tolist():
                raise TrajectoryRejected(
                    f"joint '{arm.joint_names[i]}': velocity {v[i]:.6g} rad/s at"
                    f" {point.time:.3f} s exceeds the limit {arm.velocity_limit[i]:.6g}"
                )
            rows.append(tuple(v.tolist()))
        times, end = tuple(w.time for w in trajectory.waypoints), trajectory.end + coast
        end = max(end, now + self.period)
        return VelocityStream(self._limits, times, tuple(rows), end, self.period, trajectory.effort)

    def command(self, values: Sequence[float]) -> None:
        """Follow one message of ``~/commands``: positions [rad or m] or velocities.

        Raises InvalidValue for another number of values than joints, or one that is not finite.
        """
        state, present = self.loop.present()
        now, arm, interface = state.time, self.loop.arm, self.commands.interface
        if len(values) != arm.nv:
            raise InvalidValue(
                f"commands: {len(values)} values; expected one {interface} of each of"
                f" {', '.join(arm.joint_names)}"
            )
        given = check_vector(f"commands ({interface})", values, arm.nv)
        if interface == "position":
            low, high = arm.lower, arm.upper
        else:
            low, high = -arm.velocity_limit, arm.velocity_limit
        kept = as_readonly(np.clip(given, low, high))
        for i in np.flatnonzero(kept != given).tolist():
            self.loop.events.report(
                "command_limited",
                f"commands: joint '{arm.joint_names[i]}': {interface} = {given[i]:.6g}; limited to"
                f" [{low[i]:.6g}, {high[i]:.6g}]",
            )
        self._continues(now)
        if interface == "position":
            point = JointTrajectory((Waypoint(now, kept),)).near(arm, present.q, now)
            self.loop.follow(self._single(point, self._coast(now, now)))
            return
        end, row = now + self.commands.timeout, tuple(kept.tolist())
        self.loop.follow(VelocityStream(self._limits, (now,), (row,), end, self.period))

    def observe(self) -> None:
        """Report a stream that ended in motion, and hold once cmd_timeout is over."""
        following = self.loop.reference_generator
        trajectory = following.trajectory
        kinds = JointTrajectory | StreamTrajectory | VelocityStream
        if not isinstance(trajectory, kinds) or following.pending:
            return
        passed = following.time - trajectory.data_end
        if passed >= 0 and trajectory.moving and self._reported is not trajectory:
            self._reported = trajectory
            self.loop.events.report(
                "stream_ended",
                f"no waypoint after {trajectory.data_end:.3f} s: the reference comes to rest and"
                " holds",
            )
        streamed = not isinstance(trajectory, JointTrajectory)
        if streamed and 0 < self.timeout <= passed and self._timed_out is not trajectory:
            self._timed_out = trajectory
            self.loop.events.report(
                "command_timeout",
                f"no waypoint for {self.timeout:g} s (cmd_timeout): the arm is brought to rest and"
                " holds",
            )
            self.loop.request_stop()
