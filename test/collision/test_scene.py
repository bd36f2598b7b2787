"""Scenes: values that are checked once, and files of which all faults are one report."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics.collision import Scene, SceneObject, load_scene
from arm_dynamics.collision.scene_files import (
    SceneRejected,
    parse_scene,
    scene_of_urdf,
    scene_text,
)
from arm_dynamics.collision.scene_shapes import object_triangles
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.model.solids import Shape

BOX = Shape("box", (0.2, 0.3, 0.4))
CUBE = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.15, 0.15) for z in (-0.2, 0.2)])


def test_a_scene_is_a_value():
    ground = SceneObject("ground", Shape("ground", ()))
    cube = SceneObject("cube", BOX, (0.5, 0.0, 0.2), mass=0.3)
    scene = Scene([ground])
    larger = scene.with_object(cube)
    assert (len(scene), [one.name for one in larger]) == (1, ["ground", "cube"])
    assert larger["cube"] is cube
    assert [("cube" in one) for one in (larger, scene)] == [True, False]
    assert larger.without("ground").objects == (cube,)
    assert (ground.is_fixed, cube.is_fixed) == (True, False)
    with pytest.raises(ValueError, match="read-only"):
        cube.position[0] = 1.0
    with pytest.raises(InvalidValue, match="objects with the name 'cube' = 2"):
        larger.with_object(cube)
    with pytest.raises(UnknownName, match=r"unknown scene object 'cub'.*did you mean 'cube'"):
        larger.without("cub")


def test_mass_properties_are_those_of_uniform_density():
    # A mesh of the corners of a box has the inertia of the box.
    box = SceneObject("box", BOX, (0, 0, 0), mass=2.0)
    mesh = SceneObject("mesh", Shape("mesh", ()), (0, 0, 0), mass=2.0, vertices=CUBE + 0.1)
    np.testing.assert_allclose(mesh.inertial.inertia, box.inertial.inertia, atol=1e-15)
    np.testing.assert_allclose(mesh.inertial.center, 0.1, atol=1e-15)
    ball = SceneObject("ball", Shape("sphere", (0.1,)), (0, 0, 0), mass=2.0)
    np.testing.assert_allclose(ball.inertial.inertia, np.eye(3) * 0.4 * 2.0 * 0.01)
    can = SceneObject("can", Shape("cylinder", (0.1, 0.5)), (0, 0, 0), mass=2.0)
    assert can.inertial.inertia[2, 2] == pytest.approx(0.01)
    with pytest.raises(InvalidValue, match="'table': mass = 0 kg; expected above 0"):
        _ = SceneObject("table", BOX, (0, 0, 0)).inertial


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": " "}, "name of an object = ' '"),
        ({"mass": -1}, "object 'a': mass = -1.0 kg; expected at least 0"),
        ({"friction": float("nan")}, "object 'a': friction = nan; expected a finite"),
        ({"restitution": 1.5}, "restitution = 1.5; expected at most 1"),
        ({"compliance": -1.0}, "compliance = -1.0 m/N; expected at least 0"),
        ({"position": (0, np.inf, 0)}, r"position\[1\] = inf; expected a finite"),
        ({"rotation": -np.eye(3)}, "det R = -1; expected a rotation matrix"),
        ({"shape": Shape("box", (1, 1, 0))}, "box z = 0.0 m; expected above 0"),
        ({"shape": Shape("sphere", (1, 1))}, r"sizes of sphere = \(1, 1\); expected \(radius\)"),
        ({"shape": Shape("cone", ())}, "shape = 'cone'; expected one of"),
        ({"shape": Shape("ground", ()), "mass": 1}, "mass = 1.0 kg; expected 0: a ground is fixed"),
        ({"shape": Shape("mesh", ())}, "vertices = none; expected points"),
        ({"vertices": CUBE}, "vertices = given; expected none for a box"),
        (
            {"shape": Shape("mesh", ()), "vertices": CUBE * [1, 1, 0]},
            "volume of the convex hull of 8 vertices = 0",
        ),
    ],
)
def test_a_value_out_of_its_range_is_rejected(change, message):
    with pytest.raises(InvalidValue, match=message):
        SceneObject(**{"name": "a", "shape": BOX, "position": (0, 0, 0)} | change)


def test_bundled_scenes():
    table, ground = load_scene("table"), load_scene("ground")
    top = table["table"].position[2] + table["table"].shape.size[2] / 2
    assert top == 0.0  # the arm stands on it
    assert [one.name for one in ground] == ["ground"]
    with pytest.raises(UnknownName, match="known: ground, table; did you mean 'table'"):
        load_scene("tabel")


def test_a_yaml_file(tmp_path):
    (tmp_path / "cube.obj").write_text(
        "".join(f"v {x} {y} {z}\n" for x, y, z in CUBE * 1000)
        + "f 1 2 3\nf 2 3 4\nf 5 6 7\nf 8 1 4"
    )
    file = tmp_path / "scene.yaml"
    file.write_text(
        """objects:
  floor: {shape: ground, position: [0, 0, -0.1]}
  can: {shape: cylinder, radius: 0.03, length: 0.1, position: [0.3, 0, 0.05], mass: 0.2,
        friction: 0.8, restitution: 0.1, rpy: [0, 1.5707963267948966, 0]}
  cad: {shape: mesh, file: cube.obj, scale: 0.001}
  points:
    shape: mesh
    vertices: [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
"""
    )
    scene = load_scene(file)
    can = scene["can"]
    assert (can.mass, can.friction, can.restitution, can.shape.size) == (0.2, 0.8, 0.1, (0.03, 0.1))
    np.testing.assert_allclose(can.rotation @ [0, 0, 1], [1, 0, 0], atol=1e-15)
    assert sorted(scene["cad"].vertices.round(9).tolist()) == CUBE.tolist()
    assert scene["points"].vertices.shape == (4, 3)
    assert scene["floor"].is_fixed


BAD = """objects:
  table: {shape: boxx}
  can:
    shape: cylinder
    radius: 0.03
    length: -0.1
    mass: -2
    frictoin: 0.2
    rpy: [0, 90, 0]
  ball: {shape: sphere, radius: big, position: [0, .nan, 0]}
  part: {shape: mesh, file: nothing.stl}
  both: {shape: mesh}
  crate: {shape: box}
  list: [1]
objetcs: {}
"""
REPORT = (
    "line 2: object 'table': 'boxx' is not a shape; did you mean 'box'?",
    "line 6: object 'can': cylinder length = -0.1 m; expected above 0",
    "line 7: object 'can': mass = -2.0 kg; expected at least 0; 0 is a fixed object",
    "line 8: object 'can': 'frictoin' is not a key of a cylinder; did you mean 'friction'?",
    "line 9: object 'can': rpy = 90 rad; expected at most 2 pi; write radians",
    "line 10: object 'ball': sphere radius = 'big' m; expected a number",
    "line 10: object 'ball': position[1] = nan; expected a finite number",
    "line 11: object 'part': file = 'nothing.stl'; expected a readable mesh",
    "line 12: object 'both': a mesh has 'file' or 'vertices'; write one of them",
    "line 13: object 'crate': size of the box is missing; write size: …",
    "line 14: object 'list': the shape is missing; write shape: one of",
    "line 15: scene: 'objetcs' is not a key of a scene; did you mean 'objects'?",
)


def test_all_faults_of_a_yaml_are_one_report(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(BAD)
    with pytest.raises(SceneRejected) as caught:
        load_scene(file)
    for line in REPORT:
        assert line in str(caught.value)
    assert len(caught.value.faults) == len(REPORT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the key 'objects' is missing"),
        ("objects: 3", "objects: '3' is not a table of objects|objects: 3 is not a table"),
        ("objects:\n  a: {shape: ground}\n  a: {shape: ground}", "line 3: .*'a' is given twice"),
        ("objects: [", "line 1: .*expected a readable YAML"),
    ],
)
def test_a_file_without_a_scene_is_rejected(text, message, tmp_path):
    file = tmp_path / "scene.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_scene(file)


CELL = """<robot name="cell"><link name="world"/>
<link name="table"><collision><origin xyz="0 0 -0.02"/><geometry><box size="1 1 0.04"/></geometry>
</collision><visual><geometry><sphere radius="5"/></geometry></visual></link>
<joint name="a" type="fixed"><parent link="world"/><child link="table"/>
<origin xyz="0.5 0 0" rpy="0 0 1.5707963267948966"/></joint>
<link name="lamp"><visual><geometry><sphere radius="0.1"/></geometry></visual>
<visual><origin xyz="0 0 1"/><geometry><cylinder radius="0.1" length="0.5"/></geometry></visual>
</link>
<joint name="b" type="fixed"><parent link="table"/><child link="lamp"/><origin xyz="0.1 0 0"/>
</joint>
</robot>"""


def test_a_urdf_of_fixed_links(tmp_path):
    (tmp_path / "cell.urdf").write_text(CELL)
    scene = load_scene(tmp_path / "cell.urdf")
    # Collision geometry replaces the visual one; a link with only the latter is an obstacle too.
    assert [one.name for one in scene] == ["table", "lamp_1", "lamp_2"]
    np.testing.assert_allclose(scene["table"].position, (0.5, 0, -0.02), atol=1e-15)
    np.testing.assert_allclose(scene["lamp_2"].position, (0.5, 0.1, 1.0), atol=1e-12)
    turned = pin.rpy.rpyToMatrix(0.0, 0.0, np.pi / 2)
    np.testing.assert_allclose(scene["table"].rotation, turned, atol=1e-15)
    assert scene["lamp_2"].shape == Shape("cylinder", (0.1, 0.5))
    assert all(one.is_fixed for one in scene)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name="b" type="fixed"', 'name="b" type="revolute"', "line 9: joint 'b': 'revolute' is a"),
        ('radius="5"', 'radius="x"', "line 3: link 'table' <sphere radius>: 'x' is not a number"),
        ('<box size="1 1 0.04"/>', '<mesh filename="no.stl"/>', "'no.stl' does not exist"),
        ('radius="0.1" length', 'radius="0" length', "object 'lamp_2': cylinder radius = 0.0 m"),
        ("</link>", "", "not well-formed XML"),
        ("robot", "scene", "is not a URDF's root element"),
    ],
)
def test_faults_of_a_urdf_are_reported(old, new, message, tmp_path):
    with pytest.raises(SceneRejected, match=message):
        scene_of_urdf(CELL.replace(old, new), tmp_path)


def test_a_urdf_without_shapes_is_rejected():
    with pytest.raises(SceneRejected, match="no link has a shape"):
        scene_of_urdf('<robot name="a"><link name="b"/></robot>')


def test_the_text_of_a_scene_is_read_as_the_same_scene():
    turned = pin.rpy.rpyToMatrix(0.1, -0.7, 2.0)
    scene = Scene(
        (
            SceneObject("floor", Shape("ground", ()), (0, 0, -1)),
            SceneObject(
                "box",
                BOX,
                (1, 2, 3),
                turned,
                mass=2.0,
                friction=0.1,
                restitution=0.2,
                compliance=1e-4,
            ),
            SceneObject("can", Shape("cylinder", (0.1, 0.5)), (1e-9, 2, 3)),
            SceneObject("ball", Shape("sphere", (0.1,)), (1, 2, 3)),
            SceneObject("part", Shape("mesh", ()), (1, 2, 3), turned, vertices=CUBE),
        )
    )
    read = parse_scene(scene_text(scene))
    for one, same in zip(scene, read, strict=True):
        for name in ("name", "shape", "mass", "friction", "restitution", "compliance"):
            assert getattr(one, name) == getattr(same, name)
        np.testing.assert_array_equal(one.position, same.position)
        np.testing.assert_allclose(one.rotation, same.rotation, atol=1e-15)
        assert (one.vertices is None) == (same.vertices is None)
    assert parse_scene(scene_text(Scene())).objects == ()
    assert parse_scene(CELL)["table"].shape == Shape("box", (1.0, 1.0, 0.04))


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (BOX, 0.2 * 0.3 * 0.4),
        (Shape("cylinder", (0.1, 0.5)), np.pi * 0.01 * 0.5),
        (Shape("sphere", (0.1,)), 4 / 3 * np.pi * 0.001),
        (Shape("mesh", ()), 0.2 * 0.3 * 0.4),
    ],
)
def test_the_drawn_triangles_enclose_the_volume_of_an_object(shape, volume):
    vertices = CUBE if shape.kind == "mesh" else None
    points, triangles = object_triangles(SceneObject("a", shape, (1, 0, 0), vertices=vertices))
    enclosed = np.linalg.det(points[triangles]).sum() / 6  # of outward triangles
    assert enclosed == pytest.approx(volume, rel=0.02)


def test_a_ground_is_drawn_as_a_square():
    points, triangles = object_triangles(SceneObject("a", Shape("ground", ())))
    a, b, c = points[triangles].swapaxes(0, 1)
    area = np.cross(b - a, c - a) / 2
    assert (area[:, :2] == 0).all()
    assert area[:, 2].sum() == pytest.approx(100.0)
    assert (area[:, 2] > 0).all()


def test_free_objects_that_move_leave_a_scene_the_same():
    text = "objects: {ground: {shape: ground}, cube: {shape: box, size: [1, 1, 1], mass: 1}}"
    scene, again = parse_scene(text), parse_scene(text)
    fallen = replace(scene["cube"], position=np.array([0, 0, -1.0]))
    assert again.differs_in_poses_only(scene)
    assert Scene([scene["ground"], fallen]).differs_in_poses_only(scene)
    assert Scene([scene["ground"], fallen]).motion(scene) == 1.0
    lowered = replace(scene["ground"], position=np.array([0, 0, -1.0]))
    for other in (
        Scene([lowered, scene["cube"]]), Scene([scene["ground"]]),
        Scene([scene["ground"], replace(scene["cube"], mass=2.0)]),
    ):  # fmt: skip
        assert not other.differs_in_poses_only(scene)
