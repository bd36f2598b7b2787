"""xacro files as arms, with packages near the file, and clear errors."""

import sys

import pytest

from arm_dynamics import load_arm
from arm_dynamics.control.config import parameter_file
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.model.audit.fault import UrdfRejected

HEAD = '<robot name="own" xmlns:xacro="http://www.ros.org/wiki/xacro">'
MACRO = f"""{HEAD}<xacro:macro name="limb" params="number parent mass:=1.5">
  <link name="link${{number}}"><inertial><origin xyz="0 0 ${{length / 2}}"/>
    <mass value="${{mass}}"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <joint name="J${{number}}" type="revolute"><parent link="${{parent}}"/>
    <child link="link${{number}}"/>
    <origin xyz="0 0 ${{length}}"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="2"/></joint>
</xacro:macro></robot>"""
ARM = f"""{HEAD}<xacro:arg name="mass" default="2"/><xacro:property name="length" value="0.4"/>
  <xacro:include filename="$(find my_arm)/urdf/limb.xacro"/><link name="base"/>
  <xacro:limb number="1" parent="base"/>
  <xacro:limb number="2" parent="link1" mass="$(arg mass)"/></robot>"""


@pytest.fixture
def arm(tmp_path):
    package = tmp_path / "my_arm"
    (package / "urdf").mkdir(parents=True)
    (package / "package.xml").write_text("<package/>")
    (package / "urdf/limb.xacro").write_text(MACRO)
    file = package / "urdf/arm.urdf.xacro"
    file.write_text(ARM)
    return file


def test_a_file_with_macros_arguments_and_a_package(arm):
    loaded = load_arm(arm)
    assert loaded.joint_names == ("J1", "J2")
    assert [i.mass for i in loaded.links.inertias] == [0.0, 1.5, 2.0]
    assert loaded.links.jointPlacements[2].translation.tolist() == [0, 0, 0.4]
    assert load_arm(loaded.source).urdf == loaded.urdf
    assert parameter_file(arm) is None
    plain = arm.with_name("own.urdf")
    plain.write_text(arm.read_text())  # xacro by its namespace
    assert load_arm(plain).nv == 2


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("my_arm", "other", "$(find other): package 'other' is not above the file nor installed"),
        ('<xacro:arg name="mass" default="2"/>', "", "mass; expand it with its arguments"),
        ("limb.xacro", "none.xacro", "none.xacro"),
        ('value="0.4"', 'value="${1 +}"', "xacro"),
        ('mass="$(arg mass)"', 'weight="2"', "weight"),
        ("</robot>", "", "xacro"),
    ],
)
def test_errors_name_the_file_and_the_cause(arm, old, new, text):
    assert old in ARM
    arm.write_text(ARM.replace(old, new))
    with pytest.raises(ConfigError) as error:
        load_arm(arm)
    assert str(error.value).startswith(f"{arm}: ")
    assert text in str(error.value)


def test_a_file_by_the_uri_of_its_package(arm, monkeypatch):
    monkeypatch.chdir(arm.parents[2])
    assert load_arm("package://my_arm/urdf/arm.urdf.xacro").source == arm
    assert load_arm(arm.as_uri()).nv == 2
    for uri, text in (
        ("package://other/arm.urdf", "package or scheme is unknown"),
        ("http://other/arm.urdf", "package or scheme is unknown"),
        ("package://my_arm/urdf/none.urdf", "none.urdf does not exist"),
    ):
        with pytest.raises(ConfigError, match=text):
            load_arm(uri)


def test_a_file_with_the_namespace_alone_needs_no_xacro(arm, monkeypatch):
    expanded = arm.with_name("expanded.urdf")
    head = 'xmlns:xacro="http://www.ros.org/wiki/xacro" name'
    expanded.write_text(load_arm(arm).urdf.replace("name", head, 1))
    monkeypatch.setitem(sys.modules, "xacro", None)
    assert load_arm(expanded).nv == 2


def test_faults_of_the_expanded_text_are_reported(arm):
    arm.write_text(ARM.replace('default="2"', 'default="-2"'))
    with pytest.raises(UrdfRejected, match="-2"):
        load_arm(arm)


def test_without_xacro_the_remedy_is_named(arm, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(ConfigError, match=r"xacro is not installed; .*pip install 'xacro>=2.1'"):
        load_arm(arm)
