"""robot_description: mesh URIs that RViz resolves, and no file that the audit rejects."""

import warnings
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

import mimic_arm
import numpy as np
import pinocchio as pin
import pytest
from test_audit import GOOD, mutated
from test_mesh_files import OUTSIDE

from arm_dynamics import load_arm
from arm_dynamics.core import resources
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.robot_description import robot_description, with_resolvable_uris
from arm_dynamics.model.xml_source import parse_xml

BOX = '<box size="0.2 0.1 0.1"/>'


def meshes(text):
    return [node.get("filename") for node in ElementTree.fromstring(text).iter("mesh")]


def with_mesh(uri):
    return mutated(BOX, f'<mesh filename="{uri}"/>')


def opened(uri):
    """Return the file as resource_retriever opens it: a URL, percent-decoded."""
    url = urlparse(uri)
    assert (url.scheme, url.netloc) == ("file", "")
    return Path(unquote(url.path))


@pytest.mark.parametrize("name", resources.resource_names("urdf", ".urdf"))
def test_a_description_without_meshes_is_published_unchanged(name):
    arm = load_arm(name)
    assert robot_description(arm) is arm.urdf


def test_meshes_found_by_folder_are_published_as_file_uris(tmp_path, monkeypatch):
    """As for UR5 of example-robot-data: its package is a folder, not an ament package."""
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    package = tmp_path / "a b#c" / "bench"
    for place in ("urdf", "meshes"):
        (package / place).mkdir(parents=True)
    mesh, source = package / "meshes/arm 50%.stl", package / "urdf/arm.urdf"
    mesh.write_text("solid\nendsolid")
    for uri in ("package://bench/meshes/arm 50%.stl", "../meshes/arm 50%.stl"):
        source.write_text(with_mesh(uri))
        (found,) = meshes(robot_description(load_arm(source)))
        assert opened(found).samefile(mesh)
    again = with_resolvable_uris(robot_description(load_arm(source)), source.parent)
    assert meshes(again) == [found]  # a second node that reads it publishes the same


def test_uris_of_ament_packages_are_kept(tmp_path, monkeypatch):
    installed = tmp_path / "prefix/share"
    for place in ("bench/meshes", "ament_index/resource_index/packages"):
        (installed / place).mkdir(parents=True)
    (installed / "bench/meshes/arm.stl").touch()
    (installed / "ament_index/resource_index/packages/bench").touch()
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path}/other:{tmp_path}/prefix")
    known = with_mesh("package://bench/meshes/arm.stl")
    assert with_resolvable_uris(known, None) is known
    (installed / "ament_index/resource_index/packages/bench").unlink()
    (found,) = meshes(with_resolvable_uris(known, None))
    assert opened(found) == installed / "bench/meshes/arm.stl"


@pytest.mark.parametrize("linked", [False, True])
def test_a_relative_mesh_of_an_installed_package_is_published_as_package(
    tmp_path, monkeypatch, linked
):
    """The allow list of Foxglove has ``package://``, not ``file://``."""
    source, prefix = tmp_path / "src/bench", tmp_path / "prefix"
    installed = prefix / "share/bench"
    for place in (source / "urdf", source / "meshes", installed / "urdf", installed / "meshes"):
        place.mkdir(parents=True)
    (source / "package.xml").touch()
    (source / "meshes/arm.stl").write_text("solid\nendsolid")
    (source / "urdf/arm.urdf").write_text(with_mesh("../meshes/arm.stl"))
    for file in ("meshes/arm.stl", "urdf/arm.urdf"):  # as `colcon build --symlink-install`
        (installed / file).symlink_to(source / file)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    used = source if linked else installed
    (found,) = meshes(robot_description(load_arm(used / "urdf/arm.urdf")))
    assert opened(found).samefile(source / "meshes/arm.stl")  # not in ament's index
    index = prefix / "share/ament_index/resource_index/packages"
    index.mkdir(parents=True)
    (index / "bench").touch()
    (found,) = meshes(robot_description(load_arm(used / "urdf/arm.urdf")))
    assert found == "package://bench/meshes/arm.stl"
    if not linked:
        return
    (installed / "meshes/arm.stl").unlink()
    (installed / "meshes/arm.stl").write_text("solid other\nendsolid")  # an older installation
    (found,) = meshes(robot_description(load_arm(used / "urdf/arm.urdf")))
    assert opened(found).samefile(source / "meshes/arm.stl")


@pytest.mark.parametrize("uri", OUTSIDE)
def test_files_outside_the_allowed_folders_are_not_resolved(uri, tmp_path, monkeypatch):
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    folder = tmp_path / "bench"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.stl").write_text("solid\nendsolid")
    (folder / "link.stl").symlink_to(tmp_path / "secret.stl")
    text = with_mesh(uri)
    assert with_resolvable_uris(text, folder) is text


def test_only_uris_of_meshes_and_textures_change(tmp_path):
    (tmp_path / "arm.stl").touch()
    before, after = with_mesh("arm.stl"), with_resolvable_uris(with_mesh("arm.stl"), tmp_path)
    old, new = (list(ElementTree.fromstring(text).iter()) for text in (before, after))
    assert [node.tag for node in old] == [node.tag for node in new]
    changed = [n.tag for o, n in zip(old, new, strict=True) if o.attrib != n.attrib]
    assert changed == ["mesh"]
    assert parse_arm(after, tmp_path / "arm.urdf").joint_names == parse_arm(GOOD).joint_names


PANDA = ("panda_finger_joint1", "panda_finger_joint2")


@pytest.mark.parametrize(
    ("arm", "lock"),
    [
        ("puma560", ("J2", "J5")),
        ("five_dof", ("R2", "R5")),
        ("panda", PANDA),
        ("panda", ("panda_joint4", *PANDA)),
    ],
)
def test_locked_joints_are_fixed_at_their_position(arm, lock):
    """All link poses are unchanged by Pinocchio's parser; only joints with states can move."""
    if arm == "panda":
        try:
            every = metadata.files("example-robot-data") or ()
        except metadata.PackageNotFoundError:
            pytest.skip("example-robot-data is not installed (extra: test)")
        arm = next(Path(f.locate()) for f in every if f.name == "panda.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        locked = load_arm(arm, lock)
        text = robot_description(locked)
        again = parse_arm(text)
    assert again.joint_names == locked.joint_names
    assert not again.locked
    q = locked.configuration("initial") + 0.1
    for link in (f.name for f in locked.model.frames if f.type == pin.BODY):
        np.testing.assert_allclose(
            placement(again, link, q), placement(locked, link, q), atol=1e-12, err_msg=link
        )


def test_mimic_joints_follow_driven_joints():
    """Programs that follow one <mimic> only place the links of a chain of them."""
    arm = parse_arm(mimic_arm.text())
    again = parse_arm(robot_description(arm))
    assert again.mimic_joints == arm.mimic_joints
    written = parse_xml(again.urdf).find_all("joint")
    assert {node.get("joint") for joint in written for node in joint.find_all("mimic")} == {
        "knuckle"
    }
    q = np.array([0.3, -0.2, 0.4])
    np.testing.assert_allclose(
        placement(again, "pad_link", q), placement(arm, "pad_link", q), atol=1e-14
    )


def placement(arm, link, q):
    data = arm.model.createData()
    pin.framesForwardKinematics(arm.model, data, np.asarray(q))
    return data.oMf[arm.model.getFrameId(link, pin.BODY)].homogeneous
