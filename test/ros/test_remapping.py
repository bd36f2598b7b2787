"""Queries of ROS's graph use the remapped names of topics."""

from types import SimpleNamespace

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState

from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.nodes.joint_controller import JointControllerNode
from arm_dynamics.ros.topics.capability_topics import Capabilities
from arm_dynamics.ros.topics.publisher_checks import sole_arm
from arm_dynamics.safety.events import Events


@pytest.fixture
def node(ros):
    """A node whose topics of the arm are remapped."""
    rules = ["-r", "capabilities:=other/capabilities", "-r", "joint_states:=other/joint_states"]
    created = rclpy.create_node("remapped", context=ros._context, cli_args=["--ros-args", *rules])
    yield created
    created.destroy_node()


def test_capabilities_are_awaited_on_the_remapped_topic(ros, node):
    capabilities = Capabilities(node, Events())
    assert not capabilities.awaited
    ros._caller.create_publisher(DiagnosticArray, "other/capabilities", qos.LATCHED)
    ros.wait_for(lambda: capabilities.awaited, "not awaited")


def test_a_second_arm_is_detected_on_the_remapped_topic(ros, node):
    check = sole_arm(node, Events())
    own = node.create_publisher(JointState, "joint_states", qos.STREAM)
    assert own.topic_name == "/other/joint_states"
    assert not check.conflict()
    ros._caller.create_publisher(JointState, "other/joint_states", qos.STREAM)
    ros.wait_for(check.conflict, "no conflict")
    assert check.conflict().startswith("several publishers on /other/joint_states: /remapped")


def test_an_interrupted_goal_names_the_remapped_topic(ros, node):
    controller = SimpleNamespace(
        resolve_topic_name=node.resolve_topic_name,
        count_publishers=node.count_publishers,
        loop=SimpleNamespace(controller=None, gain_scaling=SimpleNamespace(fault="")),
        _capabilities=SimpleNamespace(incompatibility=lambda kind: ""),
        _topics=SimpleNamespace(publisher=SimpleNamespace(conflict=""), missing=""),
    )
    reason = JointControllerNode._interruption(controller)
    assert reason == "no publisher on /other/joint_states"
    ros._caller.create_publisher(JointState, "other/joint_states", qos.STREAM)
    ros.wait_for(lambda: not JointControllerNode._interruption(controller), "still interrupted")
