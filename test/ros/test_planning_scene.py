"""Scene for MoveIt: messages of ``planning_scene``, applied by the rules of MoveIt."""

import numpy as np
import pinocchio as pin
import pytest
from geometry_msgs.msg import Pose
from hypothesis import given
from hypothesis import strategies as st
from moveit_msgs.msg import CollisionObject, PlanningScene
from shape_msgs.msg import SolidPrimitive
from simulation_interfaces.msg import EntityState, Resource
from simulation_interfaces.srv import DeleteEntity, SetEntityState, SpawnEntity
from std_msgs.msg import Header, String

from arm_dynamics import load_arm
from arm_dynamics.collision.link_pairs import touching_links
from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.collision.scene_files import load_scene
from arm_dynamics.collision.scene_shapes import GROUND_BOX
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.model.solids import Shape
from arm_dynamics.ros.messages.conversions import placed
from arm_dynamics.ros.topics.planning_scene import (
    NOTHING,
    PlacedObjects,
    collision_object,
    scene_changes,
)

from .link import LOCKSTEP

CORNERS = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.2, 0], [0, 0, 0.3]])


class MoveIt:
    """Planning scene that processes messages as PlanningScene::setPlanningSceneDiffMsg does.

    An operation on an object that does not exist, which MoveIt reports, raises KeyError.
    """

    def __init__(self):
        self.attached, self.world = {}, {}

    def apply(self, message):
        assert (message.is_diff, message.robot_state.is_diff) == (True, True)
        assert message.allowed_collision_matrix.entry_names == []  # it would replace MoveIt's
        for one in message.robot_state.attached_collision_objects:
            if one.object.operation == CollisionObject.REMOVE:
                self.world[one.object.id] = self.attached.pop(one.object.id)[0]
            else:
                self.world.pop(one.object.id, None)
                self.attached[one.object.id] = one.object, one.link_name, list(one.touch_links)
        for one in message.world.collision_objects:
            if one.operation == CollisionObject.REMOVE:
                del self.world[one.id]
            elif one.operation == CollisionObject.MOVE:
                assert (one.primitives, one.meshes) == ([], [])  # MoveIt ignores them
                last = self.world[one.id]
                geometry = {k: getattr(last, k) for k in ("primitives", "primitive_poses")}
                self.world[one.id] = CollisionObject(
                    id=one.id, header=one.header, pose=one.pose, **geometry
                )
            else:
                self.world[one.id] = one
        return self


@st.composite
def placements(draw):
    """Few shapes at few positions, some of them touched by links."""
    one_of = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    names = draw(st.permutations("ab"))[: one_of(2, 1, 0)]
    shapes = [Shape("box", (1, 1, 1)), Shape("box", (2, 1, 1)), Shape("ground", ())]
    scene = Scene(SceneObject(name, one_of(*shapes), [one_of(1, 2), 0, 1]) for name in names)
    touching = {name: one_of(None, None, ("l1",), ("l1", "l2")) for name in names}
    return PlacedObjects(scene, {name: links for name, links in touching.items() if links})


@given(st.lists(placements(), min_size=2, max_size=5))
def test_changes_one_after_the_other_give_the_whole_scene(history):
    moveit, last = MoveIt(), NOTHING
    for present in history:
        moveit.apply(scene_changes("base", last, present))
        whole = MoveIt().apply(scene_changes("base", NOTHING, present))
        assert (moveit.attached, moveit.world) == (whole.attached, whole.world)
        assert set(whole.attached) == set(present.touching)
        assert set(whole.world) == {one.name for one in present.scene} - set(present.touching)
        assert scene_changes("base", present, present) == scene_changes("base", NOTHING, NOTHING)
        last = present


def test_an_object_that_moves_is_sent_without_its_shape():
    one = SceneObject("cube", Shape("box", (0.1, 0.1, 0.1)), mass=0.1)
    two = one.placed([0, 0, 1], pin.rpy.rpyToMatrix(0, 0, 0.3))
    scenes = [PlacedObjects(Scene([x]), {}) for x in (one, two)]
    (moved,) = scene_changes("base", *scenes).world.collision_objects
    assert (moved.operation, moved.primitives, moved.id) == (CollisionObject.MOVE, [], "cube")
    position, rotation = placed("cube", moved.pose.position, moved.pose.orientation)
    np.testing.assert_allclose(position, [0, 0, 1])
    np.testing.assert_allclose(rotation, two.rotation, atol=1e-15)


def test_shapes_have_the_sizes_of_the_objects():
    def message(kind, size, **values):
        found = collision_object(SceneObject("x", Shape(kind, size), **values), Header())
        assert found.operation == CollisionObject.ADD
        assert [*found.primitive_poses, *found.mesh_poses] == [Pose()]
        return found

    can, ball = message("cylinder", (0.1, 0.5)).primitives[0], message("sphere", (0.3,)).primitives
    assert can.dimensions[SolidPrimitive.CYLINDER_HEIGHT] == 0.5
    assert can.dimensions[SolidPrimitive.CYLINDER_RADIUS] == 0.1
    assert (ball[0].type, list(ball[0].dimensions)) == (SolidPrimitive.SPHERE, [0.3])
    mesh = message("mesh", (), vertices=CORNERS).meshes[0]
    points = np.array([[p.x, p.y, p.z] for p in mesh.vertices])
    a, b, c = np.moveaxis(points[[t.vertex_indices for t in mesh.triangles]], 1, 0)
    volume = np.einsum("ni,ni", np.cross(a, b), c) / 6
    assert volume == pytest.approx(0.1 * 0.2 * 0.3 / 6)


def test_a_ground_is_a_box_below_its_plane_and_below_the_base():
    R, p = pin.rpy.rpyToMatrix(0.2, -0.1, 0.5), np.array([3.0, 2.0, -0.4])
    one = SceneObject("floor", Shape("ground", ()), p, R)
    message = collision_object(one, Header())
    center, rotation = placed("floor", message.pose.position, message.pose.orientation)
    assert list(message.primitives[0].dimensions) == list(GROUND_BOX)
    np.testing.assert_allclose(rotation, R, atol=1e-15)
    top = center + R @ [0, 0, GROUND_BOX[2] / 2]
    assert R[:, 2] @ (top - p) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(np.cross(top, R[:, 2]), 0, atol=1e-12)  # below the origin


@pytest.mark.parametrize("name", ["so101", "five_dof", "puma560"])
def test_links_touch_the_objects_that_they_rest_on(name):
    arm = load_arm(name)
    tool = pose(arm, arm.configuration("initial"))[0]
    ball = SceneObject("ball", Shape("sphere", (0.05,)), tool)
    free = SceneObject("free", Shape("sphere", (0.05,)), tool, mass=0.1)
    away = SceneObject("away", Shape("box", (0.1, 0.1, 0.1)), [0, 0, 5])
    touching = touching_links(arm, Scene((*load_scene("table"), ball, free, away)))
    assert set(touching) == {"table", "ball"}
    assert touching["table"] == (arm.base_frame,)
    assert arm.base_frame not in touching["ball"]
    assert touching_links(arm, Scene()) == {}


def test_moveit_follows_the_scene_of_the_simulator(shared):
    scenes = shared.record(String, "scene", latched=True)
    shared.start("simulator", **LOCKSTEP, arm="so101", scene="table")
    shared.wait_for(lambda: len(scenes), "no scene")
    received, moveit = shared.record(PlanningScene, "planning_scene"), MoveIt()

    def follow(attached, world):
        """Apply all messages until the scene has objects of these names."""

        def is_there():
            while len(received):
                moveit.apply(received.messages()[0])
                received.raw.pop(0)
            return (list(moveit.attached), list(moveit.world)) == (attached, world)

        shared.wait_for(is_there, f"no {attached} and {world}: {vars(moveit)}")

    def spawn(name, size, position):
        text = f"objects: {{{name}: {{shape: box, size: {size}, position: {position}}}}}"
        request = SpawnEntity.Request(entity_resource=Resource(resource_string=text))
        assert shared.call(SpawnEntity, "simulator/spawn_entity", request).result.result == 1

    follow(["table"], ["ground"])  # which were there before the subscriber
    table, link, touch = moveit.attached["table"]
    assert (table.header.frame_id, link, touch) == ("base_link", "base_link", ["base_link"])
    assert list(table.primitives[0].dimensions) == [1.2, 1.2, 0.04]
    spawn("box", [0.1, 0.1, 0.2], [0.5, 0.3, 0.1])
    follow(["table"], ["ground", "box"])
    state = EntityState(pose=Pose())
    state.header.frame_id, state.pose.position.z = "base_link", 0.7
    request = SetEntityState.Request(entity="box", state=state, set_pose=True)
    assert shared.call(SetEntityState, "simulator/set_entity_state", request).result.result == 1
    shared.wait_for(lambda: len(received), "no motion")
    follow(["table"], ["ground", "box"])
    assert moveit.world["box"].pose.position.z == 0.7
    another = shared.record(PlanningScene, "planning_scene")
    shared.wait_for(lambda: len(another) and len(received), "no scene for another subscriber")
    whole = MoveIt().apply(another.messages()[0])
    assert (list(whole.attached), list(whole.world)) == (["table"], ["ground", "box"])
    for name in ("box", "table"):
        shared.call(DeleteEntity, "simulator/delete_entity", DeleteEntity.Request(entity=name))
    follow([], ["ground"])
