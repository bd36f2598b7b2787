"""Simulated time: integer numbers of steps, resets, live changes, the simulation driver."""

import math
from fractions import Fraction

import numpy as np
import pytest
from conftest import chain, five_dof
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command
from arm_dynamics.core.timing import Pacer, StepClock
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.dynamics.kinematics.frames import jacobian
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import Simulation, steps_per_period


def command(value, interface="effort"):
    return Command.checked(interface, value, len(value))


def test_a_period_is_an_integer_number_of_steps():
    assert steps_per_period(2e-3, 1e-4) == 20
    assert steps_per_period(1e-3, 1e-3) == 1
    for period, dt, message in (
        (2.5e-4, 1e-4, "expected a whole multiple of dt = 0.0001 s, such as"),
        (1e-5, 1e-4, "dt = 0.0001 s; expected at most the control period of 1e-05 s"),
        (1e-3, 0.0, "dt .*above 0"),
        (np.nan, 1e-4, "period .*finite"),
    ):
        with pytest.raises(InvalidValue, match=message):
            steps_per_period(period, dt)


def test_a_simulation_starts_at_rest_in_the_initial_configuration():
    sim = Simulation(five_dof())
    np.testing.assert_array_equal(sim.state.q, five_dof().configuration("initial"))
    assert not sim.state.v.any()
    assert (sim.state.time, sim.period) == (0.0, pytest.approx(2e-3))
    with pytest.raises(InvalidValue, match="initial q: joint 'R2'"):
        Simulation(five_dof(), q=[0, 2, 0, 0, 0])
    with pytest.raises(InvalidValue, match="initial v: shape"):
        Simulation(five_dof(), v=[0, 2])


def test_a_period_is_several_steps_with_one_command():
    sim, volts = Simulation(five_dof()), command([1.0, -2, 3, -0.4, 0.5], "voltage")
    expected = Plant(five_dof()).step(sim.state, volts, 1e-4, 20)
    assert sim.submit(volts)
    after = sim.advance()
    for name in ("q", "v", "tau"):
        np.testing.assert_array_equal(getattr(after, name), getattr(expected, name))
    assert after.time == pytest.approx(2e-3, rel=1e-12)


def test_two_runs_are_identical_to_the_last_bit():
    ends = []
    for _ in range(2):
        sim, rng = Simulation(five_dof()), np.random.default_rng(2)
        for _ in range(100):
            sim.submit(command(rng.normal(size=5)))
            sim.advance()
        ends.append(np.concatenate([sim.state.q, sim.state.v, [sim.state.time]]))
    np.testing.assert_array_equal(*ends)


def test_without_commands_the_arm_is_held_from_the_start():
    sim = Simulation(five_dof())
    for _ in range(500):
        sim.advance()
        np.testing.assert_allclose(sim.state.q, five_dof().configuration("initial"), atol=1e-9)


def test_a_reset_continues_the_time_and_discards_commands():
    sim = Simulation(five_dof())
    for _ in range(50):
        sim.submit(command([5.0] * 5))
        sim.advance()
    goal = [0.2, -0.9, 0.1, 0.3, 0.4]
    state = sim.reset(goal)
    np.testing.assert_array_equal(state.q, goal)
    assert state.time == pytest.approx(0.1 + sim.period)  # stamps never repeat
    assert not state.v.any()
    for _ in range(100):
        sim.advance()
    np.testing.assert_allclose(sim.state.q, goal, atol=1e-9)
    assert not sim.watchdog.events.counts
    with pytest.raises(InvalidValue, match="'R2'"):
        sim.reset([0, 9, 0, 0, 0])
    np.testing.assert_allclose(sim.state.q, goal, atol=1e-9)
    np.testing.assert_array_equal(sim.reset().q, five_dof().configuration("initial"))


def test_a_changed_arm_continues_in_the_same_state():
    sim = Simulation(five_dof())
    sim.submit(command([1.0] * 5))
    before = sim.advance()
    heavier = five_dof().with_payload(0.5)
    sim.set_arm(heavier)
    assert sim.arm is heavier
    assert sim.state is before
    expected = Plant(heavier).step(before, command([1.0] * 5), 1e-4, 20)
    np.testing.assert_array_equal(sim.advance().q, expected.q)


def test_the_simulated_driver_moves_only_when_written():
    assert plugins.load_class("drivers", "simulated") is SimulationDriver
    driver = SimulationDriver(five_dof())
    first = driver.read()
    assert driver.read() is first
    driver.write(command(rigid_body.gravity(five_dof(), first.q)))
    assert driver.read().time == pytest.approx(2e-3)
    driver.close()
    driver.close()


def test_the_drivers_controlled_stop_brings_the_arm_to_rest():
    arm = five_dof()
    driver = SimulationDriver(arm, Simulation(arm, q=[0, -0.8, 0, 0, 0], v=[1, 0.5, -0.5, 2, -1]))
    driver.controlled_stop()
    state = driver.read()
    assert np.abs(state.v).max() < 1e-3
    assert ((arm.lower <= state.q) & (state.q <= arm.upper)).all()


def test_computed_and_applied_efforts_are_reported():
    """12 V at a joint limited to 5 A: the limit is visible in the applied effort."""
    simulation = Simulation(five_dof().with_motors(current_limit=5.0))
    assert simulation.efforts() is None
    simulation.submit(Command.checked("voltage", [12.0, 0, 0, 0, 0], 5))
    simulation.advance()
    found, v = simulation.efforts(), simulation.state.v
    assert found.computed[0] == pytest.approx(10 * (12 - 10 * v[0]))
    assert found.applied[0] == pytest.approx(10 * 5)
    np.testing.assert_allclose(found.applied[1:], found.computed[1:], rtol=1e-12)


def drifted(start, step, count, time):
    """Return the distance of ``time`` from start + count step [ulp]."""
    exact = Fraction(start) + count * Fraction(step)
    return abs(Fraction(time) - exact) / Fraction(math.ulp(time))


@given(st.floats(0, 1e6), st.sampled_from([1e-4, 2e-3, 1e-4 / 3, 1e-5]), st.integers(1, 50))
def test_counted_time_does_not_drift(start, dt, steps):
    clock, time = StepClock(start), start
    for _ in range(3000):
        time = clock.after(time, dt, steps)
    assert drifted(start, dt, 3000 * steps, time) <= 2
    jumped = clock.after(time + 1.0, dt)
    assert jumped == time + 1.0 + dt
    assert clock.after(jumped, 2 * dt) == jumped + 2 * dt


def test_simulated_time_does_not_drift():
    """Sums of 2 ms are 59 µs short after 24 h, and 3e-13 s after 4000 periods."""
    sim = Simulation(chain({"mass": 0.1}, {}), dt=1e-3)
    for _ in range(4000):
        sim.advance()
    assert drifted(0, 1e-3, 8000, sim.state.time) <= 1
    sim.reset()
    assert drifted(0, 1e-3, 8002, sim.state.time) <= 1
    sim.steps = 1
    sim.advance()
    assert drifted(0, 1e-3, 8003, sim.state.time) <= 1
    begun, sim.dt = sim.state.time, 5e-4
    for _ in range(100):
        sim.advance()
    assert drifted(begun, 5e-4, 100, sim.state.time) <= 1


def test_the_real_time_schedule_does_not_drift(monkeypatch):
    now = [1e5]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda left: now.__setitem__(0, now[0] + left))
    pacer = Pacer(2e-3, 3.0)
    for _ in range(20000):
        pacer.wait()
    assert drifted(1e5, 2e-3 / 3.0, 20000, pacer._due) <= 1
    assert pacer.missed == 0


def test_a_push_changes_only_the_joint_momentum():
    """M Δv = Jᵀ p at the start of the period; positions are continuous."""
    arm = load_arm("five_dof")
    pushed, free = Simulation(arm, dt=1e-4, period=1e-4), Simulation(arm, dt=1e-4, period=1e-4)
    p = np.array([0.02, -0.05, 0.03])
    state = pushed.state
    pushed.push(p)
    change = pushed.advance().v - free.advance().v
    expected = np.linalg.solve(mass_matrix(arm, state.q), jacobian(arm, state.q)[:3].T @ p)
    after_impulse = pushed.plant.apply_impulse(state, p)
    np.testing.assert_allclose(after_impulse.v - state.v, expected, atol=1e-12)
    np.testing.assert_allclose(change, expected, rtol=0.1, atol=0.1)  # dry friction within a step
    assert np.abs(pushed.state.q - state.q).max() < 1e-3
    after = np.abs(pushed.state.v).max()
    assert np.abs(pushed.advance().v).max() < 1.1 * after, "the impulse was applied twice"


def test_the_default_push_moves_the_tool_of_any_arm_visibly():
    """Not the joint that moves most easily: the roll of a wrist that carries nothing."""
    for name in ("five_dof", "puma560", "two_link", "seven_dof_can"):
        arm = load_arm(name)
        simulation = Simulation(arm)
        p = simulation.default_impulse()
        change = simulation.plant.apply_impulse(simulation.state, p).v
        speed = np.linalg.norm(jacobian(arm, simulation.state.q)[:3] @ change)
        joints = np.abs(change).max()
        assert joints < 10.001
        assert speed > 1.2
        assert p @ (jacobian(arm, simulation.state.q)[:3] @ change) / np.linalg.norm(p) <= 2.001
        simulation.push(p)  # accepted


@pytest.mark.parametrize("impulse", [(1e4, 0, 0), (0, 0, 0), (np.nan, 0, 0), (1, 2)])
def test_excessive_pushes_are_rejected(impulse):
    simulation = Simulation(load_arm("five_dof"))
    with pytest.raises(InvalidValue, match="impulse"):
        simulation.push(impulse)
    before = simulation.state.v
    assert np.abs(simulation.advance().v - before).max() < 0.1


def test_prescribed_motion_is_not_changed_by_a_push():
    simulation = Simulation(load_arm("puma560").with_actuator("rate_limited"))
    assert not simulation.default_impulse().any()
    with pytest.raises(InvalidValue, match="no joint of this arm moves"):
        simulation.push((1, 0, 0))
