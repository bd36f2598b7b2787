"""Mesh files that a description may open: those of its folder and of packages."""

import re
from pathlib import Path

import numpy as np
import pytest
from test_audit import GOOD, mutated

from arm_dynamics import load_arm
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.mesh_files import find_mesh
from arm_dynamics.model.visuals import visuals
from arm_dynamics.viewer.drawing import load_visuals

OUTSIDE = (
    "/etc/hostname", "file:///etc/hostname", "../../../../../../../../etc/hostname",
    "package://etc/hostname", "package://../etc/hostname", "package://bench/../../secret.stl",
    "package://./secret.stl", "file://localhost/etc/hostname", "http://127.0.0.1/arm.stl",
    "../secret.stl", "link.stl", "sub/../../secret.stl", "%2e%2e/secret.stl",
    "file:///%2e%2e/etc/hostname", "file:///etc/hostname%00.stl", "package://secrets/secret.stl",
)  # fmt: skip
MISSING = ("%2e%2e/secret.stl",)
"""Names of missing files in the folder: a separate error."""
TRIANGLE = """solid
facet normal 0 0 1
outer loop
vertex 0 0 0
vertex 1 0 0
vertex 0 1 0
endloop
endfacet
endsolid"""


def geometries(text, folder):
    """Return the number of visual shapes of the page."""
    pytest.importorskip("yourdfpy", reason="yourdfpy is not installed")
    return len(load_visuals(text, folder).scene.geometry)


def test_a_mesh_in_the_models_folder_is_displayed(tmp_path):
    (tmp_path / "arm.stl").write_text(TRIANGLE)
    text = mutated('<box size="0.2 0.1 0.1"/>', '<mesh filename="arm.stl"/>')
    assert audit_urdf(text, tmp_path) == ()
    assert geometries(text, tmp_path) == geometries(GOOD, tmp_path)


@pytest.mark.parametrize("uri", OUTSIDE)
def test_meshes_outside_the_models_folders_and_packages_are_not_opened(uri, tmp_path, monkeypatch):
    """The audit reports them, and the page does not display them."""
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    folder = tmp_path / "bench"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secrets").mkdir()
    for secret in (tmp_path / "secret.stl", tmp_path / "secrets" / "secret.stl"):
        secret.write_text("solid\nendsolid")
    (folder / "link.stl").symlink_to(tmp_path / "secret.stl")
    assert find_mesh(uri, folder) is None
    text = mutated('<box size="0.2 0.1 0.1"/>', f'<mesh filename="{uri}"/>')
    (fault,) = audit_urdf(text, folder)
    assert fault.value == uri
    if uri not in MISSING:
        assert fault.severity == "warning"
    assert geometries(text, folder) == geometries(GOOD, folder) - 1


def test_a_description_may_use_its_package_and_the_neighboring_folder(tmp_path, monkeypatch):
    """A workspace installed with symbolic links was built by its owner."""
    for place in ("lone/urdf", "lone/meshes", "ros/a/b", "prefix/share/bench", "source"):
        (tmp_path / place).mkdir(parents=True)
    for mesh in ("lone/meshes/arm.stl", "ros/arm.stl", "source/arm.stl"):
        (tmp_path / mesh).touch()
    (tmp_path / "ros" / "package.xml").touch()
    (tmp_path / "prefix/share/bench/arm.stl").symlink_to(tmp_path / "source/arm.stl")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    assert find_mesh("../meshes/arm.stl", tmp_path / "lone/urdf")
    assert find_mesh("../../arm.stl", tmp_path / "ros/a/b")
    assert find_mesh("package://bench/arm.stl", None)
    assert find_mesh(f"file://{tmp_path}/prefix/share/bench/arm.stl", None)
    assert not find_mesh("arm.stl", None)


DATA = Path(__file__).parents[1] / "data" / "urdf"
EDGES = [0.3, 0.05, 0.04]


@pytest.mark.parametrize(
    ("asset", "factor"),
    [
        ('<unit name="u" meter="0.001"/><up_axis>Z_UP</up_axis>', 1.0),
        ('<unit meter="0.01"/><up_axis>Y_UP</up_axis>', 10.0),  # RViz does not turn it
        ('<unit name="mm" meter="0"/>', 1000.0),  # no unit is 1 m
        ('<unit meter="1 mm"/><up_axis>X_UP</up_axis>', 1000.0),
        ("", 1000.0),
    ],
)
def test_collada_units_count_on_the_page_in_boxes_and_in_self_collision(asset, factor, tmp_path):
    """As in RViz and Gazebo, with the factors of the URDF in addition."""
    text = (DATA / "meshes/link_mm.dae").read_text()
    before = re.search(r"<unit .*</up_axis>", text)[0]
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes/link_mm.dae").write_text(text.replace(before, asset))
    urdf = (DATA / "dae_unit_mm.urdf").read_text()
    mesh = '<mesh filename="meshes/link_mm.dae"'
    for scale, more in (("", 1.0), (' scale="2 2 2"', 2.0)):
        file = tmp_path / "arm.urdf"
        file.write_text(urdf.replace(mesh, mesh + scale))
        arm = load_arm(file)
        edges = factor * more * np.array(EDGES)
        (visual,) = visuals(arm)
        np.testing.assert_allclose(np.ptp(visual.corners(tmp_path), axis=0), edges, rtol=1e-6)
        assert visual.scale.tolist() == [more] * 3  # RViz multiplies by the unit
        np.testing.assert_allclose(load_visuals(arm.urdf, tmp_path).scene.extents, edges, rtol=1e-6)
        box = SelfCollision(arm, 0.01, np.zeros(1))._shapes.geometryObjects[0].geometry
        box.computeLocalAABB()
        np.testing.assert_allclose(box.aabb_local.max_ - box.aabb_local.min_, edges, rtol=1e-6)


def test_missing_files_of_one_folder_and_of_one_kind_are_one_warning(tmp_path):
    """Each with the number of others; a file of two elements counts once."""
    box = '<geometry><box size="0.2 0.1 0.1"/></geometry>'
    names = ("a/1.stl", "a/2.stl", "a/2.stl", "a/3.stl", "b/1.stl", "C:\\1.stl", "D:\\2.stl",
             "package://none/1.stl", "package://none/2.stl")  # fmt: skip
    shapes = [f'<geometry><mesh filename="{name}"/></geometry>' for name in names]
    text = mutated(box, shapes[0])
    more = "".join(f"<collision>{shape}</collision>" for shape in shapes[1:])
    faults = audit_urdf(text.replace('<link name="upper">', f'<link name="upper">{more}'), tmp_path)
    assert [fault.severity for fault in faults] == ["warning"] * 4
    found = "\n".join(map(str, faults))
    assert "a/2.stl' does not exist (and 2 other files); correct" in found
    assert "b/1.stl' does not exist; correct" in found
    assert "is a path of Windows (and 1 other file); write package://" in found
    assert "package 'none' is not above the file nor installed (and 1 other file); source" in found


def test_a_page_does_not_repeat_the_warning_of_the_arm_for_each_file(tmp_path, caplog, capfd):
    """Neither as a warning nor in the log of the reader of the page's meshes."""
    box = '<geometry><box size="0.2 0.1 0.1"/></geometry>'
    shapes = [f'<geometry><mesh filename="{name}.stl"/></geometry>' for name in "abc"]
    more = "".join(f"<visual>{shape}</visual>" for shape in shapes[1:])
    text = mutated(box, shapes[0]).replace('<link name="upper">', f'<link name="upper">{more}')
    (tmp_path / "c.stl").write_text(TRIANGLE)
    (tmp_path / "arm.urdf").write_text(text)
    with pytest.warns(RuntimeWarning, match=r"1 other file") as given:
        load_arm(tmp_path / "arm.urdf")
    assert len(given) == 1
    assert geometries(text, tmp_path) == geometries(GOOD, tmp_path)
    assert not caplog.records
    assert not capfd.readouterr().err
    with pytest.warns(RuntimeWarning, match="the text has no folder") as given:
        parse_arm(text)
    assert len(given) == 1
