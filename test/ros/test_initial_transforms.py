"""The arm is shown at its initial configuration while its plant is compiled."""

import time
from types import SimpleNamespace

import mimic_arm
import numpy as np
import pytest
from geometry_msgs.msg import TransformStamped

from arm_dynamics import load_arm
from arm_dynamics.core.rotations import quaternion_from_rotation
from arm_dynamics.dynamics.kinematics.frames import link_placements, pose
from arm_dynamics.model.load import parse_arm
from arm_dynamics.ros.messages.conversions import Frames
from arm_dynamics.ros.topics import frames as module

ARM = load_arm("puma560", ["J5"])
START = ARM.configuration("initial") + 0.2
FRAMES = Frames("left/base_link", "left/tool", "left/")


class Publisher(list):
    """Node and publisher that store the stamps and transforms of each publication."""

    def create_publisher(self, kind, topic, depth):
        assert (topic, depth) == ("/tf", module.qos.TRANSFORMS)
        return self

    def destroy_publisher(self, publisher):
        assert publisher is self

    def publish(self, message):
        stamps = [t.header.stamp.sec * 10**9 + t.header.stamp.nanosec for t in message.transforms]
        self.append((stamps, message.transforms))


def base(link):
    """Return the homogeneous transform (4, 4) of a link in the base frame."""
    placed = np.eye(4)
    placed[:3, 3], placed[:3, :3] = pose(ARM, START, link)
    return placed


def test_transforms_connect_the_base_to_every_link():
    found = set()
    for parent, child, position, rotation in link_placements(ARM, START):
        step = np.eye(4)
        step[:3, 3], step[:3, :3] = position, rotation
        np.testing.assert_allclose(base(parent) @ step, base(child), atol=1e-12)
        found.add(child)
    assert len(found) == ARM.nv


def test_transforms_are_published_periodically_until_the_compilation_ends(monkeypatch):
    kind = SimpleNamespace(TFMessage=SimpleNamespace)
    monkeypatch.setattr(module, "import_module", lambda name: {"tf2_msgs.msg": kind}[name])
    monkeypatch.setattr(module, "INITIAL_PERIOD", 0.001)
    node = Publisher()
    with module.initial_transforms(node, ARM, FRAMES, START):
        until = time.monotonic() + 60
        while len(node) < 3 and time.monotonic() < until:
            time.sleep(0.001)
    published = len(node)
    time.sleep(0.01)
    assert len(node) == published >= 3
    assert [stamps for stamps, _ in node] == [[n + 1] * ARM.nv for n in range(published)]
    for message, placed in zip(node[0][1], link_placements(ARM, START), strict=True):
        assert isinstance(message, TransformStamped)
        assert message.header.frame_id == f"left/{placed.parent}"
        assert message.child_frame_id == f"left/{placed.child}"
        at, turned = message.transform.translation, message.transform.rotation
        assert [at.x, at.y, at.z] == pytest.approx(placed.position)
        expected = quaternion_from_rotation(placed.rotation)
        assert [turned.x, turned.y, turned.z, turned.w] == pytest.approx(expected)


def test_without_tf2_msgs_nothing_is_published(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(module, "import_module", missing)
    node = Publisher()
    with module.initial_transforms(node, ARM, FRAMES, START):
        assert not node


def test_mimic_joints_have_transforms_where_their_driven_joint_is_known(monkeypatch):
    kind = SimpleNamespace(TFMessage=SimpleNamespace)
    monkeypatch.setattr(module, "import_module", lambda name: {"tf2_msgs.msg": kind}[name])
    monkeypatch.setattr(module, "wall_timer", lambda *arguments: None)
    published = []
    publisher = SimpleNamespace(publish=published.append, get_subscription_count=lambda: 1)
    node = SimpleNamespace(
        create_publisher=lambda *arguments: publisher, get_namespace=lambda: "/",
        get_publishers_info_by_topic=lambda topic: [],
    )  # fmt: skip
    topics = module.RobotStateTopics(node, parse_arm(mimic_arm.text()), FRAMES)
    for q, moving in (
        ([0.1, 0.2, 0.3], {"J1", "J2", "knuckle", *mimic_arm.RATIO}),
        ([0.1, 0.2, np.nan], {"J1", "J2"}),
        ([np.nan, 0.2, 0.3], {"J2", "knuckle", *mimic_arm.RATIO}),
    ):
        topics.update(1.0, np.array(q))
        topics._publish()
        frames = {transform.child_frame_id for transform in published[-1].transforms}
        assert frames == {f"left/{joint}_link" for joint in moving}
