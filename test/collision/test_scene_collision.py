"""Collisions of the links with the fixed objects of a scene, by the same distances as of links."""

import warnings

import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics import load_arm
from arm_dynamics.collision import Scene, SceneObject, SelfCollision, collision_matrix, load_scene
from arm_dynamics.collision.clearance_monitor import CLEARANCE, ClearanceMonitor
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.solids import Shape

TURNED = pin.rpy.rpyToMatrix(0.3, -0.2, 0.5)
CORNERS = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1], [0.05, 0.05, 0.02]])
CELL = Scene(
    (
        SceneObject("floor", Shape("ground", ()), (0, 0, -0.1), pin.rpy.rpyToMatrix(0.1, 0, 0)),
        SceneObject("crate", Shape("box", (0.1, 0.2, 0.1)), (0.25, 0, 0.1), TURNED),
        SceneObject("post", Shape("cylinder", (0.04, 0.5)), (0.1, 0.2, 0.2), TURNED),
        SceneObject("lamp", Shape("sphere", (0.05,)), (0.1, -0.2, 0.2)),
        SceneObject("wedge", Shape("mesh", ()), (0, 0.3, 0.1), TURNED, vertices=CORNERS),
        SceneObject("cube", Shape("box", (0.04, 0.04, 0.04)), (0.2, -0.2, 0.02), mass=0.1),
    )
)


@pytest.fixture(scope="module")
def arm():
    return load_arm("so101")


def test_distances_to_objects_are_those_of_their_shapes(arm):
    """Against a closed form: the lowest corner of each box of the arm above a floor."""
    shapes = SelfCollision(arm, 0.01, arm.configuration("initial"), scene=load_scene("ground"))
    data, results = arm.model.createData(), shapes.shapes.createData()
    q = np.random.default_rng(0).uniform(arm.lower, arm.upper)
    pin.computeDistances(arm.model, data, shapes.shapes, results, q)
    checked = 0
    for pair, result in zip(shapes.shapes.collisionPairs, results.distanceResults, strict=True):
        geometry = shapes.shapes.geometryObjects[pair.first].geometry
        floor = shapes.shapes.geometryObjects[pair.second].name == "ground"
        if floor and type(geometry).__name__ == "Box":
            placement = results.oMg[pair.first]
            signs = np.array(list(np.ndindex(2, 2, 2))) * 2 - 1
            corners = (signs * geometry.halfSide) @ placement.rotation.T + placement.translation
            assert result.min_distance == pytest.approx(corners[:, 2].min(), abs=1e-9)
            checked += 1
    assert checked > 3


def test_a_motion_without_a_contact_keeps_the_clearance_of_all_objects(arm):
    random, monitor = np.random.default_rng(0), ClearanceMonitor(arm, scene=CELL)
    data, results = arm.model.createData(), monitor.shapes.createData()

    def slack(q):
        pin.computeDistances(arm.model, data, monitor.shapes, results, q)
        distances = [result.min_distance for result in results.distanceResults]
        return float((np.array(distances) - monitor.margins).min())

    free, contacts = 0, set()
    for _ in range(80):
        q, end = random.uniform(arm.lower, arm.upper, (2, arm.nv))
        end = q + 0.4 * (end - q)
        if slack(q) < 0:
            continue
        motion = end - q
        found = monitor.first_contact(
            lambda s, q=q, motion=motion: q + s * motion, 0.0, 1.0, np.abs(motion)
        )
        if found is None:
            free += 1
            assert min(slack(q + s * motion) for s in np.linspace(0, 1, 21).tolist()) > -0.002
        else:
            assert slack(q + found[0] * motion) < 1e-5
            contacts |= {found[1].second} if found[1].with_object else set()
    assert free > 10
    assert len(contacts) > 2
    assert contacts <= {one.name for one in CELL if one.is_fixed}


def test_links_that_do_not_move_and_free_objects_form_no_pair(arm):
    check = SelfCollision(arm, CLEARANCE, arm.configuration("initial"), scene=CELL)
    ends = {check.ends(k) for k in range(check.pairs) if check.has_object(k)}
    links = {first for first, _ in ends}
    assert "base_link" not in links
    assert {"shoulder_lift_link", "wrist_roll_link"} <= links
    assert {second for _, second in ends} == {one.name for one in CELL if one.is_fixed}


def test_an_object_in_contact_at_the_start_is_omitted_with_a_warning(arm):
    start = np.array(arm.configuration("initial"))
    data = arm.model.createData()
    pin.framesForwardKinematics(arm.model, data, start)
    tool = data.oMf[arm.model.getFrameId(arm.tool_frame)].translation
    ball = SceneObject("ball", Shape("sphere", (0.02,)), tool)
    with pytest.warns(RuntimeWarning, match="in contact at the start .* and object 'ball'; these"):
        check = SelfCollision(arm, CLEARANCE, start, scene=Scene((ball,)), convex=True)
    assert check.find(start) is None
    assert any(check.has_object(k) for k in range(check.pairs))  # other links remain


def test_a_contact_names_link_object_and_distance(arm):
    monitor, q = ClearanceMonitor(arm, scene=load_scene("table")), np.zeros(arm.nv)
    down = np.array([0.0, 1.2, 0.0, 0.0, 0.0, 0.0])
    found = monitor.first_contact(lambda s: q + s * down, 0.0, 1.0, down)
    assert found is not None
    text = r"distance of link '\w+' and object 'table' would be -?\d\.\d mm; expected at least 5.0"
    assert found[1].with_object
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(str(found[1]))
    monitor = ClearanceMonitor(arm)
    assert monitor.first_contact(lambda s: q + s * down, 0.0, 1.0, down) is None


SRDF = '<robot name="{}"><disable_collisions link1="{}" link2="{}" reason="User"/></robot>'


@pytest.mark.parametrize(("robot", "is_read"), [("so101", True), ("another", False)])
def test_the_srdf_next_to_the_urdf_disables_pairs(robot, is_read, arm, tmp_path):
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(arm.urdf)
    links = ("base_link", "wrist_roll_link")
    (tmp_path / "arm.srdf").write_text(SRDF.format(robot, *reversed(links)))
    own = parse_arm(arm.urdf, urdf)
    check = SelfCollision(own, CLEARANCE, own.configuration("initial"))
    assert (links not in {check.ends(k) for k in range(check.pairs)}) == is_read
    reasons = {(first, second): reason for first, second, reason in collision_matrix(own, 10)}
    assert (reasons.get(links) == "User") == is_read


def test_an_srdf_that_cannot_be_read_is_ignored_with_a_warning(arm, tmp_path):
    (tmp_path / "arm.srdf").write_text("<robot")
    own = parse_arm(arm.urdf, tmp_path / "arm.urdf")
    with pytest.warns(RuntimeWarning, match=r"arm.srdf: line 1: .*; its disabled pairs and group"):
        check = SelfCollision(own, CLEARANCE, own.configuration("initial"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = SelfCollision(arm, CLEARANCE, arm.configuration("initial"))
    assert check.pairs == plain.pairs
