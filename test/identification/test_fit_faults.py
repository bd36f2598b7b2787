"""Likely causes of poor fits: signs of efforts, mounting of the base, short recordings."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from test_identification import hidden_arm, simulated

from arm_dynamics import load_arm
from arm_dynamics.core import InvalidValue
from arm_dynamics.identification import identify, prepare_motion
from arm_dynamics.identification.efforts.fit_faults import (
    fit_faults,
    fitted_gravity,
    opposite_joints,
)
from arm_dynamics.identification.results.fit_summary import JointFit, worse_joints

ARM = load_arm("puma560")
TILTED = (0.6, -0.7, 0.2)
"""Roll, pitch, yaw [rad] of a base."""


def recorded(gravity):
    """Return a motion of an arm with other parameters than the nominal model, and gravity."""
    actual = hidden_arm(ARM.with_gravity(gravity), 5)
    return simulated(ARM.with_gravity(gravity), actual, 0, 12.0)[0]


def faults(motion, joints):
    """Return the sentences about a motion."""
    return fit_faults(ARM, [prepare_motion(ARM, motion)], joints)


@pytest.fixture(scope="module")
def upright():
    return recorded(ARM.gravity)


def errors(before, after, rms=50.0):
    """Return these relative errors of all joints."""
    return tuple(
        JointFit(name, "N·m", before * rms, after * rms, before, after) for name in ARM.joint_names
    )


@pytest.mark.quick(1)
@pytest.mark.parametrize("gravity", [(0.0, 0.0, -9.81), (9.81, 0.0, 0.0), (3.0, -4.0, 8.4)])
def test_gravity_is_found_whatever_the_masses_are(gravity):
    found, gain = fitted_gravity(ARM, [prepare_motion(ARM, recorded(gravity))])
    cosine = found @ gravity / np.linalg.norm(found) / np.linalg.norm(gravity)
    assert np.rad2deg(np.arccos(cosine)) < 10.0
    assert (gain < 0.5) == (gravity[2] != -9.81)


@pytest.mark.quick(1)
@pytest.mark.parametrize("rpy", [(0.0, np.pi / 2, 0.0), (np.pi, 0.0, 0.0), TILTED])
def test_the_printed_rotation_of_the_base_restores_gravity(rpy):
    """Turned by the printed angles, the gravity of the recording is the nominal one."""
    gravity = pin.rpy.rpyToMatrix(*rpy).T @ ARM.gravity
    motion = recorded(gravity)
    (text,) = faults(motion, errors(1.0, 0.9))
    assert "if the base is not mounted upright" in text
    printed = [float(word) for word in text.split('rpy="')[1].split('"')[0].split()]
    found = pin.rpy.rpyToMatrix(*printed) @ gravity
    assert found == pytest.approx(ARM.gravity, abs=9.81 * np.sin(np.deg2rad(10)))


def test_the_cut_off_frequency_of_the_fit_is_used(upright):
    """The motion is prepared once, with the frequency of the fit."""
    with pytest.raises(InvalidValue, match="low-pass of 0"):
        identify(ARM, [upright], cutoff=0.1)
    prepared = prepare_motion(ARM, upright, 8.0)
    _, gain = fitted_gravity(ARM, [prepared])
    assert gain > 0.5
    assert prepared.cutoff == 8.0


def test_an_upright_base_is_not_named(upright):
    (text,) = faults(upright, errors(1.0, 0.9))
    assert "check order, sign and units" in text


@pytest.mark.quick(2)
@pytest.mark.parametrize("joints", [[], ["J2"], ["J3", "J6"], list(ARM.joint_names)])
def test_opposite_signs_are_found(upright, joints):
    signs = np.where(np.isin(ARM.joint_names, joints), -1.0, 1.0)
    motion = replace(upright, effort=signs * upright.effort)
    found = opposite_joints(ARM, [prepare_motion(ARM, motion)])
    assert np.array(ARM.joint_names)[found].tolist() == joints
    if joints:
        (text,) = faults(motion, errors(1.0, 0.9))
        which = "all joints" if len(joints) == ARM.nv else f"joints {', '.join(joints)}"
        assert text.startswith(f"efforts of {which}: sign = opposite")


def test_exchanged_efforts_have_no_opposite_sign(upright):
    motion = replace(upright, effort=upright.effort[:, [0, 2, 1, 3, 5, 4]])
    assert not opposite_joints(ARM, [prepare_motion(ARM, motion)]).any()


@pytest.mark.parametrize("named", [worse_joints, lambda joints: fit_faults(ARM, [], joints)])
def test_a_fit_that_is_worse_than_the_nominal_model_is_named(named):
    (text,) = named(errors(0.1, 0.2))
    assert text.startswith("held-out error of joints J1 10 to 20 %")
    assert not named(errors(0.2, 0.2))
    assert not named(errors(0.01, 0.04))


def test_small_errors_of_lightly_loaded_joints_are_no_fault(upright):
    """Efforts of 0.1 N·m: an error of half of them is far below 1 % of the limit."""
    assert not faults(upright, errors(0.9, 0.5, rms=0.1))
    (text,) = faults(upright, errors(0.9, 0.5))
    assert "held-out error of the efforts of joints J1 50 %, J2 50 %" in text
