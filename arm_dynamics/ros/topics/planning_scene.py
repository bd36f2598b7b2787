"""Scene of an arm for MoveIt: topic ``planning_scene``, changes of the planning scene.

A fixed object that touches links at the initial configuration is attached to the root link, with
these links as its touch links. In the world it would be a collision at the start; an allowed
collision matrix would replace that of ``move_group``. All other objects are in the world.

References
----------
MoveIt 2, moveit_core, planning_scene.cpp, PlanningScene::setPlanningSceneDiffMsg.

"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from geometry_msgs.msg import Point, Pose
from moveit_msgs.msg import AttachedCollisionObject, CollisionObject, PlanningScene
from rclpy.node import Node
from shape_msgs.msg import Mesh, MeshTriangle, SolidPrimitive
from std_msgs.msg import Header

from arm_dynamics.collision.link_pairs import touching_links
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene, SceneObject
from arm_dynamics.collision.scene_shapes import ground_box, object_triangles
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.conversions import pose_message
from arm_dynamics.ros.topics.pacing import wall_timer

PRIMITIVES = {
    "box": SolidPrimitive.BOX,
    "cylinder": SolidPrimitive.CYLINDER,
    "sphere": SolidPrimitive.SPHERE,
}


class PlanningScenePublisher:
    """Publishes the changes of a scene while ``planning_scene`` has a subscriber.

    A new subscriber receives the whole scene: those of MoveIt are volatile.

    Parameters
    ----------
    node : Node
        Node of the arm.
    arm : ArmModel
        The arm.
    scene : Callable[[], Scene]
        Returns the present scene.
    period : float
        Time [s] between two messages of objects that move.

    """

    def __init__(
        self, node: Node, arm: ArmModel, scene: Callable[[], Scene], period: float
    ) -> None:
        self._arm, self._scene = arm, scene
        self._publisher = node.create_publisher(PlanningScene, "planning_scene", qos.STREAM)
        self._subscribers, self._published = 0, NOTHING
        wall_timer(node, period, self._publish)

    def _publish(self) -> None:
        """Publish what differs from the last message."""
        before, subscribers = self._subscribers, self._publisher.get_subscription_count()
        self._subscribers = subscribers
        if subscribers > before:
            self._published = NOTHING
        last, scene = self._published, self._scene()
        if subscribers and scene is not last.scene:
            same = scene.differs_in_poses_only(last.scene)
            touching = last.touching if same else touching_links(self._arm, scene)
            self._published = PlacedObjects(scene, touching)
            self._publisher.publish(scene_changes(self._arm.base_frame, last, self._published))


class PlacedObjects(NamedTuple):
    """Objects of a scene, and the links that touch those which are attached."""

    scene: Scene
    touching: dict[str, tuple[str, ...]]


NOTHING = PlacedObjects(EMPTY_SCENE, {})


def scene_changes(base: str, before: PlacedObjects, after: PlacedObjects) -> PlanningScene:
    """Return the changes between two scenes, with poses in the root link ``base``.

    MoveIt applies the changes of attached objects first, and returns a detached one to the world.
    """
    message = PlanningScene(is_diff=True)
    message.robot_state.is_diff = True
    attached = message.robot_state.attached_collision_objects
    world = message.world.collision_objects
    earlier = {one.name: one for one in before.scene}
    for name in earlier:
        removed = CollisionObject(id=name, operation=CollisionObject.REMOVE)
        if name in before.touching and name not in after.touching:
            attached.append(AttachedCollisionObject(object=removed))
        if name not in after.scene:
            world.append(removed)
    header = Header(frame_id=base)
    for one in after.scene:
        last, links = earlier.get(one.name), after.touching.get(one.name)
        added = collision_object(one, header)
        if last and links == before.touching.get(one.name) and one.same_shape(last):
            if one.same_pose(last):
                continue
            if links is None:
                move = CollisionObject.MOVE
                added = CollisionObject(header=header, id=one.name, pose=added.pose, operation=move)
        if links is None:
            world.append(added)
        else:
            attachment = AttachedCollisionObject(link_name=base, object=added, touch_links=links)
            attached.append(attachment)
    return message


def collision_object(one: SceneObject, header: Header) -> CollisionObject:
    """Return the message that adds an object; it replaces one of the same name."""
    if one.shape.kind == "ground":  # a plane of MoveIt has two sides and is not drawn
        one = ground_box(one)
    message = CollisionObject(header=header, id=one.name, operation=CollisionObject.ADD)
    message.pose = pose_message(one.position, one.rotation)
    size = one.shape.size
    if one.vertices is not None:
        points, triangles = object_triangles(one)
        vertices = [Point(x=x, y=y, z=z) for x, y, z in points.tolist()]
        corners = [MeshTriangle(vertex_indices=corner) for corner in triangles.tolist()]
        message.meshes, message.mesh_poses = [Mesh(triangles=corners, vertices=vertices)], [Pose()]
    else:
        dimensions = size[::-1] if one.shape.kind == "cylinder" else size  # its height first
        solid = SolidPrimitive(type=PRIMITIVES[one.shape.kind], dimensions=dimensions)
        message.primitives, message.primitive_poses = [solid], [Pose()]
    return message
