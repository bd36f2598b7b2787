"""Safety: rejected commands, controlled stop, restart with the next command."""

import numpy as np
import pytest
from conftest import displaced, five_dof
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.core.errors import CommandRejected, InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.safety.command_watchdog import CommandWatchdog, Guard
from arm_dynamics.safety.controlled_stop import ControlledStop
from arm_dynamics.safety.events import Events
from arm_dynamics.simulation.simulation import Simulation

BAD = [
    (Command("effort", np.array([0, np.nan, 0, 0, 0])), r"effort command\[1\] = nan"),
    (Command("effort", np.array([0, 0, -np.inf, 0, 0])), r"effort command\[2\] = -inf"),
    (Command("effort", np.zeros(4)), r"\(4,\); expected \(5,\)"),
    (Command("voltage", np.array([np.nan] * 5)), r"voltage command\[0\] = nan"),
    (Command("position", np.zeros(5)), "'R1' 'position'; known: effort, voltage"),
    (Command("steam", np.zeros(5)), "'steam'"),
]


def command(value, stamp=0.0):
    return Command.checked("effort", value, 5, stamp)


@pytest.mark.parametrize(("bad", "text"), BAD)
def test_the_guard_rejects_names_and_counts_invalid_commands(bad, text):
    reports = []
    events = Events(lambda kind, message: reports.append((kind, message)))
    guard = Guard(five_dof(), events)
    for count in (1, 2):
        with pytest.raises(CommandRejected, match=text):
            guard.check_command(bad)
        assert events.counts == {"command_rejected": count}
    assert reports[-1] == ("command_rejected", events.latest["command_rejected"])


@pytest.mark.parametrize("sign", [1, -1])
def test_the_guard_clamps_and_reports_it(sign):
    events = Events()
    guard = Guard(five_dof(), events)
    fine = command([120.0, -120, 0, 12, -12])
    assert guard.check_command(fine).value.tolist() == fine.value.tolist()
    assert not events.counts
    requested = sign * np.array([500.0, 0, -1, 20, 0])
    clamped = guard.check_command(command(requested, stamp=3.0))
    assert (sign * clamped.value).tolist() == [120, 0, -1, 12, 0]
    assert clamped.stamp == 3.0
    assert f"'R1': effort {requested[0]:g} N·m" in events.latest["effort_clamped"]
    assert events.counts == {"effort_clamped": 1}


@given(st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=5))
def test_the_guard_returns_the_nearest_command_within_the_limits(requested):
    """clip(u, -u_max, u_max) joint by joint, for all signs."""
    arm = five_dof()
    kept = Guard(arm, Events()).check_command(command(requested)).value
    np.testing.assert_array_equal(kept, np.clip(requested, -arm.effort_limit, arm.effort_limit))


def test_the_guard_rejects_invalid_states():
    events = Events()
    guard = Guard(five_dof(), events)
    assert guard.check_state(State.of([0.0] * 5))
    zero = np.zeros(5)
    assert not guard.check_state(State(0.0, zero, np.array([0, 0, 0, np.nan, 0]), zero))
    assert "'R4'" in events.latest["state_rejected"]
    assert not guard.check_state(State(0.0, np.zeros(4), zero, zero))
    assert "4 positions and 5 velocities measured for 5 joints" in events.latest["state_rejected"]
    assert events.counts["state_rejected"] == 2


@pytest.mark.parametrize(("bad", "text"), BAD)
def test_after_rejections_the_last_valid_command_times_out(bad, text):
    del text
    sim = Simulation(five_dof())
    good = command(rigid_body.gravity(five_dof(), sim.state.q))
    sim.submit(good)
    stopping = []
    for _ in range(100):
        assert sim.submit(bad) is False
        stopping.append(sim.watchdog.stopping)
        sim.advance()
    assert sim.watchdog.events.counts["command_rejected"] == 100
    # 0.1 s at 2 ms: the valid command lasts 50 periods and is not renewed by invalid ones.
    assert stopping.index(True) in (51, 52)
    assert sim.watchdog.events.counts["command_timeout"] == 1
    assert "no command for 0.10" in sim.watchdog.events.latest["command_timeout"]


STARTS = [
    # configuration, velocity, last command
    ([0.0, -1.1, 0.3, 0.0, 0.0], [0.0] * 5, [0.0] * 5),
    ([0.5, -0.6, -0.4, 0.5, 0.3], [1.0, 0.8, -0.8, 3.0, -2.0], [5.0, 3.0, -3.0, 0.5, -0.2]),
    ([0.5, -1.0, 0.3, 0.5, -0.7], [-1.0, -1.0, 1.0, -6.0, -4.0], [-9.0, -9.0, 9.0, -0.5, -0.5]),
    ([2.0, 0.4, 0.4, 3.0, 0.9], [1.2, 1.2, 1.0, 2.0, 2.0], [0.0, 8.0, 5.0, 0.0, 0.0]),
    ([0.0, -0.5, -1.5, -2.8, 0.0], [0.0, 0.0, -1.2, -5.0, 5.0], [0.0, 0.0, -8.0, -0.3, 0.3]),
]


def states_of_stop(start, payload=0.0, seconds=1.0):
    """Return the states from the last command on; the command timeout is one period."""
    q, v, last = start
    arm = five_dof()
    sim = Simulation(arm.with_payload(payload), q=q, v=v, timeout=2e-3)
    sim.watchdog.arm = arm  # unmodeled payload
    sim.submit(command(last))
    return [sim.advance() for _ in range(round(seconds / sim.period) + 2)]


@pytest.mark.parametrize("start", STARTS)
def test_a_moving_arm_comes_to_rest_within_its_limits(start):
    arm, states = five_dof(), states_of_stop(start)
    assert np.abs(states[-1].v).max() < 1e-3
    for state in states:
        assert ((arm.lower <= state.q) & (state.q <= arm.upper)).all()
        assert (np.abs(state.tau) <= arm.effort_limit).all()
    held = rigid_body.gravity(arm, states[-1].q)
    np.testing.assert_allclose(states[-1].tau, held, atol=0.05)


@pytest.mark.parametrize("start", STARTS)
def test_the_stop_starts_without_a_torque_step(start):
    states = states_of_stop(start, seconds=0.3)
    steps = np.abs(np.diff([s.tau for s in states], axis=0))
    # In one period of 2 ms no torque changes by more than a tenth of its effort limit.
    assert (steps.max(axis=0) <= 0.1 * five_dof().effort_limit).all()


@pytest.mark.quick(2)
@pytest.mark.parametrize("start", STARTS)
def test_an_unmodeled_payload_sags_slightly_and_is_held(start):
    with_load, without = (states_of_stop(start, payload, 1.5) for payload in (0.5, 0.0))
    assert np.abs(with_load[-1].v).max() < 1e-3
    sag = np.abs(with_load[-1].q - without[-1].q)
    # The wrist's inertia is a tenth of the load's: it deflects more than the arm.
    assert (sag < [0.01, 0.02, 0.05, 0.35, 0.35]).all()


def test_a_timeout_of_voltage_commands_causes_the_same_stop():
    arm = five_dof()
    sim = Simulation(arm, q=[0, -0.8, 0, 0, 0])
    for _ in range(100):
        sim.submit(Command.checked("voltage", [3.0, 2, -2, 1, 0.5], 5))
        sim.advance()
    assert np.abs(sim.state.v).max() > 0.1
    for _ in range(575):
        sim.advance()
    assert np.abs(sim.state.v).max() < 1e-3
    assert sim.watchdog.stopping


def test_a_new_command_ends_the_stop_immediately():
    sim = Simulation(five_dof())
    sim.submit(command([2.0, -8, -3, 0, 0]))
    for _ in range(200):
        sim.advance()
    assert sim.watchdog.stopping
    fresh = command(rigid_body.gravity(five_dof(), sim.state.q), sim.state.time)
    before = sim.state
    assert sim.submit(fresh)
    assert not sim.watchdog.stopping
    after = sim.advance()
    np.testing.assert_allclose(after.q, before.q, atol=1e-3)
    np.testing.assert_allclose(after.tau, fresh.value, rtol=1e-9, atol=1e-12)


def test_timeouts_are_checked():
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidValue, match="command timeout"):
            CommandWatchdog(five_dof(), bad)


def test_a_restarted_watchdog_stops_from_the_measured_state():
    """Commands and stops before a restart have no effect after it."""
    arm, watch = five_dof(), CommandWatchdog(five_dof())
    before, after = np.array([0.0, -1.1, 0.3, 0.0, 0.0]), np.array([0.0, 0.4, -0.2, 0.3, 0.2])
    watch.command(State.of(before))
    watch.restart()
    assert not watch.stopping
    weight = rigid_body.gravity(arm, after)
    held = watch.command(State.of(after, tau=weight, time=1.0)).value
    np.testing.assert_allclose(held, weight, atol=1e-12)
    watch.submit(command([1.0, 2, 3, 0, 0]), 1.0)
    watch.restart()
    assert watch.age(2.0) == 0.0
    held = watch.command(State.of(after, tau=weight, time=1.0)).value
    np.testing.assert_allclose(held, weight, atol=1e-12)


def test_without_any_command_no_timeout_is_reported():
    watch = CommandWatchdog(five_dof())
    state = State.of(five_dof().configuration("initial"))
    assert watch.command(state).interface == "effort"
    assert watch.stopping
    assert not watch.events.counts


@pytest.mark.parametrize("q", list(displaced()))
def test_a_stop_at_rest_commands_the_gravity_torque(q):
    arm = five_dof()
    state = State.of(q, tau=rigid_body.gravity(arm, q), time=3.0)
    stop = ControlledStop(arm, state, state.tau)
    np.testing.assert_allclose(stop.command(state).value, state.tau, atol=1e-12)


def test_a_stop_from_beyond_a_limit_returns_into_the_range():
    arm = five_dof()
    sim = Simulation(arm)
    outside = State.of([0, -1.25, 0.3, 0, 1.15], [0, -0.5, 0, 0, 0.5])
    sim.state = outside
    for _ in range(500):
        sim.advance()
    assert np.abs(sim.state.v).max() < 1e-3
    assert ((arm.lower - 2e-3 <= sim.state.q) & (sim.state.q <= arm.upper + 2e-3)).all()


@pytest.mark.parametrize("name", ["two_link", "three_link", "five_dof"])
@pytest.mark.parametrize("rate", [500, 100, 50])
def test_a_simulated_arm_without_commands_comes_to_rest_at_every_rate(name, rate):
    """From motion, at any control period: stop gains for 2 ms would oscillate at 20 ms."""
    arm = load_arm(name)
    simulation = Simulation(arm, period=1 / rate)
    push = 0.1 * arm.effort_limit * np.where(np.arange(arm.nv) % 2, -1, 1)
    effort = rigid_body.gravity(arm, simulation.state.q) + push
    for _ in range(rate // 10):
        simulation.submit(Command("effort", effort, simulation.state.time))
        simulation.advance()
    while not simulation.watchdog.stopping:
        simulation.advance()
    begin, speed = simulation.state.q, np.abs(simulation.state.v).max()
    for _ in range(rate):
        simulation.advance()
        assert np.abs(simulation.state.q - begin).max() < 0.25 * speed + 0.02
    assert np.abs(simulation.state.v).max() < 0.02 * speed
