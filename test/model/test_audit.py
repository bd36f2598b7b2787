"""The audit: each kind of fault is reported with line, element and value."""

import ast
import warnings
from pathlib import Path

import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.model import audit as package
from arm_dynamics.model import xml_source
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.audit.fault import Fault, UrdfRejected, format_report
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.urdf_text import UrdfText
from arm_dynamics.model.xml_source import XmlSyntaxError, parse_xml, with_valid_comments

GOOD = """<?xml version="1.0"?>
<robot name="good">
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0 0" rpy="0 0 0"/>
      <mass value="2.0"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/>
    </inertial>
    <visual><geometry><box size="0.2 0.1 0.1"/></geometry></visual>
  </link>
  <link name="fore">
    <inertial>
      <mass value="1.0"/>
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>
    </inertial>
  </link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 0.3"/>
    <parent link="base"/>
    <child link="upper"/>
    <axis xyz="0 0 1"/>
    <limit lower="-1.2" upper="0.7" effort="50" velocity="3"/>
    <dynamics damping="0.1" friction="0.2"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/>
    <child link="fore"/>
    <axis xyz="0 1 0"/>
  </joint>
  <joint name="mount" type="fixed">
    <parent link="fore"/>
    <child link="tool"/>
  </joint>
  <ros2_control name="arm" type="system">
    <joint name="shoulder">
      <param name="actuator">dc_motor</param>
      <param name="kt">10</param>
      <param name="ke">10</param>
      <param name="resistance">1</param>
      <param name="stop_stiffness">50</param>
      <command_interface name="effort"/>
      <state_interface name="position"><param name="initial_value">-1.1</param></state_interface>
    </joint>
    <joint name="elbow">
      <command_interface name="effort"/>
      <command_interface name="velocity"/>
    </joint>
  </ros2_control>
</robot>
"""
FORE_INERTIAL = GOOD[GOOD.index('  <link name="fore">') : GOOD.index('  <link name="tool"/>')]
SHOULDER_LIMIT = '    <limit lower="-1.2" upper="0.7" effort="50" velocity="3"/>\n'

# old text, new text, line of the fault, words of its message
ERRORS = {
    # numbers
    "unit": ('value="2.0"', 'value="2kg"', 7, "link 'upper' <mass value>: '2kg' has a unit, 'kg'"),
    "unit after a space": ('value="2.0"', 'value="2 kg"', 7, "'2 kg' has a unit"),
    "comma": ('value="2.0"', 'value="2,5"', 7, "'2,5' has a comma; write decimals with a point"),
    "commas": ('"0.1 0 0"', '"0.1,0,0"', 6, "'0.1,0,0' has a comma"),
    "nan": ('ixx="0.02"', 'ixx="nan"', 8, "link 'upper' <inertia ixx>: nan is not finite"),
    "inf": ('upper="0.7"', 'upper="inf"', 24, "joint 'shoulder' <limit upper>: inf is not finite"),
    "overflow": ('damping="0.1"', 'damping="1e999"', 25, "1e999 is not finite"),
    "word": ('value="2.0"', 'value="heavy"', 7, "'heavy' is not a number"),
    "python": ('value="2.0"', 'value="2_0"', 7, "2_0 is not a number"),
    "empty": ('value="2.0"', 'value=" "', 7, "<mass value>: the value is empty"),
    "xacro text": ('value="2.0"', 'value="${m}"', 7, "'${m}' is a xacro expression"),
    "short xyz": ('"0.1 0 0"', '"0.1 0"', 6, "<origin xyz>: '0.1 0' has 2 numbers where 3 belong"),
    "long rpy": ('rpy="0 0 0"', 'rpy="0 0 0 1"', 6, "<origin rpy>: '0 0 0 1' has 4 numbers"),
    "short axis": ('"0 0 1"', '"0 1"', 23, "joint 'shoulder' <axis xyz>: '0 1' has 2 numbers"),
    "axis without xyz": ('<axis xyz="0 0 1"/>', "<axis/>", 23, "<axis xyz>: xyz is missing"),
    "inertia without izz": (' izz="0.04"', "", 8, "<inertia izz>: izz is missing"),
    "negative box": ('"0.2 0.1 0.1"', '"0.2 -1 0.1"', 10, "<box size>: '0.2 -1 0.1' is negative"),
    # structure
    "robot name": (' name="good"', "", 2, "the robot has no name"),
    "link name": (
        '<link name="tool"/>',
        '<link name="tool"/><link/>',
        18,
        "<link name>: the name is",
    ),
    "link twice": (
        '<link name="tool"/>',
        '<link name="tool"/><link name="base"/>',
        18,
        "link 'base' name: 'base' is already the name of the link on line 3",
    ),
    "joint twice": (
        'joint name="mount"',
        'joint name="elbow"',
        32,
        "joint 'elbow' name: 'elbow' is already the name of the joint on line 27",
    ),
    "unknown parent": (
        '<parent link="base"/>',
        '<parent link="bse"/>',
        21,
        "joint 'shoulder' <parent link>: 'bse' is not a link of this robot; did you mean 'base'?",
    ),
    "unknown child": ('<child link="fore"/>', '<child link="x"/>', 29, "'x' is not a link"),
    "no parent": ('    <parent link="upper"/>\n', "", 27, "the parent link is missing"),
    "no child": ('<child link="fore"/>', "<child/>", 29, "the child link is missing"),
    "two parents": (
        '<child link="tool"/>',
        '<child link="tool"/></joint><joint name="j" type="fixed">'
        '\n<parent link="base"/><child link="tool"/>',
        35,
        "joint 'j' <child link>: 'tool' already is the child of joint 'mount' on line 32",
    ),
    "cycle at the base": (
        '<child link="tool"/>',
        '<child link="base"/>',
        34,
        "joint 'mount' <child link>: 'base' is also above 'fore': the joints form a cycle",
        "is a second root",
    ),
    "two roots": (
        '<link name="tool"/>',
        '<link name="tool"/><link name="stray"/>',
        18,
        "link 'stray': 'stray' is a second root in addition to 'base'",
    ),
    "xacro element": (
        '<link name="tool"/>',
        '<link name="tool"/><xacro:arm xmlns:xacro="http://ros.org/wiki/xacro"/>',
        18,
        "<xacro:arm>: is xacro, not yet URDF",
    ),
    "namespace": (
        'name="good"',
        'name="good" xmlns="http://ros.org"',
        2,
        "<robot xmlns>: 'http://ros.org' is a default namespace, which URDF elements do not have",
    ),
    # inertia
    "no inertial": (
        FORE_INERTIAL,
        '  <link name="fore"/>\n',
        12,
        "link 'fore': <inertial> is missing with the links fixed to it (tool); joint 'elbow' moves",
    ),
    "no mass": ('      <mass value="2.0"/>\n', "", 5, "link 'upper' <inertial>: <mass> is missing"),
    "negative mass": ('value="2.0"', 'value="-2"', 7, "link 'upper' <mass value>: -2 is negative"),
    "zero mass": ('value="2.0"', 'value="0"', 7, "0 is zero"),
    "negative moment": ('ixx="0.02"', 'ixx="-0.02"', 8, "'-0.02 0.03 0.04' [kg·m²] are its"),
    "indefinite": ('ixy="0" ixz="0" iyy="0.03"', 'ixy="9" ixz="0" iyy="0.03"', 8, "not positive"),
    "triangle": ('izz="0.04"', 'izz="0.06"', 8, "'0.02 0.03 0.06' [kg·m²] are its principal mo"),
    "just a triangle": ('izz="0.04"', 'izz="0.0500001"', 8, "break the triangle inequality"),
    # joints
    "no type": (' type="fixed"', "", 32, "joint 'mount' type: the type is missing; allowed: "),
    "unknown type": (
        'type="continuous"',
        'type="Continuous"',
        27,
        "joint 'elbow' type: 'Continuous' is not a joint type; did you mean 'continuous'?",
    ),
    "floating": ('type="fixed"', 'type="floating"', 32, "'floating' has several coordinates"),
    "planar": ('type="fixed"', 'type="planar"', 32, "'planar' has several coordinates"),
    "unknown mimic": (
        '<axis xyz="0 1 0"/>',
        '<axis xyz="0 1 0"/><mimic joint="shulder"/>',
        30,
        "joint 'elbow' <mimic joint>: 'shulder' is not a joint of this robot; did you mean 'sh",
    ),
    "mimic of nothing": (
        '<axis xyz="0 1 0"/>',
        '<axis xyz="0 1 0"/><mimic/>',
        30,
        "joint 'elbow' <mimic joint>: the driven joint is missing",
    ),
    "mimic of a fixed joint": (
        '<axis xyz="0 1 0"/>',
        '<axis xyz="0 1 0"/><mimic joint="mount"/>',
        30,
        "'mount' has no position that can be followed; lock 'elbow', or make it fixed",
    ),
    "mimic of itself": (
        '<axis xyz="0 1 0"/>',
        '<axis xyz="0 1 0"/><mimic joint="elbow"/>',
        30,
        "'elbow' follows this joint: elbow → elbow; remove one <mimic>",
    ),
    "mimic without motion": (
        '<axis xyz="0 1 0"/>',
        '<axis xyz="0 1 0"/><mimic joint="shoulder" multiplier="0.0"/>',
        30,
        "joint 'elbow' <mimic multiplier>: 0.0 is zero: the joint cannot move",
    ),
    "mimic of a joint behind": (
        '<axis xyz="0 0 1"/>',
        '<axis xyz="0 0 1"/><mimic joint="elbow"/>',
        23,
        "joint 'shoulder' <mimic joint>: 'elbow' is behind this joint, which cannot follow it",
    ),
    "zero axis": (
        '"0 0 1"',
        '"0 0 0"',
        23,
        "joint 'shoulder' <axis xyz>: '0 0 0' has no direction",
    ),
    "no limit": (SHOULDER_LIMIT, "", 19, "joint 'shoulder' <limit>: <limit> is missing"),
    "lower above upper": (
        'lower="-1.2"',
        'lower="1.2"',
        24,
        "joint 'shoulder' <limit lower>: 1.2 is above upper 0.7; swap or correct them",
        "is outside the limits",
    ),
    "no effort": (' effort="50"', "", 24, "<limit effort>: effort is missing"),
    "no velocity": (' velocity="3"', "", 24, "<limit velocity>: velocity is missing"),
    "negative effort": ('effort="50"', 'effort="-50"', 24, "<limit effort>: -50 is negative"),
    "negative speed": ('velocity="3"', 'velocity="-3"', 24, "<limit velocity>: -3 is negative"),
    "negative damping": ('damping="0.1"', 'damping="-0.1"', 25, "<dynamics damping>: -0.1 is neg"),
    "negative friction": ('friction="0.2"', 'friction="-2"', 25, "<dynamics friction>: -2 is neg"),
    # ros2_control
    "controls an unknown joint": (
        '<joint name="elbow">\n      <command',
        '<joint name="elbov">\n      <command',
        46,
        "<ros2_control> <joint name>: 'elbov' is not a joint of this robot; did you mean 'elbow'?",
    ),
    "controls a joint twice": (
        '<joint name="elbow">\n      <command',
        '<joint name="shoulder">\n      <command',
        46,
        "<ros2_control> <joint name>: 'shoulder' was already given on line 37",
    ),
    "unknown actuator": (
        ">dc_motor<",
        ">dc_motr<",
        38,
        "<ros2_control> joint 'shoulder' <param actuator>: 'dc_motr' is not an actuator; known: ",
    ),
    "motor constant missing": (
        '      <param name="ke">10</param>\n',
        "",
        38,
        "<ros2_control> joint 'shoulder' <param ke>: ke is missing",
    ),
    "motor constant out of range": (
        '"kt">10<',
        '"kt">-10<',
        39,
        "<ros2_control> joint 'shoulder' <param kt>: -10 is out of range; allowed: ",
    ),
    "motor constant with unit": ('"kt">10<', '"kt">10Nm<', 39, "'10Nm' has a unit, 'Nm'"),
    "motor constant twice": ('"ke">10<', '"kt">10</param><param name="ke">1<', 40, "line 39"),
    "stiction below Coulomb": (
        '"ke">10<',
        '"ke">10</param><param name="coulomb_friction">0.2</param>\n<param name="stiction">0.1<',
        41,
        "<ros2_control> joint 'shoulder' <param stiction>: 0.1 is below coulomb_friction = 0.2",
    ),
    "play without inertia": (
        '"ke">10<',
        '"ke">10</param><param name="gear_stiffness">9</param><param name="backlash">0.1<',
        40,
        "<ros2_control> joint 'shoulder' <param backlash>: 0.1 needs a rotor_inertia; give",
    ),
    "derating without limit": (
        '"ke">10<',
        '"ke">10</param><param name="thermal_resistance">2</param>'
        '<param name="derating_temperature">80</param><param name="max_temperature">90<',
        40,
        "<param max_temperature>: 90 needs a current_limit; give current_limit",
    ),
    "stop": (
        'stiffness">50<',
        'stiffness">-50<',
        42,
        "<param stop_stiffness>: -50 is out of range",
    ),
    "param without name": ('name="kt">10<', 'name="kt">10</param><param>1<', 39, "the name is"),
    "start outside": (
        "-1.1",
        "-1.3",
        44,
        "-1.3 is outside the limits; choose one from -1.2 to 0.7",
    ),
    "start not finite": ("-1.1", "nan", 44, "<param initial_value>: nan is not finite"),
    "command": ('name="effort"', 'name="torque"', 43, "<command_interface name>: 'torque' is not"),
    "tool frame": (
        '<joint name="elbow">\n      <command',
        '<hardware><param name="tool_frame">tol</param></hardware>'
        '<joint name="elbow">\n      <command',
        46,
        "<ros2_control> <param tool_frame>: 'tol' is not a link of this robot; "
        "the links are: base, upper, fore, tool",
    ),
    "empty tool frame": (
        '<joint name="elbow">\n      <command',
        '<hardware><param name="tool_frame"/></hardware><joint name="elbow">\n      <command',
        46,
        "<param tool_frame>: the link is missing; the links are: base",
    ),
}

WARNINGS = {
    # Files: a missing mesh does not affect the physics.
    "mesh": (
        '<box size="0.2 0.1 0.1"/>',
        '<mesh filename="meshes/arm.stl"/>',
        10,
        "link 'upper' <mesh filename>: 'meshes/arm.stl' does not exist",
    ),
    "mesh without file": ('<box size="0.2 0.1 0.1"/>', "<mesh/>", 10, "filename is missing"),
    "mesh of xacro": (
        '<box size="0.2 0.1 0.1"/>',
        '<mesh filename="$(find arm)/meshes/arm.stl"/>',
        10,
        "arm.stl' cannot be checked: it is a xacro expression; expand the file with xacro first",
    ),
    "mesh of Windows": (
        '<box size="0.2 0.1 0.1"/>',
        '<mesh filename="C:\\meshes\\arm.stl"/>',
        10,
        "'C:\\meshes\\arm.stl' cannot be checked: it is a path of Windows; write package://",
    ),
    "mesh with file:///C:": (
        '<box size="0.2 0.1 0.1"/>',
        '<mesh filename="file:///C:/meshes/arm.stl"/>',
        10,
        "'file:///C:/meshes/arm.stl' cannot be checked: it is a path of Windows",
    ),
    "mesh with backslashes": (
        '<box size="0.2 0.1 0.1"/>',
        '<mesh filename="meshes\\arm.stl"/>',
        10,
        "'meshes\\arm.stl' cannot be checked: it has backslashes",
    ),
    "long axis": ('"0 0 1"', '"0 0 2"', 23, "'0 0 2' has length 2 and is normalized"),
    "weak joint": ('effort="50"', 'effort="0"', 24, "<limit effort>: 0 is zero"),
    "stuck joint": (
        '"-1.2" upper="0.7"',
        '"-1.1" upper="-1.1"',
        24,
        "-1.1 is also upper: the joint",
    ),
    "degrees": (
        '"-1.2" upper="0.7"',
        '"-180" upper="180"',
        24,
        "<limit lower>: -180 [rad] is 28.6 turns; write radians (-180° are -3.14159 rad)",
    ),
    "degrees of an origin": (
        'xyz="0 0 0.3"',
        'xyz="0 0 0.3" rpy="0 90 0"',
        20,
        "<origin rpy>: '0 90 0' [rad] turns by 5157°; write radians (90° are ",
    ),
    "millimeters": (
        '"0 0 0.3"',
        '"0 0 300"',
        20,
        "'0 0 300' [m] is a length of 300 m; write meters (300 mm are 0.3 m)",
    ),
    "huge inertia": (
        'iyy="0.03" iyz="0" izz="0.04"',
        'iyy="5" iyz="0" izz="5"',
        8,
        "5 [kg·m²] is its largest principal moment, for 2 kg: a radius of gyration of"
        " 1.58 m in an arm that extends 0.4 m",
    ),
    "tiny inertia": (
        '"0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"',
        '"2e-5" ixy="0" ixz="0" iyy="3e-5" iyz="0" izz="4e-5"',
        8,
        "4e-05 [kg·m²] is its largest principal moment, for 2 kg: a ball of the densest"
        " metal has 0.000611",
    ),
    "no axis": (
        '<axis xyz="0 0 1"/>',
        "",
        19,
        "joint 'shoulder' <axis>: the axis is missing: 1 0 0 is assumed",
    ),
    "transmission": (
        "</robot>",
        '<transmission name="t"><joint name="elbow"/><actuator name="m">'
        "<mechanicalReduction>101</mechanicalReduction></actuator></transmission></robot>",
        51,
        "'t' is ignored (joints: elbow; mechanicalReduction: 101)",
    ),
    "foreign plugin": (
        'type="system">',
        'type="system"><hardware><plugin>gz_ros2_control/GazeboSimSystem</plugin></hardware>',
        36,
        "'gz_ros2_control/GazeboSimSystem' is ignored: it is ros2_control's, for 2",
    ),
    "point mass": (
        '"0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"',
        '"0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"',
        8,
        "link 'upper' <inertia>: the tensor is zero: the link counts as a point mass",
    ),
    "thin rod": (
        '"0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"',
        '"0.03" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0"',
        8,
        "link 'upper' <inertia>: '0 0.03 0.03' [kg·m²] are its principal moments: the smallest is"
        " zero, which other programs reject; give the body a thickness: a rod of mass m and radius"
        " r has m r²/2 about its axis",
    ),
    "heavy base": (
        '<link name="base"/>',
        '<link name="base"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" '
        'iyz="0" izz="1"/></inertial></link>',
        3,
        "link 'base' <inertial>: a root link's inertia has no effect",
    ),
    "mass twice": ('<mass value="2.0"/>', '<mass value="2"/><mass value="3"/>', 7, "given twice"),
    "unknown param": ('"stop_stiffness"', '"stop_stifness"', 42, "did you mean 'stop_stiffness'?"),
    "more commands": ('name="velocity"', 'name="acceleration"', 48, "'acceleration' is not a comm"),
    "omitted": (
        '    <joint name="elbow">\n      <command_interface name="effort"/>\n'
        '      <command_interface name="velocity"/>\n    </joint>\n',
        "",
        27,
        "joint 'elbow': it is not in <ros2_control>: it gets an ideal actuator",
    ),
    "fixed and driven": (
        '<joint name="elbow">\n      <command',
        '<joint name="mount"/><joint name="elbow">\n      <command',
        46,
        "<ros2_control> <joint name>: 'mount' is a fixed joint",
    ),
    "package": (
        '<box size="0.2 0.1 0.1"/>',
        '<mesh filename="package://nowhere_to_be_found/arm.stl"/>',
        10,
        "package 'nowhere_to_be_found' is not above the file nor installed",
    ),
    "scheme": (
        '<box size="0.2 0.1 0.1"/>',
        '<mesh filename="https://example.org/arm.stl"/>',
        10,
        "scheme 'https' is not known",
    ),
}


def mutated(old: str, new: str) -> str:
    """Return the valid robot with one text replaced."""
    assert GOOD.count(old) >= 1, f"the good robot has no {old}"
    return GOOD.replace(old, new, 1)


def test_a_valid_robot_has_no_faults(tmp_path):
    assert audit_urdf(GOOD, tmp_path) == ()
    assert format_report("good.urdf", ()) == "good.urdf: no faults"


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS.keys())
def test_one_error(case, tmp_path):
    old, new, line, words, *consequences = case
    faults = audit_urdf(mutated(old, new), tmp_path)
    direct = [f for f in faults if not any(words in str(f) for words in consequences)]
    errors = [fault for fault in direct if fault.severity == "error"]
    assert len(errors) == 1, format_report("broken", faults)
    assert words in str(errors[0])
    assert errors[0].line == line
    assert str(errors[0]).startswith(f"line {line}: ")
    assert errors[0].remedy


@pytest.mark.parametrize("case", WARNINGS.values(), ids=WARNINGS.keys())
def test_one_warning(case, tmp_path):
    old, new, line, words = case
    (fault,) = audit_urdf(mutated(old, new), tmp_path)
    assert (fault.severity, fault.line) == ("warning", line)
    assert words in str(fault)
    assert str(fault).startswith(f"line {line}: warning: ")


def test_grams_and_millimeters_are_distinguished_from_kilograms_and_meters(tmp_path):
    """Masses a thousand times larger are reported, but not those of an arm 1000 times longer."""
    grams = GOOD.replace('value="2.0"', 'value="2000"').replace('value="1.0"', 'value="800"')
    texts = [str(fault) for fault in audit_urdf(grams, tmp_path) if "<mass value>" in str(fault)]
    assert len(texts) == 2
    assert "2000 [kg] is 2000 kg of an arm of 2800 kg that extends 0.4 m" in texts[0]
    assert "800 [kg] is 800 kg of an arm of 2800 kg" in texts[1]
    assert "write kilograms (800 g are 0.8 kg)" in texts[1]
    small = GOOD.replace('value="2.0"', 'value="400"').replace('value="1.0"', 'value="30"')
    assert sum("write kilograms" in str(fault) for fault in audit_urdf(small, tmp_path)) == 2
    heavy = small.replace('"0 0 0.3"', '"0 0 1.3"')
    assert not any("write kilograms" in str(fault) for fault in audit_urdf(heavy, tmp_path))


@pytest.mark.parametrize(("reach", "warnings"), [(1.2, 1), (2.4, 0)])
def test_a_heavy_link_of_a_large_arm_is_not_in_grams(reach, warnings, tmp_path):
    """1129 kg within 1.3 m are 514 kg/m³; within 2.5 m, as robots of one ton, 72 kg/m³."""
    text = GOOD.replace('value="2.0"', 'value="798"').replace('value="1.0"', 'value="331"')
    text = text.replace('"0 0 0.3"', f'"0 0 {reach}"')
    texts = [str(fault) for fault in audit_urdf(text, tmp_path) if "kilograms" in str(fault)]
    assert len(texts) == warnings


# Effort limits ----------------------------------------------------------------------------------

HELD = """<link name="{child}"><inertial><origin xyz="{center}"/><mass value="2"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{child}" type="{kind}"><origin xyz="0.3 0 0.1"/><parent link="{parent}"/>
<child link="{child}"/><axis xyz="{axis}"/>
<limit lower="-2" upper="2" effort="{effort}" velocity="1"/></joint>"""


def holding(*joints):
    """Return a chain of joints: kind, axis, center of mass, effort limit."""
    text, parent = "<robot name='arm'><link name='base'/>", "base"
    for number, (kind, axis, center, effort) in enumerate(joints):
        given = {"kind": kind, "axis": axis, "center": center, "effort": effort}
        text += HELD.format(parent=parent, child=f"l{number}", **given)
        parent = f"l{number}"
    return f"{text}</robot>"


@pytest.mark.parametrize(
    ("joints", "words"),
    [
        # 2 kg at 0.2 m: 3.924 N m; with 2 kg at 0.5 m: 13.734 N m
        ([("revolute", "0 1 0", "0.2 0 0", 3.93)], []),
        ([("revolute", "0 1 0", "0.2 0 0", 3.92)], ["3.92 [N·m] is below the joint's gravity torque"
          " of 3.924 N·m in the initial configuration; write the motor's limit"]),
        ([("revolute", "0 -1 0", "0.2 0 0", 1), ("revolute", "0 1 0", "0.2 0 0", 1)],
         ["torque of 13.73 N·m in the initial", "torque of 3.924 N·m in the initial"]),
        ([("revolute", "0 0 1", "0.2 0 0", 1), ("revolute", "0 0 1", "0.2 0 0", 1)], []),
        # upright: no torque in the initial configuration
        ([("revolute", "0 1 0", "0 0 0.2", 2.0)], []),
        ([("revolute", "0 1 0", "0 0 0.2", 1.0)], ["N·m within its position limits"]),
        ([("prismatic", "0 0 1", "0 0 0", 19.6)], ["19.6 [N] is below the joint's gravity force of"
          " 19.62 N in the initial configuration"]),
        ([("prismatic", "1 0 0", "0 0 0", 1)], []),
    ],
)  # fmt: skip
def test_effort_limits_below_the_gravity_torque_are_named(joints, words):
    found = [fault for fault in audit_urdf(holding(*joints)) if "gravity" in fault.problem]
    assert [fault.severity for fault in found] == ["warning"] * len(words)
    for fault, texts in zip(found, words, strict=True):
        assert texts in str(fault)


def test_a_locked_joint_holds_anything():
    text = holding(("revolute", "0 1 0", "0.2 0 0", 1), ("revolute", "0 1 0", "0.2 0 0", 9))
    assert not any("gravity" in f.problem for f in audit_urdf(text, lock=["l0"]))


@pytest.mark.parametrize("value", ["0", "-1"])
def test_placeholders_of_exporters_are_named(value, tmp_path):
    text = mutated('effort="50" velocity="3"', f'effort="{value}" velocity="{value}"')
    texts = [str(fault) for fault in audit_urdf(text, tmp_path)]
    assert len(texts) == 2
    for limit, fault in zip(("effort", "velocity"), texts, strict=True):
        assert f"joint 'shoulder' <limit {limit}>: {value} is " in fault
        assert "write the motor's limit, above 0 (exporters write 0 or -1 for an unkn" in fault


def test_no_warning_for_a_base_a_locked_joint_or_a_driver_of_this_package(tmp_path):
    base = GOOD.replace(
        '<link name="base"/>',
        '<link name="base"><inertial><mass value="900"/>'
        '<inertia ixx="9" ixy="0" ixz="0" iyy="9" iyz="0" izz="9"/></inertial></link>',
    )
    assert not any("[kg" in str(fault) for fault in audit_urdf(base, tmp_path))
    turned = GOOD.replace('lower="-1.2"', 'lower="-120"')
    assert not any(
        "turns" in str(fault) for fault in audit_urdf(turned, tmp_path, lock=["shoulder"])
    )
    driven = GOOD.replace(
        'type="system">',
        'type="system"><hardware><plugin>x/Y</plugin>'
        '<param name="driver">feetech</param></hardware>',
    )
    assert not any("plugin" in str(fault) for fault in audit_urdf(driven, tmp_path))


def test_all_faults_of_a_file_are_reported_together(tmp_path):
    """Several mutations that keep the line numbers and do not hide each other, in one file."""
    kinds = (
        *("unit", "negative moment", "negative box", "zero axis", "lower above upper"),
        *("negative damping", "unknown mimic", "floating", "motor constant out of range", "stop"),
        *("start not finite", "two roots"),
    )
    text, expected = GOOD, []
    for kind in kinds:
        old, new, line, words, *_ = ERRORS[kind]
        assert old in text, f"an earlier mutation has taken {old}"
        text = text.replace(old, new, 1)
        expected.append((line, words))
    faults = audit_urdf(text, tmp_path)
    for line, words in expected:
        assert any(fault.line == line and words in str(fault) for fault in faults), words
    lines = [fault.line for fault in faults]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "not well-formed XML: no element found"),
        (GOOD.replace("</robot>", ""), 52, "not well-formed XML: no element found"),
        (GOOD.replace('"2.0"/>', "2.0/>", 1), 7, "not well-formed XML"),
        ("\n<!DOCTYPE r [<!ENTITY a 'b'>]><robot name='r'/>", 2, "<!DOCTYPE> is rejected"),
        (GOOD.replace("<axis", "<foo:bar/><axis", 1), 23, "unbound prefix; declare it (xmlns:"),
        (GOOD.replace("<axis", "<axis foo:bar='1'", 1), 23, "unbound prefix"),
        (GOOD.replace("<axis", "<xacro:arm/><axis", 1), 23, "unbound prefix; declare it"),
        ("<sdf/>", 1, "'sdf' is not a URDF's root element"),
        ("<robot name='r'/>", 1, "robot 'r': it has no <link>"),
        ("\ud800", 1, "not well-formed XML"),
    ],
)
def test_text_without_a_robot_is_rejected(text, line, words):
    (fault,) = audit_urdf(text)
    assert fault.line == line
    assert words in str(fault)


BEFORE_SHOULDER = '  <joint name="shoulder" type="revolute">'


@pytest.mark.parametrize(
    ("comment", "valid"),
    [
        ("<!-- base -- shoulder -->", "<!-- base == shoulder -->"),
        ("<!--------- shoulder --------->", "<!--======= shoulder =======-->"),
        ("<!-- shoulder --->", "<!-- shoulder =-->"),
    ],
)
def test_double_hyphens_in_a_comment_are_a_warning(comment, valid, tmp_path):
    """The places of all elements are preserved, and the arm's text is valid XML."""
    text = mutated(BEFORE_SHOULDER, f"{comment}<!-- a-b --><!--c--d-->{BEFORE_SHOULDER}")
    line = text[: text.index(comment)].count("\n") + 1
    (fault,) = audit_urdf(text, tmp_path)
    assert str(fault) == (
        f"line {line}: warning: comment: '--' is not allowed in an XML comment (and in 1 more):"
        " other programs reject the file; write single hyphens"
    )
    corrected = text.replace(comment, valid).replace("c--d", "c==d")
    with pytest.warns(RuntimeWarning, match="is not allowed in an XML comment"):
        arm = parse_arm(text, tmp_path / "arm.urdf")
    assert arm.urdf == corrected
    assert UrdfText(text).text() == corrected
    assert [node.line for node in parse_xml(text).walk()] == [
        node.line for node in parse_xml(corrected).walk()
    ]


def test_a_comment_without_an_end_hides_no_element():
    """The comment after it has an end, which is not that of the first one."""
    text = mutated(BEFORE_SHOULDER, f"<!-- one {BEFORE_SHOULDER} <!-- two -->")
    (fault,) = audit_urdf(text)
    assert "not well-formed XML" in fault.problem


def test_only_comments_are_changed():
    data = "<a b='-->'>--<![CDATA[<!-- x--y -->]]>"
    assert with_valid_comments(f"{data}<!-- x--y --></a>") == f"{data}<!-- x==y --></a>"


def test_entities_are_never_expanded():
    layers = "".join(f"<!ENTITY a{i + 1} '{f'&a{i};' * 10}'>" for i in range(12))
    with pytest.raises(XmlSyntaxError, match="line 1: <!DOCTYPE> is rejected"):
        parse_xml(f"<!DOCTYPE r [<!ENTITY a0 'ha'>{layers}]><robot>&a12;</robot>")


def test_nodes_have_the_line_of_their_start_tag():
    root = parse_xml("<a>\n<!-- two\nlines -->\n<b\n x='1'>text</b><c/>\n</a>")
    assert [(node.tag, node.line) for node in root.walk()] == [("a", 1), ("b", 4), ("c", 5)]
    assert root.children[0].text == "text"


def test_a_cycle_not_connected_to_the_base_is_reported(tmp_path):
    text = mutated('<parent link="base"/>', '<parent link="tool"/>')
    (fault,) = audit_urdf(text, tmp_path)
    assert "form a cycle" in str(fault)
    assert fault.line == 34


def test_locked_joints_are_fixed(tmp_path):
    old, new, *_ = ERRORS["unknown mimic"]
    assert audit_urdf(mutated(old, new), tmp_path, lock=["elbow"]) == ()
    massless = mutated(FORE_INERTIAL, '  <link name="fore"/>\n')
    assert audit_urdf(massless, tmp_path, lock=["elbow"]) == ()
    (fault,) = audit_urdf(GOOD, tmp_path, lock=["elbo"])
    assert "'elbo' is to be locked, and is not a joint of this robot; did you mean" in str(fault)


def test_a_body_is_checked_together_with_its_fixed_links(tmp_path):
    """A moving link may have no inertia if a link fixed to it has a mass."""
    inertial = FORE_INERTIAL[FORE_INERTIAL.index("<inertial>") : FORE_INERTIAL.index("  </link>")]
    text = mutated(FORE_INERTIAL, '  <link name="fore"/>\n')
    text = text.replace('<link name="tool"/>', f'<link name="tool">{inertial}</link>')
    assert audit_urdf(text, tmp_path) == ()


@pytest.mark.parametrize(
    ("center", "turn", "warned"),
    [
        ("0 0 0", "0 0 0", True),
        ("0 0.4 0", "0 0 0", True),  # on the elbow's axis, y
        ("0 0 0.1", "0 0 0", False),
        ("0 0.4 0", "1.5707963267948966 0 0", False),  # y rotated to z
        ("0 0 0.4", "-1.5707963267948966 0 0", True),  # z rotated to y
    ],
)
def test_a_point_mass_on_the_last_axis_is_a_warning(center, turn, warned, tmp_path):
    """The point mass belongs to the tool, which is fixed to the elbow's link."""
    tensor = '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    inertial = f'<inertial><origin xyz="{center}"/><mass value="1"/>{tensor}</inertial>'
    text = mutated(FORE_INERTIAL, '  <link name="fore"/>\n')
    text = text.replace('<link name="tool"/>', f'<link name="tool">{inertial}</link>')
    text = text.replace('type="fixed">', f'type="fixed"><origin rpy="{turn}"/>')
    faults = audit_urdf(text, tmp_path)
    assert [fault.severity for fault in faults] == ["warning"] * warned
    assert all("joint 'elbow': 'fore' and the links fixed to it have no" in str(f) for f in faults)


def test_frame_rotations_follow_the_urdf_convention(tmp_path):
    """Fixed axes x, y, z in this order, checked with the coordinates of a point on the elbow's
    axis.
    """
    rpy = (0.3, -0.4, 0.5)
    point = Rotation.from_euler("xyz", rpy).inv().apply((0, 0.4, 0))
    for offset, warned in ((0.0, True), (1e-3, False)):
        x, y, z = point
        origin = f'<origin xyz="{x + offset:.17f} {y:.17f} {z:.17f}"/>'
        tensor = '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
        inertial = f'<inertial>{origin}<mass value="1"/>{tensor}</inertial>'
        text = mutated(FORE_INERTIAL, '  <link name="fore"/>\n')
        text = text.replace('<link name="tool"/>', f'<link name="tool">{inertial}</link>')
        text = text.replace('type="fixed">', 'type="fixed"><origin rpy="0.3 -0.4 0.5"/>')
        assert len(audit_urdf(text, tmp_path)) == warned


@pytest.mark.parametrize("moments", [(1e-8, 1, 1), (1, 1, 2), (1, 1, 1)])
def test_rod_plate_and_ball_are_bodies(moments, tmp_path):
    x, y, z = (0.01 * moment for moment in moments)
    text = mutated('ixx="0.02"', f'ixx="{x}"').replace('iyy="0.03"', f'iyy="{y}"')
    assert audit_urdf(text.replace('izz="0.04"', f'izz="{z}"'), tmp_path) == ()


def test_a_point_mass_fixed_to_a_body_is_accepted(tmp_path):
    """In both orders: a fixed link may be a point mass, and a point mass may carry a fixed body."""
    point = '<inertial><mass value="1"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    tool = f'<link name="tool">{point}</inertial></link>'
    assert audit_urdf(mutated('<link name="tool"/>', tool), tmp_path) == ()
    body = FORE_INERTIAL.replace('"fore"', '"tool"')
    text = mutated(FORE_INERTIAL, tool.replace('"tool"', '"fore"'))
    assert audit_urdf(text.replace('<link name="tool"/>', body), tmp_path) == ()


def test_an_arm_without_a_moving_joint_is_rejected(tmp_path):
    """Locked joints do not move."""
    (fault,) = audit_urdf(GOOD, tmp_path, lock=["shoulder", "elbow"])
    assert (fault.line, fault.severity) == (2, "error")
    assert "robot 'good': it has no moving joint; an arm has" in str(fault)
    (fault,) = audit_urdf("<robot name='rock'><link name='rock'/></robot>")
    assert "no moving joint" in str(fault)


@pytest.mark.parametrize("where", ["package", "above", "installed", "ROS 1", "relative", "file"])
def test_meshes_are_found(where, tmp_path, monkeypatch):
    folder = tmp_path / "bench" / "urdf"
    place = {
        "package": tmp_path / "bench" / "arm.stl",
        "above": tmp_path / "bench" / "arm.stl",
        "installed": tmp_path / "prefix/share/bench/arm.stl",
        "relative": folder / "arm.stl",
        "file": tmp_path / "bench" / "my arm.stl",
        "ROS 1": tmp_path / "catkin" / "bench" / "arm.stl",
    }[where]
    folder = tmp_path / "other" if where in {"above", "installed", "ROS 1"} else folder
    uri = {"relative": "arm.stl", "file": f"file://{tmp_path}/bench/my%20arm.stl"}
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "catkin"))
    place.parent.mkdir(parents=True, exist_ok=True)
    if where == "above":
        (place.parent / "package.xml").touch()
    mesh = f'<mesh filename="{uri.get(where, "package://bench/arm.stl")}"/>'
    text = mutated('<box size="0.2 0.1 0.1"/>', mesh)

    (fault,) = audit_urdf(text, folder)
    assert "does not exist" in str(fault)
    assert fault.severity == "warning"
    place.write_text("solid")
    assert audit_urdf(text, folder) == ()


def test_the_rejection_contains_faults_and_report():
    faults = audit_urdf(mutated('value="2.0"', 'value="-2"').replace('"0 1 0"', '"0 2 0"'))
    rejected = UrdfRejected("arm.urdf", reversed(faults))
    assert isinstance(rejected, ArmDynamicsError)
    assert set(rejected.faults) == set(faults)
    head, first, second = str(rejected).splitlines()
    assert head == "arm.urdf: 1 error, 1 warning"
    assert first.startswith("  line 7: link 'upper' <mass value>: -2 is negative; ")
    assert second.startswith("  line 30: warning: joint 'elbow' <axis xyz>: '0 2 0' has length 2")


def test_a_fault_is_one_line_for_every_value():
    text = str(Fault(3, "joint 'a'", "x\ny" + "z" * 9999, "is\nwrong", "mend it"))
    assert "\n" not in text
    assert len(text) < 200


def attribute_places() -> list[tuple[int, int]]:
    """Return start and end of every quoted value and every text of the valid robot."""
    places, start = [], None
    for index, letter in enumerate(GOOD):
        if letter == '"':
            places += [(start, index)] if start is not None else []
            start = index + 1 if start is None else None
    return places


TEXTS = st.one_of(
    st.text(st.characters(exclude_characters='<&"', exclude_categories=["Cs", "Cc"]), max_size=20),
    st.sampled_from(["base", "upper", "fore", "tool", "shoulder", "elbow", "mount", "dc_motor"]),
    st.sampled_from(["fixed", "revolute", "floating", "planar", "actuator", "kt", "0 0 0", ""]),
    st.floats().map(repr),
    st.floats(allow_nan=False).map(lambda x: f"{x} 1e308 -1e308"),
)


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(st.tuples(st.sampled_from(attribute_places()), TEXTS), max_size=6))
def test_random_text_in_an_attribute_raises_no_other_error(changes):
    text = GOOD
    for (start, stop), new in sorted(dict(changes).items(), reverse=True):
        text = text[:start] + new + text[stop:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        faults = audit_urdf(text)
    for fault in faults:
        assert 1 <= fault.line <= GOOD.count("\n") + 1
        assert len(str(fault).splitlines()) == 1


@settings(deadline=None, max_examples=examples(200))
@given(st.data())
def test_a_truncated_file_raises_no_other_error(data):
    """Also if some lines are missing."""
    lines = GOOD.splitlines(keepends=True)
    kept = data.draw(st.lists(st.booleans(), min_size=len(lines), max_size=len(lines)))
    audit_urdf("".join(line for line, keep in zip(lines, kept, strict=True) if keep))
    audit_urdf(GOOD[: data.draw(st.integers(0, len(GOOD)))])


def test_the_audit_needs_no_robotics_library():
    folder = Path(package.__file__).parent
    allowed = {
        "arm_dynamics",
        "numpy",
        "__future__",
        "codecs",
        "collections",
        "dataclasses",
        "difflib",
    }
    allowed |= {"functools", "math", "os", "pathlib", "re", "typing", "urllib", "xml"}
    inside = (
        "arm_dynamics.model.audit",
        "arm_dynamics.model.xml_source",
        "arm_dynamics.core.errors",
        "arm_dynamics.core.arrays",
    )
    inside += (
        "arm_dynamics.core.parameters",
        "arm_dynamics.core.plugins",
        "arm_dynamics.model.hardware_info",
    )
    inside += ("arm_dynamics.model.mesh_files",)
    for file in (*folder.glob("*.py"), Path(xml_source.__file__)):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module]
                if node.module.startswith("arm_dynamics"):
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                assert name.split(".")[0] in allowed, f"{file.name} imports {name}"
                assert not name.startswith("arm_dynamics") or name.startswith(inside), name
