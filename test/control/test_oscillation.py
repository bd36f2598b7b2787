"""No oscillation after activation or stop: random arms, motors, interfaces and rates.

The environment variable OSCILLATIONS is the number of random cases for each kind of motors and
interface. Without it a few fixed ones run.
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oscillation_rig import CASES, KINDS, OscillationRig, random_arm_kind

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.gain_scaling import scale_gains
from arm_dynamics.control.linear_controller import LinearController, closed_loop_map, is_stable
from arm_dynamics.control.stability_margins import MARGIN
from arm_dynamics.core.errors import DriverFault, InvalidValue
from arm_dynamics.core.state import State
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.safety.controlled_stop import LATE, REACTION, max_loop_bandwidth
from arm_dynamics.safety.oscillation import (
    GRACE,
    MIN_PEAK_RATIO,
    PAUSE,
    REVERSALS,
    SOFTER,
    SPEED,
    SettlingMonitor,
)
from arm_dynamics.simulation.linearization import zero_order_hold

pytestmark = pytest.mark.hardware

MANY = "OSCILLATIONS" in os.environ
COUNT = int(os.environ.get("OSCILLATIONS", "2"))
MAX_OSCILLATION_TIME = 1.0
"""Maximum duration of an oscillation [s]."""
CONTROLLERS = {
    "effort": ("pid_gravity", "pid", "computed_torque", "velocity_pid"),
    "position": ("position",),
    "velocity": ("",),
}
POLICIES = {"effort": ("hold", "ramp", "damp"), "position": ("hold",), "velocity": ("hold",)}


@pytest.mark.quick(3)
@pytest.mark.parametrize(("kind", "interface"), CASES)
def test_arms_do_not_oscillate_after_activation_and_stops(kind, interface):
    @settings(
        max_examples=COUNT,
        derandomize=not MANY,
        print_blob=MANY,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.integers(0, 2**32 - 1), st.floats(50.0, 1000.0), st.sampled_from(CONTROLLERS[interface]),
        st.sampled_from(POLICIES[interface]),
    )  # fmt: skip
    def check(seed, rate, controller, policy):
        run_random_case(kind, interface, seed, rate, controller, policy)

    check()


def run_random_case(kind, interface, seed, rate, name, policy):
    """Activate, push, push harder and stop a random arm; require that it comes to rest."""
    rng = np.random.default_rng(seed)
    rig = OscillationRig(random_arm_kind(kind, rng), interface, rate, policy)
    rig.driver.configure()
    rig.run(12 / rate)
    try:
        if name:
            rig.control(name)
        rig.driver.activate()
    except (DriverFault, InvalidValue):
        rig.run(0.1)
        assert not any(rig.torque)
        return rig
    rig.push(rng.uniform(-0.3, 0.3, 3))
    rig.run(1.2)
    assert rig.oscillating <= MAX_OSCILLATION_TIME
    rig.loop = None
    rig.push(rng.uniform(-4.0, 4.0, 3))
    rig.driver.controlled_stop()
    rig.run(1.5)
    assert rig.oscillating <= MAX_OSCILLATION_TIME
    return rig


def issue_rig(rate=100.0):
    """Return Damiao motors without friction at the default rate of the node."""
    vendor = random_arm_kind("mit_can", np.random.default_rng(4))
    rig = OscillationRig(vendor, "effort", rate)
    rig.driver.configure()
    rig.run(12 / rate)
    return rig


def fast_gains(arm):
    """Return a controller with almost the default gains of ``pid_gravity``, set explicitly."""
    controller = build_controller(arm, "pid_gravity")
    return type(controller)(
        arm, {name: {k: 1.001 * row[k] for k in "pid"} for name, row in controller.values.items()}
    )


@pytest.mark.parametrize(
    ("name", "rate"),
    [("pid_gravity", 100.0), ("pid_gravity", 125.0), ("computed_torque", 100.0), ("lqr", 100.0)],
)
def test_default_gains_hold_damiao_motors_at_rest(name, rate):
    rig = issue_rig(rate)
    loop = rig.control(name)
    rig.driver.activate()
    rig.push(np.full(3, 0.1))
    rig.run(1.5)
    assert rig.driver.status is DriverState.ACTIVE
    assert np.abs(rig.body.state.v).max() < 0.2
    if name == "pid_gravity" and rate == 100.0:
        assert loop.events.counts["gains_slowed"]
        assert loop.controller.scale < 1.0


def test_unstable_gains_are_rejected_before_activation():
    rig = issue_rig()
    controller = fast_gains(rig.driver.arm)
    with pytest.raises(InvalidValue, match=r"PidGravity: gains unstable with period = 0\.01 s"):
        ControlLoop(rig.driver, controller)
    with pytest.raises(DriverFault, match="expected no oscillation"):
        rig.driver.activate()
    assert not any(rig.torque)
    assert rig.driver.status is DriverState.INACTIVE


def test_rejected_gain_changes_keep_the_active_gains():
    rig = issue_rig()
    loop = rig.control("pid_gravity")
    rig.driver.activate()
    slowed = loop.controller.values
    with pytest.raises(InvalidValue, match="gains unstable"):
        loop.switch_controller(fast_gains(rig.driver.arm))
    with pytest.raises(InvalidValue, match="gains unstable"):
        loop.gain_scaling.take(fast_gains(rig.driver.arm).values)
    assert loop.controller.values == slowed
    rig.run(0.1)
    assert loop.command is not None
    joint = rig.driver.arm.joint_names[0]
    loop.gain_scaling.take({**slowed, joint: {**slowed[joint], "p": 0.9 * slowed[joint]["p"]}})
    assert loop.controller.given[joint]["p"] == 0.9 * slowed[joint]["p"]
    assert loop.controller.given[joint].keys() <= {"p", "ff_acceleration_scale"}
    assert loop.controller.scale < 1.0, "other defaults stay scaled down"
    rig.run(0.3)
    assert rig.driver.status is DriverState.ACTIVE


def test_gains_are_rejected_if_their_stability_is_unknown():
    rig = issue_rig()
    controller = build_controller(rig.driver.arm, "pid_gravity")
    controller.slow_down = None
    with pytest.raises(InvalidValue, match="PidGravity: gains not checked: TypeError"):
        ControlLoop(rig.driver, controller)


def test_a_configured_period_rejects_unstable_gains_at_configure():
    vendor = random_arm_kind("mit_can", np.random.default_rng(4))
    rig = OscillationRig(vendor, "effort", 100.0, period=0.01)
    with pytest.raises(InvalidValue, match="gains unstable"):
        ControlLoop(rig.driver, fast_gains(rig.driver.arm))
    with pytest.raises(DriverFault, match="gains unstable"):
        rig.driver.configure()


def test_an_oscillating_arm_is_stopped_with_lower_gains_and_comes_to_rest(monkeypatch):
    """Gains without check: `velocity_limit` trips first, then the stop damps the motion."""
    rig = issue_rig()
    rig.driver.activate()
    monkeypatch.setattr("arm_dynamics.control.control_loop.GainScaling", UncheckedGains)
    rig.loop = ControlLoop(rig.driver, fast_gains(rig.driver.arm))
    rig.push(np.full(3, 0.3))
    rig.run(0.6)
    assert rig.driver.status is not DriverState.ACTIVE
    rig.run(1.0)
    rig.restart_measurement()
    rig.run(1.0)
    assert rig.oscillating == 0.0
    assert np.abs(rig.body.state.v).max() < 0.3


class UncheckedGains:
    """Gain check that accepts all gains."""

    fault = ""

    def __init__(self, *parts):
        del parts

    def require(self, q):
        del q


def test_a_stop_with_persistent_oscillation_disables_torque():
    """The joints oscillate at 3 rad/s independent of their motors."""
    rig = issue_rig()
    rig.driver.activate()
    rig.driver.controlled_stop()
    for k in range(200):
        v = 3.0 * (-1.0) ** (k // 5) * np.ones(3)  # independent of the stop
        rig.body.state = State.of(rig.body.start, v, time=rig.body.state.time)
        rig.cycle()
        if not any(rig.torque):
            break
    assert rig.port.now() < 1.5
    assert not any(rig.torque)
    assert rig.driver.events.counts["torque_off"] == 1
    assert rig.driver.events.counts["oscillation"]


def test_only_fast_and_frequent_reversals_are_counted():
    arm = KINDS["mit_can"].arm
    settling = SettlingMonitor(arm)
    speed = np.array([1.0, 0.0, 0.0])

    def counted(speeds, step):
        settling.restart(0.0)
        return [k for k, v in enumerate(speeds) if settling.update(k * step, v * speed)]

    fast = 2 * SPEED * np.array([1, -1] * 10)
    found = counted(fast, 0.05)
    assert len(found) == len(SOFTER)
    assert GRACE <= 0.05 * found[0] < 0.05 * found[-1] <= 1.0
    assert settling.exhausted
    settling.restart(0.0)
    assert (settling.softer, settling.exhausted) == (SOFTER[0], False)
    assert not counted(0.9 / 2 * fast, 0.05)
    assert not counted(fast, 1.1 * PAUSE)
    assert not counted(np.abs(fast), 0.05)
    assert not counted(fast[: int(GRACE / 0.05) + REVERSALS], 0.05)
    assert not counted(np.full(20, np.nan), 0.05)
    decaying = 30.0 * SPEED * (0.9 * MIN_PEAK_RATIO) ** np.arange(20) * (-1.0) ** np.arange(20)
    assert not counted(decaying, 0.2)
    assert counted(
        2.0 * SPEED * (1.1 * MIN_PEAK_RATIO) ** np.arange(20) * (-1.0) ** np.arange(20), 0.2
    )


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("kind", "seed", "rate"), [("cubemars", 1592485180, 50.0), ("mit_can", 4103731596, 89.5)]
)
def test_a_hanging_arm_keeps_torque_during_damping(kind, seed, rate):
    """A slow pendulum without friction would swing indefinitely without torque."""
    rig = run_random_case(kind, "effort", seed, rate, "computed_torque", "damp")
    rig.run(2.0)
    assert all(rig.torque)
    assert np.abs(rig.body.state.v).max() < SPEED


@given(
    st.floats(1e-3, 0.02), st.floats(0.0, 2.0), st.floats(1.0, 12.0),
)  # fmt: skip
def test_the_largest_rate_has_a_gain_margin_at_any_delay(period, delay, coupling):
    """x'' = -λ (w² x + 1.6 w x'), sampled, late by the delay; λ up to 1.5 times as large."""
    M = np.array([[1.0, 1 - 1 / coupling], [1 - 1 / coupling, 1.0]])  # λ = coupling
    w = max_loop_bandwidth(M, LoopTiming(period, delay))
    J = -np.array([[w**2, 1.6 * w]])
    none = np.zeros((1, 2))
    controller = LinearController(
        "effort", np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((1, 0)), J, none
    )
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [coupling]])
    maps = zero_order_hold(A, B, period / 8)
    for factor in (1.0, MARGIN):
        assert is_stable(closed_loop_map(*maps, controller.scaled(factor), 8, delay))
    assert w == pytest.approx(REACTION / (coupling * (1 + LATE * delay) * period))


@pytest.mark.parametrize("delay", [0.0, 0.25, 0.5, 1.0, 1.75, 2.0])
def test_the_closed_loop_map_is_a_simulation_with_any_delay(delay):
    rng, steps = np.random.default_rng(3), 4
    shapes = {"F": (2, 2), "G": (2, 4), "H": (2, 2), "J": (2, 4), "K": (2, 4)}
    controller = LinearController(
        "effort", **{name: rng.normal(size=size) for name, size in shapes.items()}
    )
    phi, gamma = rng.normal(size=(4, 4)), rng.normal(size=(4, 2))
    y, c = rng.normal(size=4), rng.normal(size=2)
    old = [rng.normal(size=2) for _ in range(int(np.ceil(delay)))]  # newest first
    start = np.concatenate([y, c, *old])
    u = controller.H @ c + (controller.J + controller.K) @ y
    commands, late = [u, *old], round(delay * steps)
    c_next = controller.F @ c + controller.G @ y
    for k in range(steps):
        y = phi @ y + gamma @ commands[-(-(late - k) // steps)]
    expected = np.concatenate([y, c_next, *commands[: len(old)]])
    found = closed_loop_map(phi, gamma, controller, steps, delay) @ start
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_gain_scaling_follows_the_measured_timing():
    arm = KINDS["mit_can"].arm
    controller = build_controller(arm, "pid_gravity")
    usual = controller.values
    assert "0.01 s" in scale_gains(controller, arm, LoopTiming(0.01, 1.0))
    slow = controller.scale
    assert scale_gains(controller, arm, LoopTiming(0.02, 1.0))
    assert controller.scale < slow < 1.0
    assert scale_gains(controller, arm, LoopTiming(1e-3, 0.0)) == ""
    assert controller.values == usual
