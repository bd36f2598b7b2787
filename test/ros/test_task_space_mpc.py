"""Predictive control of the tool over ROS: targets, live weights, objects of the topic scene."""

import numpy as np
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from arm_dynamics.dynamics.kinematics.frames import pose

from .link import LOCKSTEP
from .test_task_space import arm, distance, home, placed

NODE = "task_space_controller"
DISTANCE, RADIUS = 0.05, 0.05
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture(scope="module")
def loop(shared):
    """Start an arm without a scene in lockstep; return its states."""
    states = shared.states()
    shared.start("simulator", **LOCKSTEP)
    shared.start(NODE, controller="task_space_mpc")
    shared.wait_until(states, 0.1)
    return states


def rested(shared, states, goal):
    """Return the position of the tool at rest, 1 s after a target or later."""
    shared.publish(goal, f"{NODE}/target_pose")
    shared.wait_longer(states, 1.0)
    shared.wait_for(lambda: np.abs(states.newest.velocity).max() < 5e-3, "the arm moves")
    return pose(arm(), np.array(states.newest.position))[0]


def test_a_target_is_reached_with_live_weights_and_without_late_plans(shared, loop):
    goal = placed((-0.03, 0.03, -0.03))
    described = shared.describe(NODE)
    for axis in ("x", "rz"):
        assert "cost of a tool error" in described[f"gains.tool.{axis}.weight"].description
    weight = shared.get(NODE, "gains.tool.x.weight")
    assert shared.set(NODE, gains__tool__x__weight=2 * weight)[0].successful
    (result,) = shared.set(NODE, gains__tool__x__weight=-1.0)
    assert not result.successful
    rested(shared, loop, goal)
    assert distance(loop.newest, goal) < 1e-3
    values = shared.diagnosis(NODE, lambda v: float(v.get("plan time [ms]", 0)) > 0)
    assert (values["late plans"], values["failed plans"]) == ("0", "0")
    assert values["controller"] == "TaskSpaceMpc"


def test_a_target_out_of_reach_is_reported_and_the_arm_holds(shared, loop):
    rested(shared, loop, placed((0.5, 0, 0)))
    values = shared.diagnosis(NODE, lambda v: v.get("message", "").startswith("out of reach"))
    assert "nearest reachable pose" in values["last out_of_reach"]
    rested(shared, loop, placed())
    assert distance(loop.newest, placed()) < 1e-3


def test_objects_of_the_topic_scene_are_avoided_while_the_node_runs(shared, loop):
    """The target is 20 mm from a ball: the tool stops at the distance, without the ball it reaches
    the target.
    """
    shared.set(NODE, gains__controller__object_distance=DISTANCE)
    goal, (start, _) = placed((0, 0.1, 0)), home()
    center = start + np.array([0, 0.1 + RADIUS + 0.02, 0])
    ball = f"{{ball: {{shape: sphere, radius: {RADIUS}, position: {center.tolist()}}}}}"
    publisher = shared._listener.create_publisher(String, "scene", LATCHED)
    for objects, name in ((ball, "ball"), ("{}", "none")):
        rested(shared, loop, placed())
        publisher.publish(String(data=f"objects: {objects}"))
        shared.diagnosis(NODE, lambda v, name=name: v.get("scene") == name)
        tool = rested(shared, loop, goal)
        gap = np.linalg.norm(tool - center) - RADIUS
        if name == "ball":
            assert 0.9 * DISTANCE < gap < 2 * DISTANCE
            assert distance(loop.newest, goal) > 0.02
        else:
            assert distance(loop.newest, goal) < 1e-3
