"""Servo motors: friction models M1 to M6, files of BAM, its pendulum, and the arm's actuator.

``data/servo_friction`` has parameter files made for this test, and positions that BAM's program
computed with them.
"""

import json
from dataclasses import replace
from math import exp
from pathlib import Path

import numpy as np
import pytest
from conftest import chain
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.core.state import Command, State
from arm_dynamics.identification import (
    PositionLoop,
    ServoFriction,
    ServoParameters,
    bam_differences,
    read_bam,
    simulate_pendulum,
    with_bam,
)
from arm_dynamics.identification.servos.servo_friction import friction_torque
from arm_dynamics.simulation.plant import Plant

DATA = Path(__file__).parents[1] / "data" / "servo_friction"
MOTIONS = json.loads((DATA / "motions.json").read_text("utf-8"))["motions"]
DT, SAMPLES, EVERY = 0.005, 1001, 25
TIME = np.arange(SAMPLES) * DT
TARGETS = {
    "sines": 0.9 * np.sin(2 * np.pi * 0.3 * TIME) + 0.4 * np.sin(2 * np.pi * 1.1 * TIME),
    "steps": np.where(TIME % 2 < 1, 0.8, -0.5),
}
TORQUE = st.floats(-5, 5)
SPEED = st.floats(-20, 20)
M6 = read_bam(DATA / "m6.json").friction
LOOP = PositionLoop(15.0, 32.0, 0.158, max_duty=0.9625)


def servo(friction, **changes):
    return ServoParameters(1.5, 3.2, 0.011, friction, LOOP, **changes)


def written(tmp_path, name="m4", **changes):
    """Write a changed copy of a parameter file; None removes a key."""
    values = json.loads((DATA / f"{name}.json").read_text("utf-8")) | changes
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({k: v for k, v in values.items() if v is not None}), "utf-8")
    return path


# The friction


def test_m1_is_coulomb_and_viscous_friction():
    friction = ServoFriction(0.04, 0.02)
    for v in (-3.0, 0.0, 0.5):
        assert friction.limit(1.0, -2.0, v) == pytest.approx(0.04 + 0.02 * abs(v))


def test_m2_falls_from_stiction_to_coulomb_friction():
    friction = ServoFriction(0.04, 0.0, 0.05, 0.4, 1.3)
    assert friction.limit(1.0, -1.0, 0.0) == pytest.approx(0.09)
    assert friction.limit(1.0, -1.0, 0.4) == pytest.approx(0.04 + 0.05 / exp(1))
    assert friction.limit(1.0, -1.0, 50.0) == pytest.approx(0.04)
    speeds = np.linspace(0, 4, 100)
    assert np.all(np.diff([friction.limit(0.0, 0.0, v) for v in speeds]) < 0)


def test_m3_increases_with_the_torque_through_the_gear():
    friction = ServoFriction(0.04, 0.0, motor_load=0.1, external_load=0.1)
    assert friction.limit(2.0, -1.5, 1.0) == pytest.approx(0.04 + 0.1 * 3.5)
    assert friction.limit(2.0, 1.5, 1.0) == pytest.approx(0.04 + 0.1 * 0.5)


def test_m5_separates_motor_and_load_and_fades_with_speed():
    friction = replace(M6, motor_quadratic=0.0, external_quadratic=0.0, viscous=0.0)
    slow, fast = friction.limit(2.0, -1.0, 0.0), friction.limit(2.0, -1.0, 50.0)
    assert fast == pytest.approx(0.04 + 0.15 * 2 + 0.04 * 1)
    assert slow - fast == pytest.approx(0.05 + 0.06 * 2 + 0.09 * 1)
    assert friction.load_coefficients(0.0) == pytest.approx((0.21, 0.13))
    assert friction.load_coefficients(50.0) == pytest.approx((0.15, 0.04))


@pytest.mark.parametrize(
    ("motor", "external", "expected"),
    [
        (2.0, -1.0, 0.12 * 1.0**2),
        (1.0, -2.0, 0.07 * 1.0**2),
        (-2.0, 1.5, 0.12 * 1.5**2),
        (2.0, 1.0, 0.0),
        (2.0, -2.0, 0.0),
        (2.0, 0.0, 0.0),
    ],
)
def test_m6_adds_quadratic_friction_of_the_smaller_opposing_torque(motor, external, expected):
    without = replace(M6, motor_quadratic=0.0, external_quadratic=0.0)
    added = M6.limit(motor, external, 0.0) - without.limit(motor, external, 0.0)
    assert added == pytest.approx(expected, abs=1e-12)


@given(motor=TORQUE, external=TORQUE, v=SPEED)
def test_friction_is_symmetric_and_at_least_coulomb_and_viscous(motor, external, v):
    limit = M6.limit(motor, external, v)
    assert limit >= M6.coulomb + M6.viscous * abs(v) - 1e-15
    assert limit == M6.limit(-motor, -external, -v)


@given(motor=st.floats(0, 5), external=st.floats(0, 5), more=st.floats(0, 2), v=SPEED)
def test_friction_does_not_fall_with_opposing_torques(motor, external, more, v):
    without = replace(M6, motor_quadratic=0.0, external_quadratic=0.0)
    limit = without.limit(motor, -external, v)
    assert without.limit(motor + more, -external, v) >= limit - 1e-12
    assert without.limit(motor, -external - more, v) >= limit - 1e-12


@given(limit=st.floats(0, 5), stopping=TORQUE)
def test_friction_opposes_motion_and_stops_what_it_can(limit, stopping):
    torque = friction_torque(limit, stopping)
    assert torque * stopping <= 0
    assert abs(torque) <= limit
    assert torque == -stopping or abs(torque) == limit


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"coulomb": -0.1}, r"servo friction: coulomb = -0.1; expected at least 0"),
        ({"viscous": float("nan")}, r"servo friction: viscous = nan; expected a finite number"),
        ({"stribeck_velocity": 0.0}, r"stribeck_velocity = 0.0; expected above 0"),
        ({"stribeck_exponent": 0.0}, r"stribeck_exponent = 0.0; expected above 0"),
    ],
)
def test_bad_coefficients_are_rejected(changes, text):
    with pytest.raises(InvalidValue, match=text):
        replace(M6, **changes)


# Motor and position loop


def test_a_position_loop_by_voltage_saturates_at_its_duty():
    mx = servo(ServoFriction(0.0, 0.0))
    assert mx.command(0.1, 0.0, 3.0) == pytest.approx(15 * 32 * 0.158 * 0.1)
    assert mx.command(1.0, 0.0, 3.0) == pytest.approx(15 * 0.9625)
    assert mx.torque(10.0, 2.0) == pytest.approx(1.5 / 3.2 * (10.0 - 1.5 * 2.0))
    assert mx.with_loop(gain=16.0).command(0.1, 0.0, 0.0) == pytest.approx(15 * 16 * 0.0158)
    with pytest.raises(UnknownName, match="unknown constant of the position loop 'kp'"):
        mx.with_loop(kp=16.0)


def test_a_position_loop_by_current_saturates_at_current_and_supply():
    loop = PositionLoop(48.0, 100.0, max_current=12.0, damping=0.5, by_current=True)
    drive = ServoParameters(5.0, 1.5, 0.3, ServoFriction(0.0, 0.0), loop)
    assert drive.command(0.1, 0.0, 0.4) == pytest.approx(100 * 0.1 - 0.5 * 10 * 0.4)
    assert drive.command(1.0, 0.0, 0.4) == 12.0
    assert drive.torque(12.0, 0.0) == pytest.approx(60.0)
    assert drive.torque(12.0, 9.0) == pytest.approx(5.0 * (48.0 - 5.0 * 9.0) / 1.5)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"supply_voltage": 0.0}, r"supply_voltage \[V\] = 0.0; expected above 0"),
        ({"max_duty": 1.1}, r"max_duty = 1.1; expected at most 1"),
        ({"max_current": -1.0}, r"max_current \[A\] = -1.0; expected above 0"),
        ({"velocity_limit": 0.0}, r"velocity_limit \[rad/s\] = 0.0; expected above 0"),
    ],
)
def test_a_bad_position_loop_is_rejected(changes, text):
    with pytest.raises(InvalidValue, match=text):
        replace(LOOP, **changes)


# The pendulum


@pytest.mark.parametrize("motion", MOTIONS, ids=lambda m: f"{m['file']}-{m['target']}")
def test_the_pendulum_moves_as_in_bam(motion):
    parameters = read_bam(DATA / motion["file"]).with_loop(gain=motion["gain"])
    found = simulate_pendulum(
        parameters,
        TARGETS[motion["target"]],
        mass=motion["mass"],
        length=motion["length"],
        rod_mass=motion["rod_mass"],
        dt=DT,
        initial_q=0.3,
        initial_v=-0.5,
        initial_target=0.0,
        enabled=TIME < 4,
    )
    assert np.max(np.abs(found.q[::EVERY] - motion["q"])) < 1e-8  # rad
    assert np.ptp(motion["q"]) > 1.0


def test_every_model_has_motions():
    models = {read_bam(DATA / motion["file"]).model for motion in MOTIONS}
    assert models == {"m1", "m2", "m3", "m4", "m5", "m6"}


@pytest.mark.parametrize(("weight", "moves"), [(0.0899, False), (0.0901, True)])
def test_a_pendulum_without_power_rests_below_its_breakaway_torque(weight, moves):
    parameters = servo(ServoFriction(0.04, 0.02, 0.05, 0.4, 1.3))
    mass = weight / (0.1 * 9.80665)
    found = simulate_pendulum(
        parameters, np.zeros(200), mass=mass, length=0.1, initial_q=np.pi / 2,
        enabled=np.zeros(200, bool),
    )  # fmt: skip
    assert (found.q[-1] != found.q[0]) == moves
    if not moves:
        assert np.all(found.v == 0)
        assert found.friction[-1] == pytest.approx(weight)


def test_a_pendulum_without_friction_swings_with_its_period():
    free = replace(servo(ServoFriction(0.0, 0.0)), armature=0.0)
    found = simulate_pendulum(
        free, np.zeros(40000), mass=1.0, length=0.2, dt=1e-4, initial_q=0.01,
        enabled=np.zeros(40000, bool),
    )  # fmt: skip
    crossings = found.time[1:][(found.q[:-1] < 0) & (found.q[1:] >= 0)]
    period = 2 * np.pi * np.sqrt(0.2 / 9.80665)
    assert np.diff(crossings) == pytest.approx(period, rel=2e-3)


def test_the_internal_target_has_a_velocity_limit():
    parameters = read_bam(DATA / "m1_sts3215.json")
    assert parameters.loop.velocity_limit == 2.5
    assert parameters.loop.error_gain == pytest.approx(0.166 * 0.9)
    found = simulate_pendulum(parameters, np.full(20, 2.0), mass=0.1, length=0.1)
    first = parameters.command(2.5 * 0.005, 0.0, 0.0)
    assert found.command[0] == pytest.approx(first)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"mass": -1.0}, r"mass \[kg\] = -1.0; expected at least 0"),
        ({"length": 0.0}, r"length \[m\] = 0.0; expected above 0"),
        ({"dt": 0.0}, r"dt \[s\] = 0.0; expected above 0"),
        ({"target": [0.0, np.nan]}, "target"),
        ({"enabled": [True]}, r"enabled: shape = \(1,\); expected \(10,\)"),
        ({"servo": "mx64"}, "servo = 'mx64'; expected a ServoParameters"),
    ],
)
def test_a_bad_pendulum_is_rejected(changes, text):
    good = {"servo": servo(M6), "target": np.zeros(10), "mass": 0.5, "length": 0.1}
    with pytest.raises(InvalidValue, match=text):
        simulate_pendulum(**{**good, **changes})


# The files


def test_a_file_is_read_in_si_units():
    found = read_bam(DATA / "m4.json")
    assert (found.model, found.servo, found.offset) == ("m4", "mx64", 0.0)
    assert (found.kt, found.resistance, found.armature) == (1.5, 3.2, 0.011)
    expected = ServoFriction(0.04, 0.02, 0.05, 0.4, 1.3, 0.08, 0.08, 0.07, 0.07)
    assert found.friction == expected
    assert found.loop == LOOP
    assert read_bam(DATA / "m6.json").friction.external_quadratic == 0.12


def test_a_file_of_a_simpler_model_ignores_the_keys_of_others(tmp_path):
    assert read_bam(written(tmp_path, "m6", model="m1")).friction == ServoFriction(0.04, 0.02)


def test_a_servo_by_current_needs_no_resistance(tmp_path):
    assert read_bam(written(tmp_path, "m4_erob80_50", R=None)).resistance == 2.0


def test_another_servo_needs_its_position_loop(tmp_path):
    path = written(tmp_path, actuator="my_servo")
    with pytest.raises(ConfigError, match=r"actuator = 'my_servo'; expected one of .*mx64.*loop="):
        read_bam(path)
    loop = PositionLoop(12.0, 10.0)
    assert read_bam(path, loop=loop).loop == loop


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"kt": None}, r"kt is missing; expected a number \[N·m/A\]"),
        ({"load_friction_base": None}, r"load_friction_base is missing; .* for model m4"),
        ({"alpha": None}, "alpha is missing"),
        ({"model": None}, "model is missing; expected a parameter file of BAM"),
        ({"model": "m7"}, "model = 'm7'; expected one of m1, m2, m3, m4, m5, m6"),
        ({"model": 1}, "model = 1; expected one of"),
        ({"friction_base": -0.1}, r"friction_base = -0.1 N·m; expected a number at least 0"),
        ({"R": 0.0}, r"R = 0.0 Ω; expected a number above 0"),
        ({"armature": "0.01"}, r"armature = '0.01' kg·m²; expected a number at least 0"),
        ({"friction_viscous": True}, "friction_viscous = True"),
        ({"q_offset": float("inf")}, "q_offset = inf rad; expected a finite number"),
    ],
)
def test_bad_files_are_rejected(tmp_path, changes, text):
    with pytest.raises(ConfigError, match=text):
        read_bam(written(tmp_path, **changes))


def test_other_files_are_rejected(tmp_path):
    with pytest.raises(ConfigError, match="cannot read: No such file"):
        read_bam(tmp_path / "absent.json")
    path = tmp_path / "other.json"
    path.write_text("not JSON", "utf-8")
    with pytest.raises(ConfigError, match=r"other.json: not valid JSON"):
        read_bam(path)
    path.write_text("[1]", "utf-8")
    with pytest.raises(ConfigError, match="content = a list; expected a JSON object"):
        read_bam(path)


# The arm's actuator


def pendulum_arm(parameters, **options):
    """Return the pendulum of 0.4 kg on a rod of 0.8 kg and 0.12 m with a servo."""
    joint = {"axis": "0 -1 0", "mass": 1.2, "center": "0 0 -0.08", "ixx": 0.00192}
    arm = chain(joint | {"damping": 0.3, "friction": 0.2}).with_gravity([0.0, 0.0, -9.80665])
    return with_bam(arm, "J1", parameters, **options)


@pytest.mark.parametrize("name", ["m1", "m2"])
def test_an_arm_moves_as_the_pendulum(name):
    parameters = read_bam(DATA / f"{name}.json")
    parameters = replace(parameters, friction=replace(parameters.friction, stribeck_exponent=2.0))
    assert bam_differences(parameters) == ()
    arm, dt = pendulum_arm(parameters), 1e-4
    target = np.where(np.arange(6000) < 4000, 0.6, 0.2)
    reference = simulate_pendulum(parameters, target, mass=0.4, length=0.12, rod_mass=0.8, dt=dt)
    plant, state = Plant(arm), State.of([0.0])
    positions = []
    for goal in target:
        positions.append(state.q[0])
        volts = parameters.command(goal, state.q[0], state.v[0])
        state = plant.step(state, Command.checked("voltage", [volts], 1), dt, 1)
    assert np.max(np.abs(np.array(positions) - reference.q)) < 1e-3
    assert reference.q[-1] == pytest.approx(0.2, abs=0.05)


def test_gear_efficiencies_balance_the_torques_of_bam_at_constant_velocity():
    parameters = read_bam(DATA / "m5.json")
    friction, load_speed = parameters.friction, 50.0
    motor = pendulum_arm(parameters, load_speed=load_speed).actuators[0]
    for drive in (0.5, 2.0):  # the motor lifts a load: find the external torque in balance
        external = -(0.85 * drive - friction.coulomb - friction.viscous * 50) / 1.04
        assert drive + external == pytest.approx(friction.limit(drive, external, 50.0))
        dry = motor.dry_friction_bounds(50.0, drive)[0] + motor.viscous_friction * 50
        assert drive + external == pytest.approx(dry)
    unloaded = replace(parameters, friction=replace(friction, coulomb=0.0, viscous=0.0))
    motor = pendulum_arm(unloaded, load_speed=load_speed).actuators[0]
    external = 1.15 / 0.96  # per motor torque of -1, with the load driving
    assert external - 1 == pytest.approx(unloaded.friction.limit(-1.0, external, 50.0))
    assert external - 1 == pytest.approx(motor.dry_friction_bounds(50.0, -1.0)[0])


def test_breakaway_under_load_is_that_of_bam():
    parameters = read_bam(DATA / "m5.json")
    motor = pendulum_arm(parameters).actuators[0]
    drive = 1.5
    external = -(0.79 * drive - 0.09) / 1.13
    assert drive + external == pytest.approx(parameters.friction.limit(drive, external, 0.0))
    assert drive + external == pytest.approx(motor.dry_friction_bounds(0.0, drive)[0])


def test_the_motor_of_an_arm_replaces_the_friction_of_its_joint():
    arm = pendulum_arm(read_bam(DATA / "m1.json"))
    assert (arm.joints[0].damping, arm.joints[0].friction) == (0.0, 0.0)
    constants = arm.actuators[0].constants
    assert constants["supply_voltage"] == pytest.approx(15 * 0.9625)
    assert (constants["kt"], constants["ke"], constants["rotor_inertia"]) == (1.5, 1.5, 0.011)
    arm = pendulum_arm(read_bam(DATA / "m4_erob80_50.json"))
    assert arm.actuators[0].constants["current_limit"] == 12.0


def test_differences_are_listed_with_their_size():
    text = " ".join(bam_differences(read_bam(DATA / "m6.json")))
    assert "Stribeck exponent 1.3" in text
    assert "0.21 and 0.13, as at 0 rad/s" in text
    assert "Quadratic friction of 0.07 and 0.12" in text
    assert "23 % too small while the load drives" in text
    assert "velocity limit" in bam_differences(read_bam(DATA / "m1_sts3215.json"))[0]


def test_self_locking_servos_are_rejected():
    locking = replace(M6, external_load=0.95)
    text = "external load coefficient = 1.04 at 0 rad/s; expected below 1: the load cannot"
    with pytest.raises(InvalidValue, match=text):
        pendulum_arm(servo(locking))
    assert pendulum_arm(servo(locking), load_speed=50.0).actuators[0].has_dry_friction
    with pytest.raises(UnknownName, match="J9"):
        with_bam(chain({}), "J9", servo(M6))
