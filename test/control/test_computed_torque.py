"""Computed torque: linear error dynamics, the controller's model, saturation."""

import numpy as np
import pytest
from conftest import chain, five_dof
from continuous import simulate_continuous
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from arm_dynamics import Plant, load_arm
from arm_dynamics.control.controllers.anti_windup import clamp_and_integrate
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.model_error import with_model_error

seeds = st.integers(0, 2**32 - 1)


def gains(arm, **values):
    return dict.fromkeys(arm.joint_names, values)


@given(seeds)
def test_the_arm_accelerates_as_commanded(seed):
    """M a = M (a_ref + kp e + kd ė) + b (ė + kp e / kd) with an exact model, in every state."""
    arm, rng = load_arm("two_link").with_actuator("ideal"), np.random.default_rng(seed)
    q, v, q_ref, v_ref, a_ref = rng.normal(size=(5, 2)) * 0.5
    controller = ComputedTorque(arm, gains(arm, kp=20.0, ki=0.0, kd=9.0))
    tau = controller.update(State.of(q, v), Reference(q_ref, v_ref, a_ref), 1e-3).value
    a = rigid_body.aba(arm, q, v, tau - 0.1 * v)
    feedback = 20 * (q_ref - q) + 9 * (v_ref - v)
    friction = np.linalg.solve(rigid_body.mass_matrix(arm, q), 0.1 / 9 * feedback)
    np.testing.assert_allclose(a, a_ref + feedback + friction, atol=1e-10)


@pytest.mark.slow
def test_a_joint_of_high_friction_and_low_inertia_tracks_and_holds():
    """A wrist of 1.4e-4 kg·m² with 1 N·m of dry friction and 2 N·m·s/rad: within 0.02 rad."""
    light = {"center": "0 0 0", "mass": 0.2, "ixx": 1.4e-4, "damping": 2.0, "friction": 1.0}
    arm = chain(light)
    controller, plant, dt = ComputedTorque(arm), Plant(arm), 2e-3
    state, step = State.of([0.0]), Reference.hold([0.02])
    controller.reset(state)
    peak = 0.0
    for _ in range(1000):
        state = plant.step(state, controller.update(state, step, dt), 1e-4, 20)
        peak = max(peak, state.q[0])
    assert peak < 1.2 * 0.02
    assert state.q[0] == pytest.approx(0.02, abs=2e-3)
    rest = np.zeros(1)
    controller.reset(State.of(state.q))
    trajectory = JointTrajectory(
        (Waypoint(0.0, state.q, rest), Waypoint(2.0, np.array([0.6]), rest))
    )
    start = state.time
    for _ in range(1000):
        reference = trajectory.at(state.time - start)
        state = plant.step(state, controller.update(state, reference, dt), 1e-4, 20)
        assert abs(state.q[0] - reference.q[0]) < 0.01


def test_errors_decay_as_a_double_integrator_s():
    """ë + kd ė + kp e = 0 for every joint of a moving arm, against the matrix exponential."""
    arm = load_arm("four_joint")
    controller = ComputedTorque(arm, gains(arm, kp=100.0, ki=0.0, kd=16.0))
    zero, ends = np.zeros(4), np.array([[0.0, 0.3, 0.8, 0.5], [0.6, 0.1, 1.2, 0.1]])
    rest = [Waypoint(t, q, zero, zero) for t, q in zip((0.0, 1.0), ends, strict=True)]
    away, times = np.array([0.1, -0.1, 0.05, 0.2]), np.linspace(0, 1, 11)
    trajectory = JointTrajectory(tuple(rest))
    q, v, _ = simulate_continuous(arm, controller, trajectory, ends[0] + away, times)
    for t, angles, speeds in zip(times, q, v, strict=True):
        e, rate = expm(np.array([[0, 1], [-100, -16]]) * t) @ [away, zero]
        reference = trajectory.at(t)
        np.testing.assert_allclose(angles - reference.q, e, atol=1e-8)
        np.testing.assert_allclose(speeds - reference.v, rate, atol=1e-7)


def test_the_integral_removes_the_error_of_a_wrong_model():
    arm, plant = five_dof(), Plant(five_dof())
    controller = ComputedTorque(with_model_error(arm, mass=5, length=5), gains(arm, ki=4500.0))
    q, dt = arm.configuration("initial"), 1e-3
    state, reference = State.of(q), Reference.hold(q)
    controller.reset(state)
    for _ in range(2000):
        state = plant.step(state, controller.update(state, reference, dt), dt / 4, 4)
    np.testing.assert_allclose(state.q, q, atol=1e-5)


@given(seeds)
def test_a_restart_continues_with_the_measured_effort(seed):
    arm, rng = five_dof(), np.random.default_rng(seed)
    q, v = rng.uniform(-1, 1, (2, 5))
    tau = 0.9 * rng.uniform(-1, 1, 5) * arm.effort_limit
    controller = ComputedTorque(arm)
    controller.reset(State.of(q, v, tau))
    first = controller.update(State.of(q, v, tau), Reference.hold(q), 0.0).value
    np.testing.assert_allclose(first, tau, atol=1e-9)


def test_an_integral_may_decrease_but_not_grow_while_saturated():
    arm = chain({"effort": 10.0, "center": "0 0 0"})  # M = 0.02
    controller = ComputedTorque(arm, gains(arm, kp=0.0, ki=1000.0, kd=0.0, i_clamp=300.0))
    q, goal = State.of([0.0]), Reference.hold([1.0])
    for _ in range(1000):
        controller.update(q, goal, 1e-3)
    assert controller.update(q, goal, 0.0).value[0] == pytest.approx(0.02 * 300)  # the clamp
    controller.set_gains(gains(arm, kp=1e6, ki=1000.0, kd=0.0))
    for _ in range(1000):
        assert controller.update(q, goal, 1e-3).value[0] == 10.0
    controller.set_gains(gains(arm, kp=0.0, ki=1000.0, kd=0.0))
    assert controller.update(q, goal, 0.0).value[0] == pytest.approx(0.02 * 300)
    controller.set_gains(gains(arm, kp=1e6, ki=1000.0, kd=0.0))
    for _ in range(100):
        controller.update(q, Reference.hold([-1.0]), 1e-3)
    controller.set_gains(gains(arm, kp=0.0, ki=0.0, kd=0.0))
    assert controller.update(q, goal, 0.0).value[0] == pytest.approx(0.02 * 200)


@pytest.mark.parametrize("blocked", range(3))
def test_saturation_of_any_joint_stops_every_integral(blocked):
    """Three joints whose gravity torques are below their limits; one saturated effort is enough."""
    efforts = [1e-6 if i == blocked else 100.0 for i in range(3)]
    arm = chain(*({"axis": "0 0 1", "effort": effort} for effort in efforts))
    arm = arm.with_gravity([0, 0, 0])
    controller = ComputedTorque(arm, gains(arm, kp=1.0, ki=100.0, kd=0.0))
    state, reference = State.of([0.0] * 3), Reference.hold([0.1] * 3)
    for _ in range(100):
        controller.update(state, reference, 1e-3)
    after = controller.update(state, Reference.hold(state.q), 0.0).value
    np.testing.assert_array_equal(after, np.zeros(3))


def test_integrals_of_other_joints_stop_while_one_is_saturated():
    arm = load_arm("two_link")
    controller = ComputedTorque(arm, gains(arm, kp=10.0, ki=100.0, kd=1.0))
    q, far = State.of([0.0, 0.0]), Reference.hold([100.0, 0.01])
    before = controller.update(q, far, 0.0).value
    assert before[0] == arm.effort_limit[0]
    for _ in range(100):
        controller.update(q, far, 1e-3)
    near = Reference.hold([0.0, 0.0])
    np.testing.assert_allclose(
        controller.update(q, near, 0.0).value, rigid_body.gravity(arm, [0, 0])
    )


def test_a_joint_without_integral_gain_starts_without_integral():
    arm = load_arm("two_link").with_actuator("ideal")
    controller, q = ComputedTorque(arm, gains(arm, kp=20.0, ki=0.0, kd=9.0)), np.array([0.3, 0.4])
    state = State(0.0, q, np.zeros(2), np.ones(2))
    controller.reset(state)
    tau = controller.update(state, Reference.hold(q), 0.0).value
    np.testing.assert_allclose(tau, rigid_body.gravity(arm, q), atol=1e-12)


@pytest.mark.parametrize(
    ("saturated", "expected"),
    [(False, [0.6, 0.2, -0.5, 0.0, 0.3]), (True, [0.5, 0.2, -0.5, 0.0, 0.3])],
)
def test_integrals_grow_by_ki_e_dt_within_the_clamp_and_saturated_only_decrease(
    saturated, expected
):
    """Growing, decreasing, clamped, decreasing through 0 to the clamp, and without a gain."""
    integral, effort = np.array([0.5, 0.4, -0.5, -0.4, 0.3]), np.array([0.0, 1.0, -2.0, 3.0, 0.0])
    integrals = (
        np.array([2.0, 2.0, 2.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.5, 1.0, 1.0]),
        np.array([0.5, -1.0, -3.0, 4.0, 9.0]), integral,
    )  # fmt: skip
    clamp_and_integrate(effort, np.full(5, 2.5 if saturated else 3.0), integrals, 0.1)
    np.testing.assert_allclose(integral, expected, atol=1e-12)
    assert effort.tolist() == [0.0, 1.0, -2.0, 2.5 if saturated else 3.0, 0.0]
