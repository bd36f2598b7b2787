"""Feedback of an arm's joints: which readings are new and plausible, and how old the last one is.

Three steps in each control cycle: a reading must be finite and plausible (``PlausibilityFilter``),
newer than the last one (``Freshness``), and is then kept as joint values (``FeedbackBuffer``).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, nan

import numpy as np

from arm_dynamics.core.arrays import BoolArray, Matrix, Vector
from arm_dynamics.core.compiled_math import (
    BOOLEAN,
    COUNT,
    COUNTS_OUT,
    FLAG_ROWS,
    FLAGS_OUT,
    MATRIX_OUT,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    compiled_for,
)
from arm_dynamics.core.state import State
from arm_dynamics.hardware.driver import ArmFeedback
from arm_dynamics.hardware.motor_bus import Reading
from arm_dynamics.hardware.transmission import Transmission
from arm_dynamics.safety.command_limiter import MAX_VELOCITY
from arm_dynamics.safety.safety_settings import SafetySettings

NO_READING = (nan,) * 6
Q, V, TAU, TEMPERATURE, SUPPLY = range(5)
"""Rows of ``FeedbackBuffer.table``."""
FADE_AGE = 0.5
"""Age [s] from which the effort of a joint without feedback fades; zero at twice this age."""
MAX_VELOCITY_RATIO = 3.0
"""Velocity, as a multiple of the velocity limit, above which a reading is implausible."""
POSITION_TOLERANCE = 0.05
"""Change of position [rad or m] that is plausible after any time."""
FROZEN_DISTANCE, FROZEN_TIME, MIN_MOTION = 0.02, 0.05, 0.1
"""Distance [rad or m] and time [s] that a joint moves by its velocity until an unchanged position
is an old one, and velocity [rad/s or m/s] above which it moves."""
MAX_DRIVEN_SPEED = 0.3
"""Speed [rad/s or m/s] beyond that of the stop at which a joint that jumped gets no effort."""
JUMP_MOTION = 0.1
"""Time [s] of motion after which a joint whose position jumped may be measured again; within
FADE_AGE, because without effort a joint may fall through any position."""


class FeedbackBuffer:
    """Convert readings of motors to joint values and keep the last valid one of each joint.

    Attributes
    ----------
    table : Matrix, shape (5, nv)
        Last valid q [rad or m], v [rad/s or m/s], tau [N·m or N], temperature [°C] and supply [V]
        of each joint; NaN before the first.
    freshness : Freshness
        Age of each joint's last valid reading.
    plausibility : PlausibilityFilter
        Readings that wait for a confirmation.
    latest : ArmFeedback
        Feedback at the last ``publish``.

    """

    def __init__(self, transmission: Transmission, safety: SafetySettings) -> None:
        self._transmission, self._safety = transmission, safety
        self.reset()

    def reset(self) -> None:
        """Discard all readings, for example after the connection was lost."""
        safety, size = self._safety, len(self._transmission.ids)
        self.freshness = Freshness(size, safety.max_missed_cycles, safety.feedback_timeout)
        limit = np.minimum(self._transmission.arm.velocity_limit, MAX_VELOCITY)
        self.plausibility = PlausibilityFilter(safety.velocity_limit_scale * limit)
        self.table: Matrix = np.full((5, size), nan)
        self._velocity: Vector = np.full(size, nan)
        self._direction_known, self._misplaced = np.zeros((2, size), bool)
        self.fault = [""] * size
        self.enabled: list[bool | None] = [None] * size
        self.latest = self.publish(0.0)

    @property
    def state(self) -> State:
        """Latest measured state; NaN for joints whose feedback is missing."""
        shown = self._visible_table()
        return State(self.freshness.newest, shown[Q], shown[V], shown[TAU])

    def update(
        self, readings: Mapping[int, Reading], now: float, *, torque_enabled: bool = False
    ) -> BoolArray:
        """Take the readings of one control cycle.

        Parameters
        ----------
        readings : Mapping[int, Reading]
            Replies by motor id.
        now : float
            Time [s] on the port's clock.
        torque_enabled : bool
            Whether a position that no joint can have reached stays rejected.

        Returns
        -------
        BoolArray, shape (nv,)
            Joints with a new, plausible reading.

        """
        by_joint = [readings.get(id) for id in self._transmission.ids]
        rows = np.array(
            [
                NO_READING if r is None else (r.time, r.q, r.v, r.tau, r.temperature, r.supply)
                for r in by_joint
            ]
        )
        self._transmission.to_joints(rows)
        times, *values = columns = rows.T.copy()
        self._velocity, jumped = values[V], self.plausibility.jumped.copy()
        times = np.where(np.isfinite(values[Q] + values[V]), times, nan)
        times = self.plausibility.filter(
            times, values[Q], values[V], self.freshness.time, self.table[Q], torque_enabled
        )
        # A reading with the wrong sign negates the velocity too: its direction is then unknown.
        same_direction = self._velocity * self.table[V] >= -(MIN_MOTION**2)
        self._direction_known = np.where(jumped, self._direction_known, same_direction)
        new = self.freshness.update(times, now, self.plausibility.jumped)
        self.table = np.where(new, columns[1:], self.table)
        for i, r in enumerate(by_joint):
            if r is not None and not self.plausibility.implausible[i]:
                self.fault[i], self.enabled[i] = r.fault, r.enabled
        if self._transmission.uses_voltage and (unknown := np.isnan(self.table[TAU])).any():
            estimate = self._transmission.estimated(self.table[V], self.table[TEMPERATURE])
            self.table[TAU, unknown] = estimate[unknown]
        return new

    def confidence(self, effort: Vector, v: Vector, now: float) -> Vector:
        """Return the factor (nv,) on the ``effort`` (nv,) of a stop in this cycle, at ``now`` [s].

        It fades where the feedback is missing. It is zero while a position that jumped is unknown,
        once the effort has driven the joint by MAX_DRIVEN_SPEED faster than the velocity ``v``
        (nv,) of the stop: then gravity is not that of the expected position.
        """
        measured = self._velocity
        fast = np.abs(measured) > np.abs(v) + MAX_DRIVEN_SPEED
        self._misplaced |= self._direction_known & fast & (effort * measured > 0)
        self._misplaced &= self.plausibility.jumped
        confidence: Vector = np.where(self._misplaced, 0.0, self.freshness.confidence(now))
        return confidence

    @property
    def driven_velocity(self) -> Vector:
        """Velocity (nv,) of joints with torque; NaN if unknown, as read for joints that jumped."""
        jumped, missing = self.plausibility.jumped, self.freshness.missing
        off = [enabled is False for enabled in self.enabled]
        measured = np.where(missing | off, nan, self.table[V])
        velocity: Vector = np.where(jumped, self._velocity, measured)
        return velocity

    def publish(self, now: float) -> ArmFeedback:
        """Return the feedback at ``now`` [s] and keep it as ``latest``."""
        age = self.freshness.age(now)
        age.setflags(write=False)
        q, v, tau, temperature, supply = self._visible_table()
        self.latest = ArmFeedback(
            self.freshness.newest, q, v, tau, temperature, supply, age,
            tuple(self.fault), tuple(self.enabled),
        )  # fmt: skip
        return self.latest

    def implausible_messages(self) -> list[str]:
        """Return one message for each reading of the last cycle that was held back."""
        if not self.plausibility.any:
            return []
        names, held = self._transmission.arm.joint_names, self.plausibility.held
        return [
            f"joint '{names[i]}': position = {held[i]:.4g} is implausible; held back until the"
            " next reading confirms it"
            for i in np.flatnonzero(self.plausibility.implausible).tolist()
            if not self.plausibility.jumped[i]
        ]

    def _visible_table(self) -> tuple[Vector, ...]:
        table = self.table.copy()
        if not self.freshness.complete:
            table[:, self.freshness.missing] = nan
        table.setflags(write=False)
        return tuple(table)


class Freshness:
    """Time of each joint's last new reading and the number of cycles since.

    A reading is new if its time is later than that of the last one, not in the future, and not
    older than ``feedback_timeout``.

    Attributes
    ----------
    time : Vector, shape (nv,)
        Time [s] of the last new reading; -inf before the first.
    missed : ndarray of int, shape (nv,)
        Cycles since.
    stale : BoolArray, shape (nv,)
        Joints whose reply in the last cycle was an old reading.
    missing : BoolArray, shape (nv,)
        Joints whose last reading is too old to be used.
    complete : bool
        Whether no joint is missing.

    """

    def __init__(self, size: int, max_missed_cycles: int, feedback_timeout: float = np.inf) -> None:
        """Treat joints as missing after ``max_missed_cycles`` or ``feedback_timeout`` [s]."""
        self.max_missed_cycles = max_missed_cycles
        self.feedback_timeout = float(feedback_timeout)
        self.time: Vector = np.full(size, -np.inf)
        self.missed = np.full(size, max_missed_cycles + 1)
        self._flags: BoolArray = np.zeros((2, size), bool)
        self.stale, self.missing = self._flags
        self.missing[:] = True
        self.complete = False

    def update(self, times: Vector, now: float, unknown: BoolArray | None = None) -> BoolArray:
        """Take one cycle's ``times`` (nv,) [s], NaN without a reading; return which are new.

        Joints of ``unknown`` (nv,) are missing immediately.
        """
        new = np.empty(times.size, np.bool_)
        self.complete = update_freshness(
            times, now, self.feedback_timeout, self.max_missed_cycles, self.time, self.missed,
            new, self._flags,
        )  # fmt: skip
        if unknown is not None and unknown.any():
            self.missing |= unknown
            self.complete = False
        return new

    @property
    def newest(self) -> float:
        """Time [s] of the newest reading; -inf before any."""
        return float(self.time.max())

    def age(self, now: float) -> Vector:
        """Return now - time (nv,) [s]; infinite before the first reading."""
        return now - self.time

    def confidence(self, now: float) -> Vector:
        """Return clip(2 - age / FADE_AGE, 0, 1) (nv,), the factor on efforts of missing joints."""
        confidence: Vector = np.minimum(np.maximum(2 - self.age(now) / FADE_AGE, 0), 1)
        return confidence


@compiled_for(VECTOR, *[NUMBER] * 2, COUNT, VECTOR_OUT, COUNTS_OUT, FLAGS_OUT, FLAG_ROWS)
def update_freshness(
    times: Vector, now: float, timeout: float, cycles: int, time: Vector, missed: Vector,
    new: BoolArray, flags: BoolArray,
) -> bool:  # fmt: skip
    """Advance ``Freshness`` by one cycle, in place; return whether no joint is missing.

    ``flags`` (2, nv): stale and missing.
    """
    stale, missing, count = flags[0], flags[1], 0
    for i in range(times.size):
        t = times[i]
        new[i] = t > time[i] and t <= now and now - t <= timeout
        stale[i] = isfinite(t) and not new[i]
        time[i] = t if new[i] else time[i]
        missed[i] = 0 if new[i] else missed[i] + 1
        # by time as well: a host that was suspended has missed no cycle
        missing[i] = missed[i] > cycles or now - time[i] > timeout
        count += missing[i]
    return count == 0


class PlausibilityFilter:
    """Hold back readings that no joint can have reached.

    A reading is implausible if |q - q'| > 3 V (t - t') + POSITION_TOLERANCE or |v| > 3 V, with the
    last valid position q' at time t' and the velocity limit V. Checksums of 8 bits accept one
    corrupt reply in 256; such a position would trip or move the arm.

    The next reading confirms it if it is nearer to the position held back than to q'. A confirmed
    velocity is accepted: a real motion is delayed by one cycle. A confirmed position that was out
    of reach is accepted only while torque is disabled. With torque the joint has *jumped*: q' or
    the new position is wrong, and no command is safe at both. It stays jumped until a reading
    within FADE_AGE is nearer to q' and within reach of it, for a motion of at most JUMP_MOTION.

    A reading is *frozen* if its position is exactly q', although the velocities since a change of
    q' sum up to a motion above FROZEN_DISTANCE + FROZEN_TIME |v|: an old one with a new time.

    Attributes
    ----------
    held : Vector, shape (nv,)
        Positions held back in the last cycle [rad or m]; NaN for none.
    reach : Vector, shape (nv,)
        Largest plausible distance from the last valid position [rad or m].
    implausible : BoolArray, shape (nv,)
        Joints whose reading was held back in the last cycle.
    jumped : BoolArray, shape (nv,)
        Joints whose position is unknown, because it jumped while torque was enabled.
    frozen : BoolArray, shape (nv,)
        Joints whose reading was frozen in the last cycle.
    any : bool
        Whether any was held back or frozen.

    """

    def __init__(self, velocity_limit: Vector) -> None:
        """Use the velocity limits V (nv,) [rad/s or m/s]."""
        size = velocity_limit.size
        self._memory: Matrix = np.full((4, size), nan)
        self._memory[0], self._memory[1] = MAX_VELOCITY_RATIO * velocity_limit, 0.0
        self.held, self.reach = self._memory[2:]
        self._flags: BoolArray = np.zeros((3, size), bool)
        self.implausible, self.jumped, self.frozen = self._flags
        self.any = False

    def filter(
        self, time: Vector, q: Vector, v: Vector, last_time: Vector, last: Vector,
        torque_enabled: bool = False,
    ) -> Vector:  # fmt: skip
        """Return the times of plausible readings.

        Parameters
        ----------
        time, q, v : Vector, shape (nv,)
            Time [s], position and velocity of the readings; NaN for none.
        last_time, last : Vector, shape (nv,)
            Time [s] and position of the last valid readings.
        torque_enabled : bool
            Whether a confirmed position out of reach is a jump.

        Returns
        -------
        Vector, shape (nv,)
            ``time``, NaN where a reading was held back, ``last_time`` where it is frozen.

        """
        self.any = find_implausible(
            time, q, v, last_time, last, torque_enabled, self._memory, self._flags
        )  # fmt: skip
        if not self.any:
            return time
        plausible: Vector = np.where(self.frozen, last_time, time)
        plausible[self.implausible] = nan
        return plausible


@compiled_for(*[VECTOR] * 5, BOOLEAN, MATRIX_OUT, FLAG_ROWS)
def find_implausible(
    time: Vector, q: Vector, v: Vector, last_time: Vector, last: Vector, torque_enabled: bool,
    memory: Matrix, flags: BoolArray,
) -> bool:  # fmt: skip
    """Mark implausible readings and put their positions into ``held``; return whether any.

    NaN stands for no reading. ``memory`` (4, nv): velocity above which a reading is implausible,
    motion of an unchanged position, positions held back in the cycle before, and reach; ``flags``
    (3, nv): implausible, jumped and frozen. Both are advanced by one cycle.
    """
    max_velocity, motion, held, reach = memory[0], memory[1], memory[2], memory[3]
    out, jumped, frozen, count = flags[0], flags[1], flags[2], 0
    for i in range(q.size):
        out[i] = frozen[i] = False
        jumped[i] = jumped[i] and torque_enabled
        if isfinite(time[i]):
            distance = abs(q[i] - last[i])
            confirmed = abs(q[i] - held[i]) <= distance  # nearer to the position held back
            confirms_far = confirmed and abs(held[i] - last[i]) > reach[i]
            elapsed = max(time[i] - last_time[i], 0.0)
            lost = jumped[i] and elapsed > FADE_AGE
            moving = min(elapsed, JUMP_MOTION) if jumped[i] else elapsed
            reach[i] = max_velocity[i] * moving + POSITION_TOLERANCE
            far = isfinite(last[i]) and distance > reach[i]
            fast = isfinite(last[i]) and abs(v[i]) > max_velocity[i]
            jumped[i] = torque_enabled and (
                confirms_far or lost or (jumped[i] and (far or confirmed))
            )
            out[i] = jumped[i] or ((far or fast) and not confirmed)
            held[i] = q[i] if out[i] else nan
            moves = q[i] == last[i] and abs(v[i]) > MIN_MOTION
            motion[i] = motion[i] + abs(v[i]) * elapsed if moves else 0.0
            frozen[i] = motion[i] > FROZEN_DISTANCE + FROZEN_TIME * abs(v[i])
            count += out[i] or frozen[i]
    return count > 0
