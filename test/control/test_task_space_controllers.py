"""Task-space controllers: motion and forces of the tool, also at the workspace limit."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from conftest import chain, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import Plant, State, load_arm, nearest_reachable
from arm_dynamics.control.controllers.impedance import Impedance
from arm_dynamics.control.controllers.resolved_rate import ResolvedRate
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.controllers.task_space_base import to_task_reference
from arm_dynamics.core import resources
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.rotations import rotation_vector
from arm_dynamics.core.small_matrices import (
    damped_pseudoinverse,
    factor_spd,
    invert_factored,
    solve_spd,
)
from arm_dynamics.core.state import Reference
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.dynamics.kinematics import frames
from arm_dynamics.dynamics.kinematics.closed_loop_ik import ClosedLoopIk
from arm_dynamics.dynamics.kinematics.tool_motion import (
    ToolKinematics,
    controlled_axes,
    operational_inertia,
)
from arm_dynamics.model.model_error import with_model_error

CONTROLLERS = (ResolvedRate, TaskSpace, Impedance)
DT = 2e-3


def arm_of(name):
    """A bundled arm whose joints take efforts."""
    return load_arm(name).with_actuator("ideal") if name == "puma560" else load_arm(name)


def scattered(arm, seed=0, fraction=0.5):
    """Return a position, a velocity and an acceleration well within the limits."""
    lower, upper = np.maximum(arm.lower, -2), np.minimum(arm.upper, 2)
    random = np.random.default_rng(seed)
    middle, half = (lower + upper) / 2, fraction * (upper - lower) / 2
    q = middle + half * random.uniform(-1, 1, arm.nv)
    return q, random.normal(size=arm.nv), random.normal(size=arm.nv)


# Rotations and matrices--------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=6), st.floats(0, np.pi - 1e-6))
def test_a_rotations_vector_is_its_logarithm(numbers, angle):
    first, axis = np.array(numbers[:3]), np.array(numbers[3:])
    if np.linalg.norm(axis) < 1e-3:
        axis = np.array([0.0, 0.0, 1.0])
    turn = angle * axis / np.linalg.norm(axis)
    start = pin.exp3(first)
    found = rotation_vector(start, pin.exp3(turn) @ start)
    np.testing.assert_allclose(found, turn, atol=1e-7 if angle > 3 else 1e-12)


@pytest.mark.parametrize("axis", [*np.eye(3), np.array([0.6, 0.0, -0.8])])
def test_half_a_turn_has_its_axis(axis):
    found = rotation_vector(np.eye(3), pin.exp3(np.pi * axis))
    np.testing.assert_allclose(np.abs(found @ axis), np.pi, atol=1e-9)


def test_spd_systems_and_damped_pseudoinverses():
    random = np.random.default_rng(3)
    for k, n in ((1, 1), (2, 2), (3, 5), (6, 6), (6, 7)):
        J, B = random.normal(size=(k, n)), random.normal(size=(k, 3))
        A = J @ J.T
        np.testing.assert_allclose(solve_spd(A, B), np.linalg.solve(A, B), rtol=1e-8)
        inverse = A + np.triu(np.full((k, k), np.nan), 1)  # the upper triangle is not read
        factor_spd(inverse)
        invert_factored(inverse)
        np.testing.assert_allclose(inverse, np.linalg.inv(A), rtol=1e-8)
        assert np.array_equal(inverse, inverse.T)
        np.testing.assert_allclose(damped_pseudoinverse(J, 1e-6)[0], np.linalg.pinv(J), rtol=1e-8)
        U, sigma, W = np.linalg.svd(J, full_matrices=False)
        weak = 1.5 * sigma.min()
        acting = sigma / np.maximum(sigma**2, weak**2)
        found, lowest = damped_pseudoinverse(J, weak)
        np.testing.assert_allclose(found, (W.T * acting) @ U.T, atol=1e-8 * acting.max())
        assert 0 < lowest <= sigma.min() * (1 + 1e-9)
    assert np.isnan(solve_spd(np.zeros((2, 2)), np.eye(2))).all()


def test_controlled_axes_are_those_of_the_arm():
    assert controlled_axes(load_arm("puma560")) == (True,) * 6
    assert controlled_axes(five_dof()) == (True, True, True, False, False, False)
    assert controlled_axes(load_arm("two_link")) == (True, False, True, False, False, False)
    assert controlled_axes(load_arm("three_link")) == (True, False, True, False, True, False)


# CLIK -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two_link", "four_joint", "puma560"])
def test_clik_rests_at_the_nearest_point_of_an_unreachable_target(name):
    arm = arm_of(name)
    q, _, _ = scattered(arm)
    virtual, controller = ClosedLoopIk(arm), ResolvedRate(arm).controller_gains
    virtual.reset(q)
    far = replace(to_task_reference(arm, Reference.hold(q)), position=np.array([3.0, 0.0, 1.0]))
    fastest = 0.0
    for _ in range(6000):
        before = virtual.v
        virtual.update(far, DT, controller)
        fastest = max(fastest, np.abs(virtual.v - before).max() / DT)
    reached = ToolKinematics(arm).motion(virtual.q, virtual.v).position
    assert np.abs(virtual.v).max() < 2e-2
    assert fastest <= controller["max_joint_acceleration"] * (1 + 1e-9)
    if name != "puma560":  # its orientation is weighted too
        nearest = nearest_reachable(arm, far.position)
        missed = np.linalg.norm(reached - far.position)
        assert missed == pytest.approx(nearest.position_error, abs=1e-3)
        assert virtual.reachability_error == pytest.approx(missed, rel=1e-3)


def test_clik_tracks_a_moving_reference_within_the_limits():
    arm = five_dof()
    start, _, _ = scattered(arm, fraction=0.2)
    virtual, controller = ClosedLoopIk(arm), TaskSpace(arm).controller_gains
    virtual.reset(start)
    for k in range(1500):
        t = k * DT
        q = start + 0.2 * np.sin(np.array([1.0, 1.3, 0.7, 2.0, 1.1]) * t) * np.array(
            [1, -1, 1, 1, 1]
        )
        w = np.array([1.0, 1.3, 0.7, 2.0, 1.1])
        sign = np.array([1, -1, 1, 1, 1])
        requested = Reference(
            q, 0.2 * w * np.cos(w * t) * sign, -0.2 * w * w * np.sin(w * t) * sign
        )
        followed = virtual.update(to_task_reference(arm, requested), DT if k else 0.0, controller)
        assert ((followed.q >= arm.lower) & (followed.q <= arm.upper)).all()
        if t > 1:
            assert virtual.reachability_error < 1e-4


# Controllers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["five_dof", "puma560", "two_link", "four_joint", "three_link"])
def test_operational_space_gives_the_commanded_tool_acceleration(name):
    """J q̈ + J̇ q̇ = ẍ_r + kd ė + kp e of the arm under tau, for any null-space motion."""
    arm = arm_of(name)
    q, v, _ = scattered(arm, 1)
    controller = TaskSpace(arm, {"controller": {"singular_value_threshold": 1e-9}})
    controller._limit = np.full(arm.nv, np.inf)
    state = State.of(q, 0.1 * v)
    controller.clik.reset(q)  # at rest, so that the error is not zero
    goal = to_task_reference(arm, Reference.hold(q + 0.02))
    changes = controller.update(state, goal, 0.0).value
    a = rigid_body.aba(arm, q, state.v, changes)
    at = ToolKinematics(arm).motion(q, state.v)
    error = -at.jacobian @ state.v  # the CLIK solution is at rest
    expected = controller.axis_gains["d"] * error
    axes = list(controller.clik.axes)
    found = at.jacobian @ a + at.drift
    np.testing.assert_allclose(found[axes], expected[axes], atol=1e-8)


def test_null_space_motion_does_not_move_the_tool():
    arm = five_dof()
    q, v, _ = scattered(arm, 2)
    axes = [0, 1, 2]
    tool = []
    for posture in (0.0, 500.0):
        controller = TaskSpace(
            arm, {n: {"posture_p": posture, "posture_d": 9.0} for n in arm.joint_names}
        )
        controller._limit = np.full(arm.nv, np.inf)
        controller.reset(State.of(q + 0.03))
        changes = controller.update(State.of(q, 0.1 * v), Reference.hold(q), 0.0).value
        at = ToolKinematics(arm).motion(q, 0.1 * v)
        tool.append(at.jacobian @ rigid_body.aba(arm, q, 0.1 * v, changes) + at.drift)
    np.testing.assert_allclose(tool[0][axes], tool[1][axes], atol=1e-7)


def test_a_tool_wrench_gives_the_joint_efforts_of_the_transposed_jacobian():
    arm = arm_of("puma560")
    q, _, _ = scattered(arm, 3)
    wrench = np.array([3.0, -2.0, 1.0, 0.1, 0.2, -0.3])
    for kind in (TaskSpace, Impedance):
        controller = kind(arm)
        controller.reset(State.of(q))
        held = to_task_reference(arm, Reference.hold(q))
        without = controller.update(State.of(q), held, 0.0).value
        controller.reset(State.of(q))
        pushed = controller.update(State.of(q), replace(held, wrench=wrench), 0.0).value
        expected = frames.jacobian(arm, q).T @ wrench
        np.testing.assert_allclose(pushed - without, expected, atol=1e-9)


def test_the_integral_is_constant_during_a_commanded_wrench():
    """It is unchanged after the push, for any duration and displacement."""
    arm = five_dof()
    q, _, _ = scattered(arm)
    controller, held = TaskSpace(arm), to_task_reference(arm, Reference.hold(q))
    controller.reset(State.of(q))
    for _ in range(20):
        controller.update(State.of(q - 0.01), held, DT)
    before = controller.update(State.of(q), held, 0.0).value
    for _ in range(200):
        controller.update(
            State.of(q + 0.02), replace(held, wrench=np.array([0, 0, -2.0, 0, 0, 0])), DT
        )
    np.testing.assert_array_equal(controller.update(State.of(q), held, 0.0).value, before)
    controller.update(State.of(q + 0.02), held, DT)
    assert (controller.update(State.of(q), held, 0.0).value != before).any()


def test_impedance_deflects_by_force_over_stiffness():
    arm = arm_of("puma560")
    q, _, _ = scattered(arm, 3)
    controller = Impedance(
        arm, {f"tool.{axis}": {"stiffness": 800.0, "damping": 60.0} for axis in "xyz"}
    )
    controller.reset(State.of(q))
    held, force = to_task_reference(arm, Reference.hold(q)), np.array([5.0, 0.0, -4.0])
    state, plant = State.of(q), Plant(arm)
    push = np.append(force, np.zeros(3))
    for k in range(4000):
        changes = controller.update(state, held, DT * (k > 0))
        outside = frames.jacobian(arm, state.q).T @ push
        state = plant.step(state, replace(changes, value=changes.value + outside), 2e-4, 10)
    moved = frames.tool_position(arm, state.q) - held.position
    np.testing.assert_allclose(moved, force / 800.0, atol=1e-4)


@pytest.mark.quick(4)
@pytest.mark.parametrize("ideal", [False, True])
@pytest.mark.parametrize("name", resources.resource_names("urdf", ".urdf"))
def test_default_stiffnesses_are_sufficient_and_damped(name, ideal):
    arm = load_arm(name).with_actuator("ideal") if ideal else load_arm(name)
    controller = Impedance(arm)
    K, axes = controller.axis_gains["stiffness"], controller.clik.axes
    aimed = 15.0**2 * operational_inertia(arm)
    assert (K[axes[axes < 3]] > 0.5 * aimed[axes[axes < 3]]).all()
    assert (K[axes] > 0.1 * aimed[axes]).all()
    assert name != "puma560" or K[:3].min() > 1000
    assert not np.delete(K, axes).any()
    for seed in range(30):
        q, _, _ = scattered(arm, seed, 1.0)
        J = frames.jacobian(arm, q)
        squares = np.linalg.eigvals(np.linalg.solve(rigid_body.mass_matrix(arm, q), (J.T * K) @ J))
        assert squares.real.max() < (1.2 * 150.0) ** 2


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_default_damping_follows_from_the_stiffness(scale):
    arm = arm_of("puma560")
    controller, joint = Impedance(arm), arm.joint_names[0]
    controller.slow_down(scale)
    usual = controller.values
    stiff = {"stiffness": 9 * usual["tool.x"]["stiffness"]}
    posture = {"posture_stiffness": 25 * usual[joint]["posture_stiffness"]}
    controller.set_gains({"tool.x": stiff, joint: posture})
    assert controller.values["tool.x"]["damping"] == pytest.approx(3 * usual["tool.x"]["damping"])
    damper = usual[joint]["posture_damping"]
    assert controller.values[joint]["posture_damping"] == pytest.approx(5 * damper)
    assert controller.values["tool.y"] == usual["tool.y"]
    assert controller.given == {"tool.x": stiff, joint: posture}, "what follows is not given"
    controller.slow_down(1.0)
    assert controller.values["tool.x"]["damping"] == pytest.approx(3 * usual["tool.x"]["damping"])
    controller.set_gains({"tool.x": {**stiff, "damping": 7.0}, "tool.y": {"stiffness": 0.0}})
    assert controller.values["tool.x"]["damping"] == 7.0
    assert controller.values["tool.y"]["damping"] == 0.0


def test_an_axis_without_default_stiffness_is_damped_by_the_given_one():
    arm = arm_of("two_link")
    controller = Impedance(arm, {"tool.y": {"stiffness": 200.0}})
    assert controller.values["tool.y"]["damping"] == pytest.approx(0.0085 * 200.0)


def test_mass_proportional_damping_decays_all_joints_at_one_rate():
    """M α (q̇_r - q̇): only this term depends on α, and every joint decays with α."""
    arm = arm_of("puma560")
    q, v, _ = scattered(arm, 3)
    changes = []
    for rate in (0.0, 25.0):
        controller = Impedance(arm, {"controller": {"mass_proportional_damping": rate}})
        controller._limit = np.full(arm.nv, np.inf)
        controller.reset(State.of(q))
        changes.append(controller.update(State.of(q, v), Reference.hold(q), 0.0).value)
    expected = -25.0 * rigid_body.mass_matrix(arm, q) @ v
    np.testing.assert_allclose(changes[1] - changes[0], expected, atol=1e-10)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["five_dof", "puma560", "three_link"])
def test_impedance_is_stable_with_a_wrong_model(name):
    """At 1 kHz, arms without rotor inertia; masses, lengths and inertias of the model 5 % off."""
    arm = load_arm(name).with_actuator("ideal")
    q = np.array([0.4, -0.3, -0.6, 0.5, 0.3, 0.4])[: arm.nv]
    controller, plant = (
        Impedance(with_model_error(arm, mass=5, length=5, inertia=5, seed=1)),
        Plant(arm),
    )
    state, held, fastest = State.of(q), Reference.hold(q), np.zeros(3000)
    controller.reset(state)
    for k in range(3000):
        changes = controller.update(state, held, 1e-3 * (k > 0))
        push = np.array([2.0, 0.0, 2.0, 0, 0, 0]) * (k < 1500)
        outside = frames.jacobian(arm, state.q).T @ push
        state = plant.step(state, replace(changes, value=changes.value + outside), 5e-4, 2)
        fastest[k] = np.abs(state.v).max()
    assert fastest[:1500].max() > 0.05
    assert fastest[1400:1500].max() < 0.4
    assert fastest[-100:].max() < 0.25


@pytest.mark.quick(2)
@pytest.mark.parametrize("kind", [ResolvedRate, TaskSpace])
@pytest.mark.parametrize(
    ("name", "load", "least"), [("five_dof", 0.5, 0.03), ("puma560", 0.0, 0.005)]
)
def test_the_integral_compensates_an_unmodeled_load_and_friction(kind, name, load, least):
    arm, missed = load_arm(name), {}
    q = np.array([0.2, -0.9, 0.0, 0.0, 0.0] if load else [0.2, 0.6, -2.4, 0.3, 0.7, 0.2])
    plant = Plant(arm.with_payload(load))
    start = to_task_reference(arm, Reference.hold(q))
    goal = replace(start, position=start.position - [0.0, 0.0, 0.05])
    for changes, steps in (({"ki": 0.0}, 1000), ({}, 2000)):
        gains = dict.fromkeys(arm.joint_names, changes)
        gains["controller"] = {"friction_compensation": 0.0}
        controller, state = kind(arm, gains), State.of(q)
        controller.reset(state)
        for k in range(steps):
            state = plant.step(state, controller.update(state, goal, DT * (k > 0)), DT / 2, 2)
        reached = frames.tool_position(arm, state.q)
        missed[not changes] = np.linalg.norm(reached - goal.position)
    assert missed[False] > least
    assert missed[True] < 0.1 * least


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", CONTROLLERS)
@pytest.mark.parametrize("name", ["five_dof", "two_link", "four_joint"])
def test_the_tool_reaches_its_target_and_unreachable_targets_stay_finite(kind, name):
    arm = arm_of(name)
    q, _, _ = scattered(arm, 5)
    controller, plant, state = kind(arm), Plant(arm), State.of(q)
    controller.reset(state)
    held = to_task_reference(arm, Reference.hold(q))
    near = replace(held, position=held.position * 0.95)
    for k in range(1500):
        state = plant.step(state, controller.update(state, near, DT * (k > 0)), 2e-4, 10)
    axes = controller.clik.axes
    missed = (frames.tool_position(arm, state.q) - near.position)[axes[axes < 3]]
    assert np.abs(missed).max() < (2e-3 if kind is not Impedance else 2e-2)
    far = replace(held, position=np.array([5.0, 0.0, 5.0]))
    for _ in range(1000):
        changes = controller.update(state, far, DT)
        assert (np.abs(changes.value) <= arm.effort_limit).all()
        state = plant.step(state, changes, 2e-4, 10)
    assert np.isfinite(state.q).all()
    assert controller.clik.reachability_error > 1.0


def test_a_joint_reference_equals_the_reference_of_its_tool():
    arm = five_dof()
    q, v, a = scattered(arm, 4)
    task, h = to_task_reference(arm, Reference(q, v, a)), 1e-6
    ahead, behind = (frames.tool_pose(arm, q + s * h * v)[0] for s in (1, -1))
    np.testing.assert_allclose(task.twist[:3], (ahead - behind) / (2 * h), atol=1e-8)
    expected = frames.jacobian(arm, q) @ a + frames.jacobian_derivative(arm, q, v) @ v
    np.testing.assert_allclose(task.acceleration, expected, atol=1e-10)
    assert to_task_reference(arm, task) is task


def test_an_arm_of_one_joint_has_task_space_controllers():
    arm = chain({"effort": 10.0})
    for kind in CONTROLLERS:
        controller = kind(arm)
        assert controller.update(State.of([0.3]), Reference.hold([0.4]), 0.0).value.shape == (1,)


# Invalid input and time steps---------------------------------------------------------------------


@pytest.mark.parametrize("kind", CONTROLLERS)
@pytest.mark.parametrize(
    ("part", "value", "text"),
    [
        ("position", np.array([0.1, np.nan, 0.2]), r"position\[1\] = nan"),
        ("position", np.zeros(1), r"position: shape = \(1,\); expected"),
        ("rotation", np.zeros((3, 4)), "rotation: shape"),
        ("twist", np.zeros(3), r"twist: shape = \(3,\); expected"),
        ("wrench", [0.0] * 6, "expected arrays"),
        ("q", np.zeros(1), r"q: shape = \(1,\); expected \(5,\)"),
    ],
)
def test_an_invalid_reference_is_rejected_and_leaves_no_trace(kind, part, value, text):
    arm = five_dof()
    q, _, _ = scattered(arm)
    state, held = State.of(q), to_task_reference(arm, Reference.hold(q + 0.02))
    controller, other = kind(arm), kind(arm)
    for each in (controller, other):
        each.reset(state)
    with pytest.raises(InvalidValue, match=text), np.errstate(all="ignore"):
        controller.update(state, replace(held, **{part: value}), DT)
    after = [each.update(state, held, DT).value for each in (controller, other)]
    np.testing.assert_array_equal(*after)


@pytest.mark.parametrize("kind", CONTROLLERS)
@pytest.mark.parametrize("part", ["position", "twist", "acceleration", "wrench"])
def test_finite_references_give_finite_efforts(kind, part):
    arm = five_dof()
    q, _, _ = scattered(arm)
    controller, held = kind(arm), to_task_reference(arm, Reference.hold(q))
    controller.reset(State.of(q))
    for sign in (1.0, -1.0):
        far = replace(held, **{part: np.full(getattr(held, part).size, sign * 1.7e308)})
        value = controller.update(State.of(q), far, DT).value
        assert (np.abs(value) <= arm.effort_limit).all()


@pytest.mark.parametrize(
    ("dt", "changes"),
    [(0.25, {}), (1.0, {}), (DT, {"tracking_rate": 3e3}), (DT, {"nullspace_rate": 5e3})],
)
def test_clik_comes_to_rest_with_any_time_step(dt, changes):
    """Rates above 1/dt would oscillate without a bound."""
    arm = five_dof()
    q, _, _ = scattered(arm, fraction=0.2)
    virtual = ClosedLoopIk(arm)
    virtual.reset(q)
    goal, controller = (
        to_task_reference(arm, Reference.hold(q + 0.3)),
        {**ResolvedRate(arm).controller_gains, **changes},
    )
    for _ in range(3000):
        virtual.update(goal, dt, controller)
    assert virtual.reachability_error < 1e-9
    assert np.abs(virtual.v).max() < 0.02


@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("five_dof", (-0.13, 0.59, 0.79)),
        ("seven_dof_can", (-0.76, -0.59, 0.95)),
        ("seven_dof_can", (-0.26, 0.6, -0.18)),
    ],
)
def test_clik_rests_at_several_limits(name, out):
    """On the path to an unreachable target joints stop at their limits one by one."""
    arm = arm_of(name)
    q = np.array(arm.configuration("initial"))
    virtual, controller, held = (
        ClosedLoopIk(arm),
        ResolvedRate(arm).controller_gains,
        to_task_reference(arm, Reference.hold(q)),
    )
    virtual.reset(q)
    for fraction in [*np.linspace(0, 1, 1500), *np.ones(5000)]:
        offset = fraction * (np.array(out) - held.position)
        virtual.update(replace(held, position=held.position + offset), DT, controller)
    stopped = (virtual.q <= arm.lower) | (virtual.q >= arm.upper)
    assert stopped.sum() > 1
    assert np.abs(virtual.v).max() < 1e-3


def test_clik_starts_beyond_a_limit_and_only_moves_back():
    arm = five_dof()
    outside = np.where(np.isfinite(arm.upper), arm.upper + 0.05, 0.0)
    virtual, controller = ClosedLoopIk(arm), ResolvedRate(arm).controller_gains
    virtual.reset(outside)
    away = to_task_reference(arm, Reference.hold(outside + 0.1))
    np.testing.assert_array_equal(virtual.update(away, 0.0, controller).q, outside)
    for _ in range(200):
        assert (virtual.update(away, DT, controller).q <= np.maximum(outside, arm.upper)).all()
    back = to_task_reference(
        arm, Reference.hold((np.maximum(arm.lower, -2) + np.minimum(arm.upper, 2)) / 2)
    )
    for _ in range(3000):
        last = virtual.update(back, DT, controller)
    assert (last.q <= arm.upper).all()


@pytest.mark.parametrize("limits", [(3.5, 6.0), (-6.0, -4.0)])
@pytest.mark.parametrize("kind", CONTROLLERS)
def test_limits_may_be_more_than_half_a_turn_from_the_target(kind, limits):
    arm = chain({"effort": 10.0, "lower": limits[0], "upper": limits[1]})
    q = np.array([sum(limits) / 2])
    controller = kind(arm)
    controller.reset(State.of(q))
    assert np.isfinite(controller.update(State.of(q), Reference.hold(q + 0.1), 0.0).value).all()


@pytest.mark.parametrize("kind", CONTROLLERS)
def test_joint_and_tool_references_may_alternate(kind):
    arm = five_dof()
    q, _, _ = scattered(arm)
    goal, answers = Reference.hold(q + 0.05), []
    for odd in (goal, to_task_reference(arm, goal)):
        controller = kind(arm)
        controller.reset(State.of(q))
        answers.append(
            [controller.update(State.of(q), odd if k % 2 else goal, DT).value for k in range(50)]
        )
    np.testing.assert_array_equal(*answers)


def test_set_model_keeps_the_reference():
    arm = five_dof()
    q, _, _ = scattered(arm)
    controller = ResolvedRate(arm)
    controller.reset(State.of(q))
    controller.update(State.of(q), Reference.hold(q + 0.3), 0.0)
    before = controller.clik.reachability_error, controller.clik.min_singular_value
    controller.set_model(arm.with_payload(0.5))
    assert (controller.clik.reachability_error, controller.clik.min_singular_value) == before
    assert before[0] > 0.01
