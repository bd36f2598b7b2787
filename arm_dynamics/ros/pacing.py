"""Simulated time of another node: a simulator that follows /clock instead of publishing it.

How long a simulator that is faster than real time waits for the answer to a state.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from rclpy.node import Node
from rosgraph_msgs.msg import Clock

from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.timing import Pacer
from arm_dynamics.ros import qos
from arm_dynamics.ros.command_topics import CommandTopics
from arm_dynamics.ros.decode import decode
from arm_dynamics.ros.joint_state_serialization import seconds
from arm_dynamics.ros.mailbox import Mailbox
from arm_dynamics.ros.publisher_checks import OnePublisher
from arm_dynamics.ros.ros_parameters import declare_fixed
from arm_dynamics.simulation.simulation import Simulation

WAIT = 0.1
"""Longest wait [s] for /clock before the loop serves requests again."""
LAG = 1.0
"""Simulated time [s] behind /clock from which diagnostics warn."""
EXACT = 1e-9
"""Resolution [s] of the stamps on /clock."""


class TimeSource(NamedTuple):
    """Where the time of a simulator comes from, and who waits for whom."""

    pacer: Pacer | ClockPacer
    lockstep: bool
    """Whether the simulator waits for the command that answers each state."""
    publishes_clock: bool
    is_simulated: bool
    """Whether stamps are simulated time, of this or another simulator's /clock."""

    @property
    def follows_clock(self) -> bool:
        """Whether time is that of another simulator."""
        return self.is_simulated and not self.publishes_clock


def declare_time_source(node: Node, simulation: Simulation, factor: float) -> TimeSource:
    """Declare ``lockstep`` and ``publish_clock``; raises ConfigError where they exclude each other.

    Without ``publish_clock`` the parameter ``use_sim_time`` says whether /clock is followed.
    """
    lockstep = declare_fixed(
        node, "lockstep", False, "wait for the command that answers each state"
    )
    publishes = declare_fixed(node, "publish_clock", True, "be the source of /clock")
    follows = not publishes and bool(node.get_parameter("use_sim_time").value)
    if lockstep and not (publishes or follows):
        raise ConfigError(
            "lockstep needs publish_clock, or use_sim_time: commands answer by simulated time"
        )
    pacer = ClockPacer(node, simulation) if follows else Pacer(simulation.period, factor)
    return TimeSource(pacer, lockstep, publishes, publishes or follows)


class ClockPacer:
    """Pacer of a simulation whose time is that of /clock.

    The first message sets the simulation's time. A period is over when /clock has reached the
    time of the state. The arm stands while the clock stands, and lags behind a clock that is
    faster than this machine simulates it. A clock that goes back takes the simulation with it.
    Of several publishers of /clock the first one counts.
    """

    def __init__(self, node: Node, simulation: Simulation) -> None:
        self._simulation = simulation
        self._mailbox = Mailbox(node, Clock, "/clock", qos.INCOMING)
        self._publisher = OnePublisher(node, simulation.watch.events.report, kind="clock")
        self._latest: float | None = None
        self._received, self.missed = time.monotonic(), 0
        self.factor = 1.0  # how fast /clock passes

    @property
    def trouble(self) -> str:
        """Why the arm does not keep up with /clock, "" if it does."""
        if self._latest is None:
            return "waiting for /clock: no simulator publishes it"
        lag = self._latest - self._simulation.state.time
        return f"{lag:.1f} s behind /clock" if lag > LAG else ""

    def restart(self) -> None:
        """Go on from the time of /clock, after a pause of this arm alone."""
        self._take()
        if self._latest is not None and self._latest > self._simulation.state.time:
            self._simulation.set_time(self._latest)

    def time_left(self) -> float:
        """Return the estimated wall-clock time [s] until the present period is over."""
        self._take()
        if self._latest is None:
            return WAIT
        ahead = (self._simulation.state.time + self._simulation.period - self._latest) / self.factor
        return min(max(0.0, ahead + self._received - time.monotonic()), WAIT)

    def wait(self) -> bool:
        """Whether the time of the simulation's state has come, within WAIT."""
        until = time.monotonic() + WAIT
        self._publisher.listen()
        self._take()
        while not self._is_due():
            left = until - time.monotonic()
            if left <= 0 or not self._mailbox.wait(left):
                return False
            self._take()
        return True

    def _is_due(self) -> bool:
        return self._latest is not None and self._latest >= self._simulation.state.time - EXACT

    def _take(self) -> None:
        for taken in self._mailbox.take():
            try:
                stamp = decode(taken.data, Clock).clock
                clock = seconds(stamp.sec, stamp.nanosec)
                if self._publisher.accept(self._mailbox.topic, taken.publisher):
                    self._note(clock)
            except InvalidValue as error:
                self._simulation.watch.events.report("clock_rejected", f"/clock: {error}")

    def _note(self, clock: float) -> None:
        now = time.monotonic()
        if self._latest is None or clock < self._latest:
            if self._latest is not None:
                self._simulation.watch.events.report(
                    "clock_went_back", f"/clock: {self._latest:.3f} s, then {clock:.3f} s"
                )
            self._simulation.set_time(clock)
        elif now > self._received and clock > self._latest:
            rate = (clock - self._latest) / (now - self._received)
            self.factor += 0.1 * (rate - self.factor)
        self._latest, self._received = clock, now


FASTER = 1.1
"""Real-time factor above which simulated time waits for answers."""
SLICE = 0.005
"""Time [s] between two looks for a command that is no answer: voltages, or stamps of one's own."""


class AnswerWait:
    """Gives the controller ``command_timeout`` of wall-clock time, not of simulated time alone.

    Simulated time stands while a controller that answered the last state has not answered this
    one, or while its command is about to time out; at most ``command_timeout`` [s] by the wall
    clock after its last command. A command thus ends only once both clocks have passed that.
    """

    def __init__(self, simulation: Simulation, commands: CommandTopics) -> None:
        self._simulation, self._commands = simulation, commands
        self._accepted, self._since, self._answers = 0, 0.0, False

    def wait(self, factor: float, answered: bool) -> None:
        """Wait for the answer to the present state at the real-time ``factor``, if it is due.

        ``answered`` says that it came already.
        """
        watch = self._simulation.watch
        self._note()
        while factor > FASTER and not answered and watch.commanded and self._is_due():
            answered = self._take()
            self._note()
        self._answers = answered

    def _take(self) -> bool:
        """Take commands for SLICE; whether one answers the present state."""
        until = time.monotonic() + SLICE
        return self._commands.read_until_reply(lambda: max(0.0, until - time.monotonic()))

    def _is_due(self) -> bool:
        """Whether the controller may still answer, and did so before or is about to time out."""
        watch = self._simulation.watch
        age = watch.age(self._simulation.state.time) + self._simulation.period
        allowed = time.monotonic() - self._since < watch.timeout
        return allowed and (self._answers or age > watch.timeout)

    def _note(self) -> None:
        """Note the wall-clock time of the newest command."""
        accepted = self._simulation.watch.accepted
        if accepted != self._accepted:
            self._accepted, self._since = accepted, time.monotonic()
