"""The Puma 560 against published values, the Robotics Toolbox and the coefficients of 1986."""

import json
from functools import cache
from math import cos, pi, radians, sin
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import Plant, load_arm
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.audit import audit_urdf
from tools.urdf import puma560

SAMPLES = json.loads(
    (Path(__file__).parents[1] / "data" / "puma560" / "dynamics_samples.json").read_text()
)["samples"]
angles = st.lists(st.floats(-4, 4), min_size=6, max_size=6)
arm_of = cache(load_arm)

# As published: d, a, alpha; mass, center and moments in frame i; rotor inertia; gear ratio.
PUBLISHED = (
    (0.67183, 0, pi / 2, 0, (0, 0, 0), (0, 0.35, 0), 200e-6, -62.6111),
    (0, 0.4318, 0, 17.4, (-0.3638, 0.006, 0.2275), (0.13, 0.524, 0.539), 200e-6, 107.815),
    (0.15005, 0.0203, -pi / 2,
     4.8, (-0.0203, -0.0141, 0.07), (0.066, 0.086, 0.0125), 200e-6, -53.7063),
    (0.4318, 0, pi / 2, 0.82, (0, 0.019, 0), (1.8e-3, 1.3e-3, 1.8e-3), 33e-6, 76.0364),
    (0, 0, -pi / 2, 0.34, (0, 0, 0), (0.3e-3, 0.4e-3, 0.3e-3), 33e-6, 71.923),
    (0, 0, 0, 0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3), 33e-6, 76.686),
)  # fmt: skip


def step(theta, d, a, alpha):
    """Siciliano et al., Robotics (2009), eq. 2.52."""
    c, s, ca, sa = cos(theta), sin(theta), cos(alpha), sin(alpha)
    rows = [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
    return np.array(rows)


def published(q):
    """Return M and gravity by the bodies' Jacobians with the printed inertia tensors."""
    T, axes = np.eye(4), []
    M, g = np.diag([gear**2 * rotor for *_, rotor, gear in PUBLISHED]), np.zeros(6)
    for i, (d, a, alpha, mass, center, moments, *_) in enumerate(PUBLISHED):
        axes.append((T[:3, 2], T[:3, 3]))
        T = T @ step(q[i], d, a, alpha)
        p, J, W = (T @ [*center, 1])[:3], np.zeros((3, 6)), np.zeros((3, 6))
        for j, (z, origin) in enumerate(axes):
            J[:, j], W[:, j] = np.cross(z, p - origin), z
        R = T[:3, :3]
        M += mass * J.T @ J + W.T @ R @ np.diag(moments) @ R.T @ W
        g += mass * 9.81 * J[2]
    return M, g


@given(angles)
def test_the_repaired_tensors_give_the_published_dynamics(q):
    """Two physically impossible tensors were replaced; no configuration shows a difference."""
    M, g = published(q)
    np.testing.assert_allclose(rigid_body.mass_matrix(arm_of("puma560"), q), M, rtol=0, atol=1e-13)
    np.testing.assert_allclose(rigid_body.gravity(arm_of("puma560"), q), g, rtol=0, atol=1e-12)


def test_the_audit_rejects_the_published_tensors():
    """Reason for the repair: with the original tensors the audit reports errors."""
    text = puma560.urdf_text()
    for now, printed, fault in (
        ('ixx="0.06975" ixy="0" ixz="0" iyy="0.01625"', 'ixx="0.066" ixy="0" ixz="0" iyy="0.0125"',
         "triangle"),
        ('ixx="0.175" ixy="0" ixz="0" iyy="0.175"', 'ixx="0" ixy="0" ixz="0" iyy="0"', "triangle"),
        ('<mass value="1" />', '<mass value="0" />', "zero, but"),
    ):  # fmt: skip
        assert now in text
        (found,) = audit_urdf(text.replace(now, printed))
        assert fault in found.problem


def test_the_robotics_toolbox_gives_the_same_results():
    arm = arm_of("puma560")
    assert len(SAMPLES) >= 10
    for s in SAMPLES:
        q, v, tau = (np.array(s[key]) for key in ("q", "v", "tau"))
        for found, expected in (
            (rigid_body.mass_matrix(arm, q), s["M"]),
            (rigid_body.gravity(arm, q), s["gravity"]),
            (rigid_body.nle(arm, q, v), s["bias"]),
            (rigid_body.aba(arm, q, v, tau), s["acceleration"]),
        ):
            scale = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * scale)


def test_the_tool_is_the_flange_before_the_last_frame_of_the_toolbox():
    arm = arm_of("puma560")
    data = arm.model.createData()
    for s in SAMPLES:
        pin.framesForwardKinematics(arm.model, data, np.array(s["q"]))
        placed = data.oMf[arm.model.getFrameId(arm.tool_frame)].homogeneous
        wrist = np.vstack([s["wrist"], [0, 0, 0, 1]])
        wrist[:3, 3] += 0.05625 * wrist[:3, 2]
        np.testing.assert_allclose(placed, wrist, rtol=0, atol=1e-14)


# --- Armstrong, Khatib and Burdick (1986), appendix: coefficients as printed ---

GRAVITY = {"g1": (-37.2, 0.05), "g2": (-8.44, 5e-3), "g3": (1.02, 5e-3), "g4": (0.249, 5e-4),
           "g5": (-0.0282, 1e-4)}  # fmt: skip
M23 = {"I5": (0.372, 1e-3), "I6": (0.333, 1e-3), "I12": (-0.011, 5e-5), "I16": (0.00124, 5e-6),
       "I15": (0.00125, 1e-5), "I22": (-0.000058, 5e-6), "I20": (-0.000202, 5e-6),
       "I21": (-0.0001, 5e-6)}  # fmt: skip
M13 = {"I8": (-0.134, 5e-4), "I13": (-0.00379, 5e-5), "I15": (0.00125, 1e-5),
       "I18": (0.000431, 5e-6), "I19": (0.0003, 5e-6), "I20": (-0.000202, 5e-6),
       "I22": (-0.000058, 5e-6)}  # fmt: skip


def terms(q):
    """Return the functions of the coefficients; their zero rotates joints 2 and 3 by pi."""
    s2, c2, s3, c3 = -sin(q[1]), -cos(q[1]), -sin(q[2]), -cos(q[2])
    s4, c4, s5, c5 = sin(q[3]), cos(q[3]), sin(q[4]), cos(q[4])
    s23, c23 = sin(q[1] + q[2]), cos(q[1] + q[2])
    gravity = [c2, s23, s2, c23, s23 * c5 + c23 * c4 * s5]
    m23 = [s3, 1, c3, s3 * c5 + c3 * c4 * s5, 2 * c5, 2 * c4 * s5, (s4 * s5) ** 2, s4**2]
    m13 = [c23, s23, -c23 * s4 * s5, s23 * c4 * s5 - c23 * c5, s23 * s4 * c4,
           s4 * (s23 * c4 * c5**2 + c23 * s5 * c5), s23 * s4 * s5]  # fmt: skip
    return gravity, m23, m13


def test_the_model_reproduces_the_coefficients_printed_in_1986():
    """The center of link 4 is on the side given in that paper (see the arm's comment).

    M11 and the motors' inertias were measured again later, and are not compared.
    """
    model = pin.Model(arm_of("puma560").model)
    wrist = model.inertias[4]
    model.inertias[4] = pin.Inertia(wrist.mass, -wrist.lever, wrist.inertia)
    data, rows, values = model.createData(), [], []
    for q in np.random.default_rng(0).uniform(-3, 3, (60, 6)):
        M = np.triu(pin.crba(model, data, q))
        rows.append(terms(q))
        values.append([pin.computeGeneralizedGravity(model, data, q)[1], M[1, 2], M[0, 2]])
    for k, coefficients in enumerate((GRAVITY, M23, M13)):
        basis, target = np.array([row[k] for row in rows]), np.array(values)[:, k]
        found, residue, *_ = np.linalg.lstsq(basis, target, rcond=None)
        assert residue < 1e-20, "the printed functions are complete"
        for value, (printed, digit) in zip(found, coefficients.values(), strict=True):
            assert value == pytest.approx(printed, abs=digit)


# --- motors and limits ---


def test_motors_equal_the_published_ones():
    arm = arm_of("puma560")
    for actuator, (*_, rotor, gear) in zip(arm.actuators, PUBLISHED, strict=True):
        assert actuator.armature == pytest.approx(gear**2 * rotor, rel=1e-12)
    b = [1.48e-3, 0.817e-3, 1.38e-3, 71.2e-6, 82.6e-6, 36.7e-6]
    fc = [(0.395 + 0.435) / 2, 0.197 / 2, 0.237 / 2, 0.0281 / 2, 0.02376 / 2, 0.01446 / 2]
    gears = np.abs([row[-1] for row in PUBLISHED])
    np.testing.assert_allclose([a.viscous_friction for a in arm.actuators], gears**2 * b)
    np.testing.assert_allclose([a.constants["coulomb_friction"] for a in arm.actuators], fc)


def test_the_current_limit_bounds_the_torque():
    """At rest with full supply, which could drive a larger current."""
    arm = arm_of("puma560")
    for joint, actuator in zip(arm.joints, arm.actuators, strict=True):
        c = actuator.constants
        assert c["supply_voltage"] / c["resistance"] > c["current_limit"]
        assert c["gear_ratio"] * c["kt"] * c["current_limit"] == pytest.approx(
            joint.effort, rel=1e-4
        )


def test_limits_and_poses():
    arm = arm_of("puma560")
    degrees = [(-160, 160), (-45, 225), (-225, 45), (-110, 170), (-100, 100), (-266, 266)]
    np.testing.assert_allclose(
        np.column_stack([arm.lower, arm.upper]), [[*map(radians, pair)] for pair in degrees]
    )
    arm.check_position("initial", arm.configuration("initial"))
    arm.check_position("ready", [0, pi / 2, -pi / 2, 0, 0, 0])


def test_motors_hold_the_arm_and_friction_alone_does_not():
    """Without current the upper arm sinks against 10 N·m of friction; held it stays at rest."""
    arm = arm_of("puma560")
    stretched = np.array([0, 0, -pi / 2, 0, 0, 0])
    held = rigid_body.gravity(arm, stretched)
    assert (arm.effort_limit > 3 * np.abs(held)).all()
    plant, start = Plant(arm), State.of(stretched)
    still = plant.step(start, Command("effort", held), 1e-3, steps=100)
    np.testing.assert_allclose(still.q, stretched, atol=1e-12)
    sunk = plant.step(start, Command("effort", np.zeros(6)), 1e-3, steps=100)
    assert sunk.q[1] < -0.02
    assert sunk.q[0] == pytest.approx(0, abs=0.01)
