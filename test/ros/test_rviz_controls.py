"""Dragging in RViz: the protocol of interactive markers and the motion of the arm."""

import time

import numpy as np
import pinocchio as pin
import pytest
from nav_msgs.msg import Path
from visualization_msgs.msg import (
    InteractiveMarkerControl,
    Marker,
    MarkerArray,
)

from arm_dynamics import load_arm
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.ros.messages.conversions import pose_message
from arm_dynamics.ros.nodes.markers import JOINT, TOOL
from arm_dynamics.viewer.drag import DragTarget

from .link import LOCKSTEP
from .marker_client import BACK, CHOSEN, DOWN, EMERGENCY, GO, MOVED, RESET, STOP, UP, Client

ARM = "five_dof"
SIMULATED = {**LOCKSTEP, "real_time_factor": 20.0}


def draggable(markers):
    kinds = [c.interaction_mode for marker in markers.values() for c in marker.controls]
    return any(kind != InteractiveMarkerControl.MENU for kind in kinds)


def words(record):
    """Return the text in the scene, "" without a text."""
    record.poll()
    shown = [m for m in record.newest.markers if m.ns == "state"] if len(record) else []
    return shown[0].text.replace("\n", " ") if shown and shown[0].action == Marker.ADD else ""


class Scene:
    def __init__(self, ros):
        self.ros, self.arm = ros, load_arm(ARM)
        for node in ("simulator", "joint_controller", "rviz_controls"):
            ros.start(node, arm=ARM, **(SIMULATED if node == "simulator" else {}))
        self.states = ros.states()
        self.drawn = ros.record(MarkerArray, "rviz_controls/markers", latched=True)
        self.path = ros.record(Path, "rviz_controls/planned_path", latched=True)
        self.client = Client(ros)
        self.client.wait(lambda found: TOOL in found and draggable(found), "no markers")
        ros.wait_for(lambda: self.states.raw, "no joint_states")

    @property
    def q(self):
        return np.array(self.states.newest.position)

    def rest(self):
        """Wait until the arm and the markers are at rest."""

        def still():
            before = self.q
            self.ros.wait_longer(self.states, 0.5)
            return np.abs(self.q - before).max() < 1e-4

        self.ros.wait_for(still, "the arm does not rest")
        at = self.at(self.q)

        def near(found):
            tool = found[TOOL].pose.position
            return abs(tool.x - at.position.x) + abs(tool.y - at.position.y) < 3e-3

        self.client.wait(near, "the markers stay behind")

    def at(self, q):
        return pose_message(*pose(self.arm, q))

    def dragged_joint(self, index, step):
        """Return the handle pose of a joint that a user drags by ``step`` [rad]."""
        target = DragTarget(self.arm)
        target.set(self.q)
        at, turned = target.handle_pose(target.handles[index])
        return pose_message(at, turned @ pin.exp3(np.array([step, 0.0, 0.0])))


@pytest.fixture(scope="module")
def scene(shared):
    return Scene(shared)


def test_a_client_follows_by_sequence_numbers(scene):
    """After a motion the updated markers equal those of a new client."""
    scene.rest()
    found = scene.client.look()
    assert set(found) == {TOOL, *(JOINT + name for name in scene.arm.joint_names)}
    again = Client(scene.ros)
    assert again.markers == found


def test_nothing_moves_before_the_mouse_button_is_released(scene):
    scene.rest()
    start, name = scene.q, JOINT + scene.arm.joint_names[0]
    goal = start + np.array([0.2, 0, 0, 0, 0])
    dragged = scene.dragged_joint(0, 0.2)
    for kind, at in ((DOWN, None), (MOVED, dragged)):
        scene.client.send(name, kind, at)
    aim = scene.at(goal).position
    scene.client.wait(
        lambda found: abs(found[TOOL].pose.position.y - aim.y) < 3e-3, "the target stays"
    )
    scene.ros.wait_longer(scene.states, 0.5)
    assert np.abs(scene.q - start).max() < 2e-3
    ghosts = {m.ns for m in scene.drawn.newest.markers if m.action == Marker.ADD}
    assert "target" in ghosts
    planned = scene.path.newest.poses
    assert len(planned) > 10
    assert abs(planned[-1].pose.position.y - aim.y) < 3e-3
    scene.client.send(name, UP, dragged)
    scene.ros.wait_for(lambda: np.abs(scene.q - goal).max() < 0.01, "the arm stays")
    scene.ros.wait_for(lambda: not scene.path.newest.poses, "the path stays")


def test_without_move_on_release_only_the_menu_moves_the_arm(scene):
    """A drag of the tool moves only its marker until the menu starts the motion."""
    scene.rest()
    scene.ros.set("rviz_controls", move_on_release=False)
    start = scene.q
    goal = start + np.array([-0.1, 0.1, 0, 0, 0])
    for kind in (DOWN, MOVED, UP):
        scene.client.send(TOOL, kind, scene.at(goal))
    aim = scene.at(goal).position

    def near(found):
        return abs(found[TOOL].pose.position.x - aim.x) < 1e-6

    scene.client.wait(near, "the tool's marker stays")
    scene.ros.wait_longer(scene.states, 0.5)
    assert np.abs(scene.q - start).max() < 2e-3
    scene.client.send(TOOL, CHOSEN, entry=BACK)
    scene.rest()
    for kind in (DOWN, MOVED, UP):
        scene.client.send(TOOL, kind, scene.at(goal))
    scene.client.send(TOOL, CHOSEN, entry=GO)

    def off():
        return np.abs(pose(scene.arm, scene.q)[0] - pose(scene.arm, goal)[0]).max()

    scene.ros.wait_for(lambda: off() < 0.01, "the arm stays")
    scene.ros.set("rviz_controls", move_on_release=True)


def test_the_menu_stops_a_motion(scene):
    scene.rest()
    start, name = scene.q, JOINT + scene.arm.joint_names[0]
    dragged = scene.dragged_joint(0, 3.0)  # a busy machine sends the stop late
    for kind in (DOWN, MOVED, UP):
        scene.client.send(name, kind, dragged)
    scene.ros.wait_for(lambda: abs(scene.q[0] - start[0]) > 0.1, "no motion")
    scene.client.send(name, CHOSEN, entry=STOP)
    scene.rest()
    assert 0.1 < abs(scene.q[0] - start[0]) < 2.9


def test_an_emergency_stop_is_shown_and_disables_dragging(scene):
    scene.rest()
    scene.client.send(TOOL, CHOSEN, entry=EMERGENCY)
    scene.ros.wait_for(lambda: words(scene.drawn).startswith("EMERGENCY STOP: "), "no words")
    scene.client.wait(lambda found: found and not draggable(found), "the markers can be dragged")
    dragged = scene.dragged_joint(0, 0.3)
    for kind in (DOWN, MOVED, UP):
        scene.client.send(JOINT + scene.arm.joint_names[0], kind, dragged)
    time.sleep(0.3)
    scene.client.send(TOOL, CHOSEN, entry=RESET)
    scene.client.wait(draggable, "the markers stay locked")
    scene.ros.wait_for(lambda: "EMERGENCY" not in words(scene.drawn), "the words stay")
    before = scene.q
    scene.rest()
    assert np.abs(scene.q - before).max() < 0.05
