"""Motors that several joints turn: wrist of two coupled joints, differential transmission."""

from datetime import date

import numpy as np
import pytest
from test_friction_terms import friction_of, recorded
from test_identification import hidden_arm

from arm_dynamics import InvalidValue, load_arm
from arm_dynamics.cli.identify import coupled_motor
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.identification import (
    fit_torque,
    identify,
    nominal_parameters,
    prepare_motion,
    with_parameters,
)
from arm_dynamics.identification.efforts.coupled_motors import (
    coupled_rows,
    coupling_factors,
    typical_terms,
)
from arm_dynamics.identification.parameters.identified_urdf import identified_urdf
from arm_dynamics.model.load import parse_arm
from arm_dynamics.recording import MotionData

WRIST = [{"R4": 1.0, "R5": 1.0}]
DIFFERENTIAL = [{"R4": 1.0, "R5": 1.0}, {"R4": 1.0, "R5": -1.0}]


def with_motors(data, exact, factors, terms):
    """Return ``data`` with the efforts of motors, rᵀ (I θ̈ + b θ̇ + f sign(θ̇)), of exact motion."""
    period = exact.time[1] - exact.time[0]
    velocity = np.gradient(exact.q @ factors.T, period, axis=0, edge_order=2)
    acceleration = np.gradient(velocity, period, axis=0, edge_order=2)
    inertia, viscous, coulomb = terms.T
    motors = inertia * acceleration + viscous * velocity + coulomb * np.sign(velocity)
    return MotionData(data.joint_names, data.time, data.q, data.effort + motors @ factors, "wrist")


def case(coupled, terms):
    """Return ``five_dof``, hidden parameters, and noisy and exact motions with coupled motors."""
    arm = load_arm("five_dof")
    nv, values = arm.nv, np.array(nominal_parameters(hidden_arm(arm, 3)))
    values[11 * nv : 13 * nv] = np.repeat([0.1, 0.2], nv)
    actual, none = with_parameters(arm, values), friction_of(nv, *np.zeros((3, nv)))
    factors = coupling_factors(arm, coupled)
    fitted, held_out = (
        tuple(with_motors(m, pair[1], factors, terms) for m in pair)
        for pair in (recorded(arm, actual, 0, 40.0, none), recorded(arm, actual, 1, 20.0, none))
    )
    return arm, values, fitted[0], held_out[1]


@pytest.fixture(scope="module")
def wrist():
    return case(WRIST, np.array([[0.02, 0.15, 0.3]]))


def test_a_motor_of_two_joints_is_identified(wrist):
    arm, values, noisy, exact = wrist
    result = identify(arm, [noisy], [exact], coupled=WRIST)
    motor = result.fit.friction.coupled
    np.testing.assert_allclose(motor.terms[0], [0.02, 0.15, 0.3], rtol=0.05)
    assert (motor.deviation[0] < 0.02 * motor.terms[0]).all()
    assert result.after.relative_error.max() < 0.015
    coulomb = slice(12 * arm.nv, 13 * arm.nv)
    np.testing.assert_allclose(result.fit.parameters[coulomb], values[coulomb], rtol=0.15)
    names = {row.name: row.unit for row in result.summary(date(2025, 1, 1)).parameters}
    assert names["R4 + R5.viscous"] == "N·m·s/rad"
    assert any(note.startswith("coupled motor R4 + R5: rotor inertia 0.0") for note in result.notes)


@pytest.mark.slow
def test_without_the_coupled_motor_the_wrist_is_not_predicted(wrist):
    arm, _, noisy, exact = wrist
    result = identify(arm, [noisy], [exact], simulate=False)
    assert result.after.relative_error[3:].min() > 0.1


@pytest.mark.slow
def test_the_urdf_contains_the_motor_in_each_joint_and_states_it(wrist):
    arm, _, noisy, exact = wrist
    result = identify(arm, [noisy], [exact], coupled=WRIST, simulate=False)
    fit, nv = result.fit, arm.nv
    remarks = fit.friction.coupled.notes(arm.joint_names)
    text = identified_urdf(
        result.identified, fit.simulated, date="2025-01-01", sources=["run1"], remarks=remarks
    )
    assert "coupled motor R4 + R5" in text
    found = nominal_parameters(parse_arm(text))[10 * nv : 13 * nv].reshape(3, nv)
    motor = np.array(fit.parameters[10 * nv : 13 * nv]).reshape(3, nv)
    motor[:, 3:] += fit.friction.coupled.terms[0][:, None]
    np.testing.assert_allclose(found, motor, rtol=1e-6)


@pytest.mark.slow
def test_a_differential_transmission_is_two_motors():
    terms = np.array([[0.01, 0.1, 0.2], [0.02, 0.2, 0.1]])
    arm, _, noisy, exact = case(DIFFERENTIAL, terms)
    factors = coupling_factors(arm, DIFFERENTIAL)
    prepared = prepare_motion(arm, noisy, coupled=factors)
    fit = fit_torque(arm, prepared.equations, factors)
    assert fit.friction.coupled.names(arm.joint_names) == ["R4 + R5", "R4 - R5"]
    # I r rᵀ and b r rᵀ of both motors: equal ones are diagonal, as the joints' own terms.
    difference = fit.friction.coupled.terms[0] - fit.friction.coupled.terms[1]
    np.testing.assert_allclose(difference[:2], [-0.01, -0.1], rtol=0.15)
    np.testing.assert_allclose(fit.friction.coupled.terms[:, 2], [0.2, 0.1], rtol=0.15)
    test = prepare_motion(arm, exact, prepared.cutoff, 0.0, factors).equations
    counted = test.counted(fit.friction.presliding)
    error = counted * (test.effort - test.predicted(fit.parameters, fit.friction))
    size = np.sum((counted * test.effort) ** 2, axis=0)
    assert np.sqrt(np.sum(error**2, axis=0) / size).max() < 0.02


def test_equations_do_not_count_while_a_motor_of_the_joint_reverses(wrist):
    arm, _, _, exact = wrist
    plain = prepare_motion(arm, exact, 5.0, 0.0).equations
    coupled = prepare_motion(arm, exact, 5.0, 0.0, coupling_factors(arm, WRIST)).equations
    np.testing.assert_array_equal(plain.moving[:, :3], coupled.moving[:, :3])
    assert (coupled.moving[:, 3:] <= plain.moving[:, 3:]).all()
    assert coupled.coupled.shape == (*plain.effort.shape, 3)
    assert not coupled.coupled[:, :3].any()


@pytest.mark.parametrize(
    ("coupled", "message"),
    [
        ([{"R4": 1.0, "R9": 1.0}], "joint = 'R9'; expected one of R1, R2"),
        ([{"R4": 1.0, "R5": 0.0}], "joints = R4=1, R5=0; expected at least two"),
    ],
)
def test_motors_of_unknown_joints_or_of_one_joint_are_rejected(coupled, message):
    with pytest.raises(InvalidValue, match=message):
        coupling_factors(load_arm("five_dof"), coupled)


def test_coupled_motors_need_efforts(wrist):
    arm, _, noisy, _ = wrist
    currents = MotionData(arm.joint_names, noisy.time, noisy.q, None, current=noisy.effort)
    with pytest.raises(InvalidValue, match="no joint efforts in the recordings, only currents"):
        identify(arm, [currents], coupled=WRIST)


def test_the_option_names_joints_and_factors():
    assert coupled_motor("J5=1, J6=-0.5") == {"J5": 1.0, "J6": -0.5}
    for text in ("J5,J6", "=1", "J5=1,J5=2"):
        with pytest.raises(ConfigError, match=f"--coupled = {text}; expected JOINT=FACTOR"):
            coupled_motor(text)
    for text in ("J5=1,J6=nan", "J5=1,J6=x"):
        with pytest.raises(ConfigError, match=r"--coupled J6 = .*; expected a number"):
            coupled_motor(text)


def test_a_motor_that_never_turns_has_the_least_terms_of_all_joints():
    coupled = coupled_rows(np.array([[2.0, 0.0, -1.0]]), *np.zeros((2, 5, 3)), np.zeros((5, 1)))
    terms = np.arange(1.0, 10.0)
    np.testing.assert_array_equal(typical_terms(coupled, terms), [1, 4, 7])
    turning = coupled_rows(np.array([[2.0, 0.0, -1.0]]), *np.zeros((2, 5, 3)), np.ones((5, 1)))
    np.testing.assert_array_equal(typical_terms(turning, terms), [1 / 4, 4 / 4, 7 / 2])
