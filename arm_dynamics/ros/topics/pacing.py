"""Time: timers by the wall clock; a simulator's wall clock, or the /clock of another simulator."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from rclpy.clock import Clock as NodeClock
from rclpy.clock import ClockType
from rclpy.node import Node
from rclpy.timer import Timer
from rosgraph_msgs.msg import Clock

from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.timing import Pacer
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.mailbox import Mailbox
from arm_dynamics.ros.messages.serialization import decode, seconds
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.topics.publisher_checks import OnePublisher
from arm_dynamics.simulation.simulation import Simulation

MAX_WAIT = 0.1
"""Maximum wait [s] for /clock before the loop serves requests again."""
MAX_LAG = 1.0
"""Simulated time [s] behind /clock from which diagnostics warn."""
CLOCK_TOLERANCE = 1e-9
"""Resolution [s] of the stamps on /clock."""


def wall_timer(node: Node, period: float, callback: Callable[[], None]) -> Timer:
    """Call ``callback`` every ``period`` [s], also while the node's simulated time is stopped."""
    return node.create_timer(period, callback, clock=NodeClock(clock_type=ClockType.STEADY_TIME))


class TimeSource(NamedTuple):
    """Source of a simulator's time, and whether the simulator waits for commands."""

    pacer: Pacer | ClockPacer
    lockstep: bool
    """Whether the simulator waits for the command that replies to each state."""
    publishes_clock: bool
    is_simulated: bool
    """Whether stamps are simulated time: that of this or another simulator's /clock."""

    @property
    def follows_clock(self) -> bool:
        """Whether the time is that of another simulator."""
        return self.is_simulated and not self.publishes_clock


def declare_time_source(node: Node, simulation: Simulation, factor: float) -> TimeSource:
    """Declare ``lockstep`` and ``publish_clock``; raise ConfigError if they exclude each other.

    Without ``publish_clock`` the parameter ``use_sim_time`` selects whether to follow /clock.
    """
    lockstep = declare_fixed(
        node, "lockstep", False, "wait for the command that replies to each state"
    )
    publishes = declare_fixed(node, "publish_clock", True, "be the source of /clock")
    follows = not publishes and bool(node.get_parameter("use_sim_time").value)
    if lockstep and not (publishes or follows):
        raise ConfigError(
            "lockstep = true: publish_clock = use_sim_time = false; expected one of them true"
        )
    pacer = ClockPacer(node, simulation) if follows else Pacer(simulation.period, factor)
    return TimeSource(pacer, lockstep, publishes, publishes or follows)


class ClockPacer:
    """Pacer of a simulation that follows /clock.

    The first message sets the simulation's time. A period ends when /clock has reached the time
    of the state. Simulated time stops while the clock stops, lags behind a clock faster than this
    machine's simulation, and jumps back with the clock. Of several publishers of /clock only the
    first one is accepted.
    """

    def __init__(self, node: Node, simulation: Simulation) -> None:
        self._simulation = simulation
        self._mailbox = Mailbox(node, Clock, "/clock", qos.INCOMING)
        self._publisher = OnePublisher(node, simulation.watchdog.events.report, kind="clock")
        self._latest: float | None = None
        self._received, self.missed = time.monotonic(), 0
        self.factor = 1.0  # seconds of /clock per second

    @property
    def trouble(self) -> str:
        """Reason why the arm does not keep up with /clock; "" if it does."""
        if self._latest is None:
            return "waiting for /clock: no simulator publishes it"
        lag = self._latest - self._simulation.state.time
        return f"{lag:.1f} s behind /clock" if lag > MAX_LAG else ""

    def restart(self) -> None:
        """Continue from the time of /clock, after a pause of this arm only."""
        self._take()
        if self._latest is not None and self._latest > self._simulation.state.time:
            self._simulation.set_time(self._latest)

    def time_left(self) -> float:
        """Return the estimated wall-clock time [s] until the end of the current period."""
        self._take()
        if self._latest is None:
            return MAX_WAIT
        ahead = (self._simulation.state.time + self._simulation.period - self._latest) / self.factor
        return min(max(0.0, ahead + self._received - time.monotonic()), MAX_WAIT)

    def wait(self) -> bool:
        """Wait at most MAX_WAIT; return whether /clock has reached the simulation's time."""
        until = time.monotonic() + MAX_WAIT
        self._publisher.listen()
        self._take()
        while self._latest is None or self._latest < self._simulation.state.time - CLOCK_TOLERANCE:
            remaining = until - time.monotonic()
            if remaining <= 0 or not self._mailbox.wait(remaining):
                return False
            self._take()
        return True

    def _take(self) -> None:
        """Take the received times; one before the last one sets the simulation's time back."""
        for taken in self._mailbox.take():
            try:
                stamp = decode(taken.data, Clock).clock
                clock = seconds(stamp.sec, stamp.nanosec)
            except InvalidValue as error:
                self._simulation.watchdog.events.report("clock_rejected", f"/clock: {error}")
                continue
            if not self._publisher.accept(self._mailbox.topic, taken.publisher):
                continue
            now = time.monotonic()
            if self._latest is None or clock < self._latest:
                if self._latest is not None:
                    self._simulation.watchdog.events.report(
                        "clock_went_back", f"/clock: {self._latest:.3f} s, then {clock:.3f} s"
                    )
                self._simulation.set_time(clock)
            elif now > self._received and clock > self._latest:
                rate = (clock - self._latest) / (now - self._received)
                self.factor += 0.1 * (rate - self.factor)
            self._latest, self._received = clock, now
