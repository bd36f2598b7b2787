"""The controller "mpc": its gains, its references ahead, and its distance from objects."""

import sys

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics import Plant
from arm_dynamics.batch.planning.joint_mpc import PERIOD, JointMpc, boxes_of, gap
from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.control import simulate_closed_loop
from arm_dynamics.control.controllers.lqr import WEIGHTS
from arm_dynamics.control.lqr_design.lqr_gain import LqrWeights, sampled_lqr
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.model.solids import Shape

HOME = np.array(five_dof().configuration("initial"))


def box_at(position, size=(0.1, 0.1, 0.3)):
    return Scene([SceneObject("box", Shape("box", size), np.array(position))])


def test_at_rest_its_gains_are_those_of_the_sampled_lqr():
    """Both are of the linear dynamics; the plan has time steps of 0.6 ms."""
    arm, state = five_dof(), State.of(HOME)
    controller = JointMpc(arm)
    command = controller.update(state, Reference.hold(HOME), 0.0)
    np.testing.assert_allclose(command.value, gravity(arm, HOME), atol=1e-12)
    weights = LqrWeights(*(controller.gains[p.name] for p in WEIGHTS))
    K, P = sampled_lqr(arm, HOME, weights, PERIOD)
    plan = controller.planner.plan
    for found in plan.gains:
        np.testing.assert_allclose(found, K, rtol=0.03, atol=1e-4 * np.abs(K).max())
    np.testing.assert_allclose(P, P.T, rtol=1e-9)


@pytest.mark.parametrize("q", [(0, 0.02, -1.56, 0, 0), (1.2, -0.5, -1.2, 0.6, 0.8)])
def test_an_arm_off_its_reference_returns_in_each_configuration(q):
    """Gains of another configuration would be unstable there, and the first plans oscillate."""
    arm, q = five_dof(), np.array(q)
    controller, plant = JointMpc(arm), Plant(arm)
    state = State.of(q + 0.03 * np.array([1, -1, 1, 1, -1]))
    controller.reset(state)
    for k in range(120):
        command = controller.update(state, Reference.hold(q), 5e-3 * (k > 0))
        state = plant.step(state, command, 5e-4, 10)
    np.testing.assert_allclose(state.q, q, atol=3e-3)
    assert np.abs(state.v).max() < 0.02


@pytest.mark.parametrize("speed", [0.2, 0.4])
def test_a_known_reference_is_followed_better_than_one_that_continues(speed):
    """A corner: without the references ahead the arm moves on, then returns."""
    arm, errors = five_dof(), []
    still = np.zeros(5)
    there = HOME + speed * 0.5 * np.eye(5)[0]
    corner = JointTrajectory(
        (Waypoint(0.0, HOME, still, still), Waypoint(0.5, there, still, still))
    )
    for known in (True, False):
        controller = JointMpc(arm)
        if not known:
            controller.follow_references = lambda ahead: None
        trace = simulate_closed_loop(
            arm, controller, corner, State.of(HOME), seconds=0.7, period=2e-3, dt=5e-4,
            integrator="semi_implicit_euler",
        )  # fmt: skip
        desired = np.array([corner.at(t).q for t in trace.time.tolist()])
        errors.append(np.abs(trace.q - desired)[:, 0].max())
    assert errors[0] < 0.5 * errors[1]
    assert errors[0] < 0.01 * speed


def test_it_stops_at_the_distance_from_an_object_on_its_path():
    """The reference ends within a box; without the box the arm reaches it."""
    arm = five_dof()
    goal = HOME + 0.8 * np.eye(5)[0]
    scene = box_at(pose(arm, goal)[0])
    for objects, reached in ((None, True), (scene, False)):
        controller, plant, state = JointMpc(arm), Plant(arm), State.of(HOME)
        if objects is not None:
            controller.use_scene(objects)
        box = boxes_of(scene)[0]
        least = np.inf
        for k in range(400):
            part = min(k / 350, 1.0)
            target = Reference(
                HOME + part * (goal - HOME), (goal - HOME) / 0.7 * (k < 350), 0 * HOME
            )
            state = plant.step(state, controller.update(state, target, 2e-3), 2.5e-4, 8)
            least = min(least, gap(box, pose(arm, state.q)[0]))
        assert controller.failed == 0
        assert (least < 0) == reached
        if not reached:
            assert 0.025 < least < 0.06  # object_distance = 0.03 of spheres with some mm more


def test_objects_next_to_the_arm_at_a_restart_do_not_move_it():
    """An arm that stands on a table, or next to one, rests at its reference."""
    arm, state = five_dof(), State.of(HOME)
    tool = pose(arm, HOME)[0]
    controller = JointMpc(arm)
    controller.use_scene(Scene([
        SceneObject("ground", Shape("ground", ())),
        SceneObject("box", Shape("sphere", (0.05,)), tool + np.array([0, 0.05, 0.05])),
    ]))  # fmt: skip
    command = controller.update(state, Reference.hold(HOME), 0.0)
    np.testing.assert_allclose(command.value, gravity(arm, HOME), atol=1e-9)


@pytest.mark.parametrize("shape", [
    Shape("box", (0.2, 0.4, 0.6)), Shape("sphere", (0.2,)), Shape("ground", ()),
    Shape("cylinder", (0.2, 0.6)),
])  # fmt: skip
def test_the_gap_is_the_signed_distance(shape):
    """Along the normal of a face, outside and inside; within SMOOTH of edges it is smaller."""
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    one = SceneObject("one", shape, np.array([0.3, 0.2, 0.1]), turn)
    box = boxes_of(Scene([one]))[0]
    top = {"box": 0.3, "sphere": 0.2, "ground": 0.0, "cylinder": 0.3}[shape.kind]
    for height in (0.5, 0.05, 0.001, -0.01):
        found = gap(box, one.position + np.array([0, 0, top + height]))
        assert found == pytest.approx(height, abs=1.5e-3)


def test_the_nearest_objects_are_avoided_and_free_ones_are_not():
    balls = [SceneObject(f"b{k}", Shape("sphere", (0.1,)), np.array([k, 0.0, 0])) for k in range(9)]
    free = SceneObject("free", Shape("sphere", (0.1,)), np.array([0.5, 0, 0]), mass=1.0)
    boxes = boxes_of(Scene([*balls[::-1], free]))
    np.testing.assert_array_equal(boxes[:, 0], [0, 1, 2, 3])


def test_a_missing_library_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "arm_dynamics.batch.planning.ilqr", None)
    with pytest.raises(ConfigError, match=r"controller mpc: .* is not installed; .*pip install"):
        JointMpc(five_dof())
