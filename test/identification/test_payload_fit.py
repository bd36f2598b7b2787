"""Payload from efforts: recovery of a hidden body, known arm and difference of two recordings."""

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from test_identification import hidden_arm

from arm_dynamics import load_arm
from arm_dynamics.cli.main import main
from arm_dynamics.core import InvalidValue
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.identification import (
    excite,
    identify_payload,
    nominal_parameters,
    regressor,
    with_parameters,
)
from arm_dynamics.identification.efforts.drive_gain_fit import drive_gains, nominal_gains
from arm_dynamics.identification.parameters.pseudo_inertia import is_consistent
from arm_dynamics.recording import MotionData

BODY = pin.Inertia(0.8, np.array([0.02, -0.01, 0.06]), np.diag([0.003, 0.004, 0.002]))
ACTUAL = np.array([0.8, 0.02, -0.01, 0.06, 0.003, 0, 0.004, 0, 0, 0.002])
RATE = 125.0


@cache
def motion(name, seed):
    """Return times, positions, velocities and accelerations of a motion."""
    trajectory = excite(load_arm(name), 15.0, seed=seed, evaluations=60)
    times = np.arange(0, 15.0, 1 / RATE)
    return times, *trajectory.sample(times)


def tool(arm):
    """Return the tool frame."""
    return arm.model.frames[arm.model.getFrameId(arm.tool_frame, pin.BODY)]


def loaded(arm, parameters):
    """Return the parameters of the arm with BODY at its tool."""
    first = 10 * (tool(arm).parentJoint - 1)
    found = np.array(parameters)
    found[first : first + 10] += tool(arm).placement.act(BODY).toDynamicParameters()
    return found


def recording(name, parameters, seed, noise=0.01):
    """Return a recording of an arm with other parameters, with noise of the efforts."""
    arm = load_arm(name)
    times, q, v, a = motion(name, seed)
    random = np.random.default_rng(seed)
    effort = regressor(arm, q, v, a) @ parameters
    effort += noise * np.sqrt(np.mean(effort**2, axis=0)) * random.normal(size=effort.shape)
    measured = q + 1e-4 * random.normal(size=q.shape)
    values = (times, measured, effort)
    return MotionData(arm.joint_names, *map(as_readonly, values), f"run{seed}")


@pytest.mark.parametrize("name", ["puma560", "five_dof"])
def test_the_payload_of_a_known_arm_is_found(name):
    arm = load_arm(name)
    fit = identify_payload(arm, [recording(name, loaded(arm, nominal_parameters(arm)), 1)])
    assert fit.mass == pytest.approx(0.8, rel=0.01)
    np.testing.assert_allclose(fit.center, ACTUAL[1:4], atol=2e-3)
    assert not fit.undetermined
    assert (fit.after.relative_error < 0.03).all()
    assert (fit.after.rms <= fit.before.rms).all()


def test_the_payload_is_the_difference_of_two_recordings_of_an_unknown_arm():
    arm = load_arm("five_dof")
    own = np.array(nominal_parameters(arm))
    own[: 10 * arm.nv] *= 1.2
    own[10 * arm.nv : 13 * arm.nv] *= 1.5
    runs = [recording("five_dof", loaded(arm, own), 1)]
    fit = identify_payload(arm, runs, without=[recording("five_dof", own, 2)])
    assert fit.mass == pytest.approx(0.8, rel=0.01)
    np.testing.assert_allclose(fit.center, ACTUAL[1:4], atol=3e-3)
    wrong = identify_payload(arm, runs)
    assert abs(wrong.mass - 0.8) > 5 * abs(fit.mass - 0.8)


def test_the_stated_deviations_hold():
    arm = load_arm("puma560")
    fit = identify_payload(arm, [recording("puma560", loaded(arm, nominal_parameters(arm)), 1)])
    assert (np.abs(fit.payload - ACTUAL) < 4 * fit.payload_deviation + 1e-6).all()


@pytest.mark.slow
def test_the_deviations_contain_those_of_the_arm_without_the_payload():
    arm, errors, deviations = load_arm("puma560"), [], []
    known = identify_payload(arm, [recording("puma560", loaded(arm, nominal_parameters(arm)), 1)])
    for seed in range(2):
        own = np.array(nominal_parameters(hidden_arm(arm, seed)))
        run, held_out = (recording("puma560", loaded(arm, own), k) for k in (1, 3))
        without = recording("puma560", own, 2)
        fit = identify_payload(arm, [run], [held_out], without=[without])
        errors.append(np.abs(fit.payload - ACTUAL) / fit.payload_deviation)
        deviations.append(fit.payload_deviation[0])
    assert np.mean(np.array(errors) < 3) >= 0.95
    assert min(deviations) > known.payload_deviation[0]
    assert "assumed exact" in known.notes[-1]
    assert "exact" not in "".join(fit.notes)


@pytest.mark.slow
def test_the_deviations_contain_torque_constants_that_differ_between_joints():
    """Efforts of each joint are 2 % wrong in both recordings: its residuals show that."""
    arm = load_arm("puma560")
    own = np.array(nominal_parameters(hidden_arm(arm, 0)))
    wrong = 1 + 0.02 * np.random.default_rng(0).normal(size=arm.nv)
    measured = [recording("puma560", p, k) for k, p in enumerate((loaded(arm, own), own), 1)]
    run, without = (replace(x, effort=as_readonly(x.effort * wrong)) for x in measured)
    held_out = recording("puma560", loaded(arm, own), 3)
    fit = identify_payload(arm, [run], [held_out], without=[without])
    error = abs(fit.mass - 0.8)
    assert 0.005 < error < 3 * fit.payload_deviation[0] < 0.05


@pytest.mark.slow
def test_the_deviations_contain_the_scale_of_the_drive_gains():
    arm = load_arm("five_dof")
    gain = 1.15 * nominal_gains(arm)
    own = nominal_parameters(arm)
    measured = [recording("five_dof", p, k) for k, p in enumerate((loaded(arm, own), own), 1)]
    run, without = (replace(x, effort=None, current=as_readonly(x.effort / gain)) for x in measured)
    fit = identify_payload(arm, [run], without=[without])
    gains = drive_gains(arm, [without])
    assert fit.payload_deviation[0] / fit.mass == pytest.approx(gains.scale_deviation, rel=0.1)
    assert abs(fit.mass - 0.8) < 3 * fit.payload_deviation[0]
    kt = [motor.constants["kt"] for motor in fit.identified.actuators]
    ratio = [motor.constants["gear_ratio"] for motor in fit.identified.actuators]
    np.testing.assert_allclose(np.multiply(kt, ratio), gains.gain)
    with pytest.raises(InvalidValue, match="joint efforts in the recording; expected curr"):
        identify_payload(arm, [measured[0]], without=[without])
    for joint, motor in zip(arm.joint_names, arm.actuators, strict=True):
        arm = arm.with_motor(joint, kt=1.15 * motor.constants["kt"])
    assert identify_payload(arm, [run]).mass == pytest.approx(0.8, rel=0.01)


def test_what_a_plane_arm_does_not_identify_is_named():
    arm = load_arm("two_link")
    fit = identify_payload(arm, [recording("two_link", loaded(arm, nominal_parameters(arm)), 1)])
    assert "center.z" in fit.undetermined
    assert "mass" not in fit.undetermined


def test_the_arm_with_its_payload_is_consistent_and_has_its_mass():
    arm = load_arm("five_dof")
    fit = identify_payload(arm, [recording("five_dof", loaded(arm, nominal_parameters(arm)), 1)])
    after = with_parameters(arm, fit.parameters)
    link = tool(arm).parentJoint
    added = after.links.inertias[link].mass - arm.links.inertias[link].mass
    assert added == pytest.approx(fit.mass)
    change = fit.parameters - nominal_parameters(arm)
    assert is_consistent(change[10 * (link - 1) : 10 * link])
    others = np.delete(change, np.s_[10 * (link - 1) : 10 * link])
    np.testing.assert_array_equal(others, 0)


def test_motions_are_required():
    with pytest.raises(InvalidValue, match="motions = 0"):
        identify_payload(load_arm("two_link"), [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["payload", "--stiffness", "9"], "unrecognized arguments: --stiffness 9"),
        (["payload", "--servo", "sts3215"], "unrecognized arguments: --servo sts3215"),
        (["--without", "run"], "unrecognized arguments: --without run"),
    ],
)
def test_options_that_exclude_each_other_are_rejected(options, message, capsys):
    command, options = ([], options) if options[0][0] == "-" else (options[:1], options[1:])
    with pytest.raises(SystemExit) as end:
        main(["identify", *command, "two_link", "run", *options])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_the_command_prints_the_payload_and_writes_the_arm_that_carries_it(tmp_path, capsys):
    arm = load_arm("two_link")
    run = recording("two_link", loaded(arm, nominal_parameters(arm)), 1)
    columns = [run.time, *run.q.T, *run.effort.T]
    heads = ["time", *(f"{x}.{j}" for x in ("position", "effort") for j in arm.joint_names)]
    file, output = tmp_path / "run.csv", tmp_path / "mine.urdf"
    np.savetxt(file, np.transpose(columns), delimiter=",", header=",".join(heads), comments="")
    with pytest.raises(SystemExit) as end:
        main(["identify", "payload", "two_link", str(file), "--output", str(output)])
    assert not end.value.code
    text = capsys.readouterr().out
    assert "Payload in the tool frame" in text
    assert "not distinguished" in text
    carried = sum(x.mass for x in load_arm(output).links.inertias)
    assert carried - sum(x.mass for x in arm.links.inertias) == pytest.approx(0.8, rel=0.02)
