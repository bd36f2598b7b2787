"""The RViz configuration uses existing topics with matching types and QoS."""

from pathlib import Path

import yaml
from geometry_msgs.msg import PoseStamped
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from sensor_msgs.msg import JointState

FRESH = True

TARGET = "task_space_controller/current_target"
NAMESPACE = ("--ros-args", "-r", "__ns:=/left", "-p", "frame_prefix:=left/")

ROOT = Path(__file__).resolve().parents[2]
TYPES = {
    "RobotModel": "std_msgs/msg/String",
    "Path": "nav_msgs/msg/Path",
    "MarkerArray": "visualization_msgs/msg/MarkerArray",
    "Pose": "geometry_msgs/msg/PoseStamped",
    "Effort": "sensor_msgs/msg/JointState",
    "Wrench": "geometry_msgs/msg/WrenchStamped",
}
LATCHED = {
    "robot_description", TARGET, "scene_markers", "rviz_controls/markers",
    "rviz_controls/planned_path",
}  # fmt: skip
"""Topics that are published once and latched."""


def displays():
    """Yield the type and settings of each topic that a display subscribes to."""
    config = yaml.safe_load((ROOT / "config/arm.rviz").read_text())
    for display in config["Visualization Manager"]["Displays"]:
        topic = display.get("Topic") or display.get("Description Topic")
        if topic is not None:
            yield TYPES[display["Class"].removeprefix("rviz_default_plugins/")], topic


def test_every_display_has_a_topic_of_its_type_and_qos(ros):
    """The topics of the file are relative to the namespace. No display subscribes to a command."""
    ros.launch(
        "ros.nodes.simulator", *NAMESPACE, "-p", "lockstep:=true", "-p", "real_time_factor:=1e3"
    )
    ros.launch("ros.nodes.task_space_controller", *NAMESPACE)
    ros.launch("ros.nodes.rviz_controls", *NAMESPACE)
    expected = list(displays())
    assert {topic["Value"] for _, topic in expected} > LATCHED
    for kind, topic in expected:
        name = topic["Value"]
        found = ros.wait_for(
            lambda name=name: ros._listener.get_publishers_info_by_topic(f"/left/{name}"),
            f"no node publishes /left/{name}",
        )
        assert [end.topic_type for end in found] == [kind], name
        offered = found[0].qos_profile  # QoS incompatible with the publisher: no messages
        reliable = offered.reliability == ReliabilityPolicy.RELIABLE
        kept = offered.durability == DurabilityPolicy.TRANSIENT_LOCAL
        assert reliable or topic["Reliability Policy"] == "Best Effort", name
        assert kept or topic["Durability Policy"] == "Volatile", name
        assert (topic["Durability Policy"] == "Transient Local") is (name in LATCHED), name
    target, shown = PoseStamped(), ros.record(PoseStamped, f"/left/{TARGET}", latched=True)
    target.header.frame_id = "left/base_link"
    target.pose.position.x, target.pose.orientation.w = 0.65, 1.0
    states = ros.record(JointState, "/left/joint_states")
    ros.wait_until(states, 0.1)
    assert states.newest.header.frame_id == "left/base_link"
    ros.publish(target, "/left/task_space_controller/target_pose")
    ros.wait_for(lambda: shown.raw, "the accepted target is not published")
    assert shown.newest == target
    assert ros.stop_all() == [0, 0, 0], ros.report("")
