"""What RViz is set up to show: topics that the nodes have, of these types and qualities."""

from pathlib import Path

import yaml
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

from .link import LOCKSTEP

ROOT = Path(__file__).resolve().parents[2]
TYPES = {
    "RobotModel": "std_msgs/msg/String",
    "Path": "nav_msgs/msg/Path",
    "MarkerArray": "visualization_msgs/msg/MarkerArray",
    "Pose": "geometry_msgs/msg/PoseStamped",
}
HEARD = {"/task_space_controller/target_pose"}
"""Topics that the nodes hear, so that RViz shows what somebody else says there."""


def displays():
    """Type and settings of every topic that a display subscribes to."""
    config = yaml.safe_load((ROOT / "config/arm.rviz").read_text())
    for display in config["Visualization Manager"]["Displays"]:
        topic = display.get("Topic") or display.get("Description Topic")
        if topic is not None:
            yield TYPES[display["Class"].removeprefix("rviz_default_plugins/")], topic


def ends(ros, topic):
    """The nodes' ends of a topic."""
    kind = "subscriptions" if topic in HEARD else "publishers"
    return getattr(ros._listener, f"get_{kind}_info_by_topic")(topic)


def test_every_display_meets_a_topic_of_its_type_and_quality(ros):
    ros.start("simulator", **LOCKSTEP)
    ros.start("task_space_controller")
    wanted = list(displays())
    assert {topic["Value"] for _, topic in wanted} > HEARD
    for kind, topic in wanted:
        name = topic["Value"]
        found = ros.wait_for(lambda name=name: ends(ros, name), f"no node has {name}")
        assert [end.topic_type for end in found] == [kind], name
        offered = found[0].qos_profile
        if name not in HEARD:  # a subscriber that asks for more than is offered hears nothing
            reliable = offered.reliability == ReliabilityPolicy.RELIABLE
            kept = offered.durability == DurabilityPolicy.TRANSIENT_LOCAL
            assert reliable or topic["Reliability Policy"] == "Best Effort", name
            assert kept or topic["Durability Policy"] == "Volatile", name
        latched = name == "/robot_description"  # published once: a late RViz needs it kept
        assert (topic["Durability Policy"] == "Transient Local") is latched, name
    assert ros.stop_all() == [0, 0], ros.told("")
