"""A gear with backlash: free motion in the gap, elastic tooth contact."""

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
"""Reflected inertia of the rotor at the joint [kg·m²]."""
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
    """Return q, v, rotor velocity and gap after every step, (steps + 1, 4)."""
    plant, rows = Plant(arm), [(state.q[0], state.v[0], *state.act)]
    for _ in range(steps):
        state = plant.step(state, command, dt)
        rows.append((state.q[0], state.v[0], *state.act))
    return np.array(rows)


def energy(rows):
    _, v, rotor, gap = rows.T
    bent = gap - np.clip(gap, -0.5 * PLAY, 0.5 * PLAY)
    return 0.5 * (MASS * v**2 + ROTOR * rotor**2 + STIFFNESS * bent**2)


def test_with_backlash_the_mass_matrix_excludes_the_rotor():
    arm = turntable()
    assert arm.act_names == ("J1.rotor_velocity", "J1.gap")
    assert arm.actuators[0].armature == arm.actuators[0].viscous_friction == 0.0


def test_the_joint_is_free_within_the_backlash():
    """The motor accelerates its rotor, ½ τ t² / J'; the joint keeps its velocity."""
    torque, dt = 0.3, 1e-5
    until = np.sqrt(PLAY * ROTOR / torque)  # half the backlash at constant torque
    rows = motion(turntable(), at(), effort(torque), dt, round(0.999 * until / dt))
    time = 0.999 * until
    assert (rows[:, 1] == 0).all()
    assert rows[-1, 2] == pytest.approx(torque * time / ROTOR, rel=1e-3)
    assert rows[-1, 3] == pytest.approx(0.5 * torque * time**2 / ROTOR, rel=1e-3)
    moved = motion(turntable(), at(), effort(torque), dt, round(1.1 * until / dt))
    assert moved[-1, 1] > 0


@pytest.mark.quick(1)
@pytest.mark.parametrize("direction", [1, -1])
def test_a_tooth_impact_is_half_an_oscillation_of_two_bodies(direction):
    """Maximum deflection u/ω, end after π/ω, velocities as after an elastic impact."""
    u, dt = 2.0 * direction, 1e-6
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
    """Return momentum and energy of a free motion at the steps without tooth contact."""
    rows = motion(turntable(gear_damping=damping), at(-0.5, 2.0), effort(0.0), dt, round(time / dt))
    rows = rows[np.abs(rows[:, 3]) < 0.5 * PLAY]
    return ROTOR * rows[:, 2] + MASS * rows[:, 1], energy(rows), rows[:, 2]


def test_free_motion_conserves_momentum_exactly_and_energy_to_first_order():
    momentum, found, rotor = bounces(0.0, 1e-4, 2.0)
    assert np.count_nonzero(np.diff(rotor)) > 10  # collisions
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-11)
    np.testing.assert_allclose(found, found[0], rtol=0.02)


def test_tooth_damping_dissipates_energy_and_conserves_momentum_to_first_order():
    _, found, _ = bounces(0.4, 1e-4, 2.0)
    assert (np.diff(found) <= 1e-6 * found[0]).all()
    assert found[-1] < 0.7 * found[0]
    coarse, fine = (np.ptp(bounces(0.4, dt, 0.03)[0]) for dt in (1e-4, 1e-5))
    assert coarse < 0.01 * ROTOR * 2.5
    assert fine < 0.15 * coarse


def test_the_gap_stays_bounded_under_alternating_torque():
    """The bound is twice the deflection under constant torque, in both directions."""
    plant, state, gaps = Plant(turntable(gear_damping=0.4, viscous_friction=2e-3)), at(), []
    for n in range(40):
        for _ in range(50):
            state = plant.step(state, effort(3.0 * (-1) ** n), 1e-3)
            gaps.append(state.act[1])
    assert 0.5 * PLAY < np.max(gaps) < 0.5 * PLAY + 0.05
    assert -0.5 * PLAY - 0.05 < np.min(gaps) < -0.5 * PLAY


def test_a_rotor_pushing_a_stuck_joint_comes_to_rest_in_contact():
    """The gap at rest is β/2 + τ/k."""
    arm = turntable(gear_damping=1.0, viscous_friction=1e-3).with_joint("J1", friction=5.0)
    rows = motion(arm, at(), effort(2.0), 1e-4, 20000)
    assert rows[-1, 1] == 0.0
    assert rows[-1, 2] == pytest.approx(0.0, abs=1e-9)
    assert rows[-1, 3] == pytest.approx(0.5 * PLAY + 2 / STIFFNESS, rel=1e-9)


@pytest.mark.parametrize(("torque", "stays"), [(0.299, True), (-0.299, True), (0.301, False)])
def test_friction_holds_the_rotor_exactly(torque, stays):
    """Breakaway at N f of the motor's dry friction; the joint is free."""
    arm = turntable(coulomb_friction=0.01, stiction=0.03)
    rows = motion(arm, at(gap=0.003), effort(torque), 1e-3, 100)
    assert ((rows[:, 2:] == [0.0, 0.003]).all()) == stays


@pytest.mark.parametrize("dt", [1e-4, 1e-3, 1e-2])
def test_a_free_rotor_stops_exactly_under_viscous_and_dry_friction(dt):
    """N² J w' = -N² b w - N f until the rotor stops; then it stays at rest."""
    arm = turntable(viscous_friction=4e-3, coulomb_friction=0.02, backlash=10.0)
    rate, level = 4e-3 / 2e-4, 0.02 / (GEAR * 4e-3)
    time = np.log(1 + 1.0 / level) / rate
    steps = round(0.6 * time / dt)
    rows = motion(arm, at(rotor=1.0), effort(0.0), dt, round(2 * time / dt))
    exact = (1 + level) * np.exp(-rate * steps * dt) - level
    assert rows[steps, 2] == pytest.approx(exact, rel=1e-9)
    assert (rows[-1, 2], rows[-1, 3]) == (0.0, rows[-2, 3])


def test_back_emf_brakes_a_light_rotor_at_any_step():
    """w' = -Kt Ke / (R J) w at 0 V: exact, although the rate is ten times 1/dt."""
    arm = turntable(ke=0.1, kt=0.1, rotor_inertia=1e-6, backlash=1.0, gear_stiffness=1e-3)
    rows = motion(arm, at(rotor=1.0), Command.checked("voltage", [0.0], 1), 1e-3, 1)
    assert rows[1, 2] == pytest.approx(np.exp(-0.01 / 1e-6 * 1e-3), rel=1e-9)
    looped = motion(arm, at(rotor=1.0), effort(0.0), 1e-3, 1)
    assert looped[1, 2] == pytest.approx(1.0, rel=1e-12)  # a current loop compensates it


@given(
    gap=st.floats(-1, 1), closing=st.floats(-100, 100), stiffness=st.floats(0.1, 1e4),
    damping=st.floats(0, 100),
)  # fmt: skip
def test_tooth_forces_are_compressive(gap, closing, stiffness, damping):
    tau = contact_effort(gap, closing, PLAY, stiffness, damping)
    assert tau * gap >= 0
    assert (abs(gap) > 0.5 * PLAY) or tau == 0
    assert contact_effort(-gap, -closing, PLAY, stiffness, damping) == -tau


# Stability limit ----------------------------------------------------------------------------


def contact_spectral_radius(dt, damping, stiffness, electric=0.0, lag=1.0):
    """Return the spectral radius of a step of (w, gap, v[, i]) in tooth contact, from the plant."""
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


def test_an_undamped_gear_is_rejected_exactly_at_the_stability_limit():
    limit = 2 / OMEGA
    plant, radius = contact_spectral_radius(0.999 * limit, 0.0, STIFFNESS)
    assert radius == pytest.approx(1.0, abs=1e-6)
    plant.require_stable(np.zeros(1), 0.999 * limit)
    plant, radius = contact_spectral_radius(1.001 * limit, 0.0, STIFFNESS)
    assert radius > 1.01
    with pytest.raises(
        InvalidValue,
        match=rf"'J1': dt = .*below {limit:.4g} s.*gear_stiffness = 400 .*at {OMEGA:.4g} rad/s",
    ):
        plant.require_stable(np.zeros(1), 1.001 * limit)


@given(
    fraction=st.floats(0.1, 1.0), damping=st.floats(0, 50), stiffness=st.floats(10, 1e4),
    electric=st.sampled_from([0.0, 0.5, 5.0]), lag=st.floats(1e-5, 1.0),
)  # fmt: skip
def test_accepted_gears_are_stable(fraction, damping, stiffness, electric, lag):
    square = stiffness * (1 / ROTOR + 1 / MASS)
    dt = fraction * 2 / np.sqrt(square)
    plant, radius = contact_spectral_radius(dt, damping, stiffness, electric, lag)
    try:
        plant.require_stable(np.zeros(1), dt)
    except InvalidValue:
        return
    assert radius <= 1 + 1e-6


# --- efficiency ---


@pytest.mark.parametrize(("play", "behind"), [(0.0, 1.0), (1e-4, 0.6)])
def test_gear_efficiency_applies_to_the_tooth_effort_only_with_backlash(play, behind):
    """v̇ = η N Kt i / (M + N² J); with backlash the tooth effort is a state: η N² J there."""
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
