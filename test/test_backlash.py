"""A gear with play: the joint is free within it, and teeth exchange momentum as a spring does."""

import numpy as np
import pytest
from conftest import chain
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.simulation.actuators.gearing import contact_effort
from arm_dynamics.simulation.plant import Plant

MASS = 0.02 + 0.25**2
"""Inertia of the joint [kg·m²]."""
GEAR, PLAY, STIFFNESS = 10.0, 0.04, 400.0
ROTOR = GEAR**2 * 2e-4
"""Inertia of the rotor, seen at the joint [kg·m²]."""
BASIC = {
    "kt": 0.1, "ke": 0.0, "resistance": 1.0, "gear_ratio": GEAR, "rotor_inertia": 2e-4,
    "backlash": PLAY, "gear_stiffness": STIFFNESS,
}  # fmt: skip
OMEGA = np.sqrt(STIFFNESS * (1 / ROTOR + 1 / MASS))


def turntable(**constants):
    arm = chain({"axis": "0 0 1", "kind": "continuous"})
    return arm.with_actuator("dc_motor", **(BASIC | constants))


def effort(value):
    return Command.checked("effort", [value], 1)


def at(v=0.0, rotor=0.0, gap=0.0):
    return State.of([0.0], [v], act=[rotor, gap])


def motion(arm, state, command, dt, steps):
    """q, v, rotor speed and gap after every step, (steps + 1, 4)."""
    plant, rows = Plant(arm), [(state.q[0], state.v[0], *state.act)]
    for _ in range(steps):
        state = plant.step(state, command, dt)
        rows.append((state.q[0], state.v[0], *state.act))
    return np.array(rows)


def energy(rows):
    _, v, rotor, gap = rows.T
    bent = gap - np.clip(gap, -0.5 * PLAY, 0.5 * PLAY)
    return 0.5 * (MASS * v**2 + ROTOR * rotor**2 + STIFFNESS * bent**2)


def test_rotor_and_joint_are_two_bodies():
    arm = turntable()
    assert arm.act_names == ("J1.rotor_velocity", "J1.gap")
    assert arm.actuators[0].armature == arm.actuators[0].viscous_friction == 0.0


def test_the_joint_is_free_within_the_play():
    """The motor turns its rotor, ½ τ t² / J', and the joint goes on as it went."""
    torque, dt = 0.3, 1e-5
    until = np.sqrt(PLAY * ROTOR / torque)  # half the play at constant torque
    rows = motion(turntable(), at(), effort(torque), dt, round(0.999 * until / dt))
    time = 0.999 * until
    assert (rows[:, 1] == 0).all()
    assert rows[-1, 2] == pytest.approx(torque * time / ROTOR, rel=1e-3)
    assert rows[-1, 3] == pytest.approx(0.5 * torque * time**2 / ROTOR, rel=1e-3)
    moved = motion(turntable(), at(), effort(torque), dt, round(1.1 * until / dt))
    assert moved[-1, 1] > 0


@pytest.mark.quick(1)
@pytest.mark.parametrize("way", [1, -1])
def test_a_collision_of_teeth_is_a_half_swing_of_two_bodies(way):
    """Deepest u/ω, over after π/ω, both speeds as after an elastic impact."""
    u, dt = 2.0 * way, 1e-6
    steps = round((0.5 * PLAY / 2 + np.pi / OMEGA) * 1.2 / dt)
    rows = motion(turntable(), at(0.0, u), effort(0.0), dt, steps)
    bent = np.abs(rows[:, 3]) - 0.5 * PLAY
    assert bent.max() == pytest.approx(2 / OMEGA, rel=1e-3)
    assert dt * (bent > 0).sum() == pytest.approx(np.pi / OMEGA, rel=1e-3)
    total = ROTOR + MASS
    assert rows[-1, 1] == pytest.approx(2 * ROTOR * u / total, rel=1e-5)
    assert rows[-1, 2] == pytest.approx((ROTOR - MASS) * u / total, rel=1e-5)
    assert ROTOR * rows[-1, 2] + MASS * rows[-1, 1] == pytest.approx(ROTOR * u, rel=1e-12)


def bounces(damping, dt, time):
    """Momentum and energy of a free motion, wherever teeth do not touch."""
    rows = motion(turntable(gear_damping=damping), at(-0.5, 2.0), effort(0.0), dt, round(time / dt))
    rows = rows[np.abs(rows[:, 3]) < 0.5 * PLAY]
    return ROTOR * rows[:, 2] + MASS * rows[:, 1], energy(rows), rows[:, 2]


def test_free_motion_keeps_momentum_exactly_and_energy_to_the_steps_error():
    momentum, found, rotor = bounces(0.0, 1e-4, 2.0)
    assert np.count_nonzero(np.diff(rotor)) > 10  # collisions
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-11)
    np.testing.assert_allclose(found, found[0], rtol=0.02)


def test_dampers_between_teeth_take_energy_and_momentum_only_in_error_of_the_step():
    _, found, _ = bounces(0.4, 1e-4, 2.0)
    assert (np.diff(found) <= 1e-6 * found[0]).all()
    assert found[-1] < 0.7 * found[0]
    coarse, fine = (np.ptp(bounces(0.4, dt, 0.03)[0]) for dt in (1e-4, 1e-5))
    assert coarse < 0.01 * ROTOR * 2.5
    assert fine < 0.15 * coarse


def test_driven_to_and_fro_the_gap_stays_bounded():
    """Bounded by what a constant push bends, twice over, whichever way it is driven."""
    plant, state, gaps = Plant(turntable(gear_damping=0.4, viscous_friction=2e-3)), at(), []
    for n in range(40):
        for _ in range(50):
            state = plant.step(state, effort(3.0 * (-1) ** n), 1e-3)
            gaps.append(state.act[1])
    assert 0.5 * PLAY < np.max(gaps) < 0.5 * PLAY + 0.05
    assert -0.5 * PLAY - 0.05 < np.min(gaps) < -0.5 * PLAY


def test_pushing_a_joint_that_sticks_comes_to_rest_in_contact():
    """The gap at rest is β/2 + τ/k."""
    arm = turntable(gear_damping=1.0, viscous_friction=1e-3).with_joint("J1", friction=5.0)
    rows = motion(arm, at(), effort(2.0), 1e-4, 20000)
    assert rows[-1, 1] == 0.0
    assert rows[-1, 2] == pytest.approx(0.0, abs=1e-9)
    assert rows[-1, 3] == pytest.approx(0.5 * PLAY + 2 / STIFFNESS, rel=1e-9)


@pytest.mark.parametrize(("torque", "stays"), [(0.299, True), (-0.299, True), (0.301, False)])
def test_friction_holds_the_rotor_exactly(torque, stays):
    """Break-away at N f of the motor's dry friction, with the joint free beside it."""
    arm = turntable(coulomb_friction=0.01, stiction=0.03)
    rows = motion(arm, at(gap=0.003), effort(torque), 1e-3, 100)
    assert ((rows[:, 2:] == [0.0, 0.003]).all()) == stays


@pytest.mark.parametrize("dt", [1e-4, 1e-3, 1e-2])
def test_a_free_rotor_runs_down_exactly_under_viscous_and_dry_friction(dt):
    """N² J w' = -N² b w - N f, and it stops and stays."""
    arm = turntable(viscous_friction=4e-3, coulomb_friction=0.02, backlash=10.0)
    rate, level = 4e-3 / 2e-4, 0.02 / (GEAR * 4e-3)
    time = np.log(1 + 1.0 / level) / rate
    steps = round(0.6 * time / dt)
    rows = motion(arm, at(rotor=1.0), effort(0.0), dt, round(2 * time / dt))
    exact = (1 + level) * np.exp(-rate * steps * dt) - level
    assert rows[steps, 2] == pytest.approx(exact, rel=1e-9)
    assert (rows[-1, 2], rows[-1, 3]) == (0.0, rows[-2, 3])


def test_back_emf_brakes_a_light_rotor_at_any_step():
    """w' = -Kt Ke / (R J) w at 0 V: exact, though the rate is ten times 1/dt."""
    arm = turntable(ke=0.1, kt=0.1, rotor_inertia=1e-6, backlash=1.0, gear_stiffness=1e-3)
    rows = motion(arm, at(rotor=1.0), Command.checked("voltage", [0.0], 1), 1e-3, 1)
    assert rows[1, 2] == pytest.approx(np.exp(-0.01 / 1e-6 * 1e-3), rel=1e-9)
    looped = motion(arm, at(rotor=1.0), effort(0.0), 1e-3, 1)
    assert looped[1, 2] == pytest.approx(1.0, rel=1e-12)  # a current loop makes up for it


@given(
    gap=st.floats(-1, 1), closing=st.floats(-100, 100), stiffness=st.floats(0.1, 1e4),
    damping=st.floats(0, 100),
)  # fmt: skip
def test_teeth_only_push(gap, closing, stiffness, damping):
    tau = contact_effort(gap, closing, PLAY, stiffness, damping)
    assert tau * gap >= 0
    assert (abs(gap) > 0.5 * PLAY) or tau == 0
    assert contact_effort(-gap, -closing, PLAY, stiffness, damping) == -tau


# The largest step -----------------------------------------------------------------------------


def engaged(dt, damping, stiffness, electric=0.0, lag=1.0):
    """Spectral radius of a step of (w, gap, v[, i]) with teeth in contact, from the plant."""
    more = {"inductance": lag, "ke": electric} if electric else {}
    arm = turntable(gear_damping=damping, gear_stiffness=stiffness, **more)
    plant, command = Plant(arm), Command.checked("voltage", [0.0], 1)
    rest = np.array([0.0, *([0.0] if electric else []), 0.0, PLAY])

    def step(x):
        after = plant.step(State.of([0.0], x[:1], act=x[1:]), command, dt)
        return np.array([after.v[0], *after.act])

    h = 1e-4 * PLAY
    columns = [(step(rest + h * e) - step(rest - h * e)) / (2 * h) for e in np.eye(rest.size)]
    return plant, np.abs(np.linalg.eigvals(np.array(columns).T)).max()


def test_an_undamped_gear_is_refused_exactly_where_a_step_turns_unstable():
    limit = 2 / OMEGA
    plant, radius = engaged(0.999 * limit, 0.0, STIFFNESS)
    assert radius == pytest.approx(1.0, abs=1e-6)
    plant.require_stable(np.zeros(1), 0.999 * limit)
    plant, radius = engaged(1.001 * limit, 0.0, STIFFNESS)
    assert radius > 1.01
    with pytest.raises(
        InvalidValue,
        match=rf"'J1': dt = .*below {limit:.4g} s.*gear_stiffness = 400 .*at {OMEGA:.4g} rad/s",
    ):
        plant.require_stable(np.zeros(1), 1.001 * limit)


@given(
    share=st.floats(0.1, 1.0), damping=st.floats(0, 50), stiffness=st.floats(10, 1e4),
    electric=st.sampled_from([0.0, 0.5, 5.0]), lag=st.floats(1e-5, 1.0),
)  # fmt: skip
def test_what_is_allowed_is_stable(share, damping, stiffness, electric, lag):
    square = stiffness * (1 / ROTOR + 1 / MASS)
    dt = share * 2 / np.sqrt(square)
    plant, radius = engaged(dt, damping, stiffness, electric, lag)
    try:
        plant.require_stable(np.zeros(1), dt)
    except InvalidValue:
        return
    assert radius <= 1 + 1e-6


# --- efficiency ---


@pytest.mark.parametrize(("play", "behind"), [(0.0, 1.0), (1e-4, 0.6)])
def test_a_gears_loss_spares_what_the_rotor_takes_only_with_play(play, behind):
    """v̇ = η N Kt i / (M + N² J); with play the teeth's own effort is known: η N² J there."""
    eta, ratio, rotor, torque = 0.6, 5.0, 4e-3, 0.2
    arm = chain({"axis": "0 0 1", "kind": "continuous"}).with_actuator(
        "dc_motor", kt=1.0, ke=0.0, resistance=1.0, gear_ratio=ratio, rotor_inertia=rotor,
        efficiency=eta, backlash=play, gear_stiffness=2e3, gear_damping=20.0,
    )  # fmt: skip
    plant, state = Plant(arm), State.of([0.0], act=arm.initial_act)
    command = Command.checked("voltage", [torque], 1)
    begun = plant.step(state, command, 2e-5, 5000)
    ended = plant.step(begun, command, 2e-5, 5000)
    expected = eta * ratio * torque / (0.02 + 0.25**2 + behind * ratio**2 * rotor)
    assert (ended.v[0] - begun.v[0]) / 0.1 == pytest.approx(expected, rel=2e-3)
