"""Loading arms: by name or path, with or without motors, locked and continuous joints."""

import math
import re
import warnings
from functools import partial
from pathlib import Path
from xml.dom import minidom

import numpy as np
import pinocchio as pin
import pytest
from conftest import chain, chain_urdf, examples, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.cli import audit as audit_cli
from arm_dynamics.core import resources
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, InvalidValue, UnknownName
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.audit.fault import UrdfRejected
from arm_dynamics.model.load import parse_arm

DATA = Path(__file__).parents[1] / "data" / "urdf"


def test_the_bundled_arm_equals_its_urdf():
    arm = load_arm("five_dof")
    assert (arm.name, arm.nv, arm.tool_frame, arm.base_frame) == (
        "five_dof", 5, "tool", "base_link",
    )  # fmt: skip
    assert arm.joint_names == ("R1", "R2", "R3", "R4", "R5")
    assert arm.lower.tolist() == [-math.inf, -1.2, -math.pi, -math.pi, -1.1]
    assert arm.upper.tolist() == [math.inf, 0.7, 0.6, math.pi, 1.1]
    assert arm.configuration("initial").tolist() == [0, -1.1, 0.3, 0, 0]
    assert arm.effort_limit.tolist() == [120, 120, 120, 12, 12]
    assert arm.velocity_limit.tolist() == [1.2, 1.2, 1.2, 12, 12]
    assert arm.model.nq == arm.model.nv == 5
    assert {joint.actuator for joint in arm.joints} == {"dc_motor"}
    assert arm.joints[0].kind == "continuous"


def test_a_path_is_the_same_arm(tmp_path):
    path = tmp_path / "copy.urdf"
    path.write_text(five_dof().urdf)
    for place in (path, str(path)):
        arm = load_arm(place)
        assert arm.source == path
        q = [0.3, -1, 0.2, 1, 0.5]
        np.testing.assert_array_equal(
            rigid_body.mass_matrix(arm, q), rigid_body.mass_matrix(five_dof(), q)
        )


def test_comments_in_other_encodings_are_ignored(tmp_path):
    path = tmp_path / "latin.urdf"
    path.write_bytes("<!-- für -->".encode("latin-1") + chain_urdf({}).encode())
    assert load_arm(path).nv == 1


@pytest.mark.parametrize("name", ["six_dof", "missing.urdf", "/tmp", ""])
def test_unknown_arms_list_the_bundled_ones(name):
    with pytest.raises(UnknownName, match=f"'{name}'; known: .*five_dof"):
        load_arm(name)


def test_unreadable_files_are_named(tmp_path, monkeypatch):
    with pytest.raises(ArmDynamicsError, match=r"a{5000}"):
        load_arm("a" * 5000)
    path = tmp_path / "closed.urdf"
    path.write_text(chain_urdf({}))

    def reject(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    for method in ("read_bytes", "is_file"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, reject)
            with pytest.raises(
                ConfigError, match=r"closed.urdf: .*denied.*; expected a readable file"
            ):
                load_arm(path)
    with pytest.raises(ArmDynamicsError, match=str(tmp_path)):
        load_arm(tmp_path)


def test_a_plain_urdf_gets_ideal_actuators():
    arm = chain({"effort": 7.0}, {"kind": "continuous", "effort": 3.0})
    assert {joint.actuator for joint in arm.joints} == {"ideal"}
    assert arm.actuators[0].effort("effort", 99.0, 0, 0) == 7.0
    assert all(joint.stop_stiffness > 0 for joint in arm.joints)
    assert arm.upper.tolist() == [3.0, math.inf]
    assert arm.tool_frame == "J2_link"
    assert all(type(joint.stop_stiffness) is float for joint in arm.joints)


LIMB = """<link name="{child}"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="to_{child}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>"""


def limbs(*edges):
    return "".join(
        LIMB.format(parent=parent, child=child, kind=kind) for parent, child, kind in edges
    )


@pytest.mark.parametrize(
    ("edges", "tool"),
    [
        ((), "J2_link"),
        ((("base", "camera", "revolute"),), "J2_link"),  # a later joint with a shorter chain
        ((("J2_link", "flange", "fixed"), ("base", "camera", "revolute")), "flange"),
        # Fingers: by the order of the joints, and by their names.
        ((("J2_link", "left", "prismatic"), ("J2_link", "right", "prismatic")), "J2_link"),
        ((("J2_link", "hand", "fixed"), ("hand", "jaw", "revolute")), "hand"),
        ((("J2_link", "gripper", "revolute"), ("gripper", "tip", "fixed")), "J2_link"),
        ((("J2_link", "wrist_roll", "revolute"), ("wrist_roll", "gripper", "fixed")), "gripper"),
        (
            (("J2_link", "thumb", "revolute"), ("J2_link", "index", "revolute"),
             ("index", "index_2", "revolute")),
            "J2_link",
        ),
        # Links that no joint moves, and sensors with the links fixed to them.
        ((("base", "a", "fixed"), ("a", "b", "fixed"), ("b", "c", "fixed")), "J2_link"),
        ((("J2_link", "imu_link", "fixed"),), "J2_link"),
        ((("J2_link", "d435_link", "fixed"), ("d435_link", "lens", "fixed")), "J2_link"),
        ((("J2_link", "wrist_camera", "fixed"), ("wrist_camera", "tool0", "fixed")), "tool0"),
        ((("J2_link", "camera", "revolute"),), "camera"),  # a joint moves it: no sensor frame
        # Names of tool frames.
        ((("J2_link", "tool0", "fixed"), ("J2_link", "a", "fixed"), ("a", "b", "fixed")), "tool0"),
        ((("J2_link", "tool0", "fixed"), ("J2_link", "ee_link", "fixed")), "tool0"),
        ((("J2_link", "flange", "fixed"), ("flange", "hand_TCP", "fixed")), "hand_TCP"),
        ((("J2_link", "arm_endEffector", "fixed"), ("J2_link", "x", "fixed")), "arm_endEffector"),
        ((("J1_link", "flange_cover", "fixed"), ("J2_link", "x", "fixed")), "x"),
        ((("J2_link", "tcp", "fixed"), ("J2_link", "c", "revolute"), ("c", "d", "revolute")),
         "tcp"),
        ((("J2_link", "grasp_frame", "fixed"), ("J2_link", "finger", "revolute")), "grasp_frame"),
    ],
)  # fmt: skip
def test_without_a_named_tool_it_is_a_link_at_the_end_of_the_arm(edges, tool):
    assert chain({}, {}, more=limbs(*edges)).tool_frame == tool


@pytest.mark.parametrize(
    ("name", "tool"), [("tool_frame_camera", "tool0"), ("tool_frame_head", "gripper_tcp")]
)
def test_cameras_of_an_arm_are_no_tool_frames(name, tool, capsys):
    file = str(DATA / f"{name}.urdf")
    assert load_arm(file).tool_frame == tool
    assert audit_cli.run([file]) == 0
    assert f"\ntool frame: {tool}; --tool-frame selects another" in capsys.readouterr().out
    assert audit_cli.run([file, "--tool-frame", "fore"]) == 0
    assert "\ntool frame: fore;" in capsys.readouterr().out


def test_of_two_arms_the_audit_lists_the_other_tool_and_a_locked_arm_has_none(tmp_path, capsys):
    left = limbs(("base", "l1", "revolute"), ("l1", "l2", "revolute"), ("l2", "left_ee", "fixed"))
    text = chain_urdf({}, {}, more=limbs(("J2_link", "right_ee", "fixed")) + left)
    file = tmp_path / "arm.urdf"
    file.write_text(text)
    assert audit_cli.run([str(file)]) == 0
    assert "tool frame: left_ee; of the other arms: right_ee; " in capsys.readouterr().out
    assert parse_arm(text, lock=["to_l1", "to_l2"]).tool_frame == "right_ee"
    assert parse_arm(text, lock=["J1"]).tool_frame == "left_ee"


def test_a_given_tool_frame_counts_before_all_others():
    assert load_arm("two_link", tool_frame="J1_link").tool_frame == "J1_link"
    with pytest.raises(UnknownName, match="unknown tool frame 'J1'; known: J1_link, J2_link"):
        load_arm("two_link", tool_frame="J1")


def test_a_named_tool_is_used_and_an_unknown_one_rejected():
    block = """<ros2_control name="arm" type="system">
    <hardware><param name="tool_frame"> {} </param></hardware>
    <joint name="J1"/><joint name="J2"/></ros2_control>"""
    assert chain({}, {}, more=block.format("J1_link")).tool_frame == "J1_link"
    with pytest.raises(UrdfRejected, match=r"'J1_lnk' is not a link .* J1_link, J2_link"):
        chain({}, {}, more=block.format("J1_lnk"))


@pytest.mark.parametrize("lock", [[], ["J1"], ["J2"]])
def test_a_joint_and_a_link_may_have_the_same_name(lock):
    text = chain_urdf({}, {})
    same = parse_arm(text.replace("_link", ""), lock=lock).with_payload(2, (0.1, 0, 0))
    other = parse_arm(text, lock=lock).with_payload(2, (0.1, 0, 0))
    assert (same.tool_frame, other.tool_frame) == ("J2", "J2_link")
    np.testing.assert_array_equal(
        rigid_body.gravity(same, [0.3] * same.nv), rigid_body.gravity(other, [0.3] * same.nv)
    )


def test_the_initial_configuration_of_a_plain_urdf_is_within_limits():
    arm = chain({"lower": 0.5, "upper": 1.0}, {"lower": -2.0, "upper": -1.0})
    assert arm.configuration("initial").tolist() == [0.5, -1.0]
    assert arm.configuration("zero").tolist() == [0.5, -1.0]


def test_a_continuous_joint_is_periodic_and_counts_its_turns():
    arm, q = five_dof(), np.array([0.4, -1, 0.2, 1, 0.5])
    turned = q + np.array([6 * np.pi, 0, 0, 0, 0])
    np.testing.assert_allclose(
        rigid_body.mass_matrix(arm, turned), rigid_body.mass_matrix(arm, q), atol=1e-12
    )
    assert arm.check_position("q", turned)[0] == turned[0]


def test_locked_joints_keep_their_initial_position():
    whole, locked = five_dof(), load_arm("five_dof", lock=["R2", "R5"])
    assert locked.joint_names == ("R1", "R3", "R4")
    keep, q = [0, 2, 3], np.array([0.5, -1.1, 0.2, 0.7, 0.0])
    M = rigid_body.mass_matrix(whole, q)[np.ix_(keep, keep)]
    np.testing.assert_allclose(rigid_body.mass_matrix(locked, q[keep]), M, atol=1e-12)
    np.testing.assert_allclose(
        rigid_body.gravity(locked, q[keep]), rigid_body.gravity(whole, q)[keep], atol=1e-12
    )
    assert locked.configuration("initial").tolist() == [0, 0.3, 0]


MOUNT = """<link name="cart"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="drift" type="floating"><parent link="J1_link"/><child link="cart"/></joint>"""


def test_joints_with_several_coordinates_are_rejected_unless_locked():
    text = chain_urdf({}, more=MOUNT)
    with pytest.raises(UrdfRejected, match=r"'drift'.*floating"):
        parse_arm(text)
    assert parse_arm(text, lock=["drift"]).joint_names == ("J1",)


def test_an_unknown_joint_to_lock_is_rejected():
    with pytest.raises(UrdfRejected, match=r"'R9' is to be locked.*R1, R2, R3, R4, R5"):
        load_arm("five_dof", lock=["R9"])


def test_an_unknown_constant_is_a_warning():
    text = five_dof().urdf.replace('name="supply_voltage"', 'name="supply_votage"', 1)
    with pytest.warns(RuntimeWarning, match=r"'supply_votage' is not a parameter .*supply_voltage"):
        parse_arm(text)


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        ("<foo:bar/>", "XML: not well-formed XML: unbound prefix"),
        ('<link xmlns="http://ros.org"/>', "is a default namespace, which URDF"),
    ],
)
def test_namespaces_are_rejected_or_harmless(broken, text):
    with pytest.raises(UrdfRejected, match=text):
        chain({}, more=broken)
    assert chain({}, more='<foo:bar xmlns:foo="http://ros.org"/>').nv == 1


def test_broken_urdfs_are_rejected_with_all_faults():
    text = chain_urdf({"mass": -1.0}, {"axis": "0 0 0"})
    with pytest.raises(UrdfRejected) as caught:
        parse_arm(text)
    assert len(caught.value.faults) >= 2


def test_positions_outside_the_limits_are_named():
    with pytest.raises(InvalidValue, match=r"start: joint 'R2' = 1 rad; expected -1.2 to 0.7"):
        five_dof().check_position("start", [0, 1.0, 0, 0, 0])


def test_a_prismatic_joint_uses_meters():
    arm = chain({"kind": "prismatic"}, {}, {"kind": "continuous"})
    assert [joint.unit for joint in arm.joints] == ["m", "rad", "rad"]
    with pytest.raises(InvalidValue, match=r"joint 'J1' = 4 m; expected -3 to 3"):
        arm.check_position("start", [4, 0, 0])


def test_changes_of_unknown_joints_or_motors_are_named():
    arm = five_dof()
    for call, message in (
        (lambda: arm.configuration("yoga"), "'yoga'; known: initial, zero"),
        (lambda: arm.index("R9"), "'R9'; known: R1, R2"),
        (lambda: arm.with_joint("R2", color=1.0), "'R2' 'color'; known: damping"),
        (lambda: arm.with_motor("R2", color=1.0), "'R2' 'color'"),
        (lambda: arm.with_actuator("steam"), "'steam'; known"),
    ):
        with pytest.raises(UnknownName, match=message):
            call()
    for call, message in (
        (lambda: arm.with_payload(-1), "payload mass"),
        (lambda: arm.with_payload(np.nan), "payload mass"),
        (lambda: arm.with_payload(1, [0, 0]), "payload center"),
        (lambda: arm.with_gravity([0, 0, np.inf]), r"gravity\[2\]"),
        (lambda: arm.with_joint("R2", damping=-1.0), "joint 'R2' damping"),
    ):
        with pytest.raises(InvalidValue, match=message):
            call()
    assert arm.joints == load_arm("five_dof").joints


def test_resources_of_the_source_tree_and_of_an_installation(tmp_path, monkeypatch):
    source = resources.resource_folder("urdf")
    assert (source / "five_dof.urdf").is_file()
    assert "five_dof" in resources.resource_names("urdf", ".urdf")
    package = tmp_path / "lib/python3.11/site-packages/arm_dynamics"
    installed = tmp_path / "share/arm_dynamics/urdf"
    for folder in (package, installed):
        folder.mkdir(parents=True)
    (installed / "mine.urdf").write_text(five_dof().urdf)
    monkeypatch.setattr(resources, "__file__", str(package / "resources.py"))
    assert resources.resource_folder("urdf") == installed
    assert resources.resource_names("urdf", ".urdf") == ("mine",)
    assert load_arm("mine").nv == 5
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "workspace"))
    (tmp_path / "workspace/share/arm_dynamics/config").mkdir(parents=True)
    assert resources.resource_folder("config") == tmp_path / "workspace/share/arm_dynamics/config"
    with pytest.raises(UnknownName, match="resource folder 'music'"):
        resources.resource_folder("music")


# Files that pass the audit are loaded without a change of any number -----------------------------

WRITTEN = chain_urdf(
    {"xyz": "0.1 0.2 0.3", "damping": 0.5, "friction": 0.25, "axis": "0 0.6 0.8"},
    {"kind": "continuous", "mass": 2.5, "center": "0.1 -0.2 0.05"},
    {"kind": "prismatic", "lower": -0.2, "upper": 0.3, "mass": 0.125},
)
PLACES = [match.span(1) for match in re.finditer(r'="([^"]*)"', WRITTEN)]
FORMATS = (
    "1 | 1|\t1|1\n|&#10;1|\u00a01|+1|1.|.5|01|1e|1e3|1E-3|0x10|1_0|1,5|1.5.2|\u0663|\uff11|--1|"
    "1d3|inf|nan|1e400|-1e400|1e300|-1e300|5e-324|1e-200|1e12|1e13|true|1kg|0 0 1 |  0  0 1|"
    "0 1e300 0|0 0 5e-324|1e308 1e308 1e308|1 2|0 0 0|universe|base| base|J1_link|fixed|floating"
)
WRITINGS = (
    st.sampled_from(FORMATS.split("|"))
    | st.floats(allow_nan=True).map(repr)
    | st.floats(0, 10).map(repr)
)
WRAPPED = {
    "comment": ("<mass", "<!-- <mass value='9'/> --><mass"),
    "instruction": ("<mass", "<?xml-stylesheet href='x'?><mass"),
    "prefix": ("<mass", "<x:mass xmlns:x='u' value='9'/><mass"),
    "attribute of another": ("<mass", "<mass xmlns:x='u' x:value='9'"),
    "twice": ("<mass", "<mass value='3'/><mass"),
    "nothing": ("", ""),
}


def texts_of(text):
    """Return every number of the file by its place, read without the package."""
    robot = minidom.parseString(text).documentElement

    def child(node, tag):
        return next((c for c in node.childNodes if getattr(c, "tagName", "") == tag), None)

    def words(node, attribute, default):
        node = node and node.hasAttribute(attribute) and node
        return [float(w) for w in (node.getAttribute(attribute) if node else default).split()]

    for node in robot.childNodes:
        if getattr(node, "tagName", "") == "joint":
            yield node.getAttribute("name"), node, partial(child, node), words


def link_of(robot_text, name):
    robot = minidom.parseString(robot_text).documentElement
    (link,) = (
        node for node in robot.childNodes
        if getattr(node, "tagName", "") == "link" and node.getAttribute("name") == name
    )  # fmt: skip
    return {
        node.tagName: node
        for node in reversed(link.getElementsByTagName("inertial")[0].childNodes)
        if node.nodeType == node.ELEMENT_NODE
    }


def parents_of_fixed(text):
    """Return the links that carry the mass of another link."""
    joints = minidom.parseString(text).getElementsByTagName("joint")
    return {
        joint.getElementsByTagName("parent")[0].getAttribute("link")
        for joint in joints
        if joint.getAttribute("type") == "fixed"
    }


def require_as_written(arm, text):
    """Require that every number of the arm's joints and links equals that of the file."""
    fused = parents_of_fixed(text)
    for name, element, child, words in texts_of(text):
        if element.getAttribute("type") == "fixed":
            continue
        index, limit, origin = arm.index(name), child("limit"), child("origin")
        joint, placed = arm.joints[index], arm.model.jointPlacements[index + 1]
        bounds = [*words(limit, "lower", "0"), *words(limit, "upper", "0")]
        if joint.kind == "continuous":
            bounds = [-math.inf, math.inf]
        assert [joint.lower, joint.upper] == bounds
        assert [joint.effort, joint.velocity] == [
            *words(limit, "effort", "inf"), *words(limit, "velocity", "inf"),
        ]  # fmt: skip
        assert [joint.damping, joint.friction] == [
            *words(child("dynamics"), "damping", "0"), *words(child("dynamics"), "friction", "0"),
        ]  # fmt: skip
        assert placed.translation.tolist() == words(origin, "xyz", "0 0 0")
        axis = np.array(words(child("axis"), "xyz", "1 0 0"))
        axis = axis / np.abs(axis).max()
        moving = arm.model.joints[index + 1]
        subspace = moving.createData()
        moving.calc(subspace, np.zeros(arm.nv), np.zeros(arm.nv))
        half = subspace.S[:3] if joint.kind == "prismatic" else subspace.S[3:]
        np.testing.assert_allclose(half.ravel(), axis / np.linalg.norm(axis), rtol=1e-14, atol=0)
        if child("child").getAttribute("link") in fused:
            continue
        inertial, body = (
            link_of(text, child("child").getAttribute("link")),
            arm.model.inertias[index + 1],
        )
        assert [body.mass] == words(inertial["mass"], "value", "")
        assert body.lever.tolist() == words(inertial.get("origin"), "xyz", "0 0 0")
        for i, j, entry in (
            (0, 0, "ixx"),
            (1, 1, "iyy"),
            (2, 2, "izz"),
            (0, 1, "ixy"),
            (1, 2, "iyz"),
        ):
            assert [body.inertia[i, j]] == words(inertial["inertia"], entry, "")


@settings(max_examples=examples(400))
@given(
    st.lists(st.tuples(st.sampled_from(PLACES), WRITINGS), min_size=1, max_size=3),
    st.sampled_from(sorted(WRAPPED)),
)
def test_files_that_pass_the_audit_are_loaded_unchanged(changes, wrapped):
    text = WRITTEN
    for (start, stop), new in sorted(dict(changes).items(), reverse=True):
        text = text[:start] + new + text[stop:]
    old, new = WRAPPED[wrapped]
    text = text.replace(old, new, 1)
    passed = all(fault.severity == "warning" for fault in audit_urdf(text))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if passed:
            require_as_written(parse_arm(text), text)
        else:
            with pytest.raises(UrdfRejected):
                parse_arm(text)


def test_a_blank_after_a_number_is_ignored():
    text = chain_urdf({"mass": 1.5}).replace('"1.5"', '"1.5 "')
    with pytest.warns(RuntimeWarning, match=r"<mass value>: 1.5 has blanks around it"):
        assert parse_arm(text).model.inertias[1].mass == 1.5


@pytest.mark.parametrize("axis", ["0 0 1e300", "0 0 5e-324", "0 0 -1e300", "1e300 0 1e300"])
def test_axes_of_any_length_are_normalized(axis):
    with pytest.warns(RuntimeWarning, match="is normalized"):
        arm = chain({"axis": axis, "center": "0.1 0.2 0.3"})
    assert 0 < rigid_body.mass_matrix(arm, [0.3])[0, 0] < 1


def test_deeply_nested_elements_are_rejected():
    deep = "<a>" * 50_000 + "</a>" * 50_000
    with pytest.raises(UrdfRejected, match="line 4: XML: elements are nested more than 100 deep"):
        chain({}, more=deep)


ENCODED = '<?xml version="1.0" encoding="{}"?>' + chain_urdf({"name": "J\u00fc"})


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("utf-8", "utf-8"),
        ("UTF-8", "utf-8-sig"),
        ("ISO-8859-1", "latin-1"),
        ("latin1", "latin-1"),
        ("windows-1252", "cp1252"),
        ("UTF-16", "utf-16"),
    ],
)
def test_every_declared_encoding_is_decoded(declared, encoding, tmp_path):
    path = tmp_path / "encoded.urdf"
    path.write_bytes(ENCODED.format(declared).encode(encoding))
    arm = load_arm(path)
    assert arm.joint_names == ("J\u00fc",)
    assert audit_cli.run([str(path)]) == 0
    again = tmp_path / "again.urdf"  # like a topic or another file
    again.write_bytes(arm.urdf.encode())
    assert load_arm(again).joint_names == arm.joint_names


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (ENCODED.format("utf-8").encode("latin-1"), "has bytes that are not UTF-8"),
        (ENCODED.format("klingon").encode(), "encoding = 'klingon'; expected one of utf-8"),
        (ENCODED.format("rot13").encode(), "encoding = 'rot13'"),
        (ENCODED.format("ascii").encode(), "expected text in ascii"),
        (b"\xff\xfe<\x00r", "not well-formed|expected text in utf-16"),
        (b"\x00\x01\x02", "not well-formed"),
    ],
)
def test_bytes_that_are_not_text_are_rejected(data, text, tmp_path):
    path = tmp_path / "bad.urdf"
    path.write_bytes(data)
    with pytest.raises(ArmDynamicsError, match=text):
        load_arm(path)


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_many_links_are_loaded(shape):
    """5 000 links in one chain; Pinocchio's own parser does not load them."""
    text = "".join(
        f'<link name="w{i}"/><joint name="f{i}" type="fixed"><origin xyz="0 0 1e-3"/>'
        f'<parent link="{f"w{i - 1}" if i and shape == "chain" else "J1_link"}"/>'
        f'<child link="w{i}"/></joint>'
        for i in range(5000)
    )
    arm = chain({}, more=text)
    last = arm.model.frames[arm.model.getFrameId("w4999", pin.BODY)]
    assert last.placement.translation[2] == pytest.approx(5.0 if shape == "chain" else 1e-3)
    assert arm.model.nframes == len(arm.model.frames) == 10_004


def test_too_many_moving_joints_are_rejected():
    with pytest.raises(UrdfRejected, match="129 are more moving joints than the 128"):
        chain(*[{}] * 129)


@pytest.mark.parametrize("arm", sorted(resources.resource_names("urdf", ".urdf")))
def test_the_model_equals_that_of_pinocchios_parser(arm):
    """Except for rounding, and for continuous joints, which have one coordinate here."""
    ours, text = load_arm(arm), load_arm(arm).urdf.replace('"continuous"', '"revolute"')
    text = re.sub(r"(<limit )(?![^>]*lower)", r'\1lower="-9" upper="9" ', text)
    theirs, links = pin.buildModelFromXML(text), ours.links
    assert list(links.names) == list(theirs.names)
    assert list(links.parents) == list(theirs.parents)
    for i in range(links.njoints):
        assert links.jointPlacements[i] == theirs.jointPlacements[i]
        assert links.inertias[i].isApprox(theirs.inertias[i], 1e-14)
        assert i == 0 or links.joints[i] == theirs.joints[i]
    assert [(f.name, f.type, f.parentJoint, f.parentFrame) for f in links.frames] == [
        (f.name, f.type, f.parentJoint, f.parentFrame) for f in theirs.frames
    ]
    assert all(a.placement == b.placement for a, b in zip(links.frames, theirs.frames, strict=True))
