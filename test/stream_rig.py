"""Streams of waypoints on a control loop without nodes: sources, clients with jitter, metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from arm_dynamics import load_arm
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.control.goals.streams import Streams
from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.state import State
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.safety.events import Events

PERIOD = 2e-3


class PerfectDriver(Driver):
    """Driver of an arm that follows position commands exactly."""

    extra_interfaces = ("position",)

    def __init__(self, arm, q):
        super().__init__(arm)
        self.time, self.q = 0.0, np.array(q)

    def read(self):
        return State.of(self.q, np.zeros(self.arm.nv), time=self.time)

    def write(self, command):
        self.q = np.array(command.value)


@dataclass
class Sine:
    """q = middle + A sin(ω t), within the arm's limits, and its derivatives."""

    arm: object
    amplitude: float = 0.3
    omega: float = 0.9
    middle: np.ndarray = field(init=False)

    def __post_init__(self):
        lower, upper = self.arm.lower, self.arm.upper
        distance = np.where(np.isfinite(upper - lower), 0.4 * (upper - lower), np.inf)
        self.size = np.minimum(self.amplitude, distance)
        self.middle = np.clip(
            self.arm.configuration("initial"), lower + self.size, upper - self.size
        )

    def __call__(self, t):
        w, A = self.omega, self.size
        return self.middle + A * np.sin(w * t), A * w * np.cos(w * t), -A * w * w * np.sin(w * t)


class Rig:
    """Control loop whose references are recorded; ``send`` passes a client's message to it."""

    def __init__(self, arm, q=None, **options):
        self.arm = load_arm(arm) if isinstance(arm, str) else arm
        start = self.arm.configuration("initial") if q is None else q
        self.driver = PerfectDriver(self.arm, start)
        self.events = Events(lambda kind, text: None)
        self.loop = ControlLoop(self.driver, PositionController(self.arm), self.events, **options)
        self.loop.step()
        self.streams = Streams(self.loop)
        self.rejected = []
        self.rows = []

    @property
    def now(self):
        return self.loop.state.time

    def send(self, times, q=(), v=(), start=None, a=(), **options):
        """Send one message; without ``start`` its stamp is 0."""
        given = self.loop.options(integrate=not len(q), end_in_motion=True)
        begin = self.now if start is None else start
        try:
            names = self.arm.joint_names
            trajectory = parse_trajectory(
                self.arm, names, times, q, v, a, begin, options=given, **options
            )
            self.streams.take(trajectory, integrated=not len(q))
        except ArmDynamicsError as error:
            self.rejected.append(str(error))

    def step(self, until=None):
        """Run one control cycle, or all cycles until a time [s]."""
        while True:
            self.driver.time += PERIOD
            self.loop.step()
            self.streams.observe()
            r = self.loop.reference
            self.rows.append((self.driver.time, r.q, r.v, r.a))
            if until is None or self.driver.time >= until - 1e-9:
                return

    def motion(self):
        """Return times (n,), and references q, v, a (n, nv)."""
        return [np.array(column) for column in zip(*self.rows, strict=True)]


def arrivals(rate, seconds, jitter=0.0, lost=(), seed=1):
    """Return the sampling times of a client and the ordered arrival times of its messages [s].

    Each message arrives up to 2 ``jitter`` [s] later; those in ``lost`` do not arrive.
    """
    late = np.random.default_rng(seed).uniform(0, 2 * jitter, round(rate * seconds))
    sent = np.arange(1, len(late) + 1) / rate
    kept = [k for k in range(len(late)) if k not in lost]
    return sent[kept], np.maximum.accumulate((sent + late)[kept])


def stream(arm, rate=100, ahead=0.01, velocities=False, jitter=0.0, lost=(), seconds=4.0, **sine):
    """Return a rig after single waypoints ``ahead`` [s] with stamp 0, and their source."""
    rig = Rig(arm)
    source = Sine(rig.arm, **sine)
    rig = Rig(rig.arm, source(0.0)[0])
    sent, came = arrivals(rate, seconds, jitter, lost)
    k = 0
    while rig.driver.time < seconds - PERIOD / 2:
        rig.step()
        while k < len(came) and came[k] <= rig.driver.time + 1e-9:
            q, v, _ = source(sent[k] + ahead)
            rig.send([ahead], [q], [v] if velocities else ())
            k += 1
    return rig, source


@dataclass(frozen=True)
class Figures:
    """Largest position error [rad], lag [s], and acceleration rms over the source's."""

    error: float
    lag: float
    ratio: float


def figures(rig, source, begin=1.0, end=None):
    """Return metrics of the reference positions; accelerations are second differences."""
    t, q, _, _ = rig.motion()
    end = t[-1] if end is None else end
    during = (t > begin) & (t <= end)
    t, q = t[during], q[during]
    true = np.array([source(x)[0] for x in t])
    a = np.diff(q, 2, axis=0) / PERIOD**2
    a_true = np.array([source(x)[2] for x in t])
    v_true = np.array([source(x)[1] for x in t])
    lag = float(((true - q) * v_true).sum() / (v_true**2).sum())
    ratio = float(np.sqrt((a**2).mean() / (a_true**2).mean()))
    return Figures(float(np.abs(q - true).max()), lag, ratio)
