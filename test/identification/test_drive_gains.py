"""Drive gains from motor currents: ratios, scale from a known payload, commands."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from test_identification import fourier, hidden_arm
from test_payload_fit import loaded

from arm_dynamics import load_arm
from arm_dynamics.cli.main import main
from arm_dynamics.core import InvalidValue
from arm_dynamics.identification import compare, identify, nominal_parameters, regressor
from arm_dynamics.identification.efforts.drive_gain_fit import (
    DriveGainProblem,
    drive_gains,
    nominal_gains,
    with_efforts,
    with_nominal_efforts,
)
from arm_dynamics.identification.efforts.motion_preparation import prepare_motion
from arm_dynamics.recording import MotionData

PAYLOAD = 0.8
FACTORS = np.array([0.85, 0.77, 0.95, 1.09, 1.25])


def currents(arm, parameters, gain, seed, seconds=20.0):
    """Return a motion with noisy positions and currents."""
    time, random = np.arange(0, seconds, 0.004), np.random.default_rng(seed)
    q, v, a = fourier(arm, seed, seconds)(time)
    current = (regressor(arm, q, v, a) @ parameters) / gain
    scale = 0.01 * np.sqrt(np.mean(current**2, axis=0))
    current = current + scale * random.normal(size=current.shape)
    noisy = q + 1e-4 * random.normal(size=q.shape)
    return MotionData(arm.joint_names, time, noisy, None, f"run{seed}", current=current)


@pytest.fixture(scope="module")
def case():
    arm = load_arm("five_dof")
    parameters = np.array(nominal_parameters(hidden_arm(arm, 3)))
    gain = FACTORS * nominal_gains(arm)
    return arm, parameters, gain, currents(arm, parameters, gain, 0)


def test_currents_determine_the_ratios_of_coupled_gains(case):
    arm, _, gain, motion = case
    found = drive_gains(arm, [motion])
    error = np.log(found.gain / gain)
    centered = np.eye(arm.nv) - 1 / arm.nv
    spread = np.sqrt(np.diag(centered @ found.covariance @ centered))
    assert (np.abs(error - error.mean()) < 4 * spread).all()
    assert np.ptp(error) < 0.2 * np.ptp(np.log(FACTORS))
    assert abs(error.mean()) < 2 * found.scale_deviation
    assert found.scale_deviation > 0.05
    assert not found.undetermined
    assert "nominal masses and torque constants" in found.notes()[0]


@pytest.mark.slow
def test_a_known_payload_determines_the_scale(case):
    arm, parameters, gain, motion = case
    with_payload = currents(arm, loaded(arm, parameters), gain, 1)
    found = drive_gains(arm, [motion], [with_payload], payload_mass=PAYLOAD)
    np.testing.assert_allclose(found.gain, gain, rtol=0.01)
    assert (np.abs(np.log(found.gain / gain)) < 4 * found.deviation).all()
    assert found.scale_deviation < 0.01
    assert "payload of 0.8 kg" in found.notes()[0]
    wrong = drive_gains(arm, [motion], [with_payload], payload_mass=2 * PAYLOAD)
    np.testing.assert_allclose(wrong.gain, 2 * gain, rtol=0.05)


def test_gains_of_an_arm_without_torque_constants():
    arm = load_arm("two_link")
    parameters = np.array(nominal_parameters(hidden_arm(arm, 3)))
    gain = np.array([3.0, 0.7])
    motion = currents(arm, parameters, gain, 0)
    found = drive_gains(arm, [motion])
    assert np.log(found.gain[0] / found.gain[1]) == pytest.approx(np.log(3.0 / 0.7), abs=0.02)
    more = currents(arm, loaded(arm, parameters), gain, 1)
    found = drive_gains(arm, [motion], [more], payload_mass=PAYLOAD)
    np.testing.assert_allclose(found.gain, gain, rtol=0.01)
    assert np.isnan(nominal_gains(arm)).all()
    assert with_nominal_efforts(arm, motion) is motion
    with pytest.raises(InvalidValue, match="joints J2: sign = opposite"):
        drive_gains(arm, [replace(motion, current=motion.current * [1, -1])])


def test_gains_of_an_arm_without_friction_and_rotors_in_its_nominal_model():
    """Large friction and rotors explain most currents; J1 has no gravity load."""
    arm = load_arm("puma560").with_actuator("ideal")
    for joint in arm.joint_names:
        arm = arm.with_joint(joint, damping=0.0, friction=0.0)
    values, size = np.array(nominal_parameters(arm)), np.array([40, 60, 30, 5, 5, 4.0])
    values[60:78] = np.concatenate((size / 20, size / 8, size / 4))
    gain = np.array([12.0, 12.0, 10.0, 10.0, 11.0, 11.0])
    found = drive_gains(arm, [currents(arm, values, gain, 0)])
    error = np.log(found.gain / gain)
    # The nominal masses are the true ones: the scale is known where they show.
    assert (np.abs(error) < 3 * np.maximum(found.deviation, 0.05)).all()
    assert np.abs(error[:3]).max() < 0.2
    assert (found.prior[:3] > 0.3 * gain[:3]).all()


@pytest.mark.slow
def test_wrong_centers_of_mass_of_the_nominal_model_do_not_reduce_the_scale():
    """The divergence from bodies elsewhere is least for small masses."""
    arm, random = load_arm("puma560").with_actuator("ideal"), np.random.default_rng(0)
    values, gain = np.array(nominal_parameters(arm)), np.linspace(4, 12, arm.nv)
    for i in range(arm.nv):
        body = pin.Inertia.FromDynamicParameters(values[10 * i : 10 * i + 10])
        radius = np.sqrt(np.trace(body.inertia) / body.mass)
        body = pin.Inertia(
            body.mass, body.lever + 0.8 * radius * random.normal(size=3), body.inertia
        )
        values[10 * i : 10 * i + 10] = body.toDynamicParameters()
    values[60:78] = np.maximum(values[60:78], np.repeat([0.3, 1.0, 1.0], 6))
    found = drive_gains(arm, [currents(arm, values, gain, 0)])
    error = np.log(found.gain / gain)
    assert np.ptp(error) < 0.15
    assert abs(error.mean()) < 3 * found.scale_deviation < 0.7


def test_derivatives_are_the_derivatives_of_the_cost(case):
    arm, _, gain, motion = case
    for payload in (None, PAYLOAD):
        equations = prepare_motion(arm, with_efforts(motion, gain)).equations
        carrying = np.arange(len(equations.effort)) > len(equations.effort) / 2
        start, sigma = np.full(arm.nv, 0.1), np.full(arm.nv, 0.3)
        problem = DriveGainProblem(arm, equations, start, sigma, carrying, payload)
        random = np.random.default_rng(1)
        z = 1.05 * problem._z  # the bodies remain consistent
        z[-arm.nv :] = random.normal(scale=0.2, size=arm.nv)
        gradient = problem.derivatives(z)[0]
        for _ in range(20):
            step = 1e-5 * random.normal(size=z.size) * np.maximum(np.abs(z), 1e-3)
            difference = problem.cost(z + step) - problem.cost(z - step)
            assert difference == pytest.approx(2 * gradient @ step, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_gain_that_the_motion_does_not_identify_is_named(noise):
    """J2 is at rest, with a current that no model explains; exact efforts keep the covariance."""
    arm = load_arm("two_link").with_actuator("dc_motor", kt=5.0, ke=5.0, resistance=1.0)
    nv, time, random = arm.nv, np.arange(0, 30, 0.004), np.random.default_rng(0)
    q, v, a = np.array(fourier(arm, 0, 30.0)(time)) * [1.0, 0.0]
    parameters = np.array(nominal_parameters(arm))
    motions = []
    for own in (parameters, loaded(arm, parameters)):
        effort = regressor(arm, q, v, a) @ own
        effort *= 1 + noise * random.normal(size=effort.shape)
        effort[:, 1] = 0.2 * np.sin(7 * time)
        motions.append(MotionData(arm.joint_names, time, q, None, current=effort / 5.0))
    alone = drive_gains(arm, motions[:1])
    # J1 moves alone: its currents determine the product of gain and inertia only. Elimination with
    # 90 digits gives the deviation 0.2660 for exact efforts.
    assert alone.undetermined == ("J1", "J2")
    np.testing.assert_allclose(alone.deviation, [0.2660, 0.3], rtol=0.01 if noise == 0 else 0.1)
    found = drive_gains(arm, motions[:1], motions[1:], payload_mass=PAYLOAD)
    assert found.undetermined == ("J2",)
    assert any(
        "not identifiable from this trajectory, near the prior: J2" in x for x in found.notes()
    )
    assert np.isnan(found.parameters()[1].deviation)
    assert found.gain.shape == (nv,)
    assert found.gain[0] == pytest.approx(5.0, rel=0.01)
    assert found.deviation[0] < 0.05 < found.deviation[1] == pytest.approx(0.3, rel=1e-3)


def test_an_arm_identified_from_currents_predicts_currents(case):
    arm, parameters, gain, motion = case
    with_payload = currents(arm, loaded(arm, parameters), gain, 1)
    held_out = currents(arm, parameters, gain, 2)
    result = identify(arm, [motion], [held_out], loaded=[with_payload], payload_mass=PAYLOAD)
    assert result.after.relative_error.max() < 0.03 < result.before.relative_error.max()
    kt = [motor.constants["kt"] for motor in result.identified.actuators]
    np.testing.assert_allclose(kt, gain, rtol=0.01)
    assert compare(result.identified, held_out).relative_error.max() < 0.03
    efforts = regressor(arm, *fourier(arm, 3, 10.0)(np.arange(0, 10, 0.1)))
    true, found = efforts @ parameters, efforts @ result.fit.parameters
    np.testing.assert_allclose(found, true, atol=0.05 * np.abs(true).max(axis=0).min() + 0.3)
    free = identify(arm, [motion], [held_out])
    mass = [10, 20]
    assert (free.fit.deviation[mass] >= result.fit.deviation[mass]).all()


def test_inconsistent_motions_are_rejected(case):
    arm, _, _, motion = case
    with pytest.raises(InvalidValue, match=r"payload mass = 0.5 with 0 motions"):
        drive_gains(arm, [motion], payload_mass=0.5)
    with pytest.raises(InvalidValue, match="no motor currents in the recording"):
        drive_gains(arm, [replace(motion, current=None)])
    with pytest.raises(InvalidValue, match="R1 = 0 in all samples"):
        drive_gains(arm, [replace(motion, current=motion.current * [0, 1, 1, 1, 1])])
    measured = replace(motion, effort=motion.current)
    with pytest.raises(InvalidValue, match="joint efforts in the recording; expected curr"):
        identify(arm, [measured], loaded=[motion.part(slice(1, None), "loaded")], payload_mass=0.5)


def ends(arguments):
    """Return the exit code of a command."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


@pytest.mark.slow
def test_the_command_identifies_from_currents(case, tmp_path, capsys):
    arm, parameters, gain, motion = case
    files = []
    for name, data in (("with", currents(arm, loaded(arm, parameters), gain, 1)),
                       ("without", motion)):  # fmt: skip
        joints = arm.joint_names
        head = ",".join(["time", *(f"q_{j}" for j in joints), *(f"current_{j}" for j in joints)])
        files.append(tmp_path / f"{name}.csv")
        table = np.column_stack([data.time, data.q, data.current])
        np.savetxt(files[-1], table, delimiter=",", header=head, comments="")
    output = tmp_path / "mine.urdf"
    arguments = ["identify", "efforts", "five_dof", str(files[0]), "--without", str(files[1])]
    assert ends([*arguments, "--payload-mass", "0.8", "--output", str(output)]) == 0
    assert "R2.drive_gain" in capsys.readouterr().out
    kt = [motor.constants["kt"] for motor in load_arm(output).actuators]
    np.testing.assert_allclose(kt, gain, rtol=0.02)
    assert ends(["compare", str(output), str(files[1])]) == 0
    assert ends(["identify", "efforts", "five_dof", str(files[0]), "--payload-mass", "0.8"]) != 0
    assert (
        "--payload-mass KG and recordings --without the payload are required"
        in capsys.readouterr().err
    )
