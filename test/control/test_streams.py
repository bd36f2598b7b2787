"""Streams of waypoints: smooth, joined within the limits, never rejected for their velocity."""

import numpy as np
import pytest
from stream_rig import PERIOD, Rig, Sine, figures, stream

from arm_dynamics import load_arm
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.control.goals.streams import FADE, CommandSettings
from arm_dynamics.control.trajectories.effort_check import check_effort
from arm_dynamics.control.trajectories.limited_move import Limits, Track
from arm_dynamics.control.trajectories.stream_tracks import Sample, StreamFit
from arm_dynamics.control.trajectories.stream_trajectory import StreamTrajectory
from arm_dynamics.control.trajectories.trajectory_parsing import Options, parse_trajectory
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected
from arm_dynamics.core.state import Reference
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.safety.braking import default_deceleration
from arm_dynamics.simulation.simulation import Simulation

ARMS = ("two_link", "five_dof", "puma560")


# --- smooth


@pytest.mark.quick(2)
@pytest.mark.parametrize("velocities", [False, True], ids=["positions", "velocities too"])
@pytest.mark.parametrize(("rate", "ahead"), [(100, 0.01), (100, 0.0), (50, 0.05), (250, 0.02)])
def test_a_stream_is_smooth(rate, ahead, velocities):
    """As smooth as its source, and on it within one message period."""
    found = figures(*stream("five_dof", rate, ahead, velocities, seconds=3.0))
    assert found.ratio < 1.05
    assert abs(found.lag) < 1 / rate
    assert found.error < 2e-3


@pytest.mark.quick(1)
@pytest.mark.parametrize("arm", ARMS)
def test_a_stream_with_jitter_and_a_lost_message_is_smooth(arm):
    """±3 ms of arrival at 100 Hz: within 3 times the source's acceleration, and 20 ms."""
    rig, source = stream(arm, jitter=3e-3, lost=(200,))
    found = figures(rig, source)
    assert not rig.rejected
    assert not rig.events.counts
    assert found.ratio < 3.0
    assert abs(found.lag) < 0.02
    assert found.error < 5e-3


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_the_fit_is_exact_for_polynomials_up_to_degree_two(degree):
    """For any sampling times."""
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (degree + 1, 3))
    times = 5.0 + np.cumsum(rng.uniform(0.007, 0.013, 30))
    fit = StreamFit(np.full(3, 100.0))
    for velocities in (False, True):
        fit.restart()
        for t in times:
            powers = np.arange(degree + 1)
            q = (t - 5.0) ** powers @ c
            v = (powers * (t - 5.0) ** np.maximum(powers - 1, 0)) @ c
            fit.add(Sample(t, q, v if velocities else None), 0.01)
        s = times[-1] - 5.0
        expected = np.zeros((3, 3))
        expected[0] = s ** np.arange(degree + 1) @ c
        if degree > 0:
            expected[1] = c[1] + (2 * s * c[2] if degree > 1 else 0)
        if degree > 1:
            expected[2] = c[2]
        np.testing.assert_allclose(fit.least_squares(), expected, atol=1e-8)


# --- joined


def servo_message(rig, source, window, now):
    """Return a message like the rolling window of MoveIt Servo: stamped by its oldest waypoint."""
    window.append((now + 0.1, *source(now + 0.1)[:2]))
    while window[0][0] < now - 0.1:
        window.pop(0)
    if len(window) < 3:
        return
    times, q, v = zip(*window[:-1], strict=True)
    rig.send([t - times[0] for t in times], q, v, start=times[0])


@pytest.mark.quick(1)
@pytest.mark.parametrize("arm", ARMS)
def test_moveit_servo_drives_the_arm(arm):
    rig = Rig(arm)
    source = Sine(rig.arm)
    rig = Rig(rig.arm, source(0.0)[0])
    window: list = []
    for k in range(1, 400):
        rig.step(k * 0.01)
        servo_message(rig, source, window, rig.now)
    found = figures(rig, source)
    assert not rig.rejected
    assert not rig.events.counts
    assert found.error < 1e-4
    assert found.ratio < 1.02
    rig.step(rig.driver.time + 1.0)
    t, q, v, _ = rig.motion()
    assert rig.events.counts["stream_ended"] == 1
    assert not v[-1].any()
    last = source(t[-1] - 1.0 + 0.09)  # last but one waypoint of its window
    distance = last[1] ** 2 / (2 * default_deceleration(rig.arm))
    np.testing.assert_allclose(q[-1], last[0] + np.sign(last[1]) * distance, atol=2e-3)


@pytest.mark.quick(2)
@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("gap", [0.25, 1.0])
def test_a_stream_with_a_gap_is_joined_within_the_limits(arm, gap):
    """Messages stop while the source moves on; then the arm catches up and follows again."""
    rig = Rig(arm)
    source = Sine(rig.arm, amplitude=0.5, omega=1.2)
    rig = Rig(rig.arm, source(0.0)[0])
    for k in range(1, 350):
        rig.step(k * 0.01)
        if not 1.0 < rig.now < 1.0 + gap:
            rig.send([0.01], [source(rig.now + 0.01)[0]])
    _, q, v, _ = rig.motion()
    assert not rig.rejected
    limit, rate = rig.arm.velocity_limit, default_deceleration(rig.arm)
    assert (np.abs(np.diff(q, axis=0)) / PERIOD <= limit * 1.011).all()
    assert (np.abs(np.diff(v, axis=0)) / PERIOD <= 1.5 * rate + 2.0).all()
    assert figures(rig, source, 1.0 + gap + 1.0).error < 5e-3


@pytest.mark.parametrize("ahead", [1e-9, 0.0, 1e-3])
def test_a_waypoint_closer_than_a_period_is_due_immediately(ahead):
    rig = Rig("five_dof")
    q = rig.arm.configuration("initial") + 0.01
    rig.send([ahead], [q])
    rig.step(0.5)
    assert not rig.rejected
    assert np.array_equal(rig.loop.reference.q, q)
    _, _, v, _ = rig.motion()
    assert np.abs(v).max() < 1.9 * 0.01 / FADE


def test_a_jump_of_a_stream_is_followed_within_the_limits():
    rig = Rig("five_dof")
    start = rig.arm.configuration("initial")
    away = start + np.array([1.0, 0.5, 0.2, 0.5, 0.5])
    for k in range(1, 200):
        rig.step(k * 0.01)
        rig.send([0.01], [start if k < 50 else away])
    _, q, _, _ = rig.motion()
    assert not rig.rejected
    assert (np.abs(np.diff(q, axis=0)) / PERIOD <= rig.arm.velocity_limit * 1.001).all()
    assert np.abs(q[-1] - away).max() < 1e-4


@pytest.mark.parametrize("by", ["waypoints", "commands"])
def test_a_stream_of_a_continuous_joint_passes_half_a_turn(by):
    """Its client normalizes positions to ±π; the joint continues its rotation."""
    begin, speed = np.array([np.pi - 0.2, 0.1]), np.array([0.5, 0.0])
    rig = Rig("two_link", begin)
    for k in range(1, 100):
        rig.step(k * 0.01)
        q = np.remainder(begin + speed * (rig.now + 0.01) + np.pi, 2 * np.pi) - np.pi
        if by == "waypoints":
            rig.send([0.01], [q])
        else:
            rig.streams.command(q)
    t, q, v, _ = rig.motion()
    assert not rig.rejected
    assert np.abs(v[t > 0.3] - speed).max() < 0.01
    assert q[-1] == pytest.approx(begin + speed, abs=0.02)


def test_a_waypoint_too_far_for_its_time_is_reached_later():
    """On the topic; an action goal is rejected."""
    rig = Rig("five_dof")
    away = rig.arm.configuration("initial") + np.array([1.0, 0, 0, 0, 0])
    rig.send([0.5], [away])
    rig.step(2.0)
    _, q, _, _ = rig.motion()
    assert not rig.rejected
    assert (np.abs(np.diff(q, axis=0)) / PERIOD <= rig.arm.velocity_limit * 1.011).all()
    np.testing.assert_allclose(q[-1], away, atol=1e-9)
    with pytest.raises(TrajectoryRejected, match="R1': velocity"):
        rig.loop.follow(
            parse_trajectory(rig.arm, rig.arm.joint_names, [0.5], [q[0]], start=rig.now)
        )


def test_a_goal_may_end_in_motion_if_allowed():
    """It comes to rest with the deceleration, and an event reports it."""
    rig = Rig("five_dof")
    q, v = rig.arm.configuration("initial"), np.array([0.4, 0, 0, 0, 0])
    names = rig.arm.joint_names
    with pytest.raises(TrajectoryRejected, match="allow_nonzero_velocity_at_trajectory_end"):
        parse_trajectory(rig.arm, names, [0.5], [q + 0.5 * v], [v], start=rig.now)
    allowed = Options(end_in_motion=True)
    goal = parse_trajectory(
        rig.arm, names, [0.5], [q + 0.5 * v], [v], start=rig.now, options=allowed
    )
    rig.loop.follow(goal)
    rig.step(1.5)
    distance = v**2 / (2 * default_deceleration(rig.arm))
    np.testing.assert_allclose(rig.loop.reference.q, q + 0.5 * v + distance, atol=1e-9)
    assert not rig.loop.reference.v.any()
    assert rig.events.counts["stream_ended"] == 1


def test_waypoints_beyond_the_limits_are_rejected():
    rig = Rig("five_dof")
    q = rig.arm.configuration("initial")
    rig.send([0.5, 0.51], [q, q + 0.2])
    rig.send([0.01], [q + 9.0 * (np.arange(5) == 1)])
    rig.send([0.01], [q], start=-1.0)
    assert [text.split(" = ")[0] for text in rig.rejected] == [
        "joint 'R1': velocity", "joint 'R2': position", "trajectory: time of the last waypoint",
    ]  # fmt: skip


def test_a_window_of_waypoints_with_and_without_velocities_is_followed():
    """Linear to and from the waypoint without velocities; at rest at the last one."""
    rig = Rig("five_dof")
    q = rig.arm.configuration("initial")
    rig.step(0.1)
    rows = [q + k * 0.05 for k in (1, 3, 4)]
    rig.send([0.5, 1.0, 1.5], rows, [np.full(5, 0.2), [], np.zeros(5)])
    t, reference, v, _ = (rig.step(2.0), *rig.motion())[1:]
    assert not rig.rejected
    for start, end, before, after in ((0.6, 1.1, 0, 1), (1.1, 1.6, 1, 2)):
        inside = (t > start + 0.01) & (t < end - 0.01)
        slope = (rows[after] - rows[before]) / 0.5
        line = rows[before] + np.outer(t[inside] - start, slope)
        np.testing.assert_allclose(reference[inside], line, atol=2e-3)
        np.testing.assert_allclose(v[inside], np.tile(slope, (inside.sum(), 1)), atol=0.02)
    np.testing.assert_allclose(reference[-1], rows[-1], atol=1e-9)
    assert not v[-1].any()


def test_a_long_window_of_positions_is_followed_smoothly():
    """2 s of waypoints with a spacing of 0.1 s, replaced at 10 Hz."""
    rig = Rig("five_dof")
    source = Sine(rig.arm)
    rig = Rig(rig.arm, source(0.0)[0])
    for k in range(1, 40):
        rig.step(k * 0.1)
        times = np.arange(0.1, 2.05, 0.1)
        rig.send(times, [source(rig.now + t)[0] for t in times])
    found = figures(rig, source)
    assert not rig.rejected
    assert found.error < 1e-3
    assert found.ratio < 1.1


# --- streams of velocities, and commands


def test_streams_of_velocities_are_integrated():
    rig = Rig("five_dof")
    source = Sine(rig.arm)
    rig = Rig(rig.arm, source(0.0)[0])
    for k in range(1, 300):
        rig.step(k * 0.01)
        rig.send([0.01], v=[source(rig.now + 0.01)[1]])
    found = figures(rig, source)
    assert not rig.rejected
    assert found.ratio < 1.1
    assert found.error < 0.02
    rig.step(rig.driver.time + 1.0)
    assert not rig.loop.reference.v.any()
    assert rig.events.counts["stream_ended"] == 1


def test_streams_towards_a_contact_stop_short_of_it_and_can_go_back():
    rig = Rig("five_dof")
    for k in range(1, 450):
        rig.step(k * 0.01)
        rig.send([0.01], v=[[0.0, 0.5, 0.0, 0.0, 0.0]])
    assert "'base_link' and 'R3_link' would be" in rig.rejected[-1]
    rest = rig.loop.reference
    assert rest.q[1] < rig.arm.upper[1] - 0.05
    assert not rest.v.any()
    for k in range(450, 500):
        rig.step(k * 0.01)
        rig.send([0.01], v=[[0.0, -0.5, 0.0, 0.0, 0.0]])
    assert rig.loop.reference.q[1] < rest.q[1] - 0.1


def test_streams_of_velocities_end_at_a_position_limit():
    rig = Rig("five_dof", self_collision=False)
    for k in range(1, 450):
        rig.step(k * 0.01)
        rig.send([0.01], v=[[0.0, 0.5, 0.0, 0.0, 0.0]])
    _, q, v, _ = rig.motion()
    rate = default_deceleration(rig.arm)
    assert q[-1][1] == pytest.approx(rig.arm.upper[1], abs=1e-3)
    assert (q <= rig.arm.upper + 1e-9).all()
    assert (np.abs(np.diff(v, axis=0)) / PERIOD <= 1.1 * rate + 1e-6).all()


def test_integration_must_be_allowed():
    with pytest.raises(TrajectoryRejected, match="allow_integration_in_goal_trajectories"):
        parse_trajectory(
            load_arm("five_dof"), load_arm("five_dof").joint_names, [1.0], [], [np.zeros(5)]
        )


@pytest.mark.parametrize("interface", ["position", "velocity"])
def test_single_commands_are_followed_until_their_end(interface):
    rig = Rig("five_dof")
    source = Sine(rig.arm)
    rig = Rig(rig.arm, source(0.0)[0])
    rig.streams.commands = CommandSettings(interface, 0.1)
    for k in range(1, 300):
        rig.step(k * 0.01)
        rig.streams.command(source(rig.now)[interface == "velocity"])
    found = figures(rig, source)
    assert found.ratio < 1.1
    assert found.error < (2e-3 if interface == "position" else 0.02)
    last = rig.now
    rig.step(last + 1.0)
    t, q, v, _ = rig.motion()
    assert not v[-1].any()
    if interface == "position":
        np.testing.assert_allclose(q[-1], source(last)[0], atol=1e-6)
    else:
        moving = np.abs(v).max(axis=1) > 0
        assert last + 0.1 <= t[moving][-1] < last + 0.1 + 0.25
    assert rig.events.counts["stream_ended"] == 1


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_a_client_with_another_clock_that_stops_is_overshot_by_a_limited_distance(factor):
    """Time of the loop passes at ``factor`` of the client's: 0.3 rad/s are 0.3 / factor."""
    rig, speed, sent, overshoot = Rig("five_dof"), 0.3, 0, 0.0
    start = rig.loop.state.q
    while rig.driver.time < 2.5 * factor:
        rig.step()
        while sent / 50 * factor <= rig.driver.time < 1.5 * factor:
            rig.streams.command(start + speed * min(sent / 50, 1.0) * np.array([0, 1, 0, 0, 0]))
            sent += 1
        overshoot = max(overshoot, rig.loop.reference.q[1] - start[1] - speed)
    assert 0.02 < overshoot < 0.1 * speed / factor
    np.testing.assert_allclose(rig.loop.reference.q[1], start[1] + speed, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.0], "commands: 1 values; expected one position of each of R1"),
        ([0, 0, np.nan, 0, 0], r"commands \(position\)\[2\] = nan"),
    ],
)
def test_commands_are_checked(values, text):
    with pytest.raises(InvalidValue, match=text):
        Rig("five_dof").streams.command(values)


def test_commands_beyond_limits_are_limited():
    rig = Rig("five_dof")
    rig.streams.command([0.0, 9.0, 0.0, 0.0, 0.0])
    rig.step(3.0)
    assert rig.loop.reference.q[1] == rig.arm.upper[1]
    assert "joint 'R2': position = 9" in rig.events.latest["command_limited"]


def test_cmd_timeout_holds_and_is_reported():
    rig = Rig("five_dof")
    rig.streams.timeout = 0.2
    for k in range(1, 50):
        rig.step(k * 0.01)
        rig.send([0.01], v=[[0.2, 0.0, 0.0, 0.0, 0.0]])
    assert not rig.events.counts["command_timeout"]
    rig.step(rig.now + 0.5)
    assert rig.events.counts["command_timeout"] == 1
    assert not rig.loop.reference.v.any()


def test_a_trajectory_starts_at_the_configured_state():
    """At the reference, or at the measured state."""
    for desired in (True, False):
        rig = Rig("five_dof")
        rig.loop.reference_generator.from_desired = desired
        q = rig.arm.configuration("initial")
        rig.driver.q = q + 0.02
        rig.send([1.0], [q])
        rig.step()
        begun = q if desired else q + 0.02
        np.testing.assert_allclose(rig.loop.reference.q, begun, atol=1e-4)


# --- efforts


@pytest.mark.parametrize("kind", [PidGravity, ComputedTorque])
def test_efforts_are_added_to_the_command(kind):
    """From the same state the commands differ exactly by the given effort."""
    arm = load_arm("five_dof")
    given = np.array([[0.1, -0.2, 0.05, 0.0, 0.02], [0.3, 0.2, 0.05, 0.1, 0.02]])
    q, found = arm.configuration("initial"), []
    for efforts in ((), given):
        loop = ControlLoop(SimulationDriver(arm, Simulation(arm, period=PERIOD)), kind(arm))
        loop.step()
        begin = loop.state.time
        times = [PERIOD + 1e-6, 1.0]
        loop.follow(
            parse_trajectory(arm, arm.joint_names, times, [q, q], start=begin, efforts=efforts)
        )
        loop.step()
        loop.step()
        found.append(
            (loop.command.value, loop.reference.effort, loop.reference_generator.at(begin + 0.501))
        )
    (without, nothing, _), (command, effort, later) = found
    assert nothing is None
    np.testing.assert_allclose(effort, given[0], atol=1e-3)
    np.testing.assert_allclose(command - without, effort, atol=1e-12)
    np.testing.assert_allclose(later.effort, given.mean(axis=0), atol=1e-4)


def test_efforts_of_streams_are_added_and_blended_out():
    arm = load_arm("two_link")
    loop = ControlLoop(SimulationDriver(arm, Simulation(arm, period=PERIOD)), PidGravity(arm))
    loop.step()
    rig = Rig(arm)
    rig.loop = rig.streams.loop = loop
    q = arm.configuration("initial")
    rig.send([0.0], [q], efforts=[[0.2, -0.1]])
    for _ in range(100):
        loop.step()
    assert not rig.rejected
    assert loop.reference.effort.tolist() == [0.2, -0.1]
    rig.send([0.5], [q])
    loop.step()
    assert 0 < loop.reference.effort[0] <= 0.2
    for _ in range(400):
        loop.step()
    assert loop.reference.effort is None


def test_efforts_need_a_controller_with_effort_interface():
    rig = Rig("two_link")
    rig.send([1.0], [rig.arm.configuration("initial")], efforts=[[0.1, 0.1]])
    assert "PositionController, which commands position; leave effort empty" in rig.rejected[0]


def test_the_effort_check_includes_given_efforts():
    arm = load_arm("five_dof")
    q = arm.configuration("initial")
    much = [[0.0, 0.0, 0.0, 0.0, 1.01 * arm.effort_limit[4]]]
    heavy = parse_trajectory(arm, arm.joint_names, [1.0], [q], efforts=much)
    with pytest.raises(TrajectoryRejected, match="R5"):
        check_effort(arm, heavy, arm.effort_limit)
    check_effort(arm, parse_trajectory(arm, arm.joint_names, [1.0], [q]), arm.effort_limit)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_transition_onto_a_stream_stops_at_the_position_limit(sign):
    """From 0.3 rad/s close to the limit onto a waypoint at the limit: both decays overshoot."""
    arm = load_arm("two_link")
    lower, upper = -1.0, 1.0
    acceleration = float(default_deceleration(arm)[0])
    inside, free = (
        StreamTrajectory((Limits(3.0, acceleration, *ends),), (track,), 0.0, 0.0, moving=False)
        for ends in ((lower, upper), (-np.inf, np.inf))
        for track in [Track((0.0,), ((sign * 1.0,),))]
    )
    present = Reference(*(np.array([sign * x]) for x in (0.999, 0.3, 0.0)))
    inside, free = (stream.starting_from(0.0, present) for stream in (inside, free))
    stopped = 0
    for time in np.linspace(0.0, 0.2, 101):
        at, wished = inside.at(time), free.at(time)
        if sign * wished.q[0] > 1.0:
            stopped += 1
            assert (at.q[0], at.v[0], at.a[0]) == (sign * 1.0, 0.0, 0.0)
        else:
            assert (at.q, at.v, at.a) == (wished.q, wished.v, wished.a)
    assert stopped > 20
