"""The published time step: trajectory, objectives, motor bench, and its two artifacts."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import chain, five_dof

from arm_dynamics import Command, Plant, State, forward_model
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.simulation.dynamechs import (
    FLAG,
    LOST,
    PREVIOUS,
    ROWS,
    TAU,
    VOLTAGE,
    A,
    Dynamechs,
    Q,
    V,
    advance_published_step,
    motor_torque,
    objective,
    published_arm,
    unloaded_torques,
)
from arm_dynamics.simulation.forward_model import pack_state, split_state_vector

pytestmark = pytest.mark.slow  # of an earlier program; no other module uses it

DATA = Path(__file__).parents[1] / "data/five_dof"
DT = 1e-4
P = (1688.61035631972, 5529.51939064412, 5578.2466209947)
INTEGRAL = (11.7143467458887, 4.57248153380727, 0.451883276796821)
JOINTS = [1, 2, 4]


def table(name):
    with (DATA / name).open() as file:
        return [{k: float(x) for k, x in row.items()} for row in csv.DictReader(file)]


def columns(rows, *names):
    return np.array([[row[f"{name}{i}"] for name in names for i in range(1, 6)] for row in rows])


BENCH = table("motor_vectors.csv")
SAMPLES = table("dynamics_samples.csv")
REVERSED = [row for row in BENCH if row["vel_in"] * row["prev_in"] < 0]
CONSTANTS = ("Kt", "Kb", "Ra", "Vmax", "Vhalf", "fc", "fv")


def at_rest(arm):
    return pack_state(arm, State.of(arm.configuration("initial")))


def published_loop(arm, step, p=P, calls=30000):
    """Yield the states of the published P controller with ``step(state, voltages)``."""
    x, volts, target = at_rest(arm), np.zeros(5), arm.configuration("initial")
    for _ in range(calls):
        x = step(x, volts)
        volts[JOINTS] = p * (target - x[:5])[JOINTS]
        yield x


def published(arm):
    return lambda x, volts: forward_model(arm, x, volts, DT, compatibility="dynamechs")


@pytest.mark.quick(1)
@pytest.mark.parametrize("arm", [published_arm(), five_dof()], ids=["published", "bundled"])
def test_the_published_trajectory(arm):
    """The bundled arm's supply is not limiting here, and R5 does not reach its end stops."""
    states = np.array(list(published_loop(arm, published(arm))))
    rows = table("traj_P.csv")
    got = states[[int(row["step"]) - 1 for row in rows]]
    np.testing.assert_allclose(got[:, :5], columns(rows, "q"), rtol=0, atol=1e-9)
    np.testing.assert_allclose(got[:, 5:10], columns(rows, "qd"), rtol=0, atol=1e-9)
    np.testing.assert_allclose(got[:, 10:15], columns(rows, "qdd"), rtol=0, atol=1e-5)
    tool = [[row[f"ee_{axis}"] for axis in "xyz"] for row in rows]
    np.testing.assert_allclose(got[:, 15:18], tool, rtol=0, atol=1e-9)
    # R1 and R4 move only by rounding errors, so do their flags
    flags = got[:, 18::2] == columns(rows, "stiction")
    assert flags[:, JOINTS].all()
    np.testing.assert_allclose(got[:, 19::2], columns(rows, "prevvel"), rtol=0, atol=1e-9)


@pytest.mark.parametrize("row", json.loads((DATA / "objectives.json").read_text()))
def test_objectives_equal_the_published_ones(row):
    assert objective(published_arm(), row["P"], row["I"]) == pytest.approx(
        row["objective"], rel=1e-9
    )


def test_digits_of_the_publication():
    assert objective(published_arm(), P) == pytest.approx(16.3888758427019, rel=1e-9)
    assert objective(published_arm(), P, INTEGRAL) == pytest.approx(0.305710199012247, rel=1e-9)


@pytest.mark.parametrize(("gain", "figure"), [(np.zeros(3), 16.384672), (INTEGRAL, 0.279443)])
def test_without_its_artifacts_it_is_explicit_euler(gain, figure):
    """The package's explicit Euler, each voltage acting one call later."""
    arm = published_arm()
    plant, state = Plant(arm, "explicit_euler"), State.of(arm.configuration("initial"))
    target, volts, total, errors = state.q, np.zeros(5), 0.0, np.zeros(3)
    for _ in range(30000):
        error = (target - state.q)[JOINTS]
        errors += error
        total += np.abs(error).sum()
        given, volts = volts, np.zeros(5)
        volts[JOINTS] = P * error + gain * errors
        state = plant.step(state, Command("voltage", given), DT)
    assert total == pytest.approx(figure, abs=1e-6)


def test_the_original_program_has_no_end_stops_of_r5():
    """With end stops, gains that are unstable in the original stay bounded."""
    hot = (20000, 20000, 20000)
    assert objective(published_arm(), hot) == LOST
    assert objective(five_dof(), hot) < LOST


def test_the_published_gains_are_at_the_stability_limit():
    assert objective(published_arm(), 1.01 * np.array(P)) > 10 * objective(published_arm(), P)


def test_the_objective_is_the_sum_over_calls_of_the_forward_model():
    arm = published_arm()
    target = arm.configuration("initial")
    errors = [
        np.abs(target - x[:5])[JOINTS].sum() for x in published_loop(arm, published(arm), calls=500)
    ]
    assert objective(arm, P, duration=0.05) == pytest.approx(sum(errors), rel=1e-13)


def test_the_motor_bench():
    """A row of the bench is a column of x."""
    bench = {name: np.array([row[name] for row in BENCH]) for name in BENCH[0]}
    x = np.zeros((ROWS, len(BENCH)))
    x[V], x[FLAG], x[PREVIOUS] = bench["vel_in"], bench["flag_in"], bench["prev_in"]
    advance_published_step(x, DT)
    values = np.array([bench["V"], bench["ext_torque"], x[V], x[FLAG]])
    constants = np.array([bench[name] for name in CONSTANTS])
    pairs = zip(values.T.tolist(), constants.T.tolist(), strict=True)
    found = np.array([motor_torque(*row, tuple(motor)) for row, motor in pairs]).T
    expected = [bench[name] for name in ("torque_out", "vel_out", "flag_out")]
    np.testing.assert_allclose([found[0], x[V], found[1]], expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(bench["vel_out"], bench["prev_out"])  # the next call's


def test_the_packages_motor_agrees_without_velocity_reversal():
    """M q̈ of one joint is the bench's torque; the external torque is that of gravity."""
    rows = [row for row in BENCH if row not in REVERSED]
    found = [package_torque(row) for row in rows]
    np.testing.assert_allclose(found, [row["torque_out"] for row in rows], rtol=1e-5, atol=1e-6)


def package_torque(row):
    motors = {
        "kt": row["Kt"], "ke": row["Kb"], "resistance": row["Ra"], "rotor_inertia": row["Jm"],
        "brush_drop": row["Vmax"], "brush_half_voltage": row["Vhalf"],
        "coulomb_friction": row["fc"], "viscous_friction": row["fv"],
    }  # fmt: skip
    arm = chain({"effort": 1e6}).with_actuator("dc_motor", **motors)
    arm = arm.with_gravity([0, 0, -4 * row["ext_torque"]])  # center of 1 kg at 0.25 m
    start = pack_state(arm, State.of([0.0], [row["vel_in"]]))
    after = split_state_vector(arm, forward_model(arm, start, [row["V"]], 1e-7))
    return mass_matrix(arm, [0.0])[0, 0] * after.a[0]


RUNS = json.loads((DATA / "dynamechs_runs.json").read_text())


@pytest.mark.parametrize("run", RUNS, ids=[run["name"] for run in RUNS])
def test_runs_of_the_original_program(run):
    """Computed by DynaMechs: joints that lock, dry friction, rotors, a leaf link."""
    arm = published_arm()
    names = (
        "kt", "ke", "resistance", "rotor_inertia", "coulomb_friction", "viscous_friction",
        "brush_drop", "brush_half_voltage",
    )  # fmt: skip
    for joint, row in zip(arm.joint_names, run["motors"], strict=True):
        arm = arm.with_motor(joint, **dict(zip(names, row, strict=True)))
    plant, call = Dynamechs(arm), 0
    x = plant.rows
    x[Q], x[V], x[VOLTAGE], x[[A, FLAG, PREVIOUS]] = run["q"], run["v"], run["voltages"], 0.0
    for row in run["rows"]:
        while call < row["call"]:
            plant.call(DT)
            call += 1
        np.testing.assert_allclose(x[Q], row["q"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(x[V], row["v"], rtol=0, atol=1e-11)
        np.testing.assert_allclose(x[A], row["a"], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(x[FLAG], row["stiction"])


def test_without_gains_r5_locks_and_the_objective_equals_the_original():
    assert objective(published_arm(), np.zeros(3)) == pytest.approx(4710.8726490606623, rel=1e-12)


def test_with_zero_friction_a_reversal_stops_the_joint_for_one_call():
    """An artifact: with the package's motor the velocity changes its sign."""
    x = Dynamechs(published_arm()).rows
    x[[A, FLAG, VOLTAGE]], x[Q], x[V], x[PREVIOUS] = 0.0, 0.1, 0.3, -0.2
    advance_published_step(x, DT)
    assert (x[V] == 0).all()
    assert (x[FLAG] == 1).all()
    assert (x[PREVIOUS] == 0).all()
    x[VOLTAGE] = 5.0
    unloaded_torques(x)
    assert (x[TAU] != 0).all()


def test_accelerations_of_the_original():
    """At a position limit its torque counts twice; everything else equals the package."""
    q, v, volts, original, once = (
        columns(SAMPLES, name)
        for name in ("q", "qd", "V", "qdd_dynamechs", "qdd_pinocchio_limit_once")
    )
    plant, zero = Dynamechs(published_arm()), np.zeros(5)
    steps = zip(q, v, volts, strict=True)
    a = np.array([plant.step(q, v, zero, zero, v, u, 0.0)[2] for q, v, u in steps])
    largest = np.abs(a).max(axis=1, keepdims=True)
    np.testing.assert_array_less(np.abs(a - original) / (np.abs(original) + largest), 1e-9)
    same = np.isclose(original, once, rtol=1e-9).all(axis=1)
    np.testing.assert_array_equal([row["limit_active"] > 0 for row in SAMPLES], ~same)


def test_a_voltage_moves_the_velocity_one_call_later():
    arm, volts = published_arm(), np.array([1.0, 0, 0, 0, 0])
    step = published(arm)
    first = split_state_vector(arm, step(at_rest(arm), volts))
    assert first.v[0] == 0
    assert first.a[0] > 0
    second = split_state_vector(arm, step(step(at_rest(arm), volts), 0 * volts))
    assert second.v[0] == DT * first.a[0]


def test_supply_limit_and_joint_friction_are_ignored():
    limited, volts = five_dof(), np.array([100.0, -90, 80, 40, -30])
    free = limited.with_motors(supply_voltage=np.inf)
    with_friction = free.with_joint("R2", damping=0.3, friction=1.0)
    x = at_rest(free)
    for _ in range(5):
        x = forward_model(free, x, volts, DT, compatibility="dynamechs")
    for other in (limited, with_friction):
        y = at_rest(other)
        for _ in range(5):
            y = forward_model(other, y, volts, DT, compatibility="dynamechs")
        np.testing.assert_array_equal(x, y)


def test_constants_behind_a_gear_count_at_the_joint():
    direct = published_arm()
    geared = direct.with_motors(gear_ratio=4.0)
    for name, joint in zip(direct.joint_names, direct.joints, strict=True):
        k = joint.constants["kt"]
        geared = geared.with_motor(name, kt=k / 4, ke=k / 4)
    np.testing.assert_array_equal(Dynamechs(direct).rows, Dynamechs(geared).rows)


@pytest.mark.parametrize(
    ("gains", "more", "text"),
    [
        (P[:2], {}, r"p: shape = \(2,\); expected \(3,\)"),
        ((1, np.nan, 1), {}, r"p\[1\] = nan"),
        (P, {"i": [1.0]}, "i: shape"),
        (P, {"dt": -1e-4}, "dt .*above 0"),
        (P, {"duration": 0.0}, "duration .*at least"),
    ],
)
def test_invalid_gains_have_no_objective(gains, more, text):
    with pytest.raises(InvalidValue, match=text):
        objective(published_arm(), gains, **more)
    with pytest.raises(UnknownName, match="R9"):
        objective(published_arm(), P, joints=("R2", "R3", "R9"))


def test_an_arm_without_motors_is_rejected():
    arm = chain({})
    with pytest.raises(InvalidValue, match="'J1': actuator = 'ideal'; expected dc_motor"):
        forward_model(arm, np.zeros(8), [0.0], DT, compatibility="dynamechs")


def test_a_diverging_motion_is_an_error():
    arm = published_arm()
    fast = pack_state(arm, State.of(arm.configuration("initial"), np.full(5, 1e160)))
    with pytest.raises(InvalidValue, match=r"diverged .dynamechs, dt = 0\.0001 s"):
        published(arm)(fast, np.zeros(5))
