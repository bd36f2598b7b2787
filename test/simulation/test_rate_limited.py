"""Rate-limited servos: published vectors, live limits, effect on the other joints."""

import json
from dataclasses import replace
from math import inf, nan, pi
from pathlib import Path

import numpy as np
import pytest
from conftest import chain, chain_urdf, examples, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.audit.fault import UrdfRejected
from arm_dynamics.model.load import parse_arm
from arm_dynamics.safety.command_watchdog import Guard
from arm_dynamics.safety.events import Events
from arm_dynamics.simulation.actuators.rate_limited import (
    RateLimited,
    rate_limited_step,
    rate_limited_target,
)
from arm_dynamics.simulation.integrators import INTEGRATORS
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import Simulation

VECTORS = json.loads(
    (Path(__file__).parents[1] / "data/puma_joint/joint_sim_vectors.json").read_text()
)
angles = st.floats(-10, 10)
limits = st.floats(0, 2 * pi)


def servo(**constants):
    return RateLimited("J", 100.0, constants)


def position(*values):
    return Command.checked("position", values, len(values))


def servos(**constants):
    """Return five_dof with a servo in every joint."""
    return five_dof().with_actuator("rate_limited", **constants)


# Equation -------------------------------------------------------------------------------------


def steps(scenario, kind):
    """Yield (angle, desired, moved, row) of every row, computed in floats of one ``kind``."""
    angle = desired = last = kind(0)
    limits, velocity = (kind(0), kind(2 * pi)), kind(1)
    for row in scenario["rows"]:
        if row["event"] == "param":
            velocity = velocity if row["velocity"] is None else kind(row["velocity"])
            assert row["min"] is row["max"] is None
            continue
        if row["command"] is not None:
            last = kind(row["command"])
            desired = kind(rate_limited_target(last, kind(inf), desired, *limits))
        moved = angle != desired
        angle = kind(rate_limited_step(angle, desired, velocity, kind(row["elapsed_s"])))
        yield angle, desired, moved, row


@pytest.mark.parametrize("kind", [float, np.float32])
@pytest.mark.parametrize("scenario", VECTORS, ids=lambda s: s["name"])
def test_the_equation_reproduces_the_published_vectors(scenario, kind):
    """Every row, bit for bit, in double and in single precision."""
    name = {float: "f64", np.float32: "f32"}[kind]
    for k, (angle, desired, moved, row) in enumerate(steps(scenario, kind)):
        assert float(angle) == row[f"angle_{name}"], (k, row)
        assert desired == kind(row["desired_f64"]), (k, row)
        assert moved == row[f"changed_{name}"], (k, row)


def test_a_plant_reproduces_the_published_vectors():
    """The same rows as commands and time steps of a plant."""
    arm = chain({}).with_actuator("rate_limited")
    for scenario in VECTORS:
        state, u = State.of([0.0], act=arm.initial_act), 0.0
        for row in scenario["rows"]:
            if row["event"] == "param":
                arm = arm.with_motor("J1", max_velocity=row["velocity"])
                continue
            u = u if row["command"] is None else row["command"]
            if row["elapsed_s"] > 0:
                state = Plant(arm).step(state, position(u), row["elapsed_s"])
            assert state.q.tolist() == [row["angle_f64"]]
            assert state.act.tolist() == [row["desired_f64"], u]
        arm = arm.with_motor("J1", max_velocity=1.0)


@given(angles, angles, st.floats(0, 100), st.floats(-1, 10))
def test_a_step_is_bounded_and_does_not_overshoot(angle, desired, velocity, elapsed):
    after = rate_limited_step(angle, desired, velocity, elapsed)
    assert min(angle, desired) <= after <= max(angle, desired)
    reach = max(0.0, elapsed) * velocity
    expected = min(abs(desired - angle), reach)
    assert abs(after - angle) == pytest.approx(expected, rel=1e-12, abs=1e-14)
    if reach >= abs(desired - angle) and reach > 0:
        assert after == desired


@given(angles, angles, st.floats(0, 100), st.floats(0, 1), st.floats(0, 1))
def test_two_steps_equal_one_of_their_duration(angle, desired, velocity, first, second):
    together = rate_limited_step(angle, desired, velocity, first + second)
    halfway = rate_limited_step(angle, desired, velocity, first)
    after = rate_limited_step(halfway, desired, velocity, second)
    assert after == pytest.approx(together, abs=1e-12)


@pytest.mark.parametrize("elapsed", [-5.0, -1e-9, 0.0, nan])
def test_zero_or_negative_time_causes_no_motion(elapsed):
    assert rate_limited_step(0.3, 1.0, 2.0, elapsed) == 0.3


# The actuator ---------------------------------------------------------------------------------


def test_limits_and_velocity_act_on_commands_at_their_time():
    """Repeated commands are not new; limits apply to new commands, the velocity immediately."""
    angle, act = servo(max_position=2.0).prescribed_motion(5.0, 0.0, (0.0, 0.0), 1.0)
    assert (angle, act) == (1.0, (2.0, 5.0))
    narrow = servo(max_position=0.5, max_velocity=0.25)
    angle, act = narrow.prescribed_motion(5.0, angle, act, 2.0)
    assert (angle, act) == (1.5, (2.0, 5.0))
    angle, act = narrow.prescribed_motion(4.0, angle, act, 0.4)
    assert angle == pytest.approx(1.4)
    assert act == (0.5, 4.0)


@given(limits, limits, angles, st.floats(0, 5))
def test_the_first_command_acts_like_any_other(minimum, maximum, command, elapsed):
    """Any first command is accepted, also 0, from the actuator states at rest."""
    minimum, maximum = sorted((minimum, maximum))
    actuator = servo(min_position=minimum, max_position=maximum)
    rest = [state.initial for state in actuator.states]
    angle, (desired, last) = actuator.prescribed_motion(command, 0.1, rest, elapsed)
    assert desired == min(max(command, minimum), maximum)
    assert last == command
    assert angle == rate_limited_step(0.1, desired, 1.0, elapsed)


def test_hold_keeps_the_position_even_outside_the_limits():
    actuator = servo(min_position=0.0, max_position=1.0)
    act = actuator.hold_act(-2.0, (0.4, 0.4))
    assert actuator.prescribed_motion(-2.0, -2.0, act, 9.0) == (-2.0, (-2.0, -2.0))
    assert actuator.prescribed_motion(-3.0, -2.0, act, 9.0)[0] == 0.0


def test_parameters_are_checked():
    assert servo().constants == {"min_position": 0.0, "max_position": 2 * pi, "max_velocity": 1.0}
    assert (
        servo(min_position=1.0, max_position=1.0).prescribed_motion(9.0, 0.0, (1.0, 0.0), 5.0)[0]
        == 1.0
    )
    with pytest.raises(
        InvalidValue, match=r"'J': min_position = 3 rad; expected at most max_position = 2 rad"
    ):
        servo(min_position=3.0, max_position=2.0)
    for velocity in (-0.1, 100.1, inf, nan):
        with pytest.raises(InvalidValue, match="max_velocity"):
            servo(max_velocity=velocity)
    for limit in (-0.1, 6.3, inf, nan):
        for name in ("min_position", "max_position"):
            with pytest.raises(InvalidValue, match=f"'R2': {name} = {limit:g} rad"):
                servos().with_motor("R2", **{name: limit})
    with pytest.raises(
        InvalidValue, match="'R2': min_position = 3 rad; expected at most max_position = 2 rad"
    ):
        servos().with_motor("R2", min_position=3.0, max_position=2.0)
    assert servo().armature == servo().viscous_friction == servo().breakaway_effort == 0
    with pytest.raises(UnknownName, match="'effort'; known: position"):
        servo().effort("effort", 1.0, 0.0, 0.0)


SERVO_JOINT = """<ros2_control name="c" type="system"><joint name="J1">
<param name="actuator">rate_limited</param><param name="min_position">{low}</param>
<param name="max_position">2</param><param name="max_velocity">3</param>
<command_interface name="position"/><state_interface name="position"/></joint></ros2_control>"""


def test_a_urdf_may_select_the_actuator(recwarn):
    arm = parse_arm(chain_urdf({}, more=SERVO_JOINT.format(low=1)))
    assert not [w for w in recwarn if "ros2_control" in str(w.message)]
    assert arm.actuators[0].constants == {"min_position": 1, "max_position": 2, "max_velocity": 3}
    assert arm.act_names == ("J1.desired", "J1.command")
    with pytest.raises(UrdfRejected, match=r"min_position.*at least 0 and at most 6.28319"):
        parse_arm(chain_urdf({}, more=SERVO_JOINT.format(low=-1)))


# In an arm ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", INTEGRATORS)
def test_joints_of_an_arm_move_independently(method):
    """Irregular steps, changing commands: the plant equals the equation, joint by joint."""
    rng, arm = np.random.default_rng(3), servos()
    for name, w in zip(arm.joint_names, (0.3, 1.0, 2.5, 7.0, 100.0), strict=True):
        arm = arm.with_motor(name, max_velocity=w)
    plant, state = Plant(arm, method), State.of(arm.configuration("initial"))
    alone = list(zip(state.q.tolist(), arm.initial_act.reshape(-1, 2).tolist(), strict=True))
    for _ in range(40):
        command, dt, count = position(*rng.uniform(-8, 8, 5)), rng.uniform(1e-4, 0.2), 3
        before, state = state, plant.step(state, command, dt, count)
        for _ in range(count):
            alone = [
                a.prescribed_motion(u, q, z, dt)
                for a, u, (q, z) in zip(arm.actuators, command.value.tolist(), alone, strict=True)
            ]
        assert state.q.tolist() == [q for q, _ in alone]
        assert state.act.tolist() == [x for _, own in alone for x in own]
        reach = count * dt * np.array([0.3, 1.0, 2.5, 7.0, 100.0])
        assert (np.abs(state.q - before.q) <= reach + 1e-12).all()


def test_a_joint_reaches_its_goal_exactly_and_rests():
    arm, goal = servos(max_velocity=0.7), [0.1, 0.2, 0.123456789, 1 / 3, pi / 7]
    plant, state = Plant(arm), State.of(arm.configuration("initial"))
    for _ in range(2000):
        state = plant.step(state, position(*goal), 1e-3)
    assert state.q.tolist() == goal
    assert not state.v.any()
    np.testing.assert_allclose(state.tau, rigid_body.gravity(arm, state.q), atol=1e-12)


TWO = chain({"damping": 0.4, "center": "0.2 0 0.1"}, {"mass": 2.0, "damping": 0.1})


def mixed(arm=TWO, **constants):
    """Return an arm with an effort-driven first and a servo as second joint."""
    first, second = arm.joints
    changed = replace(second, actuator="rate_limited", constants=constants)
    return replace(arm, joints=(first, changed))


def test_the_start_of_a_servo_acts_on_the_other_joints():
    """Its velocity jump is an impulse: M_ff Δv_f = -M_fp Δv_p."""
    arm, dt = mixed(max_velocity=2.0).with_gravity([0, 0, 0]), 1e-7
    q = np.array([0.3, -0.5])
    command = Command.checked("mixed", [0.0, 1.0], 2)
    after = Plant(arm).step(State.of(q), command, dt)
    mass = rigid_body.mass_matrix(arm, q)
    assert after.v[1] == pytest.approx(2.0, rel=1e-6)
    assert after.v[0] == pytest.approx(-mass[0, 1] / mass[0, 0] * 2.0, rel=1e-5)
    assert mass[0, 1] * after.v[1] + mass[0, 0] * after.v[0] == pytest.approx(0, abs=1e-5)


def test_the_reported_effort_is_that_of_inverse_dynamics():
    """RNEA with the plant's acceleration, plus viscous friction."""
    arm = mixed(max_velocity=0.8)
    plant, dt = Plant(arm), 1e-4
    command = Command.checked("mixed", [1.5, 2.0], 2)
    state = plant.step(State.of([0.2, -0.4], [1.5, 0.0]), command, dt, 50)
    after = plant.step(state, command, dt)
    a = (after.v - state.v) / dt
    needed = rigid_body.rnea(arm, state.q, state.v, a) + np.array([0.4, 0.1]) * state.v
    np.testing.assert_allclose(after.tau, needed, atol=1e-6)
    assert after.tau[0] == 1.5
    assert abs(after.tau[1]) > 0.1


@pytest.mark.parametrize(("method", "close"), [("rk4", 1e-9), ("adaptive", 1e-6)])
def test_a_free_joint_moves_under_the_prescribed_motion_of_a_servo(method, close):
    """M_ff v̇_f = tau_f - d v_f - h_f(q, v) with the servo's angle a given function of time."""
    arm, w, seconds = mixed(max_velocity=0.8), 0.8, 0.5

    def free(t, y):
        q, v = np.array([y[0], -0.4 + w * t]), np.array([y[1], w])
        inertia, bias = rigid_body.mass_matrix(arm, q)[0, 0], rigid_body.nle(arm, q, v)[0]
        return [y[1], (1.5 - 0.4 * y[1] - bias) / inertia]

    exact = solve_ivp(free, (0, seconds), [0.2, 1.0], method="DOP853", rtol=1e-12, atol=1e-12)
    start = State.of([0.2, -0.4], [1.0, w], act=arm.initial_act)
    state = Plant(arm, method).step(start, Command.checked("mixed", [1.5, 2.0], 2), 1e-3, 500)
    assert state.q[0] == pytest.approx(exact.y[0, -1], abs=close)
    assert state.v[0] == pytest.approx(exact.y[1, -1], abs=10 * close)
    assert state.q[1] == pytest.approx(-0.4 + w * seconds, abs=1e-12)


@pytest.mark.quick(2)
@pytest.mark.parametrize("method", INTEGRATORS)
def test_external_effort_does_not_change_a_servos_motion(method):
    arm, dt = mixed(max_velocity=0.8).with_joint("J1", friction=0.3), 1e-3
    plant, state = Plant(arm, method), State.of([0.2, -0.4], [3.0, 0.0])
    for k in range(1, 200):
        state = plant.step(state, Command.checked("mixed", [20.0, 2.0], 2), dt)
        assert state.q[1] == pytest.approx(-0.4 + 0.8 * k * dt, abs=1e-12)
    with pytest.raises(UnknownName, match="'J1' 'position'; known: effort"):
        plant.step(state, position(0, 0), dt)
    with pytest.raises(UnknownName, match="'J2' 'effort'; known: position"):
        plant.step(state, Command.checked("effort", [0, 0], 2), dt)


# Live limits ----------------------------------------------------------------------------------


def test_live_limits_of_a_running_simulation():
    """A new velocity acts immediately; new limits act on the next command, also an equal one."""
    sim = Simulation(servos(), q=[0, 0, 0, 0, 0], period=0.01, dt=0.01, timeout=99.0)
    sim.submit(position(4, 0, 0, 0, 0))
    for _ in range(10):
        sim.advance()
    assert sim.state.q[0] == pytest.approx(0.1)
    sim.set_arm(sim.arm.with_motor("R1", max_velocity=5.0))
    for _ in range(10):
        sim.advance()
    assert sim.state.q[0] == pytest.approx(0.6)
    sim.set_arm(sim.arm.with_motor("R1", max_velocity=2.0, max_position=0.2))
    for _ in range(10):
        sim.advance()
    assert sim.state.q[0] == pytest.approx(0.8)
    sim.submit(position(4, 0.01, 0, 0, 0))  # the same for R1
    for _ in range(31):
        sim.advance()
    assert sim.state.q[0] == 0.2
    assert sim.watchdog.events.counts == {}


few = st.sampled_from([0.0, 1.0, 2.5, 3.0, 7.0])
events = st.one_of(
    st.tuples(st.just("send"), few, few),
    st.tuples(st.just("limits"), limits, limits),
    st.tuples(st.just("wait"), few, few),
)


@settings(max_examples=examples(40))
@given(few, st.lists(events, max_size=12))
def test_a_command_is_clamped_to_the_limits_at_its_time(first, events):
    """For new and repeated commands, and only then: d = clip(u, limits)."""
    low, high, angle, dt = 0.0, 2 * pi, 0.5, 0.25
    arm = chain({}).with_actuator("rate_limited")
    sim = Simulation(arm, q=[angle], period=dt, dt=dt, timeout=99)
    for kind, a, b in [("send", first, 0.0), *events]:
        if kind == "send":
            assert sim.submit(position(a))
            desired = min(max(a, low), high)
        if kind == "limits":
            low, high = sorted((a, b))
            sim.set_arm(sim.arm.with_motor("J1", min_position=low, max_position=high))
        angle = rate_limited_step(angle, desired, 1.0, dt)
        assert sim.advance().q.tolist() == [angle]


# Safety ---------------------------------------------------------------------------------------


def test_servos_without_commands_stay_at_rest():
    """Also if the start is outside the limits of commands."""
    arm = five_dof().with_actuator("rate_limited")
    sim = Simulation(arm, period=2e-3, dt=1e-3)
    assert sim.state.q[1] < arm.actuators[1].constants["min_position"]
    for _ in range(100):
        state = sim.advance()
    assert state.q.tolist() == arm.configuration("initial").tolist()
    np.testing.assert_allclose(state.tau, rigid_body.gravity(arm, state.q), atol=1e-12)


def test_a_command_timeout_stops_servos_at_their_position():
    sim = Simulation(servos(), q=[0.6] * 5, period=2e-3, dt=1e-3, timeout=0.1)
    goal = sim.state.q + 0.4
    sim.submit(position(*goal))
    sim.advance()
    sim.set_arm(sim.arm.with_motor("R1", max_position=0.01))
    for _ in range(60):
        sim.advance()
    stopped = sim.state
    assert sim.watchdog.events.counts["command_timeout"] == 1
    assert sim.watchdog.command(sim.state).interface == "position"
    np.testing.assert_allclose(stopped.q - goal, -0.3, atol=2.1e-3)
    for _ in range(50):
        assert sim.advance().q.tolist() == stopped.q.tolist()
    sim.submit(position(*goal))
    sim.advance()
    assert not sim.watchdog.stopping
    assert sim.state.q[1] == pytest.approx(stopped.q[1] + 2e-3)


def test_a_mixed_arm_is_held():
    """The servo rests; the effort-driven joint is held against gravity."""
    sim = Simulation(mixed(), q=[0.3, -0.5], period=2e-3, dt=1e-4)
    for _ in range(500):
        state = sim.advance()
    assert sim.watchdog.command(state).interface == "mixed"
    np.testing.assert_allclose(state.q, [0.3, -0.5], atol=1e-3)
    assert state.q[1] == -0.5


def test_the_guard_passes_positions_and_clamps_mixed_efforts():
    """A servo applies its live limits; efforts are clamped to the joint's limit."""
    events = Events()
    guard = Guard(servos(), events)
    far = position(*[50.0] * 5)
    assert guard.check_command(far).value.tolist() == [50.0] * 5
    assert not events.counts
    for bad in (Command("effort", np.zeros(5)), Command("position", np.array([0, 0, inf, 0, 0]))):
        with pytest.raises(CommandRejected):
            guard.check_command(bad)
    clamped = Guard(mixed(), events).check_command(Command("mixed", np.array([500.0, 500.0])))
    assert clamped.value.tolist() == [100.0, 500.0]
    assert "'J1': effort 500 N·m clamped to the limit 100" in events.latest["effort_clamped"]
