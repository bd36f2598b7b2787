"""Likely causes of poor fits: signs of efforts, mounting of the base, short recordings."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from test_identification import hidden_arm, simulated

from arm_dynamics import load_arm
from arm_dynamics.core import InvalidValue
from arm_dynamics.identification.efforts.fit_faults import (
    fit_faults,
    fitted_gravity,
    opposite_joints,
)
from arm_dynamics.identification.results.fit_summary import FitSummary, JointFit

ARM = load_arm("puma560")
TILTED = (0.6, -0.7, 0.2)
"""Roll, pitch, yaw [rad] of a base."""


def recorded(gravity):
    """Return a motion of an arm with other parameters than the description's, and gravity."""
    actual = hidden_arm(ARM.with_gravity(gravity), 5)
    return simulated(ARM.with_gravity(gravity), actual, 0, 12.0)[0]


@pytest.fixture(scope="module")
def upright():
    return recorded(ARM.gravity)


def summary(before, after, quantity="effort", rms=50.0):
    """Return a result with these relative errors of all joints."""
    joints = tuple(
        JointFit(name, "N·m", before * rms, after * rms, before, after) for name in ARM.joint_names
    )
    return FitSummary("arm", "2026-01-01", (), (), joints, (), 1.0, quantity=quantity)


@pytest.mark.parametrize("gravity", [(0.0, 0.0, -9.81), (9.81, 0.0, 0.0), (3.0, -4.0, 8.4)])
def test_gravity_is_found_whatever_the_masses_are(gravity):
    found, gain = fitted_gravity(ARM, [recorded(gravity)])
    cosine = found @ gravity / np.linalg.norm(found) / np.linalg.norm(gravity)
    assert np.rad2deg(np.arccos(cosine)) < 10.0
    assert (gain < 0.5) == (gravity[2] != -9.81)


@pytest.mark.parametrize("rpy", [(0.0, np.pi / 2, 0.0), (np.pi, 0.0, 0.0), TILTED])
def test_the_printed_rotation_of_the_base_restores_gravity(rpy):
    """Turned by the printed angles, the gravity of the recording is that of the description."""
    gravity = pin.rpy.rpyToMatrix(*rpy).T @ ARM.gravity
    motion = recorded(gravity)
    (text,) = fit_faults(ARM, [motion], summary(1.0, 0.9))
    assert "if the base is not mounted upright" in text
    printed = [float(word) for word in text.split('rpy="')[1].split('"')[0].split()]
    found = pin.rpy.rpyToMatrix(*printed) @ gravity
    assert found == pytest.approx(ARM.gravity, abs=9.81 * np.sin(np.deg2rad(10)))


def test_the_cut_off_frequency_of_the_fit_is_used(upright):
    """A frequency from the spectrum may be too low for a recording."""
    with pytest.raises(InvalidValue, match="low-pass of 0"):
        fit_faults(ARM, [upright], summary(1.0, 0.9), cutoff=0.1)


def test_an_upright_base_is_not_named(upright):
    (text,) = fit_faults(ARM, [upright], summary(1.0, 0.9))
    assert "check order, sign and units" in text


@pytest.mark.parametrize("joints", [[], ["J2"], ["J3", "J6"], list(ARM.joint_names)])
def test_opposite_signs_are_found(upright, joints):
    signs = np.where(np.isin(ARM.joint_names, joints), -1.0, 1.0)
    motion = replace(upright, effort=signs * upright.effort)
    found = opposite_joints(ARM, [motion])
    assert np.array(ARM.joint_names)[found].tolist() == joints
    if joints:
        (text,) = fit_faults(ARM, [motion], summary(1.0, 0.9))
        which = "all joints" if len(joints) == ARM.nv else f"joints {', '.join(joints)}"
        assert text.startswith(f"efforts of {which}: sign = opposite")


def test_exchanged_efforts_have_no_opposite_sign(upright):
    motion = replace(upright, effort=upright.effort[:, [0, 2, 1, 3, 5, 4]])
    assert not opposite_joints(ARM, [motion]).any()


@pytest.mark.parametrize("quantity", ["effort", "position"])
def test_a_fit_that_is_worse_than_the_description_is_named(upright, quantity):
    (text,) = fit_faults(ARM, [upright], summary(0.1, 0.2, quantity))
    assert text.startswith("held-out error of joints J1 10 to 20 %")
    assert not fit_faults(ARM, [upright], summary(0.2, 0.2, quantity))
    assert not fit_faults(ARM, [upright], summary(0.01, 0.04, quantity))


def test_small_errors_of_lightly_loaded_joints_are_no_fault(upright):
    """Efforts of 0.1 N·m: an error of half of them is far below 1 % of the limit."""
    assert not fit_faults(ARM, [upright], summary(0.9, 0.5, rms=0.1))
    (text,) = fit_faults(ARM, [upright], summary(0.9, 0.5))
    assert "held-out error of the efforts of joints J1 50 %, J2 50 %" in text
