"""Streams of waypoints and commands on a control loop, followed within the limits."""

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
    parabola_tracks,
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
"""Time between two messages beyond which a new stream begins [s]."""
AHEAD = 0.25
"""Maximum time ahead of a single waypoint of a stream [s]."""
LATE = 0.1
"""Maximum age of a last waypoint that counts as due now [s]."""
MISSED = 1.5
"""Periods, in addition to the longest recent one, for which a stream's motion continues without a
message: a message may be lost."""
FIRST = 0.05
"""Time for which a second message is awaited after the first one [s]."""
MAX_EXTRAPOLATION_TIME = 0.1
"""Maximum time for which the motion continues [s]."""
SLOW = 2.5
"""Periods of a slow stream in which a difference decays."""
INTERVALS = 16
"""Times between messages whose mean is the stream's period."""
MIN_PERIOD = 0.002
"""Minimum period, also while it is unknown [s]."""


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """Settings of ``~/commands``.

    Parameters
    ----------
    interface : str
        "position" or "velocity".
    timeout : float
        Time [s] for which a velocity command is valid; then the joints come to rest.

    """

    interface: str = "position"
    timeout: float = 0.25


class Streams:
    """Messages of ``~/joint_trajectory`` and ``~/commands``.

    ``observe`` is called after every cycle by the loop's thread, all other methods by one other
    thread.

    Parameters
    ----------
    loop : ControlLoop
        Loop that follows the streams.

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
        """Mean time between two messages [s]; MIN_PERIOD without messages."""
        if not self._intervals:
            return MIN_PERIOD
        return max(sum(self._intervals) / len(self._intervals), MIN_PERIOD)

    def take(self, trajectory: JointTrajectory, *, integrated: bool = False) -> None:
        """Follow waypoints of ``~/joint_trajectory`` from the next cycle.

        Parameters
        ----------
        trajectory : JointTrajectory
            Received waypoints.
        integrated : bool
            Whether only velocities were given.

        Raises
        ------
        TrajectoryRejected
            If the waypoints leave the arm's limits, or are due in the past. The active trajectory
            continues.

        """
        state, present = self.loop.present()
        now, trajectory = state.time, trajectory.near(self.loop.arm, present.q, state.time)
        if trajectory.end <= now - LATE:
            raise TrajectoryRejected(
                f"trajectory: time of the last waypoint = {trajectory.end:.6g} s; expected a time"
                f" later than now ({now:.6g} s)"
            )
        streaming = self._continues_stream(now)
        coast = self._coast(now, trajectory.end)
        horizon = AHEAD if streaming else FADE
        if integrated:
            self.loop.follow(self._velocities(trajectory, now, coast))
        elif len(trajectory.waypoints) == 1 and trajectory.end < now + horizon:
            self.loop.follow(self._single(trajectory, coast))
        else:
            self.loop.follow(self._window(trajectory, now, coast, streaming=streaming))

    def _continues_stream(self, now: float) -> bool:
        """Count a message; return whether it continues a stream."""
        interval, self._last = now - self._last, now
        if not 0 <= interval <= GAP:
            self._intervals.clear()
            self._fit.restart()
            return False
        self._intervals.append(interval)
        return True

    def _coast(self, now: float, end: float) -> float:
        """Return the time after a last waypoint for which its motion continues [s]."""
        wait = max(self._intervals, default=FIRST) + MISSED * self.period
        return min(max(now + wait - end, 0.0), MAX_EXTRAPOLATION_TIME)

    def _single(self, trajectory: JointTrajectory, coast: float) -> StreamTrajectory:
        point = trajectory.waypoints[0]
        check_limits(self.loop.arm, trajectory, self.loop.present()[1].q)
        self._fit.add(Sample(point.time, point.q, point.v), self.period)
        return self._stream(
            trajectory,
            parabola_tracks(self._fit.least_squares(), point, self._limits, coast),
            coast,
        )

    def _window(
        self, trajectory: JointTrajectory, now: float, coast: float, *, streaming: bool
    ) -> StreamTrajectory:
        present = self.loop.present()[1]
        begun = max(sum(w.time <= now for w in trajectory.waypoints) - 1, 0)
        points = trajectory.waypoints[begun:]
        positions_only = all(w.v is None for w in points)
        if streaming and positions_only and len(points) > 1 and self._is_allowed(smooth(points)):
            points = smooth(points)
        check_limits(self.loop.arm, JointTrajectory(points), present.q)
        joined = JointTrajectory(points).starting_from(now, present).waypoints
        if points[0].time >= now + FADE and self._is_allowed(joined):
            points = joined
        ended = through(points, self._limits, coast, to_rest=points[-1].v is None)
        return self._stream(trajectory, ended, coast)

    def _is_allowed(self, points: tuple[Waypoint, ...]) -> bool:
        try:
            check_limits(self.loop.arm, JointTrajectory(points), self.loop.present()[1].q)
        except TrajectoryRejected:
            return False
        return True

    def _stream(
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
                    f"joint '{arm.joint_names[i]}': velocity = {v[i]:.6g} rad/s at"
                    f" {point.time:.3f} s; expected within the limit {arm.velocity_limit[i]:.6g}"
                )
            rows.append(tuple(v.tolist()))
        times, end = tuple(w.time for w in trajectory.waypoints), trajectory.end + coast
        end = max(end, now + self.period)
        return VelocityStream(self._limits, times, tuple(rows), end, self.period, trajectory.effort)

    def command(self, values: Sequence[float]) -> None:
        """Follow one message of ``~/commands``.

        Parameters
        ----------
        values : (nv,) sequence
            Positions [rad or m] or velocities [rad/s or m/s], limited to the joints' ranges.

        Raises
        ------
        InvalidValue
            For another number of values than joints, or a value that is not finite.

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
        limited = as_readonly(np.clip(given, low, high))
        for i in np.flatnonzero(limited != given).tolist():
            self.loop.events.report(
                "command_limited",
                f"commands: joint '{arm.joint_names[i]}': {interface} = {given[i]:.6g}; limited to"
                f" [{low[i]:.6g}, {high[i]:.6g}]",
            )
        self._continues_stream(now)
        if interface == "position":
            point = JointTrajectory((Waypoint(now, limited),)).near(arm, present.q, now)
            self.loop.follow(self._single(point, self._coast(now, now)))
            return
        end, row = now + self.commands.timeout, tuple(limited.tolist())
        self.loop.follow(VelocityStream(self._limits, (now,), (row,), end, self.period))

    def observe(self) -> None:
        """Report a stream that ended in motion, and stop after cmd_timeout."""
        generator = self.loop.reference_generator
        trajectory = generator.trajectory
        kinds = JointTrajectory | StreamTrajectory | VelocityStream
        if not isinstance(trajectory, kinds) or generator.pending:
            return
        elapsed = generator.time - trajectory.data_end
        if elapsed >= 0 and trajectory.moving and self._reported is not trajectory:
            self._reported = trajectory
            self.loop.events.report(
                "stream_ended",
                f"no waypoint after {trajectory.data_end:.3f} s: the reference comes to rest and"
                " holds",
            )
        streamed = not isinstance(trajectory, JointTrajectory)
        if streamed and 0 < self.timeout <= elapsed and self._timed_out is not trajectory:
            self._timed_out = trajectory
            self.loop.events.report(
                "command_timeout",
                f"no waypoint for {self.timeout:g} s (cmd_timeout): the arm is brought to rest and"
                " holds",
            )
            self.loop.request_stop()
