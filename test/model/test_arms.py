"""Rigid-body dynamics of the bundled arms against independent programs; motion of each arm.

The data are doubles in full precision: they agree to 1e-12 of the largest entry.
"""

import json
import subprocess
import sys
import warnings
from functools import cache
from math import cos, sin
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import ControlLoop, Plant, Simulation, load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.control.trajectories.demo_trajectory import demo_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core import resources
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.dynamics.kinematics.frames import tool_position
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.audit import audit_urdf
from tools.urdf import (
    four_joint,
    parallel_gripper,
    puma560,
    seven_dof_can,
    so101,
    three_link,
    two_link,
)

ROOT = Path(__file__).parents[2]
DATA = ROOT / "test" / "data"
ARMS = (
    "five_dof", "five_dof_gripper", "four_joint", "puma560", "puma560_gripper", "seven_dof_can",
    "so101", "three_link", "two_link", "two_link_pb",
)  # fmt: skip
MOTORED = {
    "five_dof", "five_dof_gripper", "puma560", "puma560_gripper", "seven_dof_can", "so101"
}  # fmt: skip
# Unmodeled load [kg] at the tool; largest error [rad] on the demo trajectory without and with it.
WALKS = {
    "five_dof": (0.5, 0.002, 0.015),
    "four_joint": (0.3, 0.018, 0.026),
    "puma560": (2.3, 0.003, 0.003),
    "seven_dof_can": (0.5, 0.015, 0.02),
    "so101": (0.2, 0.008, 0.011),
    "three_link": (0.5, 0.022, 0.033),
    "two_link": (0.5, 0.005, 0.012),
    "two_link_pb": (0.3, 0.002, 0.004),
}
TEXTS = {
    "four_joint": four_joint.urdf_text,
    "three_link": three_link.urdf_text,
    "two_link": two_link.urdf_text,
    "two_link_pb": lambda: two_link.urdf_text(two_link.PB),
}
FILES = TEXTS | {
    "puma560": puma560.urdf_text,
    "five_dof_gripper": parallel_gripper.five_dof_text,
    "puma560_gripper": parallel_gripper.puma560_text,
    "seven_dof_can": seven_dof_can.urdf_text,
    "so101": so101.urdf_text,
}

angles = st.floats(-7, 7)
arm_of = cache(load_arm)


def read(file):
    return json.loads((DATA / file).read_text())


def samples(arm):
    """Return the samples of an arm, with the same keys for each."""
    if arm == "three_link":
        return [
            s | {"theta": s["q"], "tau": [0, 0, 0]} for s in read("three_link/model_values.json")
        ]
    if arm == "four_joint":
        return [s | {"qd": s["theta_dot"]} for s in read("four_joint/dynamics_values.json")]
    states = read("two_link/model_values.json")["states"]
    return [
        s | {"theta": s["q"], "c": s["coriolis_centrifugal"]}
        for s in states
        if s["params"] == "unit"
    ]


def motion(file, nv):
    """Return times (n,), positions and velocities (n, nv) and energies (n,) of a CSV file."""
    rows = np.loadtxt(DATA / file, delimiter=",", skiprows=1)
    return rows[:, 0], rows[:, 1 : 1 + nv], rows[:, 1 + nv : 1 + 2 * nv], rows[:, -1]


def close(actual, expected):
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12 * scale)


def run(arm, q, v, dt, seconds):
    plant, rest = Plant(arm), Command("effort", np.zeros(arm.nv))
    return plant.step(State.of(q, v), rest, dt, steps=round(seconds / dt))


# --- files ---


@pytest.mark.parametrize("name", FILES)
def test_committed_urdfs_are_generated_from_the_tables(name):
    committed = (ROOT / "urdf" / f"{name}.urdf").read_text()
    assert committed == FILES[name](), "write it with python -m tools.urdf.…"


@pytest.mark.parametrize(
    ("module", "argument"),
    [
        ("four_joint", []),
        ("puma560", []),
        ("seven_dof_can", []),
        ("so101", []),
        ("three_link", []),
        ("two_link", []),
        ("two_link", ["pb"]),
    ],
)
def test_the_module_writes_the_urdf(module, argument):
    command = [sys.executable, "-m", f"tools.urdf.{module}", *argument]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == FILES["_".join([module, *argument])]()


def test_an_unknown_variant_of_two_link_is_rejected():
    with pytest.raises(UnknownName, match="'huge'; known: pb, unit"):
        two_link.find_variant("huge")


@pytest.mark.parametrize("name", ARMS)
def test_bundled_arms_pass_the_audit(name):
    folder = ROOT / "urdf"
    assert audit_urdf((folder / f"{name}.urdf").read_text(), folder) == ()


# --- loading ---


def test_names_of_the_bundled_arms():
    assert set(ARMS) == set(resources.resource_names("urdf", ".urdf"))


@pytest.mark.parametrize("name", ARMS)
def test_arm_loads_without_a_warning_and_moves(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arm = load_arm(name)
    assert {j.actuator for j in arm.joints} == {"dc_motor" if name in MOTORED else "ideal"}
    start = State.of(arm.configuration("initial"))
    after = Plant(arm).step(start, Command("effort", np.full(arm.nv, 0.1)), 1e-3)
    assert np.isfinite(after.q).all()
    assert np.abs(after.v).max() > 0


@pytest.mark.parametrize("name", ARMS)
def test_every_inertia_satisfies_the_triangle_inequality_exactly(name):
    """Principal moments are positive and satisfy the triangle inequality to the last digit.

    MuJoCo compares the values of the text exactly and rejects thin rods, point masses and flat
    bodies. RViz reports them as errors.
    """
    description = (ROOT / "urdf" / f"{name}.urdf").read_text()
    tensors = [inertia.attrib for inertia in ElementTree.fromstring(description).iter("inertia")]
    assert len(tensors) >= arm_of(name).nv
    for text in tensors:
        xx, xy, xz, yy, yz, zz = (float(text[k]) for k in sorted(text))
        moments = np.sort([xx, yy, zz])
        if xy or xz or yz:
            moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        low, middle, high = moments
        assert low > 1e-9 * high
        assert low + middle >= high
        # RViz's MassMatrix3::IsPositive(0): without, "unrealistic inertia" is logged as an error.
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        assert all(np.linalg.det(tensor[:n, :n]) > 0 for n in (1, 2, 3))


@pytest.mark.parametrize("name", TEXTS)
def test_actuators_hold_the_stretched_arm(name):
    """The effort limits are four times the gravity torque."""
    arm = arm_of(name)
    stretched = np.array([0, np.pi / 2, 0, 0]) if name == "four_joint" else np.zeros(arm.nv)
    held = rigid_body.gravity(arm, stretched)
    assert (arm.effort_limit > 4 * np.abs(held)).all()
    after = Plant(arm).step(State.of(stretched), Command("effort", held), 1e-3, steps=100)
    np.testing.assert_allclose(after.q, stretched, atol=1e-9)


@pytest.mark.parametrize("name", TEXTS)
def test_friction_of_the_published_arms(name):
    expected = 0.1 if name.startswith("two_link") else 0.0
    assert {(j.damping, j.friction) for j in arm_of(name).joints} == {(expected, 0.0)}


# --- rigid bodies ---


@pytest.mark.parametrize("name", ["two_link", "three_link", "four_joint"])
def test_mass_matrix_and_coriolis_of_the_samples(name):
    arm = arm_of(name)
    assert len(samples(name)) >= 5
    for sample in samples(name):
        q, v = sample["theta"], sample["qd"]
        close(rigid_body.mass_matrix(arm, q), sample["M"])
        close(rigid_body.nle(arm, q, v) - rigid_body.gravity(arm, q), sample["c"])


@pytest.mark.parametrize("name", ["two_link", "three_link", "four_joint"])
def test_gravity_of_the_samples(name):
    """The samples of three_link are for g = 9.8 m/s²."""
    arm = arm_of(name)
    if name == "three_link":
        arm = arm.with_gravity([0, 0, -9.8])
    for sample in samples(name):
        close(rigid_body.gravity(arm, sample["theta"]), sample["G"])


@pytest.mark.parametrize(
    ("name", "key", "g"),
    [
        ("two_link", "qdd", 9.81),
        ("three_link", "qdd_g9p8", 9.8),
        ("three_link", "qdd_g9p81", 9.81),
        ("four_joint", "theta_ddot", 9.81),
    ],
)
def test_acceleration_of_the_samples(name, key, g):
    """Friction included: two_link's is 0.1 N·m·s/rad."""
    arm = arm_of(name).with_gravity([0, 0, -g])
    damping = np.array([joint.damping for joint in arm.joints])
    for sample in samples(name):
        q, v = sample["theta"], np.array(sample["qd"])
        close(rigid_body.aba(arm, q, v, np.array(sample["tau"]) - damping * v), sample[key])


def test_energy_and_tool_of_four_joint():
    arm = arm_of("four_joint")
    for sample in samples("four_joint"):
        q, v = sample["theta"], sample["theta_dot"]
        energy = rigid_body.kinetic_energy(arm, q, v) + rigid_body.potential_energy(arm, q)
        close(energy, sample["energy"])
        close(tool_position(arm, q), sample["ee"])


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("three_link", "three_link/freefall_g9p81.csv"),
        ("two_link", "two_link/unactuated_unit.csv"),
    ],
)
def test_energy_along_the_reference_motion(name, file):
    arm = arm_of(name)
    _, q, v, energies = motion(file, arm.nv)
    assert len(energies) > 1000
    for i, energy in enumerate(energies):
        total = rigid_body.kinetic_energy(arm, q[i], v[i]) + rigid_body.potential_energy(arm, q[i])
        assert total == pytest.approx(energy, abs=1e-12)


@given(angles, angles)
def test_mass_matrix_and_gravity_of_two_link_in_closed_form(q1, q2):
    """Both variants: Spong, Hutchinson, Vidyasagar, Robot Modeling and Control, section 7.4."""
    l1, c1, m1, i1 = 1.0, 0.5, 1.0, 1 / 12
    for name, (c2, m2, i2) in {
        "two_link": (0.5, 1.0, 1 / 12),
        "two_link_pb": (0.3, 0.6, 0.018),
    }.items():
        m12 = m2 * (c2**2 + l1 * c2 * cos(q2)) + i2
        m22 = m2 * c2**2 + i2
        m11 = m1 * c1**2 + i1 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * cos(q2)) + i2
        g2 = 9.81 * m2 * c2 * cos(q1 + q2)
        g1 = 9.81 * (m1 * c1 + m2 * l1) * cos(q1) + g2
        close(rigid_body.mass_matrix(arm_of(name), [q1, q2]), np.array([[m11, m12], [m12, m22]]))
        close(rigid_body.gravity(arm_of(name), [q1, q2]), np.array([g1, g2]))


# --- kinematics ---


@given(st.lists(angles, min_size=3, max_size=3))
def test_planar_arms_move_in_the_vertical_plane(q):
    for name, lengths in {
        "three_link": (1, 1, 1),
        "two_link": (1, 1),
        "two_link_pb": (1, 0.6),
    }.items():
        reach = np.cumsum(q)[: len(lengths)]
        x = sum(length * cos(a) for length, a in zip(lengths, reach, strict=True))
        z = sum(length * sin(a) for length, a in zip(lengths, reach, strict=True))
        close(tool_position(arm_of(name), q[: len(lengths)]), np.array([x, 0, z]))


def test_four_joint_kinematics_reproduce_the_published_pairs():
    arm, pairs = arm_of("four_joint"), read("four_joint/fk_ik_pairs.json")["pairs"]
    assert len(pairs) >= 10
    for pair in pairs:
        for elbow in ("up", "down"):
            close(tool_position(arm, pair[f"theta_elbow_{elbow}"]), pair["xyz"])
        scratch = arm.model.createData()
        pin.forwardKinematics(arm.model, scratch, np.array(pair["theta_elbow_up"]))
        points = [scratch.oMi[i].translation for i in (2, 3, 4)]
        close(np.array(points), pair["joint_points_up"][:3])


# --- motion ---


def test_initial_acceleration_of_the_falling_three_link():
    close(
        rigid_body.aba(arm_of("three_link"), [0] * 3, [0] * 3, [0] * 3), np.array([-9.81, 9.81, 0])
    )


@pytest.mark.parametrize(
    ("name", "file", "bound"),
    [
        ("three_link", "three_link/freefall_g9p81.csv", 1.7),
        ("two_link", "two_link/unactuated_unit.csv", 2.9),
    ],
)
def test_one_second_of_free_motion_to_the_integrators_order(name, file, bound):
    """First order: error below ``bound`` dt, halved with dt; second order after extrapolation."""
    arm = arm_of(name)
    times, q, v, _ = motion(file, arm.nv)
    (end,) = np.flatnonzero(times == 1.0)
    coarse, fine = (run(arm, q[0], v[0], dt, 1.0).q for dt in (1e-3, 5e-4))
    error, halved = (np.abs(found - q[end]).max() for found in (coarse, fine))
    assert error < bound * 1e-3
    assert error / halved == pytest.approx(2, abs=0.02)
    np.testing.assert_allclose(2 * fine - coarse, q[end], rtol=0, atol=1e-5)


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ARMS)
def test_default_gains_hold_every_arm(name):
    """Within 6 s: where a joint sticks, the integral must exceed its dry friction."""
    arm = arm_of(name)
    goal = arm.configuration("initial")
    simulation = Simulation(arm, q=np.clip(goal + 0.05, arm.lower, arm.upper))
    loop = ControlLoop(SimulationDriver(arm, simulation), PidGravity(arm))
    loop.step()
    loop.hold(dict(zip(arm.joint_names, goal, strict=True)))
    for _ in range(3000):
        loop.step()
    np.testing.assert_allclose(simulation.state.q, goal, atol=1e-3)


def demo_trajectory_error(arm, load):
    """Return the largest error [rad] on the demo trajectory with the arm's parameter file."""
    points = demo_trajectory(arm)
    simulation = Simulation(arm.with_payload(load), dt=5e-4)
    loop = ControlLoop(SimulationDriver(arm, simulation), build_controller(arm, "pid_gravity"))
    loop.step()
    loop.follow(JointTrajectory(points))
    worst = 0.0
    while loop.state.time < points[-1].time:
        loop.step()
        worst = max(worst, float(np.abs(loop.reference.q - loop.state.q).max()))
    return worst


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", WALKS)
def test_configured_gains_follow_the_demo_trajectory(name):
    """At 500 Hz; the load is unmodeled."""
    load, empty, loaded = WALKS[name]
    assert demo_trajectory_error(arm_of(name), 0.0) < empty
    assert demo_trajectory_error(arm_of(name), load) < loaded


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", WALKS)
def test_configured_gains_hold_random_configurations_with_a_period_of_delay(name):
    """With load, from 0.03 rad next to three configurations; commands act one period late."""
    arm, (load, *_) = arm_of(name), WALKS[name]
    plant, controller = Plant(arm.with_payload(load)), build_controller(arm, "pid_gravity")
    low, high = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    for goal in np.random.default_rng(3).uniform(0.9 * low, 0.9 * high, (3, arm.nv)):
        state, late = State.of(goal + 0.03), Command("effort", np.zeros(arm.nv))
        controller.reset(state)
        for _ in range(1000):
            now = controller.update(state, Reference.hold(goal), 2e-3)
            state, late = plant.step(state, late, 5e-4, steps=4), now
        np.testing.assert_allclose(state.q, goal, rtol=0, atol=5e-3)
