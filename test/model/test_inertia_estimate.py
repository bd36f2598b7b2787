"""Masses and inertias that are estimated from shapes, and the arms without masses before."""

import re
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics import load_arm
from arm_dynamics.cli.main import main
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.inertia_estimate import mesh_body, with_estimated_inertia
from arm_dynamics.model.load import parse_arm

DATA = Path(__file__).parents[1] / "data" / "urdf"
BOX = '<origin xyz="0.1 0 0.02" rpy="0 0 {yaw}"/><geometry><box size="0.2 0.06 0.04"/></geometry>'
ARM = f"""<robot name="boxes">
  <link name="base"><visual><geometry><cylinder radius="0.1" length="0.05"/></geometry></visual>
  </link>
  <!-- first joint -->
  <joint name="j1" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="9" velocity="2"/></joint>
  <link name="upper"><visual>{BOX.format(yaw=0.3)}</visual>
    <collision><geometry><sphere radius="9"/></geometry></collision></link>
  <joint name="j2" type="revolute"><origin xyz="0.2 0 0"/><parent link="upper"/><child link="fore"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="9" velocity="2"/></joint>
  <link name="fore"><inertial><mass value="0"/></inertial>
    <collision><geometry><sphere radius="0.05"/></geometry></collision></link>
  <joint name="tip" type="fixed"><origin xyz="0.1 0 0"/><parent link="fore"/><child link="tool0"/>
  </joint><link name="tool0"/>
</robot>"""
CYLINDER, CUBOID, BALL = np.pi * 0.01 * 0.05, 0.2 * 0.06 * 0.04, 4 / 3 * np.pi * 0.05**3
VOLUME = CYLINDER + CUBOID + BALL


def test_boxes_cylinders_and_spheres_are_exact_bodies_of_one_density():
    """The visual shapes of a link, else the collision ones; about the center, in link axes."""
    text, rows = with_estimated_inertia(ARM, None, 3.0)
    density = 3.0 / VOLUME
    assert [(row.link, row.written) for row in rows] == [
        ("base", False), ("upper", True), ("fore", True),
    ]  # fmt: skip
    masses = np.array([CYLINDER, CUBOID, BALL]) * density
    np.testing.assert_allclose([row.mass for row in rows], masses, rtol=1e-14)
    assert sum(row.mass for row in rows) == pytest.approx(3.0, rel=1e-14)
    assert audit_urdf(text) == ()
    assert "<!-- first joint -->" in text
    _, upper, fore = parse_arm(text).model.inertias
    c, s = np.cos(0.3), np.sin(0.3)
    R, (x, y, z) = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]), (0.2, 0.06, 0.04)
    moments = CUBOID * density / 12 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    np.testing.assert_allclose(upper.mass, CUBOID * density, rtol=1e-14)
    np.testing.assert_allclose(upper.lever, [0.1, 0, 0.02], rtol=1e-14)
    np.testing.assert_allclose(upper.inertia, R @ np.diag(moments) @ R.T, rtol=1e-12, atol=1e-18)
    ball = np.eye(3) * 0.4 * BALL * density * 0.05**2
    np.testing.assert_allclose(fore.inertia, ball, rtol=1e-12, atol=1e-18)


def test_links_with_a_mass_keep_it():
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    given = f'<inertial><mass value="2"/>{inertia}</inertial>'
    text = ARM.replace('<link name="upper">', f'<link name="upper">{given}')
    changed, rows = with_estimated_inertia(text, None, 3.0)
    assert [row.link for row in rows] == ["base", "fore"]
    assert sum(row.mass for row in rows) == pytest.approx(1.0, rel=1e-14)
    assert given in changed
    with pytest.raises(InvalidValue, match=r"mass of the arm .* = 2.0; expected above 2"):
        with_estimated_inertia(text, None, 2.0)


TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def second_moments(body):
    return np.trace(body.inertia) / 2 * np.eye(3) - body.inertia


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_tetrahedron_has_its_closed_form(mirrored):
    """V = 1/6, center 1/4, ∫ x² = 1/60 and ∫ x y = 1/120 about the corner; each corner thrice."""
    rotation, shift = pin.rpy.rpyToMatrix(0.3, -1.1, 0.4), np.array([3.0, -2.0, 5.0])
    sizes = np.array([0.3, 0.2, -0.5 if mirrored else 0.5])
    points = (TETRAHEDRON * sizes)[FACES].reshape(-1, 3) @ rotation.T + shift
    body = mesh_body(points, np.arange(12).reshape(4, 3))
    volume = abs(sizes.prod()) / 6
    corner = volume * (np.eye(3) / 10 + (1 - np.eye(3)) / 20)
    scaled = np.diag(sizes) @ (corner - volume * np.full((3, 3), 1 / 16)) @ np.diag(sizes)
    assert body.mass == pytest.approx(volume, rel=1e-12)
    np.testing.assert_allclose(body.center, rotation @ (sizes / 4) + shift, rtol=1e-12)
    np.testing.assert_allclose(second_moments(body), rotation @ scaled @ rotation.T, atol=1e-14)


def cube(corner, edge):
    """Return the points and outward triangles of a cube."""
    points = np.array(list(np.ndindex(2, 2, 2)), float) * edge + corner
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return points, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])


def test_a_closed_mesh_may_be_concave_and_an_open_one_counts_as_its_convex_hull():
    outer, triangles = cube((0.0, 0.0, 0.0), 1.0)
    inner, _ = cube((0.25, 0.25, 0.25), 0.5)
    hollow = np.concatenate([outer, inner]), np.concatenate([triangles, triangles[:, ::-1] + 8])
    body = mesh_body(*hollow)
    assert body.mass == pytest.approx(1 - 1 / 8, rel=1e-12)
    np.testing.assert_allclose(body.inertia, (1 - 0.5**5) / 6 * np.eye(3), atol=1e-12)
    for broken in (triangles[1:], np.concatenate([triangles[:1, ::-1], triangles[1:]])):
        body = mesh_body(outer, broken)  # a triangle is missing, or points inward
        assert body.mass == pytest.approx(1.0, rel=1e-12)
        np.testing.assert_allclose(body.center, [0.5, 0.5, 0.5], atol=1e-12)
        np.testing.assert_allclose(body.inertia, np.eye(3) / 6, atol=1e-12)
    flat = outer * [1, 1, 0]
    assert mesh_body(flat, triangles) is None
    assert mesh_body(outer[:3], np.array([[0, 1, 2]])) is None


def test_a_mesh_counts_in_meters_in_the_pose_of_its_shape():
    """A box of COLLADA in mm, 0.3 x 0.05 x 0.04 m from its corner, turned by a quarter about z."""
    text = (DATA / "dae_unit_mm.urdf").read_text()
    text = re.sub(r"<inertial>.*?</inertial>", "", text)
    text = text.replace("<visual>", '<visual><origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/>')
    changed, (row,) = with_estimated_inertia(text, DATA, 0.6)
    assert row.volume == pytest.approx(0.3 * 0.05 * 0.04, rel=1e-6)
    inertia = parse_arm(changed).model.inertias[1]
    np.testing.assert_allclose(inertia.lever, [-0.025, 0.15, 1.02], rtol=1e-6)
    moments = 0.05 * np.array([0.3**2 + 0.04**2, 0.05**2 + 0.04**2, 0.05**2 + 0.3**2])
    np.testing.assert_allclose(inertia.inertia, np.diag(moments), atol=1e-9)


MESH_LINK = """<link name="l{k}"><inertial><mass value="{mass}"/><inertia ixx="0.1" iyy="0.1"
  izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial><{element}><geometry>{shape}</geometry></{element}>
  </link><joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/>
  <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="99" velocity="2"/></joint>"""
SHAPES = {
    "mesh": '<mesh filename="cube.obj" scale="{x} 0.1 0.1"/>',
    "box": '<box size="{x} 0.1 0.1"/>',
}


@pytest.fixture
def audited(tmp_path, capsys):
    """A function that returns the command's report of an arm with links of these densities."""
    points, triangles = cube((0.0, 0.0, 0.0), 1.0)
    lines = ["v {} {} {}".format(*p) for p in points]
    lines += ["f {} {} {}".format(*t) for t in triangles + 1]
    (tmp_path / "cube.obj").write_text("\n".join(lines))

    def report(densities, shape="mesh", element="visual"):
        text, parent = '<robot name="uniform"><link name="base"/>', "base"
        for k, density in enumerate(densities):
            x = 0.2 + 0.1 * k
            given = {"shape": SHAPES[shape].format(x=x), "mass": f"{density * x * 0.01:.4g}"}
            text += MESH_LINK.format(k=k, parent=parent, element=element, **given)
            parent = f"l{k}"
        (tmp_path / "arm.urdf").write_text(f"{text}</robot>")
        assert audit(tmp_path / "arm.urdf") == 0
        return capsys.readouterr().out

    return report


@pytest.mark.parametrize(
    ("densities", "element", "material"),
    [
        ((2700, 2710, 2690), "visual", "aluminum"),
        ((1000, 1000), "collision", "water"),
        ((7860, 7860), "visual", "steel"),
        ((7970, 7970), "visual", "steel"),
    ],
)
def test_the_density_of_an_exporter_is_named(audited, densities, element, material):
    report = audited(densities, element=element)
    assert "1 warning" in report
    assert (
        f"line 1: warning: robot 'uniform': all {len(densities)} moving links have"
        f" {min(densities)} to {max(densities)} kg/m³ (mass over the volume of {element} meshes),"
        f" the density that exporters assume for {material}; set the materials" in report
    )


@pytest.mark.parametrize(
    ("densities", "shape"),
    [((2700, 2700, 2500), "mesh"), ((1500, 1500), "mesh"), ((2700,), "mesh"), ((1e3, 1e3), "box")],
)
def test_other_densities_single_links_and_primitives_are_not_named(audited, densities, shape):
    assert "no faults" in audited(densities, shape)


def audit(*words):
    """Return the exit code of the command."""
    with pytest.raises(SystemExit) as ended:
        main(["audit", *map(str, words)])
    return ended.value.code


def test_the_command_writes_an_arm_that_simulates(tmp_path, capsys):
    file, new = tmp_path / "arm.urdf", tmp_path / "new.urdf"
    file.write_text(ARM.replace('<inertial><mass value="0"/></inertial>', ""))
    assert audit(file) == 0
    assert "--estimate-inertia KG --output NEW" in capsys.readouterr().out
    estimate = file, "--estimate-inertia", 3
    assert audit(*estimate, "--output", new) == 0
    out = capsys.readouterr().out
    assert f"density = {3 / VOLUME:.4g} kg/m³" in out
    assert f"upper: {3 * CUBOID / VOLUME:.4g} kg\n" in out
    assert "kg (root link, not written: it does not move)\n" in out
    assert f"{new}: no faults" in out
    assert not load_arm(new).is_kinematic


def test_wrong_options_write_nothing(tmp_path, capsys):
    file, new = DATA / "kinematics_only.urdf", tmp_path / "new.urdf"
    estimate = file, "--estimate-inertia", 3
    for words, text in (
        (estimate, "--estimate-inertia and --output are required together"),
        ((file, "--output", new), "are required together"),
        ((*estimate, "--output", new, "--correct-inertia", new), "not allowed with argument"),
        ((*estimate, "--output", file), "expected a new file"),
        ((file, "--estimate-inertia", -1, "--output", new), "--estimate-inertia = -1 kg"),
        ((*estimate, "--output", new), "visual and collision shapes = 0 m³; expected above 0"),
    ):
        assert audit(*words) == 2
        assert text in capsys.readouterr().err
        assert not new.exists()
