"""<ros2_control> blocks: what the components of topics read, and all values of the arm."""

from xml.etree import ElementTree

import pytest

from arm_dynamics import load_arm
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.ros2_control import COMMANDS, PLUGINS, with_ros2_control

READ = {
    "joint_commands_topic", "joint_states_topic", "trigger_joint_command_threshold",
    "sum_wrapped_joint_states",
}  # fmt: skip
"""Params that both components read in on_init (joint_state_topic_hardware_interface 1.1.0 and
topic_based_ros2_control 0.3.0)."""


def block_of(text):
    (block,) = ElementTree.fromstring(text).findall("ros2_control")
    return block


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_block_has_what_the_component_reads(plugin, command):
    arm = load_arm("so101")
    block = block_of(with_ros2_control(arm, plugin, command))
    assert block.get("type") == "system"
    assert {child.tag for child in block} == {"hardware", "joint"}  # others end ros2_control
    assert block.findtext("hardware/plugin") == plugin
    params = {p.get("name"): p.text for p in block.findall("hardware/param")}
    assert {name for name in params if "topic" in name or "trigger" in name} <= READ
    assert params["joint_commands_topic"] == "joint_commands"
    assert params["joint_states_topic"] == "joint_states"
    assert float(params["trigger_joint_command_threshold"]) < 0
    joints = block.findall("joint")
    assert [joint.get("name") for joint in joints] == [*arm.joint_names]
    for element, joint in zip(joints, arm.joints, strict=True):
        (interface,) = element.findall("command_interface")
        states = {state.get("name"): state for state in element.findall("state_interface")}
        # JointStateTopicSystem::write subtracts the state of the command's name.
        assert interface.get("name") == command
        assert {*states} == {"position", "velocity", "effort"}
        limits = {p.get("name"): float(p.text) for p in interface}
        bound = {"velocity": joint.velocity, "effort": joint.effort}.get(command)
        expected = (joint.lower, joint.upper) if bound is None else (-bound, bound)
        assert (limits["min"], limits["max"]) == expected
        assert float(states["position"].findtext("param")) == joint.initial


@pytest.mark.parametrize("name", ["so101", "seven_dof_can", "five_dof"])
def test_the_arm_and_its_motors_are_the_same(name, tmp_path):
    arm = load_arm(name)
    text = with_ros2_control(arm, PLUGINS[1], "effort")
    assert audit_urdf(text, tmp_path) == audit_urdf(arm.urdf, tmp_path)
    again = parse_arm(text)
    assert again.joints == arm.joints
    assert again.tool_frame == arm.tool_frame
    if name != "five_dof":
        assert read_hardware_info(again).motors == read_hardware_info(arm).motors
        settings = dict(read_hardware_info(again).settings)
        assert settings == dict(read_hardware_info(arm).settings)
    assert text == with_ros2_control(again, PLUGINS[1], "effort")


def test_an_arm_without_a_block_and_with_a_locked_joint():
    urdf = ElementTree.fromstring(load_arm("three_link").urdf)
    urdf.remove(urdf.find("ros2_control"))
    arm = parse_arm(ElementTree.tostring(urdf, encoding="unicode"), lock=["J3"])
    text = with_ros2_control(arm, PLUGINS[0], "effort")
    assert [joint.get("name") for joint in block_of(text).findall("joint")] == ["J1", "J2"]
    assert parse_arm(text).joint_names == ("J1", "J2")


def test_blocks_of_other_programs_are_replaced_and_infinite_limits_omitted():
    arm = load_arm("five_dof")
    other = arm.urdf.replace(PLUGINS[0], "gz_ros2_control/GazeboSimSystem")
    with pytest.warns(RuntimeWarning, match="GazeboSimSystem"):
        arm = parse_arm(other)
    block = block_of(with_ros2_control(arm, PLUGINS[0], "position"))
    assert block.find("joint[@name='R1']/command_interface/param") is None
    assert block.find("joint[@name='R2']/command_interface/param") is not None


@pytest.mark.parametrize(("plugin", "command"), [("Gazebo", "effort"), (PLUGINS[0], "voltage")])
def test_others_are_rejected(plugin, command):
    with pytest.raises(UnknownName, match="of ros2_control"):
        with_ros2_control(load_arm("three_link"), plugin, command)
