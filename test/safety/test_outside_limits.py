"""A joint beyond its position limit: it is held there and can move back into its range."""

import numpy as np
import pytest
from conftest import chain
from motor_rig import SAFETY, WIRING, Rig, arm, weight

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import State
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.safety.command_limiter import CommandLimiter
from arm_dynamics.safety.controlled_stop import make_stop
from arm_dynamics.safety.limit_monitor import LimitMonitor
from arm_dynamics.safety.safety_settings import SafetySettings

pytestmark = pytest.mark.hardware

UPPER = 3.0
OUTSIDE = (0.3, UPPER + 0.15, 0.0)
J2 = np.array([0.0, 1.0, 0.0])
INSIDE = (0.3, UPPER - 0.1, 0.0)


def arm_beyond_limit(interface="effort", q=OUTSIDE):
    """Return a rig whose arm can move beyond its position limits."""
    joint = {"effort": 40.0, "damping": 0.1, "upper": 4.0}
    real = chain({**joint, "mass": 2.0}, joint, {**joint, "mass": 0.5})
    rig = Rig(interface, q=q, model=real)
    rig.driver = MotorBusDriver(arm(), rig.bus, wiring=WIRING, interface=interface, safety=SAFETY)
    return rig


@pytest.mark.parametrize("interface", ["effort", "position", "velocity"])
def test_activation_beyond_a_limit_causes_no_motion(interface):
    rig = arm_beyond_limit(interface).up()
    rig.cycles(300)
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.body.moved.max() < (2e-3 if interface == "effort" else 0.02)
    assert rig.counts == {}


def command_of(rig, distance):
    """Return the command that moves J2 by ``distance`` on the rig's interface."""
    if rig.driver.interface == "effort":
        return weight(rig, 0, 20 * distance)
    return (
        [0, distance, 0] if rig.driver.interface == "velocity" else rig.body.start + distance * J2
    )


@pytest.mark.parametrize("interface", ["effort", "position", "velocity"])
def test_the_joint_moves_inward_but_not_further_out(interface):
    rig = arm_beyond_limit(interface).up()
    rig.cycles(200, lambda: command_of(rig, 0.5))
    assert rig.body.state.q[1] < OUTSIDE[1] + 0.02
    assert rig.driver.status is DriverState.ACTIVE
    for _ in range(1500):
        rig.cycle(command_of(rig, -0.5))
        if rig.body.state.q[1] < INSIDE[1]:
            break
    assert rig.body.state.q[1] < INSIDE[1]
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.body.fastest[1] < 7.5


def test_a_distant_goal_inside_is_reached_at_the_velocity_limit():
    limits = CommandLimiter(arm(), SAFETY)
    limits.start(np.array(OUTSIDE))
    goal, dt = np.zeros(3), 2e-3
    step = limits.table[2] * dt
    for _ in range(100):
        before = limits.last
        after = limits.apply("position", goal, before, 0 * goal, 0 * goal, dt)
        assert (np.abs(after - before) <= step + 1e-12).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_distance_gained_toward_the_range_is_kept(sign):
    monitor = LimitMonitor(arm(), SafetySettings(position_margin=0.01, limit_recovery_margin=0.2))
    rest = np.zeros(3)
    monitor.restart(sign * np.array(OUTSIDE))

    def trips(q):
        reading = sign * np.array([0.3, q, 0.0])
        return [t.kind for t in monitor.check_limits(0.0, reading, rest, rest)]

    assert trips(UPPER + 0.155) == []
    assert trips(UPPER + 0.165) == ["position_limit"]
    assert trips(UPPER + 0.05) == []
    assert trips(np.nan) == []
    assert trips(UPPER + 0.065) == ["position_limit"]
    assert trips(UPPER - 0.5) == []
    assert trips(UPPER + 0.015) == ["position_limit"]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("limit_recovery_margin", [0.0, 0.2])
def test_recovery_from_beyond_the_margin_trips(sign, limit_recovery_margin):
    """The tripping limit is at most the margin beyond the joint's limit, on either side."""
    margin = limit_recovery_margin
    monitor = LimitMonitor(
        arm(), SafetySettings(position_margin=0.01, limit_recovery_margin=margin)
    )
    rest, end = np.zeros(3), UPPER + margin + 0.01
    tripped = ["position_limit"]
    for q, kinds in ((end - 1e-6, []), (end + 1e-6, tripped), (end + 9.0, tripped)):
        reading = sign * np.array([0.3, q, 0.0])
        monitor.restart(reading)
        found = monitor.check_limits(0.0, reading, rest, rest)
        assert [t.kind for t in found] == kinds
        assert [abs(t.limit) for t in found] == pytest.approx([end] * len(kinds))


@pytest.mark.parametrize("sign", [1, -1])
def test_activation_too_far_beyond_a_limit_is_rejected(sign):
    rig = arm_beyond_limit(q=(0.3, sign * (UPPER + 0.25), 0.0))
    rig.driver.configure()
    rig.cycle()
    with pytest.raises(
        DriverFault, match=rf"'J2': position_limit {sign * 3.25} rad, limit {sign * 3.22}"
    ):
        rig.driver.activate()
    assert rig.torque == [False] * 3


@pytest.mark.parametrize("policy", ["hold", "ramp"])
def test_a_stop_beyond_a_limit_holds_its_start(policy):
    state = State.of(OUTSIDE)
    path, speed = make_stop(policy, "effort", arm(), state, np.zeros(3)).path(1.0)
    np.testing.assert_array_equal(path, OUTSIDE)
    np.testing.assert_array_equal(speed, 0)
