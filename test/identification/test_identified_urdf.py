"""URDF of an identified arm: round trip, audit, fixed links, preserved text."""

import json
import warnings
from functools import cache
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from arm_dynamics import InvalidValue, load_arm
from arm_dynamics.batch import rollout
from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.cases import draw_cases
from arm_dynamics.batch.tuning.tolerance import (
    UNCERTAIN,
    Tolerance,
    draw_values,
    read_tolerances,
)
from arm_dynamics.batch.variation import nominal_values
from arm_dynamics.cli import montecarlo
from arm_dynamics.cli import tune as tune_command
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix
from arm_dynamics.identification.parameters.dynamic_parameters import (
    nominal_parameters,
    with_parameters,
)
from arm_dynamics.identification.parameters.identified_urdf import identified_urdf
from arm_dynamics.identification.parameters.uncertainty import uncertainty_yaml
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.urdf_text import UrdfText, comment_text, element_text
from arm_dynamics.simulation.plant import Plant

FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
BUNDLED = (
    "five_dof", "four_joint", "puma560", "seven_dof_can", "so101", "three_link", "two_link",
    "two_link_pb",
)  # fmt: skip
DESCRIPTIONS = {
    "panda.urdf": FINGERS, "ur5_robot.urdf": (), "xarm7.urdf": (),
    "so_arm_description/urdf/so101.urdf": (),
}  # fmt: skip
NAMED = {"date": "2026-11-24", "sources": ("run1", "run2")}
CHAIN = """<?xml version="1.0"?>
<!-- above -->
<robot name="chain">
  <link name="base" />
  <joint name="J1" type="revolute">
    <parent link="base" /><child link="upper" />
    <axis xyz="0 0 1" />
    <limit lower="-2" upper="2" effort="9" velocity="3" />
  </joint>
  <link name="upper">
    <!-- a part -->
    <inertial>
      <!-- CAD -->
      <mass value="1" />
      <origin xyz="0.1 0 0" rpy="0.3 0.2 0.1" />
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.02" />
    </inertial>
  </link>
  <joint name="F" type="fixed">
    <origin xyz="0.2 0 0.1" rpy="0 0.5 0" />
    <parent link="upper" /><child link="camera" />
  </joint>
  <link name="camera">
    <inertial>
      <mass value="0.4" />
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001" />
    </inertial>
  </link>
</robot>
"""


@cache
def arm_of(name):
    """Return a bundled arm, or one of example_robot_data; sliding parts as in other tests."""
    if name in BUNDLED:
        return load_arm(name)
    try:
        files = metadata.files("example-robot-data") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed (extra: test)")
    file = next(f for f in files if str(f).endswith(f"/{name}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return load_arm(Path(file.locate()), lock=DESCRIPTIONS[name])


def parsed(text, arm):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return parse_arm(text, arm.source, arm.locked)


def changed(arm, seed=0):
    """Return parameters of another arm: bodies of other density and size, other friction."""
    rng, nv = np.random.default_rng(seed), arm.nv
    values = np.array(nominal_parameters(arm))
    size, density = rng.uniform(0.9, 1.1, nv), rng.uniform(0.7, 1.4, nv)
    powers = np.array([0, *[1] * 3, *[2] * 6])
    values[: 10 * nv] *= (density[:, None] * size[:, None] ** powers).ravel()
    values[10 * nv : 13 * nv] *= rng.uniform(0.5, 1.5, 3 * nv)
    values[10 * nv : 13 * nv] += rng.uniform(0, 0.1, 3 * nv)
    values[13 * nv :] = rng.uniform(-0.1, 0.1, nv)
    return values


def assert_parameters(arm, values):
    """Compare all parameters but the offsets; entries of a tensor relative to its largest one."""
    nv, found = arm.nv, nominal_parameters(arm)
    scale = np.abs(values)
    bodies = scale[: 10 * nv].reshape(nv, 10)
    for columns in (slice(1, 4), slice(4, 10)):
        bodies[:, columns] = np.maximum(
            bodies[:, columns], 1e-6 * bodies[:, columns].max(axis=1, keepdims=True)
        )
    assert (np.abs(found - values)[: 13 * nv] <= 1e-6 * scale[: 13 * nv] + 1e-15).all()


@pytest.mark.parametrize("name", [*BUNDLED, *DESCRIPTIONS])
def test_the_written_arm_has_the_values_and_passes_the_audit(name):
    arm = arm_of(name)
    values = changed(arm)
    text = identified_urdf(arm, values, deviations=0.01 * np.abs(values), **NAMED)
    before = {
        (f.element, f.problem) for f in audit_urdf(arm.urdf, arm.source.parent, lock=arm.locked)
    }
    faults = audit_urdf(text, arm.source.parent, lock=arm.locked)
    assert [str(f) for f in faults if (f.element, f.problem) not in before] == []
    written = parsed(text, arm)
    assert_parameters(written, values)
    assert written.joint_names == arm.joint_names
    assert written.locked == arm.locked
    assert written.tool_frame == arm.tool_frame
    again = identified_urdf(written, nominal_parameters(written), **NAMED)
    assert again.replace(again[again.index("<!-- identified") : again.index("<robot")], "") == (
        text.replace(text[text.index("<!-- identified") : text.index("<robot")], "")
    )


def test_comments_state_a_fitted_backlash_and_the_terms_of_its_motor():
    arm = load_arm("so101").with_motor(
        "elbow_flex", backlash=0.02, gear_stiffness=3e3, gear_damping=2.0, rotor_inertia=3e-7
    )
    values = nominal_parameters(arm)
    text = identified_urdf(
        arm, values, deviations=0.1 * np.abs(values),
        constant_deviations={"elbow_flex.backlash": 12.0, "elbow_flex.loss": 3.0}, **NAMED,
    )  # fmt: skip
    assert "backlash [rad] 0 -> 0.02 (12 %)" in text
    assert "armature [kg m^2] 0.0279709 -> 0.0357075 (10 %)" in text
    assert "-> 0 (" not in text
    assert parsed(text, arm).actuators[2].constants == arm.actuators[2].constants
    tolerances = uncertainty_yaml(arm, values, 0.1 * np.abs(values))
    assert tolerances.count('"elbow_flex": 0.3') == tolerances.count('"shoulder_pan": 0.3')


@pytest.mark.parametrize("name", ["five_dof", "panda.urdf"])
def test_without_changes_only_the_header_is_new(name):
    arm = arm_of(name)
    text = identified_urdf(arm, nominal_parameters(arm), **NAMED)
    start = text.index("<!-- identified 2026-11-24 from run1, run2")
    end = text.index("<robot")
    assert text[:start] + text[end:] == arm.urdf
    assert ("Locked joints: panda_finger_joint1" in text) == (name == "panda.urdf")


def body(values, i=0):
    return values[10 * i : 10 * i + 10]


def inertials(text):
    return {link.get("name"): link.find("inertial") for link in ElementTree.fromstring(text)}


def test_fixed_links_stay_where_the_rest_is_a_body():
    arm = parse_arm(CHAIN)
    values = np.array(nominal_parameters(arm))
    body(values)[:] *= 1.2
    text = identified_urdf(arm, values, deviations=np.full(14, np.nan), **NAMED)
    assert_parameters(parse_arm(text), values)
    found = inertials(text)
    assert found["camera"].find("mass").get("value") == "0.4"
    assert float(found["upper"].find("mass").get("value")) == pytest.approx(1.2 * 1.4 - 0.4)
    assert found["upper"].find("origin").get("rpy") == "0 0 0"
    assert "The unchanged links camera are subtracted" in text
    assert "m [kg] 1.4 -> 1.68 (not determined)" in text
    assert "<!-- a part -->" in text
    assert "<!-- CAD -->" in text
    assert text.index("<!-- above -->") < text.index("<!-- identified") < text.index("<robot")
    assert "ros2_control" not in text


@pytest.mark.parametrize(("factor", "scale"), [(0.28, 0.5), (0.12, 0.2)])
def test_fixed_links_are_scaled_where_the_rest_is_not_a_body(factor, scale):
    arm = parse_arm(CHAIN)
    values = np.array(nominal_parameters(arm))
    body(values)[:] *= factor
    text = identified_urdf(arm, values, **NAMED)
    assert_parameters(parse_arm(text), values)
    assert f"Mass and inertia of camera are multiplied by {scale}" in text
    mass = float(inertials(text)["camera"].find("mass").get("value"))
    assert mass == pytest.approx(0.4 * scale)


@pytest.mark.filterwarnings("ignore:URDF. line .* ball of the densest metal:RuntimeWarning")
def test_the_link_receives_the_whole_body_if_no_part_of_the_fixed_links_fits():
    arm = parse_arm(CHAIN)
    values = np.array(nominal_parameters(arm))
    body(values)[:] = [0.4, 0, 0, 0, *(1e-7 * np.array([1, 0, 1, 0, 0, 1]))]
    text = identified_urdf(arm, values, **NAMED)
    found = parse_arm(text)
    assert_parameters(found, values)
    assert inertials(text)["camera"].find("mass").get("value") == "0"


def test_a_scaled_hand_keeps_its_fingers_loadable():
    """The fingers of the Panda are attached by locked joints: they keep a mass."""
    arm = arm_of("panda.urdf")
    values = np.array(nominal_parameters(arm))
    body(values, 6)[:] *= 0.5
    text = identified_urdf(arm, values, **NAMED)
    assert_parameters(parsed(text, arm), values)
    assert float(inertials(text)["panda_leftfinger"].find("mass").get("value")) > 0


def test_inconsistent_bodies_are_rejected():
    arm = parse_arm(CHAIN)
    for wrong in (
        [0.0] * 10,
        [1, 0, 0, 0, -0.1, 0, 0.1, 0, 0, 0.1],
        [1, 0, 0, 0, 1, 0, 1, 0, 0, 3],
    ):
        values = np.array(nominal_parameters(arm))
        body(values)[:] = wrong
        with pytest.raises(InvalidValue, match="'J1': inertial parameters of its body = "):
            identified_urdf(arm, values, **NAMED)
    with pytest.raises(InvalidValue, match=r"deviations: shape = \(3,\)"):
        identified_urdf(arm, nominal_parameters(arm), deviations=np.ones(3), **NAMED)


def test_an_arm_without_a_block_receives_one_with_rotor_inertia():
    arm = parse_arm(CHAIN)
    values = np.array(nominal_parameters(arm))
    values[10:] = [0.07, 0.5, 0.2, 0.3]
    text = identified_urdf(arm, values, **NAMED)
    found = parse_arm(text)
    assert_parameters(found, values)
    assert found.actuators[0].armature == 0.07
    assert found.model.armature[0] == 0.07
    assert (found.joints[0].damping, found.joints[0].friction) == (0.5, 0.2)
    block = ElementTree.fromstring(text).find("ros2_control")
    assert (
        block.find("hardware/plugin").text
        == "joint_state_topic_hardware_interface/JointStateTopicSystem"
    )
    assert block.find("joint/command_interface").get("name") == "effort"
    assert "Effort offsets, not part of a URDF: J1 0.3 N m." in text
    assert audit_urdf(text) == ()


def test_motor_constants_of_the_arm_are_written():
    arm = load_arm("five_dof").with_motor("R2", kt=0.31)
    text = identified_urdf(arm, nominal_parameters(arm), **NAMED)
    assert parsed(text, arm).joints[1].constants["kt"] == 0.31
    assert "kt [N m/A]" in text
    plain = load_arm("five_dof").with_actuator("ideal", ["R2"])
    text = identified_urdf(plain, nominal_parameters(plain), **NAMED)
    assert [j.actuator for j in parsed(text, arm).joints] == [j.actuator for j in plain.joints]
    assert len(audit_urdf(text)) == len(audit_urdf(arm.urdf))


@pytest.mark.parametrize(("actuator", "inertia", "unwritten"), [
    ("rate_limited", 0.05, 1), ("rate_limited", 0.0, 0), ("ideal", 0.05, 0),
])  # fmt: skip
def test_a_comment_states_rotor_inertia_that_the_actuator_does_not_have(
    actuator, inertia, unwritten
):
    arm = load_arm("two_link").with_actuator(actuator)
    values = np.array(nominal_parameters(arm))
    values[20] = inertia
    text = identified_urdf(arm, values, **NAMED)
    assert text.count(f"'{actuator}' has no rotor inertia: it is not written") == unwritten
    assert parsed(text, arm).model.armature[0] == (0.0 if unwritten else inertia)


def test_a_payload_becomes_part_of_its_link():
    arm = load_arm("two_link").with_payload(0.5, [0.1, 0, 0])
    text = identified_urdf(arm, nominal_parameters(arm), **NAMED)
    assert_parameters(parsed(text, arm), np.array(nominal_parameters(arm)))
    assert "contains the payload 0.5 kg" in text


def test_a_second_identification_replaces_the_comments_of_the_first():
    arm = arm_of("panda.urdf")
    one = parsed(identified_urdf(arm, changed(arm), **NAMED), arm)
    text = identified_urdf(one, changed(one, 1), date="2026-12-01", sources=["run3"])
    assert text.count("<!-- identified 2026-11-24") == 1  # the header
    assert text.count("<!-- identified 2026-12-01") > arm.nv
    assert_parameters(parsed(text, arm), changed(one, 1))


def test_rotor_inertia_of_an_ideal_actuator_acts_in_plant_and_rollouts():
    plain = load_arm("two_link")
    arm, q, u = plain.with_motors(armature=0.3), np.array([0.1, 0.2]), np.array([1.0, -2.0])
    assert arm.model.armature.tolist() == [0.3, 0.3]
    np.testing.assert_allclose(mass_matrix(arm, q) - mass_matrix(plain, q), 0.3 * np.eye(2))
    after = Plant(arm).step(State.of(q, [0, 0]), Command("effort", u), 1e-4)
    expected = np.linalg.solve(mass_matrix(arm, q), u - gravity(arm, q))
    np.testing.assert_allclose(after.v / 1e-4, expected, rtol=1e-3)
    found = rollout(
        plain.with_motors(armature=0.1), np.tile([*q, 0, 0], (2, 1)), np.tile(u, (2, 1, 1)), 1e-4,
        interface="effort", vary={"motor.armature": np.full((2, 2), 0.3)},
    )  # fmt: skip
    np.testing.assert_allclose(found.v[:, -1], [after.v, after.v], rtol=1e-9)
    assert with_parameters(arm, nominal_parameters(arm)).actuators[1].armature == 0.3
    with pytest.raises(InvalidValue, match="armature = -1"):
        arm.with_motor("J1", armature=-1)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_edits_of_text(ends):
    source = '<robot name="r">\n  <a x="1"/>\n  <!-- c -->\n  <b>\n  </b>\n</robot>'
    text = UrdfText(source.replace("\n", ends))
    a, b = text.root.elements
    text.remove(text.root.find(""))
    text.append(a, element_text("p", {"name": 'é"'}, "<"))
    text.append(b, "<q />")
    text.append(text.root, "<e />")
    text.insert_before(b, "<!-- new -->")
    expected = (
        '<robot name="r">\n  <a x="1">\n    <p name=\'é"\'>&lt;</p>\n  </a>\n  <!-- new -->\n'
        "  <b>\n    <q />\n  </b>\n  <e />\n</robot>"
    )
    assert text.text() == expected.replace("\n", ends)
    assert comment_text("a--b---") == "<!-- a-b -->"


def test_tolerances_are_those_of_the_deviations(tmp_path):
    arm = load_arm("seven_dof_can")
    nv, values = arm.nv, changed(arm)
    deviations = 0.02 * np.abs(values)
    deviations[[0, 11 * nv]] = [np.nan, 1e9]
    deviations[10 * nv + 2] *= 2
    urdf, file = tmp_path / "mine.urdf", tmp_path / "mine.yaml"
    urdf.write_text(identified_urdf(arm, values, deviations=deviations, **NAMED))
    file.write_text(uncertainty_yaml(arm, values, deviations))
    mine = load_arm(urdf)
    found = read_tolerances(file, mine)
    assert set(found) <= UNCERTAIN
    assert {"link.mass", "link.inertia", "joint.damping", "motor.rotor_inertia"} <= set(found)
    usual = [0.06] * (nv - 1)
    np.testing.assert_allclose(found["link.mass"].fraction, [0.1, *usual])
    np.testing.assert_allclose(found["joint.damping"].fraction, [0.95, *usual])
    assert found["motor.rotor_inertia"].fraction[2] == pytest.approx(0.12)
    drawn = draw_values(mine, found, np.random.default_rng(0), 1000)["link.mass"]
    relative = np.abs(drawn / nominal_values(mine, "link.mass") - 1).max(axis=0)
    assert (relative <= np.array(found["link.mass"].fraction) + 1e-12).all()
    assert (relative > 0.8 * np.array(found["link.mass"].fraction)).all()
    with pytest.raises(InvalidValue, match="prior = 1; expected below 1"):
        uncertainty_yaml(arm, values, deviations, prior=1)
    with pytest.raises(InvalidValue, match=r"deviations: shape = \(2,\)"):
        uncertainty_yaml(arm, values, np.ones(2))


def test_fitted_motor_constants_have_tolerances(tmp_path):
    arm = load_arm("so101").with_motor(
        "elbow_flex", backlash=0.01, gear_stiffness=1e3, gear_damping=1.0
    )
    file, values = tmp_path / "mine.yaml", nominal_parameters(arm)
    constants = {"elbow_flex.backlash": 12.0, "wrist_roll.backlash": 5.0, "elbow_flex.mass": 1.0}
    file.write_text(
        uncertainty_yaml(arm, values, np.full(values.size, np.nan), constant_deviations=constants)
    )
    found = read_tolerances(file, arm)
    assert found["motor.backlash"].fraction == (0.0, 0.0, 0.36, 0.0, 0.0, 0.0)
    assert "motor.current_limit" not in found
    drawn = draw_values(arm, found, np.random.default_rng(0), 100)["motor.backlash"]
    assert (drawn[:, 2] > 0).all()
    assert np.ptp(drawn[:, 2]) > 0.4 * 0.01
    assert not np.delete(drawn, 2, axis=1).any()


def test_tolerances_contain_the_description_of_undetermined_parameters(tmp_path):
    arm = load_arm("two_link")
    described = np.array(nominal_parameters(arm))
    values = described.copy()
    values[0] *= 2.0
    values[12 * arm.nv : 13 * arm.nv] = 0.1
    file = tmp_path / "t.yaml"
    unknown = np.full(values.size, np.inf)
    file.write_text(uncertainty_yaml(arm, values, unknown, nominal=described))
    found = read_tolerances(file, with_parameters(arm, values))
    assert found["link.mass"].fraction == pytest.approx((0.5, 0.1))


def test_tolerances_contain_deviations_of_motor_constants(tmp_path):
    arm = load_arm("five_dof")
    values = np.array(nominal_parameters(arm))
    file = tmp_path / "t.yaml"
    constants = {"R1.kt": 2.0, "R2.kt": 1.0, "R1.resistance": 0.5, "R1.unknown": 1.0}
    file.write_text(uncertainty_yaml(arm, values, values, constant_deviations=constants))
    found = read_tolerances(file, arm)
    armature = {"J1.armature": 2.0}  # a parameter of ideal motors already
    ideal = with_parameters(load_arm("two_link"), nominal_parameters(load_arm("two_link")) + 0.01)
    own = nominal_parameters(ideal)
    text = uncertainty_yaml(ideal, own, 0.1 * own, constant_deviations=armature)
    assert text.count("motor.armature:") == 1
    assert found["motor.kt"].fraction == pytest.approx((0.06, 0.03, 0, 0, 0))
    assert found["motor.resistance"].fraction == pytest.approx((0.015, 0, 0, 0, 0))


def test_ideal_arms_have_tolerances_too(tmp_path):
    arm = arm_of("two_link")
    values = changed(arm)
    file = tmp_path / "mine.yaml"
    file.write_text(uncertainty_yaml(arm, values, 0.01 * np.abs(values)))
    found = read_tolerances(file, with_parameters(arm, values))
    assert set(found) == {
        "link.mass", "link.inertia", "joint.damping", "joint.friction", "motor.armature",
    }  # fmt: skip
    one = draw_cases(
        with_parameters(arm, values), 20, 0, CaseDistribution(tolerances=found, duration=0.1)
    )
    spread = np.abs(one.vary["link.mass"] / values[[0, 10]] - 1)
    assert 0.01 < spread.max() <= 0.03 + 1e-12
    with pytest.raises(UnknownName, match="tolerance of cases 'payload'"):
        draw_cases(arm, 1, 0, CaseDistribution(tolerances={"payload": Tolerance(0.1)}))


def test_a_table_of_joints_is_checked(tmp_path):
    arm, file = arm_of("two_link"), tmp_path / "t.yaml"
    for text, error, problem in (
        ("link.mass: {fraction: {J9: 0.1}}", UnknownName, "joint of link.mass in .*'J9'"),
        ("link.mass: {fraction: {J1: 1.5}}", ConfigError, "link.mass: tolerance = 1.5"),
        ("link.mass: {fraction: {J1: yes}}", ConfigError, "expected a fraction"),
        ("link.mass: {fraction: {J1: [1]}}", ConfigError, "link.mass: tolerance"),
    ):
        file.write_text(text)
        with pytest.raises(error, match=problem):
            read_tolerances(file, arm)
    file.write_text("link.mass: {fraction: {J2: 0.1}, distribution: uniform}")
    assert read_tolerances(file, arm) == {"link.mass": Tolerance((0.0, 0.1), "uniform")}


@pytest.mark.filterwarnings("ignore:.*delay margin:RuntimeWarning")
def test_the_commands_read_the_file(tmp_path, capsys):
    arm = arm_of("two_link")
    values = changed(arm)
    urdf, file = tmp_path / "mine.urdf", tmp_path / "mine.yaml"
    urdf.write_text(identified_urdf(arm, values, **NAMED))
    file.write_text(uncertainty_yaml(arm, values, 0.01 * np.abs(values)))
    words = [str(urdf), "--tolerance-file", str(file), "--output", str(tmp_path / "out")]
    short = ["--runs", "20", "--duration", "0.1", "--dt", "1e-3", "--controller", "pid_gravity"]
    assert montecarlo.run([*words, *short]) == 0
    assert "runs.csv" in capsys.readouterr().out
    task = tune_command.tuning_task(tune_command.command_parser().parse_args(words))
    assert task.conditions.tolerances == read_tolerances(file, task.arm)
    assert json.loads(json.dumps(task.settings))["tolerances"]["link.mass"]["fraction"]
