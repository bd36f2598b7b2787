"""Limits, derating, age of feedback and trips, compared with closed forms."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from motor_rig import SAFETY, START, Rig, arm, weight
from scipy.linalg import expm

from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.state import State
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix, rnea
from arm_dynamics.hardware.feedback_buffer import FADE_AGE, Freshness
from arm_dynamics.safety.command_limiter import (
    BRAKING,
    FADE,
    MAX_PERIOD,
    CommandLimiter,
    derating_scale,
    distance_scale,
    overspeed_damping,
    soft_limit_damping,
    soft_limited_effort,
)
from arm_dynamics.safety.controlled_stop import (
    BANDWIDTH,
    MAX_BANDWIDTH,
    MAX_JUMP_SPEED,
    RAMP,
    SAG,
    STIFFNESS_PER_EFFORT_LIMIT,
    STOP_TIME,
    ControlledStop,
    PositionHold,
    VelocityRampDown,
    make_stop,
    max_loop_bandwidth,
)
from arm_dynamics.safety.emergency_stop import (
    EmergencyStopLatch,
    TorqueOffRequest,
    motors_with_torque,
)
from arm_dynamics.safety.events import Events, Trip, Trips
from arm_dynamics.safety.limit_monitor import LimitMonitor
from arm_dynamics.safety.safety_settings import PARAMETERS, SafetySettings

pytestmark = pytest.mark.hardware

WARM = np.full(3, 30.0)


def numbers(low, high):
    return st.floats(low, high, allow_nan=False)


def vectors(low, high):
    return st.lists(numbers(low, high), min_size=3, max_size=3).map(np.array)


# The soft zone ----------------------------------------------------------------------------


@given(numbers(0.01, 10), numbers(0.1, 100), numbers(0.1, 10), numbers(0.02, 0.5), numbers(0, 1))
def test_a_joint_entering_a_soft_limit_zone_stays_within_it(inertia, push, speed, zone, scale):
    """Exact solution of m e'' + D e' + k e = 0, e(0) = -z, e'(0) = v0 <= V."""
    damping = soft_limit_damping(inertia, push, speed, zone, 1e-9)
    A = np.array([[0, 1], [-push / zone, -damping]]) / [[1], [inertia]]
    slow, fast = np.sort(np.abs(np.linalg.eigvals(A)))
    assert fast >= speed / zone * (1 - 1e-6)
    start = np.array([-zone, scale * speed])
    for time in (0.3 / fast, 1 / fast, 3 / fast, 0.3 / slow, 1 / slow, 3 / slow):
        assert (expm(time * A) @ start)[0] <= 1e-6 * zone


@given(numbers(0.1, 5), numbers(0.2, 3), numbers(-20, 20))
def test_a_joint_under_full_effort_stops_within_its_zone(inertia, speed, load):
    """A point mass under gravity and full effort, in small time steps."""
    limit, zone, dt = 50.0, 0.2, 1e-4
    q, v, furthest = 1.0 - zone, speed, 0.0
    for _ in range(2000):
        damping = soft_limit_damping(inertia, limit + abs(load), speed, zone, dt)
        tau = soft_limited_effort(
            limit, load, v, 1.0, distance_scale(1.0 - q, zone), 1e3, damping, 0.0
        )
        v += dt * (tau - load) / inertia
        q += dt * v
        furthest = max(furthest, q)
    assert 1.0 - zone < furthest <= 1.0 + 1e-3 * zone


@given(numbers(-50, 50), numbers(-50, 50), numbers(-1, 1))
def test_far_from_every_limit_commands_are_unchanged(computed, load, v):
    limited = soft_limited_effort(computed, load, v, 1.0, 1.0, 10.0, 100.0, 50.0)
    assert limited == pytest.approx(computed, abs=1e-12)


@given(numbers(0, 50), numbers(-50, 50))
def test_at_its_limit_a_joint_keeps_its_gravity_torque_and_may_move_back(push, load):
    assert soft_limited_effort(load + push, load, 0.0, 1.0, 0.0, 10.0, 100.0, 50.0) == load
    back = soft_limited_effort(load - push, load, -0.1, 1.0, 0.0, 10.0, 100.0, 50.0)
    assert back == pytest.approx(load - push, abs=1e-9)


@given(numbers(0.01, 10), numbers(0.1, 100), numbers(0.1, 10))
def test_no_constant_effort_exceeds_the_velocity_limit(inertia, push, speed):
    """m v' = u clip((V - v) / (FADE V), 0, 1): v approaches V as e^(-t u / (m FADE V))."""
    slow = inertia * FADE * speed / push
    v, dt = (1 - FADE) * speed, slow / 200
    for _ in range(400):
        v += dt * soft_limited_effort(push, 0.0, v, 1.0, 1.0, speed, 0.0, 0.0) / inertia
    assert v <= speed
    assert speed - v == pytest.approx(FADE * speed * np.exp(-2), rel=0.01)


def test_a_velocity_beyond_its_limit_decays_with_its_time_constant():
    """m v' = -m (v - V) / BRAKING."""
    inertia, v, dt = 0.7, 3.0, 1e-5
    brake = overspeed_damping(inertia, dt)
    for _ in range(round(BRAKING / dt)):
        tau = soft_limited_effort(5.0, 5.0, v, 1.0, 1.0, 2.0, 0.0, brake)
        v += dt * (tau - 5.0) / inertia
    assert v - 2.0 == pytest.approx(1.0 / np.e, rel=1e-3)
    assert overspeed_damping(inertia, 0.1) * 0.1 / inertia == pytest.approx(0.5)


def test_the_damper_is_bounded_by_the_cycle_time():
    assert soft_limit_damping(0.01, 100.0, 10.0, 0.01, 2e-3) * 2e-3 / 0.01 == pytest.approx(0.5)
    assert soft_limit_damping(1.0, 100.0, 10.0, 0.0, 2e-3) == 0.0


@pytest.mark.parametrize("push", [8.0, -8.0])
def test_an_emulated_arm_under_long_effort_stays_within_its_limits(push):
    limits = {"velocity_limit_scale": 0.02, "soft_limit_zone": 0.3}
    rig = Rig(safety=SafetySettings(**limits)).up()
    lowest = highest = rig.body.state.q[0]
    for _ in range(2000):
        seen = rig.body.state
        _, second, third = np.multiply((0, 200, 50), START - seen.q)
        _, braked, braked_too = np.multiply((0, 15, 1.5), seen.v)  # twice as much oscillates
        rig.cycle(weight(rig, push, second - braked, third - braked_too))
        lowest, highest = min(lowest, rig.body.state.q[0]), max(highest, rig.body.state.q[0])
    assert rig.driver.trips == ()
    assert lowest >= -3.0
    assert highest <= 3.0
    assert highest > 2.9 if push > 0 else lowest < -2.9


# Effort, position and velocity ------------------------------------------------------------


@given(st.lists(st.tuples(vectors(-1e4, 1e4), numbers(0, 0.2)), max_size=10), vectors(20, 90))
def test_efforts_and_their_rate_are_bounded_for_any_command(commands, warm):
    limits = CommandLimiter(arm(), SAFETY)
    bound, rate = arm().effort_limit, SAFETY.max_effort_rate
    for computed, dt in commands:
        before = limits.last
        limited = limits.apply("effort", computed, np.full(3, 2.95), np.full(3, 1.0), warm, dt)
        step = rate * bound * min(dt, MAX_PERIOD)
        assert (np.abs(limited - before) <= step + 1e-12 * bound).all()
        assert (np.abs(limited) <= bound).all()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dt", [MAX_PERIOD / 5, MAX_PERIOD, 10 * MAX_PERIOD, 1e9])
def test_commands_are_rate_limited(dt, sign):
    """abs(u - u_last) <= rate min(dt, MAX_PERIOD), with equality for distant commands."""
    settings, rest = SafetySettings(max_effort_rate=2.0, velocity_limit_scale=0.06), np.zeros(3)
    limits, time = CommandLimiter(arm(), settings), min(dt, MAX_PERIOD)
    for interface, rate in (("effort", 2.0 * arm().effort_limit), ("position", np.full(3, 6.0))):
        limits.start(rest)
        limited = limits.apply(interface, np.full(3, sign * 1e3), rest, rest, WARM, dt)
        np.testing.assert_allclose(limited, sign * rate * time)
    limits.start(np.ones(3))
    assert (limits.apply("effort", rest, rest, rest, WARM, -1.0) == 1).all()


def test_the_effort_of_a_hot_motor_is_derated():
    limits = CommandLimiter(arm(), SAFETY)
    warm = np.array([30.0, 67.5, 80.0])
    for _ in range(100):
        limited = limits.apply("effort", np.full(3, 100.0), np.zeros(3), np.zeros(3), warm, 2e-3)
    np.testing.assert_allclose(limited, 40 * np.array([1, 0.65, 0.3]))
    np.testing.assert_allclose(limits.effort_bound(warm), limited)


@given(st.lists(vectors(-10, 10), min_size=1, max_size=10))
def test_position_goals_stay_within_limits_and_speed(commands):
    limits = CommandLimiter(arm(), SAFETY)
    for computed in commands:
        before = limits.last
        limited = limits.apply("position", computed, np.zeros(3), np.zeros(3), WARM, 0.01)
        assert (np.abs(limited - before) <= 6.0 * 0.01 + 1e-12).all()
        assert (np.abs(limited) <= 3.0).all()


def test_a_velocity_command_decays_exponentially_before_a_limit():
    """x' = V x_left / z from the start of the zone: x_left = z e^(-V t / z)."""
    limits, zone, dt, q = (
        CommandLimiter(arm(), SAFETY),
        SAFETY.soft_limit_zone,
        1e-5,
        np.full(3, 2.9),
    )
    for _ in range(2000):
        limited = limits.apply("velocity", np.array([9.0, 6.0, -9.0]), q, np.zeros(3), WARM, dt)
        q = q + limited * dt
    left = zone * np.exp(-6.0 * 0.02 / zone)
    np.testing.assert_allclose(3.0 - q[:2], left, rtol=1e-2)
    assert q[2] == pytest.approx(2.9 - 6.0 * 0.02)


# Derating ---------------------------------------------------------------------------------


@given(numbers(-40, 200), numbers(0, 60), numbers(1, 60), numbers(0, 1))
def test_derating_is_linear_between_its_temperatures(warm, start, span, least):
    scale = derating_scale(warm, start, start + span, least)
    assert scale == pytest.approx(np.interp(warm, [start, start + span], [1, least]), abs=1e-9)


def test_a_motor_without_temperature_is_not_derated():
    assert derating_scale(np.nan, 60.0, 75.0, 0.3) == 1.0


# Age of feedback--------------------------------------------------------------------------


@given(st.lists(st.lists(st.sampled_from(["new", "old", "none"]), min_size=3, max_size=3)))
def test_age_and_missing_feedback_follow_from_the_readings(cycles):
    fresh, last, missed = Freshness(3, 2), [-np.inf] * 3, [3] * 3
    for now, row in enumerate(cycles, start=1):
        times = [{"new": now, "old": last[i], "none": np.nan}[kind] for i, kind in enumerate(row)]
        new = fresh.update(np.array(times, float), now)
        for i, kind in enumerate(row):
            last[i], missed[i] = (now, 0) if kind == "new" else (last[i], missed[i] + 1)
        assert new.tolist() == [kind == "new" for kind in row]
        assert fresh.missing.tolist() == [m > 2 for m in missed]
        np.testing.assert_array_equal(fresh.age(now), np.subtract(now, last))
        assert fresh.newest == max(last)
        assert fresh.complete == (max(missed) <= 2)


def test_a_reading_older_than_a_host_delay_is_not_returned():
    fresh = Freshness(2, 5, 0.25)
    fresh.update(np.array([0.0, 0.0]), 0.0)
    fresh.update(np.array([np.nan, 0.6]), 0.6)
    assert fresh.missing.tolist() == [True, False]
    assert not Freshness(1, 5, 0.25).update(np.array([0.1]), 0.4).any()


def test_a_reading_with_a_future_or_missing_time_is_discarded():
    fresh = Freshness(2, 0)
    assert not fresh.update(np.array([2.0, np.nan]), 1.0).any()
    assert fresh.update(np.array([1.0, 0.5]), 1.0).all()


def test_the_weight_of_an_old_reading_decreases():
    fresh = Freshness(1, 0)
    fresh.update(np.array([0.0]), 0.0)
    ages = np.array([0, 1, 1.5, 2, 3]) * FADE_AGE
    confidence = [float(fresh.confidence(age)[0]) for age in ages]
    assert confidence == pytest.approx([1, 1, 0.5, 0, 0])


# Trips ------------------------------------------------------------------------------------

LIMITS = {
    "position_limit": (3.0 + SAFETY.position_margin, "rad"),
    "velocity_limit": (6.0 * (1 + SAFETY.velocity_margin), "rad/s"),
    "over_temperature": (SAFETY.max_temperature, "°C"),
}


@pytest.mark.parametrize("joints", [[0], [1], [2], [0, 1, 2]])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", LIMITS)
def test_a_reading_trips_at_its_declared_limit_and_not_before(kind, sign, joints):
    """abs(q) > q_max + margin, abs(v) > (1 + margin) v_max, T >= T_max: to one part in 10^9."""
    limit, unit = LIMITS[kind]
    sign = 1 if kind == "over_temperature" else sign

    def trips(value):
        readings = {name: np.zeros(3) for name in LIMITS}
        readings[kind][joints] = sign * value
        return LimitMonitor(arm(), SAFETY).check_limits(2.0, *readings.values())

    assert trips(limit * (1 - 1e-9)) == []
    found = trips(limit * (1 + 1e-9))
    assert [trip.joint for trip in found] == [f"J{joint + 1}" for joint in joints]
    for trip in found:
        assert (trip.kind, trip.unit, trip.time) == (kind, unit, 2.0)
        assert (trip.value, abs(trip.limit)) == pytest.approx((sign * limit, limit), rel=1e-8)


def test_a_missing_temperature_does_not_trip():
    rest = np.zeros(3)
    assert LimitMonitor(arm(), SAFETY).check_limits(0.0, rest, rest, np.full(3, np.nan)) == []


def test_a_following_error_trips_after_its_timeout():
    """abs(q_goal - q) > e for longer than T; within e the timeout restarts."""
    monitor, (e, T) = (
        LimitMonitor(arm(), SAFETY),
        (SAFETY.max_following_error, SAFETY.following_error_timeout),
    )
    rest, dt = np.zeros(3), T / 10
    for sign in (1, -1):
        behind = np.array([0.0, 0.0, sign * e * (1 + 1e-9)])
        near = np.array([0.0, 0.0, sign * e * (1 - 1e-9)])
        monitor.restart(rest)
        assert not [t for k in range(50) for t in monitor.check_following_error(k * dt, rest, near)]
        for start in (100.0, 200.0):
            assert monitor.check_following_error(start - dt, rest, near) == []
            assert not [
                t
                for k in range(10)
                for t in monitor.check_following_error(start + k * dt, rest, behind)
            ]
        (trip,) = monitor.check_following_error(200.0 + 11 * dt, rest, behind)
        assert (trip.kind, trip.joint) == ("following_error", "J3")
        monitor.restart(rest)
        assert monitor.check_following_error(200.0 + 12 * dt, rest, behind) == []


def test_a_reported_fault_or_lost_torque_trips():
    monitor = LimitMonitor(arm(), SAFETY)
    assert monitor.check_faults(1.0, ("", "", ""), (True, None, True)) == []
    found = monitor.check_faults(1.0, ("", "overload", ""), (True, None, False))
    assert [(t.kind, t.joint) for t in found] == [("motor_fault", "J2"), ("torque_lost", "J3")]


# Trips and torque off ---------------------------------------------------------------------


def test_a_trip_states_joint_value_limit_and_time():
    trip = Trip("velocity", "J2", 7.25, 6.0, "rad/s", 12.3456)
    assert str(trip) == "joint 'J2': velocity 7.25 rad/s, limit 6 at 12.346 s"
    trip = Trip("connection_lost", "", 0, 0, "", 1, "gone")
    assert str(trip) == "connection_lost (gone) at 1.000 s"


def test_latched_trips_are_reported_once_and_communication_trips_clear():
    events = Events()
    trips = Trips(events)
    for time in (1.0, 2.0):
        trips.add(Trip("feedback_missing", "J1", 6, 5, "cycles", time))
        trips.add(Trip("feedback_missing", "J2", 6, 5, "cycles", time))
        trips.add(Trip("motor_fault", "J1", 1, 0, "", time))
    assert events.counts == {"feedback_missing": 2, "motor_fault": 1}
    assert [trip.kind for trip in trips.latched] == ["motor_fault"]
    trips.clear_self_clearing()
    assert [trip.kind for trip in trips] == ["motor_fault"]
    trips.clear()
    trips.add(Trip("motor_fault", "J1", 1, 0, "", 3.0))
    assert events.counts["motor_fault"] == 2


def test_each_active_kind_of_trip_is_listed():
    trips = Trips(Events())
    assert not trips.is_active("feedback_missing")
    for kind in ("feedback_missing", "motor_fault"):
        trips.add(Trip(kind, "J1", 1, 0, "", 1.0))
    kinds = ("feedback_missing", "motor_fault", "connection_lost")
    assert [trips.is_active(kind) for kind in kinds] == [True, True, False]


def test_disabling_torque_is_repeated_until_confirmed():
    off, commands = TorqueOffRequest(), []

    def disable(ids):
        commands.append(list(ids))
        return [] if len(commands) == 1 else ids[:1]

    off.request([3, 1])
    for _ in range(4):
        off.send(disable)
    assert commands == [[1, 3], [1, 3], [3]]
    assert not off.pending
    assert motors_with_torque({1: True, 2: False, 3: None}) == {1}


def test_an_emergency_stop_keeps_its_first_source():
    button = EmergencyStopLatch()
    button.engage("")
    earlier = button.press
    assert button.source == "unnamed"
    button.engage("second")
    assert button.source == "unnamed"
    assert not button.release(earlier)
    assert button.engaged
    assert button.release(button.press)
    assert not button.engaged


def test_a_second_emergency_stop_acts_like_the_first():
    rig = Rig().up()
    for count, source in enumerate(("panel", "panel", "page"), start=1):
        rig.driver.emergency_stop(source)
        rig.cycles(3)
        assert rig.torque == [False] * 3
        assert rig.counts["emergency_stop"] == count
        rig.body.hold_at(rig.body.state.q)
        rig.driver.reset()
        assert not rig.driver.emergency_stopped
        rig.cycles(3)
        rig.driver.activate()
        assert rig.torque == [True] * 3


@pytest.mark.parametrize("when", ["before the release", "after the release"])
def test_an_emergency_stop_during_a_release_persists(when):
    class LatchWithRace(EmergencyStopLatch):
        """Latch with an emergency stop at the moment of reading the newest one."""

        armed = False

        def __getattribute__(self, name):
            if name == ("press" if when.startswith("after") else "source") and self.armed:
                type(self).armed = False
                self.engage("second")
            return super().__getattribute__(name)

    button = LatchWithRace()
    button.engage("first")
    first, LatchWithRace.armed = button.press, True
    assert not button.release(first)
    assert button.engaged


def test_requests_during_a_confirmation_stay_pending():
    off = TorqueOffRequest()
    off.request([1])

    def confirm(ids):
        off.request([2])
        return ids

    off.send(confirm)
    assert off.pending == {2}


def test_an_error_of_a_listener_is_counted_and_not_raised():
    def fails(kind, message):
        raise RuntimeError("no log")

    events = Events(fails)
    events.report("fault", "J1")
    assert events.counts == {"fault": 1, "listener_failed": 1}
    assert events.latest == {"fault": "J1"}


# Stops ------------------------------------------------------------------------------------


@given(vectors(-2.9, 2.9), vectors(-20, 20), numbers(0, 2))
def test_a_stop_trajectory_ends_before_the_position_limit(q, v, time):
    """q0 + v0 T (1 - e^(-t/T)), T = clip(0.8 distance / abs(v0), 10 ms, STOP_TIME), by joint."""
    stop = ControlledStop(arm(), State.of(q, v, time=5.0), np.zeros(3))
    ahead = np.where(v > 0, 3.0 - q, q + 3.0)
    T = np.clip(0.8 * ahead / np.maximum(np.abs(v), 1e-9), 0.01, STOP_TIME)
    path, speed = stop.path(5.0 + time)
    expected = np.clip(q + v * T * (1 - np.exp(-time / T)), -3.0, 3.0)
    np.testing.assert_allclose(path, expected, atol=1e-12)
    np.testing.assert_allclose(speed, v * np.exp(-time / T), atol=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
def test_effort_of_each_stop_policy_after_a_displacement(sign):
    """Long after its start, at rest 0.1 rad away: hold pulls back, ramp carries, damp does not."""
    start, away = np.array(START), np.array(START) + 0.1 * sign
    weight = gravity(arm(), away)

    def effort(policy, v):
        stop = make_stop(policy, "effort", arm(), State.of(start), gravity(arm(), start))
        for time in np.linspace(0.0, 10.0, 1001):  # pushed at 0.01 rad/s
            pushed = start + 0.01 * time * sign
            stop.command(State.of(pushed, np.full(3, 0.01 * sign), time=time))
        return stop.command(State.of(away, v, time=10.01)).value

    rest, moving = np.zeros(3), np.full(3, 0.05)
    np.testing.assert_allclose(effort("ramp", rest), weight, atol=1e-12)
    np.testing.assert_array_equal(effort("damp", rest), rest)
    pull = sign * (effort("hold", rest) - weight)
    assert (pull < -0.09 * STIFFNESS_PER_EFFORT_LIMIT * arm().effort_limit).all()
    D = np.diag(mass_matrix(arm(), start)) / STOP_TIME
    np.testing.assert_allclose(effort("ramp", moving), weight - D * moving)
    np.testing.assert_allclose(effort("damp", moving), -D * moving)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_hold_is_a_damped_spring_within_the_motors_efforts(sign):
    """K = max(BANDWIDTH² M_ii, min(GRIP τ_max, MAX_BANDWIDTH² M_ii)), D = 1.6 sqrt(K M_ii)."""
    start, m = np.array(START), np.diag(mass_matrix(arm(), START))
    stiff = np.minimum(STIFFNESS_PER_EFFORT_LIMIT * arm().effort_limit, MAX_BANDWIDTH**2 * m)
    K = np.maximum(BANDWIDTH**2 * m, stiff)
    stop = ControlledStop(arm(), State.of(start), np.full(3, 7.0))
    e, v = sign * 0.005, sign * 0.02  # below what counts as a jump
    found = stop.command(State.of(start - e, [v] * 3, time=10.0)).value
    carried = rnea(arm(), start - e, np.full(3, v), np.zeros(3))
    np.testing.assert_allclose(found, carried + K * e - 1.6 * np.sqrt(K * m) * v)
    back, limit = np.full(3, -100 * v), arm().effort_limit
    fast = stop.command(State.of(start - e, back, time=10.0)).value
    desired = rnea(arm(), start - e, back, np.zeros(3)) + K * e - 1.6 * np.sqrt(K * m) * back
    assert (np.abs(desired) > limit).any()
    np.testing.assert_allclose(fast, np.clip(desired, -limit, limit))
    half = stop.command(State.of(start, time=RAMP / 2)).value
    np.testing.assert_allclose(half, 3.5 + 0.5 * gravity(arm(), start))


@pytest.mark.parametrize("amount", [-6.3, -1.95, -0.09, 0.02, 0.09, 2.0])
def test_a_hold_does_not_pull_a_joint_to_where_it_was_before_its_reading_changed(amount):
    """A position that changes by more than its velocity explains: the path restarts there."""
    start, joint = np.array(START), np.array([0.0, amount, 0.0])
    stop = make_stop("hold", "effort", arm(), State.of(start), gravity(arm(), start))
    for time in (0.1, 0.102):
        stop.command(State.of(start, time=time))
    for time in (0.104, 0.106):
        jumped = stop.command(State.of(start + joint, time=time)).value
        allowed = MAX_JUMP_SPEED * 1.6 * BANDWIDTH * np.diag(mass_matrix(arm(), start))
        assert (np.abs(jumped - gravity(arm(), start + joint)) <= allowed + 1e-9).all()
    back = stop.command(State.of(start, time=0.108)).value
    assert (np.abs(back - gravity(arm(), start)) <= allowed + 1e-9).all()


def test_a_hold_returns_a_pushed_joint_by_a_bounded_distance_only():
    """The path follows a joint that is pushed away: e <= max(0.1 rad, a quarter of τ_max / K)."""
    start = np.array(START)
    stop = make_stop("hold", "effort", arm(), State.of(start), gravity(arm(), start))
    for k in range(1001):  # 2 rad in 2 s
        pushed = start + 2e-3 * k * np.array([0.0, 1.0, 0.0])
        value = stop.command(State.of(pushed, [0.0, 1.0, 0.0], time=2e-3 * k)).value
    path, _ = stop.path(2.0)
    K = max(BANDWIDTH**2 * mass_matrix(arm(), start)[1, 1], 0.4 * 40)
    assert pushed[1] - path[1] == pytest.approx(max(0.1, 0.25 * 40 / K))
    still = stop.command(State.of(pushed, time=2.002)).value
    assert abs(still - gravity(arm(), pushed))[1] <= 0.5 * 40 + 1e-9
    assert (np.abs(value) <= 40).all()


@given(numbers(1e-3, 0.1), st.integers(0, 2**32 - 1))
def test_gains_of_hold_are_the_highest_stable_ones(period, seed):
    """K = w² M_ii, D = 1.6 w M_ii, zero-order hold of the effort: stable at w, not at 2 w."""
    root = np.random.default_rng(seed).normal(size=(3, 3))
    M = root @ root.T + 0.1 * np.eye(3)
    rate = max_loop_bandwidth(M, LoopTiming(period))

    def largest_root(w):
        gains = w * np.diag(np.diag(M)) @ np.hstack([w * np.eye(3), 1.6 * np.eye(3)])
        a = -np.linalg.solve(M, gains)
        q, v = np.eye(6)[:3], np.eye(6)[3:]
        step = np.vstack([q + period * v + period**2 / 2 * a, v + period * a])
        return np.abs(np.linalg.eigvals(step)).max()

    assert largest_root(rate) < 1.0 < largest_root(2 * rate)
    assert max_loop_bandwidth(M, LoopTiming(2 * period)) == pytest.approx(rate / 2)
    assert max_loop_bandwidth(M, LoopTiming(0.0)) == np.inf


# Stops of servos --------------------------------------------------------------------------


def test_a_stop_replaces_the_goal_of_a_blocked_servo_but_not_of_a_loaded_one():
    state = State.of([0.0, 1.0, 2.0])
    stop = PositionHold(arm(), state, np.array([0.05, 1.5, 1.0]))
    np.testing.assert_allclose(stop.command(state).value, [0.05, 1 + SAG, 2 - SAG])


def test_velocity_goals_decay_during_a_stop():
    stop = VelocityRampDown(arm(), State.of([0.0] * 3, time=1.0), np.array([1.0, -2.0, 0.0]))
    q, v = stop.path(1.0 + STOP_TIME)
    np.testing.assert_allclose(v, np.array([1, -2, 0]) / np.e)
    np.testing.assert_allclose(q, np.array([1, -2, 0]) * STOP_TIME * (1 - 1 / np.e))


# Settings ---------------------------------------------------------------------------------


def test_every_setting_is_declared_with_its_default():
    declared = {p.name: p.default for p in PARAMETERS}
    defaults = {f.name: f.default for f in fields(SafetySettings) if f.name != "stop_policy"}
    assert declared == defaults


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"motor_watchdog_timeout": 0}, "motor_watchdog_timeout = 0 s; expected at least 0.001"),
        ({"max_missed_cycles": 2.5}, "max_missed_cycles = 2.5; expected an integer"),
        ({"max_effort_rate": float("nan")}, "max_effort_rate = nan"),
        ({"max_temperature": 50}, "derating_temperature = 60 °C; expected below"),
        ({"soft_limit_zone": True}, "expected a number"),
    ],
)
def test_settings_out_of_range_are_rejected(given, text):
    with pytest.raises(InvalidValue, match=text):
        SafetySettings.of(given)


def test_unknown_settings_are_named():
    with pytest.raises(UnknownName, match=r"'watchdogs'; known:.*motor_watchdog_timeout"):
        SafetySettings.of({"watchdogs": 1})
    with pytest.raises(UnknownName, match="'fall'; known: damp, disable, hold, ramp"):
        SafetySettings(stop_policy="fall")


@pytest.mark.parametrize(("enabled", "lost"), [
    ([False] * 3, ["J1", "J2", "J3"]), ([True, False, None], ["J2"]), ([True] * 3, []),
    ([None] * 3, []), ([], []),
])  # fmt: skip
def test_lost_torque_trips_but_an_unknown_torque_status_does_not(enabled, lost):
    found = LimitMonitor(arm(), SAFETY).check_faults(1.0, [""] * 3, enabled)
    assert [(trip.kind, trip.joint) for trip in found] == [("torque_lost", n) for n in lost]


@pytest.mark.parametrize(("distance", "zone", "scale"), [
    (0.05, 0.1, 0.5), (0.2, 0.1, 1.0), (-0.01, 0.1, 0.0),
    (0.3, 0.0, 1.0), (1e-9, 0.0, 1.0), (0.0, 0.0, 0.0), (-0.3, 0.0, 0.0),
])  # fmt: skip
def test_the_effort_scale_is_the_remaining_fraction_of_the_zone(distance, zone, scale):
    """Without a zone the scale is 1 up to the limit itself."""
    assert distance_scale(distance, zone) == pytest.approx(scale, abs=1e-12)


def test_extreme_settings_are_accepted():
    """Small scales and rates, no zone or margin, timeouts of a minute."""
    small = dict.fromkeys(("effort_limit_scale", "velocity_limit_scale", "max_effort_rate"), 0.01)
    none = dict.fromkeys(
        ("soft_limit_zone", "position_margin", "velocity_margin", "derating_min_scale"), 0.0
    )
    long = dict.fromkeys(
        ("command_timeout", "motor_watchdog_timeout", "feedback_timeout", "reconnect_period"), 60.0
    )
    many = dict.fromkeys(("max_missed_cycles", "activation_cycles", "recovery_cycles"), 10_000)
    found = SafetySettings(**small, **none, **long, **many)
    assert found.max_effort_rate == 0.01
    for name in (*small, "max_missed_cycles"):
        with pytest.raises(InvalidValue, match=name):
            SafetySettings(**{name: -1})
