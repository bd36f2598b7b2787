"""Motor constants from voltages and currents: recovery of hidden constants, deviations."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from test_identification import fourier

from arm_dynamics import Plant, load_arm
from arm_dynamics.core import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rnea
from arm_dynamics.identification import identify
from arm_dynamics.identification.efforts.motor_constants import block_regression, identify_motors
from arm_dynamics.identification.parameters.identified_urdf import identified_urdf
from arm_dynamics.model.load import parse_arm
from arm_dynamics.recording import MotionData
from arm_dynamics.simulation.actuators.winding import terminal_voltage

NV = 5


def recorded(actual, seconds, seed=0, noise=1e-4):
    """Return a motion of motors that are commanded by voltage, with noise."""
    period, motion, plant = 0.002, fourier(actual, seed, seconds), Plant(actual)
    time = period * (1 + np.arange(int(seconds / period)))
    q, v, _ = motion(np.array(0.0))
    state, random = State.of(q, v, act=np.zeros(NV)), np.random.default_rng(seed)
    rows = []
    for t in time - period:
        q, v, a = motion(t)
        a = a + 400.0 * (q - state.q) + 40.0 * (v - state.v)
        effort = rnea(actual, state.q, state.v, a)
        volts = [
            m.voltage_for(float(x), float(w))
            for m, x, w in zip(actual.actuators, effort, state.v, strict=True)
        ]
        state = plant.step(state, Command.checked("voltage", volts, NV), period / 4, 4)
        rows.append((state.q, state.act[:NV], volts, state.tau))
    q, current, voltage, effort = (np.array(column) for column in zip(*rows, strict=True))
    q = q + noise * random.normal(size=q.shape)
    current = current + 0.01 * np.sqrt(np.mean(current**2, axis=0)) * random.normal(size=q.shape)
    return MotionData(actual.joint_names, time, q, effort, current=current, voltage=voltage)


RESISTANCE, BACK_EMF, INDUCTANCE, GAIN = 1.3, 8.0, 2e-2, 9.0


def equation(arm, seed, noise=True):
    """Return a motion whose voltages and currents fulfil the equation of a winding."""
    time, random = np.arange(0, 20, 0.002), np.random.default_rng(seed)
    q, v, _ = fourier(arm, seed, 20.0)(time)
    phase = 2 * np.pi * (np.array([0.3, 1.1, 2.7]) * time[:, None] + random.uniform(size=3))
    current = 1.5 * np.sin(phase).sum(axis=1)[:, None] * np.ones(NV)
    slope = 1.5 * (np.cos(phase) * 2 * np.pi * [0.3, 1.1, 2.7]).sum(axis=1)[:, None]
    voltage = RESISTANCE * current + INDUCTANCE * slope + BACK_EMF * v + 0.02
    effort = GAIN * current
    if noise:
        q = q + 1e-4 * random.normal(size=q.shape)
        current, voltage = (x + 0.02 * random.normal(size=q.shape) for x in (current, voltage))
    return MotionData(arm.joint_names, time, q, effort, current=current, voltage=voltage)


@pytest.fixture(scope="module")
def case():
    arm = load_arm("five_dof").with_motors(supply_voltage=60.0)
    return arm, equation(arm, 0), equation(arm, 1)


def test_hidden_motor_constants_are_found(case):
    arm, motion, other = case
    fit = identify_motors(arm, [motion], [other])
    hidden = {"resistance": RESISTANCE, "ke": BACK_EMF, "kt": GAIN, "inductance": INDUCTANCE}
    for i in range(NV):
        found = fit.constants(i)
        assert found.keys() == hidden.keys()
        for name, (value, spread) in found.items():
            assert value == pytest.approx(hidden[name], rel=0.01)
            assert abs(value - hidden[name]) < 4 * spread
    assert np.nanmax(fit.error) < 0.01
    np.testing.assert_allclose(fit.values[2], 0.02, atol=5e-3)
    applied = fit.applied(arm)
    assert applied.actuators[0].constants["resistance"] == fit.constants(0)["resistance"][0]
    assert {row.name for row in fit.parameters()} >= {"R1.resistance", "R5.ke", "R2.kt"}


def test_simulated_motors_are_within_their_deviations():
    arm = load_arm("five_dof").with_motors(supply_voltage=60.0)
    actual = arm.with_motors(resistance=1.3, ke=8.0, kt=9.0, inductance=6.5e-3)
    fit = identify_motors(arm, [recorded(actual, 10.0)])
    for i in range(NV):
        found = fit.constants(i)
        assert found["ke"][0] == pytest.approx(8.0, rel=0.01)
        for name, hidden in (("resistance", 1.3), ("inductance", 6.5e-3)):
            if name in found:
                assert abs(found[name][0] - hidden) < 4 * found[name][1]
    assert "resistance" in fit.constants(1)


def test_a_gear_and_brushes_belong_to_the_motor(case):
    arm, motion, _ = case
    geared = arm.with_motors(gear_ratio=10.0, brush_drop=0.5, brush_half_voltage=0.4)
    flat = [terminal_voltage(float(x), 0.5, 0.4) for x in np.array(motion.voltage).ravel()]
    worn = replace(motion, voltage=np.reshape(flat, motion.q.shape))
    plain, found = identify_motors(arm, [motion]), identify_motors(geared, [worn])
    np.testing.assert_allclose(found.values[:2], plain.values[:2], rtol=1e-6)
    assert found.constants(0)["ke"][0] == pytest.approx(0.1 * BACK_EMF, rel=0.01)


@pytest.mark.slow
def test_identified_urdfs_contain_motor_constants():
    arm = load_arm("five_dof").with_motors(supply_voltage=60.0)
    actual = arm.with_motors(resistance=1.3, ke=8.0, kt=9.0, inductance=6.5e-3)
    result = identify(arm, [recorded(actual, 20.0)])
    assert result.motors is not None
    text = identified_urdf(
        result.identified, result.fit.simulated, date="2025-01-01", sources=["run"]
    )
    written = parse_arm(text)
    for name in ("resistance", "ke", "kt"):
        found = result.motors.constants(1)[name][0]
        assert written.actuators[1].constants[name] == pytest.approx(found)
    assert "resistance [ohm] 1 -> 1.2" in text or "resistance [ohm] 1 -> 1.3" in text
    names = {row.name for row in result.summary(date(2025, 1, 1)).parameters}
    assert {"R2.resistance", "R2.ke", "R2.kt"} <= names
    assert any("error of voltages" in note for note in result.notes)


def test_without_efforts_the_torque_constant_changes_as_the_back_emf_constant(case):
    arm, motion, _ = case
    fit = identify_motors(arm, [replace(motion, effort=None)])
    for i in range(NV):
        found = fit.constants(i)
        assert found["kt"] == found["ke"]


def test_motors_at_rest_and_saturated_voltages_determine_nothing(case):
    arm, motion, _ = case
    still = np.array(motion.q)
    still[:, 0] = 0.1
    current = np.array(motion.current)
    current[:, 1] = 0.0
    fit = identify_motors(arm, [replace(motion, q=still, current=current)])
    assert "ke" not in fit.constants(0)
    assert not fit.constants(1)
    assert any("not identifiable from this trajectory: R1, R2" in note for note in fit.notes())
    saturated = identify_motors(arm.with_motors(supply_voltage=0.01), [motion])
    assert not any(saturated.constants(i) for i in range(NV))


def test_recordings_without_voltages_are_rejected(case):
    arm, motion, _ = case
    with pytest.raises(InvalidValue, match="no voltages in the recording"):
        identify_motors(arm, [replace(motion, voltage=None)])
    with pytest.raises(InvalidValue, match="record a longer motion"):
        identify_motors(arm, [motion.part(slice(0, 500))])


def test_deviations_of_a_regression_with_correlated_residuals_are_true():
    random, inside = np.random.default_rng(0), []
    block = np.repeat(np.arange(60), 20)
    for _ in range(200):
        rows = np.column_stack((random.normal(size=60)[block], np.ones(1200)))
        noise = random.normal(size=60)[block] + 0.1 * random.normal(size=1200)
        x, spread, _ = block_regression(rows, rows @ [2.0, -1.0] + noise, block)
        inside.append(np.abs(x - [2.0, -1.0]) < 3 * spread)
    assert np.mean(inside) > 0.97


def test_the_deviation_of_a_mean_is_the_standard_error_of_its_blocks():
    """Standard deviation of the m block means over √m, with m - 1 degrees of freedom."""
    random, count = np.random.default_rng(1), 4
    values = random.uniform(0.6, 1.0, (count, 10)) * random.choice([-1, 1], (count, 10))
    values -= values.mean()
    block = np.repeat(np.arange(count), 10)
    x, spread, _ = block_regression(np.ones((40, 1)), 5.0 + values.ravel(), block)
    assert x[0] == pytest.approx(5.0)
    expected = values.mean(axis=1).std(ddof=1) / np.sqrt(count)
    assert spread[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_outliers_of_either_sign_change_a_regression_little(sign):
    """A tenth of the values is wrong by 10 standard deviations: their mean would be 1."""
    values = np.random.default_rng(2).normal(size=400)
    values[::10] += sign * 10.0
    x, _, _ = block_regression(np.ones((400, 1)), values, np.repeat(np.arange(20), 20))
    assert abs(x[0]) < 0.6
