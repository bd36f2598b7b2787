"""A physical arm: joints from motors on a bus, and what safety makes of every command."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.driver_lifecycle import DriverLifecycle
from arm_dynamics.hardware.feedback_buffer import WARM, V
from arm_dynamics.safety.emergency_stop import motors_with_torque
from arm_dynamics.safety.events import Trip


class MotorBusDriver(DriverLifecycle):
    """Drives an arm's motors through one bus; the only place that decides what they get.

    One cycle is ``read`` and then ``write`` or ``idle``, which follows by itself after some reads
    without one. Nothing but DriverFault leaves ``read``
    and the changes of life; ``write``, ``idle`` and ``close`` raise nothing for a bus that fails.
    All calls come from one thread, but for ``emergency_stop`` and ``close``.
    Raises ConfigError for motors that do not take ``interface`` or the stop policy.
    """

    def read(self) -> State:
        """One cycle of the bus; joints that are silent for too long are NaN.

        Raises DriverFault where nothing is known: before ``configure``, while the port is gone
        (it is tried again now and then), and when every joint is silent.
        """
        with self._link.lock:
            self._require_open()
            self._reads.append(self.bus.now())
            return self._read()

    def _read(self) -> State:
        begun = self.bus.now()
        readings = self._call(self.bus.read)
        now = self.bus.now()
        self._reading = now - begun
        self._senses.update(readings, now)
        if self._senses.plausibility.any:
            self._tell_doubts()
        self.feedback = self._senses.feedback(now)
        self._judge_or_let_go(now)
        self._unanswered += 1
        if self._unanswered > max(1, self.safety.max_missed_cycles):
            self.idle()  # reading alone keeps watchdogs fed: the last goal would stay for ever
        if self._senses.freshness.silent.all():
            raise DriverFault(f"no motor answers; {self.bus.remedies}")
        told = self.feedback
        return State(told.time, told.q, told.v, told.tau)

    def write(self, command: Command) -> None:
        """Offer a command, and send what safety makes of it."""
        try:
            if self.status.torque_enabled and self._is_taken(command):
                self._watch.submit(command, self.bus.now())
        except Exception as error:  # a command of a kind of its own
            self._watch.reject(f"{type(error).__name__}: {error}")
        self.idle()

    def idle(self) -> None:
        """Send what safety says: the command in force, a stop, or torque off."""
        with self._link.lock:
            self._unanswered = 0
            try:
                self._obey_button()
                if self._off.pending:
                    self._switch_off()
                elif self.status.torque_enabled:
                    self._drive(self.bus.now())
            except DriverFault:
                pass  # the bus is lost, which has been counted
            except Exception as error:
                self._give_up(error)

    def _drive(self, now: float) -> None:
        """Command or stop -> limits -> goals of the motors."""
        for trip in self._late(now):
            self._trip(trip)
        state, warm = self._believed(now), self._senses.table[WARM]
        command = (self._stop or self._watch).command(state)
        wanted = self._as_asked(command, state.v, warm, now)
        dt, self._sent = now - self._sent, now
        value = self._limits.apply(self._asked, wanted, state.q, state.v, warm, dt)
        fed = self._limits.gravity_effort(state.q, warm) if self._shafts.feeds else None
        self._call(
            self.bus.write, self._shafts.motor_commands(self._asked, value, state.v, warm, fed)
        )

    def _judge_or_let_go(self, now: float) -> None:
        try:
            self._judge(now)
        except Exception as error:
            self._give_up(error)

    def _judge(self, now: float) -> None:
        """What trips on what has been read; once a link is good again, the arm goes on."""
        if self._button.engaged:
            self._off.request(
                motors_with_torque(dict(zip(self._ids, self.feedback.enabled, strict=True)))
            )
        if not self.status.torque_enabled or self._off.pending:
            return
        link = self._link_trips(now)
        for trip in (*self._found(now), *link):
            self._trip(trip)
        self._require_settling(now)
        if not any(on is not False for on in self.feedback.enabled):
            self._off.request(self._ids)  # nothing is left to hold the arm with
        self._good = 0 if link else self._good + 1
        stopped = self.status is DriverState.STOPPED and not self._trips.latched
        if stopped and self._good >= self.safety.recovery_cycles and self._rests():
            self._go_on()

    def _require_settling(self, now: float) -> None:
        """A softer stop for an arm that oscillates while it is held or stopped."""
        if self._stop is not None or self._watch.stopping:
            found = self._settling.look(now, self.feedback.v)
            for trip in found:
                self._trip(trip)
            if found:
                self._soften(now)

    def _found(self, now: float) -> list[Trip]:
        told, judge = self.feedback, self._judgement
        found = judge.check_faults(now, told.fault, told.enabled)
        found += judge.check_limits(now, told.q, told.v, told.temperature)
        if self._asked == "position":
            found += judge.check_following_error(now, told.q, self._limits.last)
        elif self._asked == "effort":
            swinging = self._swinging.update(now, self._limits.last)
            self._settling.stage = max(self._settling.stage, int(bool(swinging)))
            found += swinging
        return found

    def _link_trips(self, now: float) -> list[Trip]:
        """Joints that are silent for too long, and a command that is too old."""
        fresh, found = self._senses.freshness, list[Trip]()
        for i in [] if fresh.complete else np.flatnonzero(fresh.silent).tolist():
            kind, told = "stale" if fresh.stale[i] else "silent", int(fresh.missed[i])
            heard = f"last heard {now - fresh.time[i]:.3f} s ago"
            name, allowed = self.arm.joint_names[i], self.safety.max_missed_cycles
            found.append(Trip(kind, name, told, allowed, "cycles", now, heard))
        return found + self._late(now)

    def _late(self, now: float) -> list[Trip]:
        """A command that is too old, while one is obeyed or its lack holds the arm."""
        age, limit = self._watch.age(now), self.safety.command_timeout
        counts = self._stop is None or self._trips.is_active("command_timeout")
        return [Trip("command_timeout", "", age, limit, "s", now)] if counts and age > limit else []

    def _rests(self) -> bool:
        """Whether every joint is as slow as one that is taken up."""
        return bool((np.abs(self._senses.table[V]) <= self.safety.activation_max_velocity).all())

    def _go_on(self) -> None:
        """The stop is over; it may have left the arm far from where a trajectory is by now.

        Goals of positions get there no faster than the velocity limits; anew from where the weight
        has bent the servos, the arm would sink with every stop.
        """
        self._trips.clear_self_clearing()
        if self._asked == "position":
            self._stop, self.status = None, DriverState.ACTIVE
        else:
            self._obey_anew()

    def _as_asked(self, command: Command, v: Vector, warm: Vector, now: float) -> Vector:
        """The command's values (nv,): volts as efforts, efforts of joints long unseen fading."""
        value = np.array(command.value)
        if command.interface == "voltage":
            value = self._shafts.efforts(value, v, warm)
        unseen = self._asked == "effort" and not self._senses.freshness.complete
        return value * self._senses.freshness.confidence(now) if unseen else value

    def _is_taken(self, command: Command) -> bool:
        interface = getattr(command, "interface", self.interface)
        if interface != self.interface:
            allowed = f"allowed: {self.interface}"
            self._watch.reject(f"command interface '{interface}' is not driven now; {allowed}")
        return bool(interface == self.interface)
