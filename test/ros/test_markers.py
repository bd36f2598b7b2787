"""Markers and interactive markers for RViz: messages for every arm, without a node."""

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from std_msgs.msg import Header
from visualization_msgs.msg import InteractiveMarkerControl, Marker

from arm_dynamics import load_arm
from arm_dynamics.core import resources
from arm_dynamics.dynamics.kinematics.frames import link_poses, pose
from arm_dynamics.model.visuals import visuals
from arm_dynamics.ros.nodes import markers as mm
from arm_dynamics.ros.nodes.rviz_controls import status_text
from arm_dynamics.ros.topics.diagnostics import DiagnosticsSummary
from arm_dynamics.viewer.drag import DragTarget
from arm_dynamics.viewer.rviz import link_length

ARMS = resources.resource_names("urdf", ".urdf")
HEADER = Header(frame_id="left/base_link")
MENU = ("Move", "Stop")


def markers_of(arm, target):
    size = link_length(arm)
    rings = [mm.joint_marker(target, h, HEADER, size, MENU) for h in target.handles]
    return [mm.tool_marker(target, HEADER, size, MENU), *rings]


def unit(q):
    return np.isclose(q.x**2 + q.y**2 + q.z**2 + q.w**2, 1, atol=1e-9)


@pytest.mark.parametrize("name", ARMS)
def test_markers_are_valid_for_rviz(name):
    arm = load_arm(name)
    target = DragTarget(arm)
    found = markers_of(arm, target)
    assert len({marker.name for marker in found}) == len(found) == arm.nv + 1
    for marker in found:
        assert marker.header.frame_id == "left/base_link"
        assert (marker.header.stamp.sec, marker.header.stamp.nanosec) == (0, 0)  # frame-locked
        assert unit(marker.pose.orientation)
        assert marker.scale == pytest.approx(link_length(arm))
        assert [entry.title for entry in marker.menu_entries] == list(MENU)
        assert [entry.id for entry in marker.menu_entries] == [1, 2]
        names = [control.name for control in marker.controls]
        assert len(set(names)) == len(names) > 1
        assert all(unit(control.orientation) for control in marker.controls)
    tool = [c for c in found[0].controls if c.interaction_mode != InteractiveMarkerControl.MENU]
    assert len(tool) == sum(target.axes)
    assert set(mm.poses(target)) == {marker.name for marker in found}
    kept = mm.locked_marker(found[1]).controls
    assert [c.interaction_mode for c in kept] == [InteractiveMarkerControl.MENU]


@pytest.mark.parametrize("name", ARMS)
def test_a_ghost_has_the_shapes_of_the_arm_where_they_are(name):
    arm, shapes = load_arm(name), visuals(load_arm(name))
    q = arm.configuration("initial") + 0.05
    markers = mm.ghost("reference", shapes, link_poses(arm, q), HEADER, mm.REFERENCE)
    assert len({(marker.ns, marker.id) for marker in markers}) == len(shapes) > arm.nv - 1
    for marker, shape in zip(markers, shapes, strict=True):
        assert (marker.action, marker.header.frame_id) == (Marker.ADD, "left/base_link")
        assert unit(marker.pose.orientation)
        assert min(marker.scale.x, marker.scale.y, marker.scale.z) > 0
        assert 0 < marker.color.a < 1
        at, turned = pose(arm, q, shape.link)
        p = marker.pose.position
        np.testing.assert_allclose([p.x, p.y, p.z], at + turned @ shape.position, atol=1e-12)
    gone = mm.ghost("reference", shapes, None, HEADER, mm.REFERENCE)
    assert {marker.action for marker in gone} == {Marker.DELETE}
    assert [(m.ns, m.id) for m in gone] == [(m.ns, m.id) for m in markers]


@pytest.mark.parametrize("name", ARMS)
def test_a_handle_moves_its_joint_within_the_limits(name):
    arm = load_arm(name)
    target = DragTarget(arm)
    for handle in target.handles:
        for step in (0.01, -0.02):
            before = target.q
            at, turned = target.handle_pose(handle)
            moved = (at + step * turned[:, 0], turned)
            if not handle.slides:
                moved = (at, turned @ pin.exp3(np.array([step, 0.0, 0.0])))
            target.drag_joint(handle, *moved)
            change = target.q - before
            assert change[handle.index] == pytest.approx(step, abs=1e-12)
            assert np.abs(np.delete(change, handle.index)).max(initial=0.0) == 0
        for _ in range(4):  # beyond the limits, or through a whole turn
            at, turned = target.handle_pose(handle)
            target.drag_joint(handle, at + turned[:, 0], turned @ pin.exp3(np.array([2.0, 0, 0])))
        assert arm.lower[handle.index] <= target.q[handle.index] <= arm.upper[handle.index]
        if not np.isfinite(arm.upper[handle.index]):
            assert target.q[handle.index] - before[handle.index] > 2 * np.pi
        target.set(arm.configuration("initial"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ARMS)
def test_a_drag_moves_the_tool_to_the_nearest_reachable_position(name):
    arm = load_arm(name)
    target = DragTarget(arm)
    q = np.clip(arm.configuration("initial") + 0.1, arm.lower, arm.upper)
    position, rotation = pose(arm, q)
    target.drag_tool(position, rotation)
    found = pose(arm, target.q)
    np.testing.assert_allclose(found[0], position, atol=1e-6)
    if all(target.axes):
        np.testing.assert_allclose(found[1], rotation, atol=1e-6)
    target.drag_tool(position + 100 * np.array(target.axes[:3]), rotation)
    assert (arm.lower <= target.q).all()
    assert (target.q <= arm.upper).all()
    target.settle()
    np.testing.assert_allclose(target.position, pose(arm, target.q)[0], atol=1e-12)
    path = target.path_from(q)
    np.testing.assert_allclose(path[0], position, atol=1e-12)
    np.testing.assert_allclose(path[-1], target.position, atol=1e-12)


def test_a_drag_does_not_jump_to_another_configuration():
    """Above the initial configuration R2 reaches its limit; only elbow-down solutions continue."""
    arm = load_arm("five_dof")
    target = DragTarget(arm)
    start = target.position
    for height in np.linspace(0.02, 0.24, 12):
        before = target.q
        target.drag_tool(start + np.array([0.0, 0.0, height]), target.rotation)
        assert np.abs(target.q - before).max() < 0.5
    assert target.q[1] == pytest.approx(arm.lower[1])
    assert np.linalg.norm(pose(arm, target.q)[0] - target.position) < 0.05


def test_texts_are_wrapped_and_removed():
    shown = mm.text_marker("EMERGENCY STOP: " + "a reason " * 12, np.zeros(3), 0.1, True, HEADER)
    assert (shown.action, shown.type) == (Marker.ADD, Marker.TEXT_VIEW_FACING)
    assert shown.scale.z == 0.1
    assert 0 < shown.scale.x < 0.1  # of a space: RViz takes 1.3 m without it
    assert max(map(len, shown.text.split("\n"))) <= 44 < len(shown.text)
    assert mm.text_marker("", np.zeros(3), 0.1, False, HEADER).action == Marker.DELETE


def test_stops_and_problems_are_shown():
    status = DiagnosticsSummary()
    assert status_text(status) == ("", False)
    status.messages = {"simulator": "controlled stop", "joint_controller": "running", "page": "odd"}
    status.ok = {"simulator": False, "joint_controller": True, "page": False}
    assert status_text(status) == ("simulator: controlled stop", False)
    status.messages["simulator"] = "emergency stop by topic emergency_stop"
    assert status_text(status) == ("EMERGENCY STOP: topic emergency_stop", True)
