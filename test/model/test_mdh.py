"""Modified-DH tables, the generated URDF, and the five_dof arm against its reference data."""

import csv
import json
from io import StringIO
from math import cos, pi, sin
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
import yourdfpy
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.model.mdh import MdhLink, MdhRow, urdf_text
from arm_dynamics.model.solids import box, compose, cylinder, point_mass, rod, sphere
from arm_dynamics.model.urdf_writer import ArmDescription, JointSpec, MotorSpec, format_number, rpy
from tools.urdf import five_dof

ROOT = Path(__file__).parents[2]
DATA = ROOT / "test" / "data" / "five_dof"
FILE = ROOT / "urdf" / "five_dof.urdf"

lengths = st.floats(-2, 2)
turns = st.floats(-pi, pi)
right_angles = st.sampled_from([-pi, -pi / 2, 0.0, pi / 2, pi])
rows = st.builds(MdhRow, lengths, turns | right_angles, lengths, turns | right_angles)


def translation(x, y, z):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def rotation_x(angle):
    c, s = cos(angle), sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def rotation_z(angle):
    c, s = cos(angle), sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def step(row, q=0.0, slide=0.0):
    """Return Craig's frame i in frame i-1, the product of the four defining motions."""
    moved = translation(row.a, 0, 0) @ rotation_x(row.alpha)
    return moved @ translation(0, 0, row.d + slide) @ rotation_z(row.theta + q)


def load(text):
    """Return a model with one coordinate per joint: continuous joints as revolute ones."""
    robot = ElementTree.fromstring(text)
    for joint in robot.findall("joint[@type='continuous']"):
        joint.set("type", "revolute")
        joint.find("limit").attrib.update(lower="-1e9", upper="1e9")
    model = pin.buildModelFromXML(ElementTree.tostring(robot, encoding="unicode"))
    assert model.nq == model.nv
    return model


def link(name, row, kind="revolute", **more):
    limits = {} if kind == "continuous" else {"lower": -10, "upper": 10}
    solids = more.pop("solids", (sphere(0.1, 1.0),))
    joint = JointSpec(name, 1.0, 1.0, solids, kind=kind, **limits, **more)
    return MdhLink(row, joint)


# --- rows and rotations ---


@given(rows)
def test_placement_is_the_product_of_four_motions(row):
    np.testing.assert_allclose(row.placement, step(row), atol=1e-15)


def test_an_infinite_row_is_rejected():
    with pytest.raises(InvalidValue, match="alpha = nan"):
        MdhRow(alpha=float("nan"))


@given(st.tuples(turns, turns | right_angles, turns))
@example((0.3, pi / 2, -1.2))
@example((-2.0, -pi / 2, 0.7))
@example((0.1, pi / 2 - 1e-9, 0.2))
def test_rpy_angles_reproduce_the_rotation(angles):
    R = Rotation.from_euler("xyz", angles).as_matrix()
    back = Rotation.from_euler("xyz", rpy(R)).as_matrix()
    np.testing.assert_allclose(back, R, atol=2e-15)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_exactly(value):
    text = format_number(value)
    assert float(text) == (value if abs(value) >= 1e-15 else 0)
    assert text != "-0"


# --- the writer ---


@given(
    st.lists(st.tuples(rows, st.sampled_from(["revolute", "prismatic"]), turns), max_size=6),
    st.tuples(lengths, lengths, lengths),
)
def test_the_generated_chain_reproduces_the_table(chain, tool):
    links = [link(f"j{i}", row, kind) for i, (row, kind, _) in enumerate(chain)]
    model = load(urdf_text("chain", links, tool=tool))
    data = model.createData()
    q = np.array([position for *_, position in chain])
    pin.framesForwardKinematics(model, data, q)
    expected = np.eye(4)
    for row, kind, position in chain:
        expected = expected @ (
            step(row, position) if kind == "revolute" else step(row, 0, position)
        )
    placement = data.oMf[model.getFrameId("tool")].homogeneous
    np.testing.assert_allclose(placement, expected @ translation(*tool), atol=1e-13)


def test_the_generated_inertials_are_the_composed_ones():
    solids = (
        box((0.1, 0.2, 0.3), 2.0, (0.1, 0.2, 0.3)),
        rod("x", 0.5, 1.0, (0.3, 0, 0)),
        point_mass(0.7, (0, -0.4, 0.1)),
        cylinder("y", 0.2, 0.05, 0.5).transformed(rotation_x(0.3)[:3, :3], (0, 0, 1)),
    )
    inertia = load(urdf_text("one", [link("j", MdhRow(), solids=solids)])).inertias[1]
    whole = compose(solids)
    assert inertia.mass == whole.mass
    np.testing.assert_array_equal(inertia.lever, whole.center)
    np.testing.assert_allclose(inertia.inertia, whole.inertia, rtol=0, atol=1e-16)


def test_a_joint_without_motor_is_ideal_with_effort_commands():
    robot = ElementTree.fromstring(urdf_text("one", [link("j", MdhRow())]))
    joint = robot.find("ros2_control/joint[@name='j']")
    assert joint.find("param[@name='actuator']").text == "ideal"
    assert [c.get("name") for c in joint.iter("command_interface")] == ["effort"]


def test_base_and_tool_are_massless():
    robot = ElementTree.fromstring(five_dof.urdf_text())
    for name in ("base_link", "tool"):
        element = robot.find(f"link[@name='{name}']")
        assert element.find("inertial") is None
        assert element.find("visual") is not None


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("revolute", {"lower": 1.0, "upper": -1.0}, r"joint j \(revolute\): lower = 1.0, upper"),
        ("revolute", {}, "expected lower < upper"),
        ("prismatic", {"lower": 0.0}, "upper = None"),
        ("continuous", {"lower": 0.0, "upper": 1.0}, "expected None for each"),
        ("continuous", {"stop": (50.0, 5.0)}, r"stop = \(50.0, 5.0\)"),
    ],
)
def test_limits_inconsistent_with_the_joint_type_are_rejected(kind, more, message):
    with pytest.raises(InvalidValue, match=message):
        JointSpec("j", 1.0, 1.0, (), kind=kind, **more)


def test_an_unknown_joint_type_lists_the_supported_ones():
    with pytest.raises(UnknownName, match="known: continuous, prismatic, revolute"):
        JointSpec("j", 1.0, 1.0, (), kind="ball")


def test_a_comment_with_invalid_xml_is_rejected():
    with pytest.raises(InvalidValue, match="one: comment contains '--'"):
        ArmDescription("one", (), comment="a -- b")


# --- five_dof ---


@pytest.fixture(scope="module")
def arm():
    return load(FILE.read_text())


@pytest.fixture(scope="module")
def samples():
    return json.loads((DATA / "mass_gravity_bias.json").read_text())


def test_the_committed_urdf_is_generated_from_the_table():
    assert FILE.read_text() == five_dof.urdf_text(), (
        "run: python -m tools.urdf.five_dof > urdf/five_dof.urdf"
    )


def test_mass_matrix_gravity_and_bias_of_the_published_arm(arm, samples):
    data = arm.createData()
    assert samples
    for sample in samples:
        q, v = np.array(sample["q"]), np.array(sample["qd"])
        upper = np.triu(pin.crba(arm, data, q))
        M = upper + np.triu(upper, 1).T
        np.testing.assert_allclose(M, sample["M"], rtol=0, atol=1e-12)
        g = pin.computeGeneralizedGravity(arm, data, q)
        np.testing.assert_allclose(g, sample["g"], rtol=0, atol=1e-12)
        bias = pin.nonLinearEffects(arm, data, q, v)
        np.testing.assert_allclose(bias, sample["bias"], rtol=0, atol=1e-12)


def test_energies_of_the_published_arm(arm, samples):
    """Potential energy is zero at z = 0 of base_link."""
    data = arm.createData()
    for sample in samples:
        q, v = np.array(sample["q"]), np.array(sample["qd"])
        kinetic = pin.computeKineticEnergy(arm, data, q, v)
        assert kinetic == pytest.approx(sample["kinetic"], rel=0, abs=1e-12)
        potential = pin.computePotentialEnergy(arm, data, q)
        assert potential == pytest.approx(sample["potential"], rel=0, abs=1e-12)


def test_the_tool_position_equals_the_published_one(arm):
    data, tool = arm.createData(), arm.getFrameId("tool")
    table = list(csv.DictReader(StringIO((DATA / "dynamics_samples.csv").read_text())))
    assert table
    for row in table:
        q = np.array([float(row[f"q{i}"]) for i in range(1, 6)])
        pin.framesForwardKinematics(arm, data, q)
        expected = [float(row[f"ee_{axis}"]) for axis in "xyz"]
        np.testing.assert_allclose(data.oMf[tool].translation, expected, rtol=0, atol=1e-12)


def test_a_generic_parser_reads_the_same_chain(arm):
    parsed = yourdfpy.URDF.load(str(FILE), load_meshes=False, load_collision_meshes=False)
    assert parsed.validate(), parsed.errors
    assert parsed.actuated_joint_names == ["R1", "R2", "R3", "R4", "R5"]
    q = np.array([0.5, -1.1, 0.3, 0.2, -0.4])
    parsed.update_cfg(q)
    data = arm.createData()
    pin.framesForwardKinematics(arm, data, q)
    np.testing.assert_allclose(
        parsed.get_transform("tool", "base_link"),
        data.oMf[arm.getFrameId("tool")].homogeneous,
        atol=1e-6,
    )


def test_drawings_reach_the_next_joint():
    """A cylinder of each link passes within 5 mm of the next joint."""
    robot = ElementTree.fromstring(FILE.read_text())
    for name in ("R1", "R2", "R3"):
        element = robot.find(f"link[@name='{name}_link']")
        child = next(
            j
            for j in robot.iter("joint")
            if j.find("parent") is not None and j.find("parent").get("link") == f"{name}_link"
        )
        target = np.array(child.find("origin").get("xyz").split(), dtype=float)
        assert any(distance(visual, target) < 0.005 for visual in element.iter("visual"))


def distance(visual, point):
    """Return the distance from ``point`` to the axis of a visual cylinder."""
    origin = visual.find("origin")
    center = np.array(origin.get("xyz").split(), dtype=float)
    angles = np.array(origin.get("rpy").split(), dtype=float)
    length = float(visual.find("geometry/cylinder").get("length"))
    local = Rotation.from_euler("xyz", angles).inv().apply(point - center)
    return np.hypot(np.hypot(local[0], local[1]), max(0.0, abs(local[2]) - length / 2))


def test_motors_and_limits_come_from_the_supply():
    robot = ElementTree.fromstring(FILE.read_text())
    for name, k in zip(["R1", "R2", "R3", "R4", "R5"], [10, 10, 10, 1, 1], strict=True):
        params = {
            p.get("name"): p.text
            for p in robot.findall(f"ros2_control/joint[@name='{name}']/param")
        }
        stops = {} if name == "R1" else {"stop_stiffness": "50", "stop_damping": "5"}
        motor = {"actuator": "dc_motor", "resistance": "1", "supply_voltage": "12"}
        assert params == {**motor, "kt": str(k), "ke": str(k), **stops}
        limit = robot.find(f"joint[@name='{name}']/limit")
        assert float(limit.get("effort")) == k * 12 / 1
        assert float(limit.get("velocity")) == 12 / k


def test_limits_and_initial_pose_are_the_published_ones(arm):
    inf = 1e9
    np.testing.assert_array_equal(arm.lowerPositionLimit, [-inf, -1.2, -pi, -pi, -1.1])
    np.testing.assert_array_equal(arm.upperPositionLimit, [inf, 0.7, 0.6, pi, 1.1])
    values = [
        float(p.text)
        for p in ElementTree.parse(FILE).iter("param")
        if p.get("name") == "initial_value"
    ]
    assert values == [0, -1.1, 0.3, 0, 0]


def test_the_listed_damping_is_a_named_variant():
    robot = ElementTree.fromstring(five_dof.urdf_text(five_dof.LISTED_DAMPING))
    assert [d.get("damping") for d in robot.iter("dynamics")] == ["0.3"] * 5
    robot = ElementTree.fromstring(FILE.read_text())
    assert [d.get("damping") for d in robot.iter("dynamics")] == ["0"] * 5


def test_motor_constants_are_written_unchanged():
    motor = MotorSpec("dc_motor", {"kt": 0.1, "resistance": 2.5}, commands=("voltage",))
    robot = ElementTree.fromstring(urdf_text("one", [link("j", MdhRow(), motor=motor)]))
    joint = robot.find("ros2_control/joint")
    assert joint.find("param[@name='kt']").text == "0.1"
    assert joint.find("param[@name='resistance']").text == "2.5"
    assert [c.get("name") for c in joint.iter("command_interface")] == ["voltage"]
