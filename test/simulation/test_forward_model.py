"""The forward model: one step as a pure function of arrays; its iteration is the simulation."""

import threading

import numpy as np
import pytest
from conftest import chain, five_dof, heavy_rotors
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import Simulation, State, forward_model
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName
from arm_dynamics.core.state import Command
from arm_dynamics.dynamics.kinematics.frames import tool_position
from arm_dynamics.dynamics.rigid_body import aba
from arm_dynamics.simulation.forward_model import (
    entry_names,
    join_state_vector,
    pack_state,
    split_state_vector,
    unpack_state,
)
from arm_dynamics.simulation.integrators import INTEGRATORS

DT = 1e-4


def with_dry_friction():
    """Return five_dof with dry friction in two joints."""
    return five_dof().with_joint("R2", friction=3.0).with_joint("R4", friction=0.02)


def with_actuator_states():
    """Return five_dof with current and temperature; also rotor velocity and gap in R1."""
    arm = five_dof().with_motors(inductance=1e-4, thermal_resistance=1.0)
    play = {"backlash": 1e-3, "gear_stiffness": 1e3, "gear_damping": 1.0}
    return arm.with_motor("R1", rotor_inertia=0.1, coulomb_friction=1e-3, **play)


ARMS = {
    "five_dof": five_dof,
    "heavy_rotors": heavy_rotors,
    "dry friction": with_dry_friction,
    "actuator states": with_actuator_states,
}


def start(arm, v=None):
    return pack_state(arm, State.of(arm.configuration("initial"), v))


def commands(arm, interface, count):
    """Return random commands within the command limits."""
    limit = np.array([a.command_limit(interface) for a in arm.actuators])
    limit = np.where(np.isfinite(limit), limit, 10.0)
    return [limit * x for x in np.random.default_rng(5).uniform(-1, 1, (count, arm.nv))]


@pytest.mark.quick(16)
@pytest.mark.parametrize("interface", ["voltage", "effort"])
@pytest.mark.parametrize("method", INTEGRATORS)
@pytest.mark.parametrize("name", ARMS)
def test_its_iteration_equals_the_simulation_bit_for_bit(name, method, interface):
    arm = ARMS[name]()
    sim = Simulation(arm, dt=DT, period=4 * DT, integrator=method)
    x = start(arm)
    for value in commands(arm, interface, 25):
        assert sim.submit(Command.checked(interface, value, arm.nv))
        state = sim.advance()
        for _ in range(4):
            x = forward_model(arm, x, value, DT, integrator=method, interface=interface)
        got = unpack_state(arm, x)
        for entry in ("q", "v", "act"):
            np.testing.assert_array_equal(getattr(got, entry), getattr(state, entry))
    assert np.abs(state.v).max() > 0.1
    assert not sim.watchdog.events.counts


def test_servos_move_as_in_the_simulation():
    arm = chain({}, {}).with_actuator("rate_limited")
    sim = Simulation(arm, q=[0.3, 0.2], dt=DT, period=4 * DT)
    x = pack_state(arm, State.of([0.3, 0.2]))
    np.testing.assert_array_equal(x[13:], sim.state.act)
    for value in ([0.3, 0.2], [1.0, -1.0], [0.5, 9.0], [0.5, 9.0]):
        assert sim.submit(Command.checked("position", value, 2))
        state = sim.advance()
        for _ in range(4):
            x = forward_model(arm, x, value, DT, interface="position")
        got = unpack_state(arm, x)
        for entry in ("q", "v", "act"):
            np.testing.assert_array_equal(getattr(got, entry), getattr(state, entry))


def test_parts_of_the_state_vector():
    arm = five_dof()
    names = entry_names(arm)
    assert len(names) == start(arm).size == 28
    assert names[:2] == ("q[R1]", "q[R2]")
    assert names[5] == "v[R1]"
    assert names[10] == "a[R1]"
    assert names[15:18] == ("tool x", "tool y", "tool z")
    assert names[18:21] == ("stiction[R1]", "previous v[R1]", "stiction[R2]")
    np.testing.assert_array_equal(
        join_state_vector(arm, split_state_vector(arm, np.arange(28.0))), np.arange(28.0)
    )
    np.testing.assert_array_equal(
        split_state_vector(arm, np.arange(28.0)).previous, [19, 21, 23, 25, 27]
    )


@given(st.lists(st.floats(-1e3, 1e3), min_size=10, max_size=10), st.floats(0, 1e6))
def test_packing_and_unpacking_restores_the_state(numbers, time):
    arm = five_dof()
    state = State.of(numbers[:5], numbers[5:], time=time)
    vector = pack_state(arm, state)
    assert not vector.flags.writeable
    back = unpack_state(arm, vector, time)
    for entry in ("q", "v", "act"):
        np.testing.assert_array_equal(getattr(back, entry), getattr(state, entry))
        assert not getattr(back, entry).flags.writeable
    assert back.time == time
    assert np.isnan(back.tau).all()
    np.testing.assert_array_equal(pack_state(arm, back), vector)


def test_the_result_describes_the_last_step():
    arm, volts = five_dof(), np.array([3.0, -2, 1, 0.5, -0.5])
    before = State.of([0.1, -0.7, 0.2, 0.3, -0.4], [0.5, 0.2, -0.3, 1.0, -1.0])
    vector = forward_model(arm, pack_state(arm, before), volts, DT)
    after = split_state_vector(arm, vector)
    effort = [
        a.effort("voltage", u, q, v)
        for a, u, q, v in zip(arm.actuators, volts, before.q, before.v, strict=True)
    ]
    a = aba(arm, before.q, before.v, effort)
    np.testing.assert_allclose(after.a, a, rtol=1e-9, atol=1e-9 * np.abs(a).max())
    np.testing.assert_allclose(after.v, before.v + DT * a, rtol=1e-12)
    np.testing.assert_array_equal(after.previous, before.v)
    np.testing.assert_array_equal(after.tool, tool_position(arm, after.q))
    assert not after.stiction.any()
    assert not vector.flags.writeable


def test_the_stiction_flag_marks_joints_held_by_dry_friction():
    weightless = five_dof().with_gravity([0, 0, 0])
    at_rest = split_state_vector(
        weightless, forward_model(weightless, start(weightless), np.zeros(5), DT)
    )
    assert not at_rest.v.any()
    assert not at_rest.stiction.any()  # at rest without friction
    arm = weightless.with_joint("R2", friction=1.0).with_joint("R3", friction=1.0)
    pushed = forward_model(arm, start(arm), [0, 0, 0.2, 0, 0], DT)  # 2 N·m above breakaway of R3
    np.testing.assert_array_equal(split_state_vector(arm, pushed).stiction, [0, 1, 0, 0, 0])


def test_the_function_has_no_memory():
    """Other arms, integrators and threads in between change no bit and no argument."""
    arm, volts = with_dry_friction(), np.array([3.0, -2, 1, 0.5, -0.5])
    x = np.array(start(arm, [0.5, 0.2, -0.3, 1.0, -1.0]))
    kept, first = x.copy(), forward_model(arm, x, volts, DT)
    forward_model(heavy_rotors(), start(heavy_rotors()), volts, DT)
    forward_model(arm, start(arm), -volts, 3 * DT, interface="effort")
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(forward_model(arm, x, volts, DT)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for again in (*results, forward_model(arm, x.tolist(), volts.tolist(), DT)):
        np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(volts, [3.0, -2, 1, 0.5, -0.5])


def test_acceleration_flag_and_previous_velocity_are_ignored():
    arm, x = with_dry_friction(), np.array(start(with_dry_friction(), [0.5, 0.2, -0.3, 1.0, -1.0]))
    expected = forward_model(arm, x, np.ones(5), DT)
    x[10:] = 7.0
    np.testing.assert_array_equal(forward_model(arm, x, np.ones(5), DT), expected)


def test_actuator_states_are_the_last_entries():
    arm = with_actuator_states()
    assert len(arm.act_names) == 12
    assert entry_names(arm)[28:] == arm.act_names
    x = start(arm)
    np.testing.assert_array_equal(x[28:], arm.initial_act)
    after = forward_model(arm, x, np.full(5, 5.0), DT)
    current = after[28 + arm.act_names.index("R1.current")]
    # L di/dt + R i = V at rest
    assert current == pytest.approx(5.0 * (1 - np.exp(-DT * 1.0 / 1e-4)), rel=1e-2)
    with pytest.raises(InvalidValue, match=r"expected \(40,\) .* 12 actuator states"):
        forward_model(arm, x[:28], np.zeros(5), DT)
    with pytest.raises(InvalidValue, match=r"actuator states = R1\.current.*expected none"):
        forward_model(arm, x, np.zeros(5), DT, compatibility="dynamechs")


def test_an_arm_of_any_size():
    arm = chain({}, {})
    after = forward_model(arm, start(arm), [1.0, 0.0], DT, interface="effort")
    assert after.shape == (13,)


def bad(index, value):
    x = np.array(start(five_dof()))
    x[index] = value
    return x


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"state": np.zeros(27)}, InvalidValue, r"shape = \(27,\); expected \(28,\) .*5 posit"),
        ({"state": "five"}, InvalidValue, "state vector = 'five'; expected 28 numbers"),
        ({"state": bad(2, np.nan)}, InvalidValue, r"q\[R3\] = nan"),
        ({"state": bad(5, np.inf)}, InvalidValue, r"v\[R1\] = inf"),
        ({"state": bad(17, np.nan)}, InvalidValue, "tool z = nan"),
        ({"state": bad(27, -np.inf)}, InvalidValue, r"previous v\[R5\] = -inf"),
        ({"dt": -1e-4}, InvalidValue, "dt .*-0.0001.*above 0"),
        ({"dt": 0.0}, InvalidValue, "dt .*above 0"),
        ({"dt": np.nan}, InvalidValue, "dt .*finite"),
        ({"voltages": np.zeros(4)}, CommandRejected, r"voltage command: shape = \(4,\)"),
        ({"voltages": [0, 0, np.nan, 0, 0]}, CommandRejected, r"voltage command\[2\] = nan"),
        ({"integrator": "leapfrog"}, UnknownName, "integrator 'leapfrog'; known: .*semi_implicit"),
        ({"interface": "warp"}, UnknownName, "interface 'warp'"),
        ({"compatibility": "ode"}, UnknownName, "compatibility 'ode'; known: dynamechs"),
        ({"compatibility": "dynamechs", "interface": "effort"}, InvalidValue, "takes voltages"),
    ],
)
def test_invalid_arguments_are_rejected(changes, error, text):
    good = {"state": start(five_dof()), "voltages": np.zeros(5), "dt": DT}
    with pytest.raises(error, match=text):
        forward_model(five_dof(), **(good | changes))


def test_states_of_other_sizes_are_rejected():
    arm = five_dof()
    with pytest.raises(InvalidValue, match="4 positions, 4 velocities and 0 actuator states"):
        pack_state(arm, State.of(np.zeros(4)))
    unmeasured = State(0.0, np.full(5, np.nan), np.zeros(5), np.zeros(5))
    with pytest.raises(InvalidValue, match=r"q\[R1\] = nan"):
        pack_state(arm, unmeasured)
    with pytest.raises(InvalidValue, match=r"time .*finite"):
        unpack_state(arm, start(arm), np.inf)
    with pytest.raises(InvalidValue, match=r"expected \(28,\)"):
        unpack_state(arm, np.zeros(5))
