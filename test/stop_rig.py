"""Faulty readings before a driver, and the motion that motors cause after the first trip."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from emulators.small_arm import RATIO as SMALL_RATIO
from emulators.small_arm import SIGN as SMALL_SIGN
from emulators.vendors import VENDORS
from fault_injection.bench import PERIOD as BENCH_PERIOD
from fault_injection.bench import Bench
from motor_rig import RATIO, SIGN, Rig

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus import Reading
from arm_dynamics.safety.controlled_stop import STOP_TIME

Readings = dict[int, Reading]
MIN_EFFORT = 0.005
"""Effort, as a fraction of its limit, below which no motor drives its joint: resolution."""
KINDS = ("jump", "loss", "old", "frozen", "swap", "flip", "delay", "repeat")


@dataclass
class ReadingFault:
    """A fault of the readings of joint ``joint``, for ``cycles`` cycles of the host.

    jump: the position is wrong by ``amount`` [rad]; loss: no reply; old: the last reply again, with
    its stamp; frozen: the last values with new stamps; swap: the values of the next joint; flip:
    position and velocity have the other sign; delay: values of six cycles ago with new stamps;
    repeat: each reply twice.
    """

    kind: str
    joint: int
    cycles: int
    amount: float
    gain: np.ndarray
    begun: bool = False
    _past: deque[Readings] = field(default_factory=lambda: deque(maxlen=7))
    _left: int = 0

    def begin(self) -> None:
        """Start the fault at the next reading."""
        self.begun, self._left = True, self.cycles

    def distort(self, readings: Mapping[int, Reading]) -> Readings:
        """Return the readings that the driver receives."""
        good, id = dict(readings), self.joint + 1
        seen, past = dict(good), self._past or [good]
        if self._left > 0 and id in good:
            self._left -= 1
            changed = self._changed(good, past[-1].get(id, good[id]), past[0].get(id, good[id]))
            if changed is None:
                del seen[id]
            else:
                seen[id] = changed
        remembers_seen = self.kind in ("old", "frozen", "repeat")
        self._past.append(seen if remembers_seen else good)
        return seen

    def _changed(self, good: Readings, last: Reading, oldest: Reading) -> Reading | None:
        r = good[self.joint + 1]
        other = good.get((self.joint + 1) % len(self.gain) + 1, r)
        changes = {
            "jump": {"q": r.q + self.amount * self.gain[self.joint]},
            "frozen": {"q": last.q, "v": last.v},
            "swap": {"q": other.q, "v": other.v},
            "flip": {"q": -r.q, "v": -r.v},
            "delay": {"q": oldest.q, "v": oldest.v},
        }
        if self.kind in changes:
            return replace(r, **changes[self.kind])
        kept = self.kind == "old" or (self.kind == "repeat" and self._left % 2 == 0)
        return None if self.kind == "loss" else last if kept else r


class StoppingArm:
    """An arm in a control loop: ideal motors on an interface, or those of a vendor."""

    def __init__(self, interface: str, period: float = 2e-3) -> None:
        if interface in VENDORS:
            bench = Bench(VENDORS[interface])
            bench.driver.configure()
            bench.run(3)
            bench.driver.activate()
            self.body, self.driver, self.loop = bench.body, bench.driver, bench.loop
            self.period, self._cycle = BENCH_PERIOD, bench.cycle
            self.gain = np.multiply(SMALL_SIGN, SMALL_RATIO)
        else:
            rig = Rig(interface).up()
            name = "pid_gravity" if interface == "effort" else "position"
            self.body, self.driver = rig.body, rig.driver
            self.period = period
            self.gain = np.multiply(SIGN, RATIO)
            self.velocity = np.zeros(rig.driver.arm.nv)
            if interface != "velocity":
                self.loop = ControlLoop(rig.driver, build_controller(rig.driver.arm, name))

            def cycle() -> None:
                rig.bus.pass_time(period)
                try:
                    if interface == "velocity":
                        rig.driver.read()
                        rig.driver.write(Command("velocity", self.velocity))
                    else:
                        self.loop.step()
                except ArmDynamicsError:
                    rig.driver.idle()

            self._cycle = cycle
        self._read = self.driver.bus.read

    def run(self, seconds: float, each: Callable[[], None] = lambda: None) -> None:
        for _ in range(round(seconds / self.period)):
            self._cycle()
            each()

    def inject(self, kind: str, joint: int, cycles: int, amount: float) -> ReadingFault:
        fault = ReadingFault(kind, joint, cycles, amount, self.gain)
        self.driver.bus.read = lambda: fault.distort(self._read())
        return fault

    def move(self, amount: float, duration: float) -> None:
        """Follow a trajectory of ``amount`` [rad] in every joint; or its mean velocity."""
        if self.driver.interface == "velocity":
            self.velocity = self.velocity + amount / duration
            return
        arm, state = self.driver.arm, self.loop.state
        still = [0.0] * arm.nv
        goal = np.clip(state.q + amount, arm.lower + 0.1, arm.upper - 0.1)
        self.loop.follow(
            parse_trajectory(
                arm, list(arm.joint_names), [duration], [goal.tolist()], [still], [still],
                start=state.time,
            )
        )  # fmt: skip

    def push(self, joint: int, speed: float) -> None:
        """Give one joint a velocity [rad/s]."""
        state, body = self.body.state, self.body
        v = np.where(np.arange(state.nv) == joint, speed, state.v)
        body.state = State.of(state.q, v, time=state.time)
        body._place()

    @property
    def effort(self) -> np.ndarray:
        """True efforts (nv,) of the motors at the joints [N·m]."""
        return self.gain * [shaft.effort for shaft in self.body.motors.shafts]


@dataclass
class MotionAfterTrip:
    """Motion with power of an arm after its first trip, until commands are executed again.

    A motor drives its joint while τ v > 0. ``over`` is how much faster each joint is driven than
    in the 40 cycles before the trip, than where the drive began, and than 0.3 rad/s. The path of
    an exponential stop begins at the trip; ``outside`` is how far the joint is driven from it.
    Motion without drive moves the path, unless the joint returns to it.
    """

    arm: StoppingArm
    over: np.ndarray = field(init=False)
    outside: np.ndarray = field(init=False)
    tripped: bool = False
    ended: bool = False
    _before: deque[np.ndarray] = field(default_factory=lambda: deque(maxlen=40))

    def __post_init__(self) -> None:
        self.over, self.outside, self._away = np.zeros((3, self.arm.driver.arm.nv))

    def observe(self) -> None:
        """Evaluate one cycle."""
        state, driver = self.arm.body.state, self.arm.driver
        if not self.tripped:
            self.tripped = bool(driver.trips)
            self._before.append(state.v)
            self._speed = self._first = np.abs(self._before).max(axis=0)
            self._last = state.q
            paths = STOP_TIME * np.array(self._before)
            self._path = np.minimum(paths.min(axis=0), 0), np.maximum(paths.max(axis=0), 0)
            return
        self.ended = self.ended or driver.status is DriverState.ACTIVE
        if self.ended:
            return
        effort, moved = self.arm.effort, state.q - self._last
        least = MIN_EFFORT * driver.arm.effort_limit
        driven = (effort * state.v > 0) & (np.abs(effort) > least)
        over = np.abs(state.v) - np.maximum(self._speed, 0.3)
        self.over = np.maximum(self.over, np.where(driven, over, 0.0))
        self._speed = np.where(driven, self._speed, np.maximum(self._first, np.abs(state.v)))
        away = self._distance(self._away + moved)
        counts = driven | (away < self._distance(self._away))
        self._away = np.where(counts, self._away + moved, self._away)
        self.outside = np.maximum(self.outside, self._distance(self._away))
        self._last = state.q

    def _distance(self, away: np.ndarray) -> np.ndarray:
        return np.abs(away - np.clip(away, *self._path))
