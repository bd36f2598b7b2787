"""Scene over ROS: topic, markers, changes while the nodes run, and goals that it rejects."""

import re

import numpy as np
import pytest
from control_msgs.action import FollowJointTrajectory
from rclpy.qos import DurabilityPolicy, QoSProfile
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import DeleteEntity, SpawnEntity
from std_msgs.msg import String
from visualization_msgs.msg import Marker, MarkerArray

from arm_dynamics import load_arm
from arm_dynamics.collision.scene_files import parse_scene
from arm_dynamics.dynamics.kinematics.frames import pose

from .link import GAINS, INITIAL, LOCKSTEP, trajectory

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
DOWN = INITIAL + np.array([0, 1.6, 0, 0, 0])
ARM = load_arm("five_dof")


@pytest.fixture(scope="module")
def arm(shared):
    states, scenes = shared.states(), shared.record(String, "scene", latched=True)
    markers = shared.record(MarkerArray, "scene_markers", latched=True)
    shared.start("simulator", **LOCKSTEP, scene="table")
    shared.start("joint_controller", GAINS, scene="ground", reject_invalid_goals=False)
    shared.wait_until(states, 0.1)
    return scenes, markers


def names(scenes):
    return [] if not len(scenes) else [one.name for one in parse_scene(scenes.newest.data)]


def checked(shared, scene):
    """Wait until the controller checks collisions with the objects of these names."""
    return shared.diagnosis("joint_controller", lambda values: values.get("scene") == scene)


def moved(shared, q):
    """Return the result of a goal, after the arm has reached it or it was rejected."""
    goal = FollowJointTrajectory.Goal(trajectory=trajectory((3.0, q, np.zeros(5))))
    client = shared.action(FollowJointTrajectory, "joint_controller/follow_joint_trajectory")
    handle = shared.answer(client.send_goal_async(goal))
    return shared.answer(handle.get_result_async()).result


def test_the_scene_of_the_simulator_is_published_with_markers(shared, arm):
    scenes, markers = arm
    shared.wait_for(lambda: names(scenes), "no scene")
    assert names(scenes) == ["table", "ground"]
    shared.wait_for(lambda: len(markers), "no markers")
    first, table, ground = markers.newest.markers
    assert first.action == Marker.DELETEALL
    assert (table.ns, table.type, ground.ns) == ("table", Marker.TRIANGLE_LIST, "ground")
    z = [point.z + table.pose.position.z for point in table.points]
    assert max(z) == pytest.approx(0.0)
    assert table.header.frame_id == "base_link"


def test_a_goal_to_the_table_is_rejected_with_link_object_distance_and_time(shared, arm):
    checked(shared, "table, ground")
    result = moved(shared, DOWN)
    assert result.error_code == FollowJointTrajectory.Result.INVALID_GOAL
    text = r"distance of link '\w+' and object 'table' would be \S+ mm; .*, \d\.\d+ s from now"
    assert re.search(text, result.error_string), result.error_string


def test_objects_are_added_and_removed_while_the_arm_is_controlled(shared, arm):
    turned = INITIAL + np.array([1.0, 0, 0, 0, 0])
    tool, there = (pose(ARM, q)[0] for q in (INITIAL, turned))
    checked(shared, "table, ground")
    assert moved(shared, turned).error_code == 0
    assert moved(shared, INITIAL).error_code == 0
    middle = pose(ARM, (INITIAL + turned) / 2)[0]
    assert np.linalg.norm(tool - there) > 0.2
    text = f"objects: {{ball: {{shape: sphere, radius: 0.03, position: {middle.tolist()}}}}}"
    request = SpawnEntity.Request(entity_resource=Resource(resource_string=text))
    assert shared.call(SpawnEntity, "simulator/spawn_entity", request).entity_name == "ball"
    checked(shared, "table, ground, ball")
    assert "object 'ball'" in moved(shared, turned).error_string
    shared.call(DeleteEntity, "simulator/delete_entity", DeleteEntity.Request(entity="ball"))
    checked(shared, "table, ground")
    assert moved(shared, turned).error_code == 0
    assert moved(shared, INITIAL).error_code == 0


def test_the_parameter_of_the_simulator_loads_another_scene(shared, arm):
    (result,) = shared.set("simulator", scene="tabel")
    assert "did you mean 'table'" in result.reason
    for name, objects in (("ground", "ground"), ("", "none"), ("table", "table, ground")):
        assert shared.set("simulator", scene=name)[0].successful
        checked(shared, objects)


def test_a_text_that_is_not_a_scene_is_rejected_and_the_scene_before_stays(shared, arm):
    publisher = shared._listener.create_publisher(String, "scene", LATCHED)
    publisher.publish(String(data="objects: {a: {shape: cone}}"))
    values = shared.diagnosis("joint_controller", lambda values: "scene_rejected" in values)
    assert "'cone' is not a shape" in values["last scene_rejected"]
    assert values["scene"] == "table, ground"
