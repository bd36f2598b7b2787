"""An arm in contact: statics by its Jacobian, grasps, and the arm without contact."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from conftest import chain_urdf, five_dof

from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.model.load import load_arm, parse_arm
from arm_dynamics.model.solids import Shape
from arm_dynamics.simulation.contact.contact_dynamics import ContactDynamics
from arm_dynamics.simulation.contact.contact_plant import ContactPlant, SceneState
from arm_dynamics.simulation.plant import Plant

DT = 1e-3
TIP = '<collision><origin xyz="0.5 0 0"/><geometry><sphere radius="0.02"/></geometry></collision>'
BOX = '<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision>'
FACING_X = pin.exp3(np.array([0, -np.pi / 2, 0]))
"""Rotation of a ground whose surface faces -x."""
GRIPPER = Path(__file__).parents[1] / "data" / "urdf" / "gripper.urdf"
"""A hand on a vertical slide with two jaws that move along x."""


def planar(friction=0.0):
    """Return two links in the plane x, z, without gravity, with a ball at the tip."""
    urdf = chain_urdf({"friction": friction}, {"friction": friction})
    return parse_arm(urdf.replace('<link name="J2_link">', f'<link name="J2_link">{TIP}')
                     ).with_gravity((0, 0, 0))  # fmt: skip


def tip(arm, q):
    data = arm.model.createData()
    pin.computeJointJacobians(arm.model, data, q)
    point = data.oMi[2].act(np.array([0.5, 0, 0]))
    return point, data.J[:3] - pin.skew(point) @ data.J[3:]


def wall_at(arm, q, gap=0.0, mu=0.0):
    return SceneObject(
        "wall", Shape("ground", ()), tip(arm, q)[0] + [0.02 + gap, 0, 0], FACING_X, friction=mu
    )


def test_without_contact_the_motion_is_that_of_the_plant_to_the_bit():
    arm = five_dof()
    far = Scene([
        SceneObject("far", Shape("sphere", (0.05,)), np.array([5.0, 0, 0])),
        SceneObject("falling", Shape("sphere", (0.05,)), np.array([9.0, 0, 0]), mass=1.0),
    ])  # fmt: skip
    state = State.of(arm.configuration("initial"), [0.1, 0, -0.2, 0.3, 0])
    command = Command("effort", 0.9 * gravity(arm, state.q))
    plain = Plant(arm).step(state, command, DT, 20)
    plant = ContactPlant(arm, far)
    after = plant.step(state, command, DT, 20)
    for name in ("q", "v", "tau", "act", "time"):
        np.testing.assert_array_equal(getattr(after, name), getattr(plain, name))
    assert not len(after.contacts)
    fallen = -9.81 * DT**2 * 20 * 21 / 2
    np.testing.assert_allclose(after.bodies.position, [[9, 0, fallen]], atol=1e-14)
    again = pickle.loads(pickle.dumps(plant)).step(state, command, DT, 20)
    np.testing.assert_array_equal(again.bodies.position, after.bodies.position)
    assert copy.copy(plant).scene is far
    continued = plant.step(after, command, DT)
    assert continued.bodies.position[0, 2] < after.bodies.position[0, 2]


def test_a_pressing_arm_has_the_force_of_its_torques_at_the_wall():
    """F = J⁻ᵀ τ; without friction the tangential part of τ is 0 in equilibrium."""
    arm, q = planar(), np.array([0.4, 0.7])
    plant = ContactPlant(arm, Scene([wall_at(arm, q)]))
    torque = tip(arm, q)[1].T @ [5.0, 0, 0]
    after = plant.step(State.of(q), Command("effort", torque), DT, 100)
    np.testing.assert_allclose(after.v, 0, atol=1e-12)
    np.testing.assert_allclose(after.contacts.force_on("J2_link"), [-5, 0, 0], atol=1e-9)
    np.testing.assert_allclose(after.contacts.force_on("wall"), [5, 0, 0], atol=1e-9)


def test_an_impedance_presses_with_its_stiffness_times_the_depth():
    """τ = Jᵀ (K d - D ẋ): at rest F = K d, d from the wall to the target within it."""
    arm, q = planar(), np.array([0.4, 0.7])
    plant = ContactPlant(arm, Scene([wall_at(arm, q, gap=0.01)]))
    target = tip(arm, q)[0] + [0.03, 0, 0]
    stiffness, state = 400.0, State.of(q)
    for _ in range(3000):
        point, J = tip(arm, state.q)
        torque = J.T @ (stiffness * (target - point) - 45.0 * J @ state.v)
        state = plant.step(state, Command("effort", torque), DT)
    force = state.contacts.force_on("wall")[0]
    depth = target[0] - tip(arm, state.q)[0][0]
    np.testing.assert_allclose(force, stiffness * depth, rtol=1e-9)
    np.testing.assert_allclose(depth, 0.02, atol=1e-7)


def test_an_impact_is_that_of_the_effective_mass():
    """Δv = M⁻¹ Jᵀ p with p = -v_n / (J_n M⁻¹ J_nᵀ): the tip stops, the arm does not."""
    arm, q, v = planar(), np.array([0.4, 0.7]), np.array([0.3, -1.0])
    _, J = tip(arm, q)
    v = v * np.sign(J[0] @ v)
    mass = pin.crba(arm.model, arm.model.createData(), q)
    mass = np.triu(mass) + np.triu(mass, 1).T
    plant = ContactPlant(arm, Scene([wall_at(arm, q)]))
    after = plant.step(State.of(q, v), Command("effort", np.zeros(2)), 1e-6)
    inverse = np.linalg.inv(mass)
    expected = v - inverse @ J[0] * (J[0] @ v) / (J[0] @ inverse @ J[0])
    np.testing.assert_allclose(after.v, expected, atol=1e-5)


@pytest.mark.parametrize(("load", "holds"), [(0.5, True), (0.9999, True), (1.02, False)])
def test_the_heaviest_grasped_mass_is_twice_the_friction_over_gravity(load, holds):
    """m = 2 μ F / g. Below it no creep, above it the acceleration g - 2 μ F / m."""
    arm, force, mu = load_arm(GRIPPER), 5.0, 0.6
    mass = load * 2 * mu * force / 9.81
    cube = SceneObject("cube", Shape("box", (0.05, 0.04, 0.04)), np.array([0, 0, 0.4]), mass=mass,
                       friction=mu)  # fmt: skip
    plant = ContactPlant(arm, Scene([cube]), link_friction=mu)
    lift = 0.4 * 9.81 + min(mass * 9.81, 2 * mu * force)
    command = Command("effort", np.array([lift, force, force]))
    after = plant.step(State.of(np.zeros(3)), command, DT, 60)
    slip = after.bodies.velocity[0, 2] - after.v[0]
    assert after.contacts.converged
    if holds:
        assert abs(slip) < 1e-13
        assert abs(after.bodies.position[0, 2] - after.q[0] - 0.4) < 1e-14
    else:
        fall = 9.81 - 2 * mu * force / mass
        np.testing.assert_allclose(slip, -60 * DT * fall, rtol=1e-9)


def one_motor(jaw_friction=0.0):
    """Return the gripper whose right jaw follows the left one, as a mimic joint."""
    text = GRIPPER.read_text()
    i = text.index('<joint name="r"')
    text = text[:i] + text[i:].replace("</joint>", '<mimic joint="l"/></joint>')
    return parse_arm(text).with_joint("l", friction=jaw_friction)


@pytest.mark.parametrize(("load", "holds"), [(0.9999, True), (1.02, False)])
def test_one_motor_presses_with_both_jaws(load, holds):
    """F = τ / 2 each, as τ = Gᵀ (F, F): m = 2 μ F / g = μ τ / g; the cube is centered."""
    arm, tau, mu = one_motor(), 10.0, 0.6
    mass = load * mu * tau / 9.81
    cube = SceneObject("cube", Shape("box", (0.0499, 0.04, 0.04)), np.array([2e-5, 0, 0.4]),
                       mass=mass, friction=mu)  # fmt: skip
    plant = ContactPlant(arm, Scene([cube]), link_friction=mu)
    lift = 0.4 * 9.81 + min(mass * 9.81, mu * tau)
    after = plant.step(State.of(np.zeros(2)), Command("effort", np.array([lift, tau])), DT, 60)
    force = {jaw: after.contacts.force_on(jaw)[0] for jaw in ("left", "right")}
    assert force["left"] == pytest.approx(-tau / 2, rel=1e-6)
    assert force["right"] == pytest.approx(tau / 2, rel=1e-6)
    slip = after.bodies.velocity[0, 2] - after.v[0]
    fall = -60 * DT * 9.81 * (1 - 1 / load)
    assert slip == pytest.approx(0.0 if holds else fall, rel=0.1, abs=1e-9)


def test_contact_of_mimic_joints_and_dry_friction_are_one_problem():
    """Two boxes at the outer faces: a = (τ - f) / Σ m, or 0 for τ below the friction f."""
    arm, weight = one_motor(jaw_friction=1.0), 9.81 * 0.4
    boxes = Scene([SceneObject(
        name, Shape("box", (0.01, 0.04, 0.04)), np.array([x, 0, 0.4]), mass=0.2
    ) for name, x in (("a", -0.04), ("b", 0.04))])  # fmt: skip
    plant = ContactPlant(arm, boxes)
    for push in (0.999, 1.5):
        command = Command("effort", np.array([weight, -push]))
        after = plant.step(State.of(np.zeros(2)), command, DT)
        speed = DT * max(push - 1.0, 0.0) / (2 * 0.1 + 2 * 0.2)
        np.testing.assert_allclose(after.v[1], -speed, atol=1e-12)
        np.testing.assert_allclose(after.bodies.velocity[:, 0], [-speed, speed], atol=1e-12)


def test_dry_friction_of_joints_and_contact_are_one_problem():
    """A joint with friction holds a push below it: the wall feels the rest of the torque."""
    arm, q = planar(friction=0.5), np.array([0.4, 0.7])
    _, J = tip(arm, q)
    plant = ContactPlant(arm, Scene([wall_at(arm, q)]))
    small = plant.step(State.of(q), Command("effort", np.array([0.4, -0.3])), DT, 10)
    np.testing.assert_array_equal(small.v, 0)
    np.testing.assert_array_equal(small.q, q)
    large = plant.step(State.of(q), Command("effort", J.T @ [20.0, 0, 0]), DT, 10)
    force = large.contacts.force_on("wall")[0]
    # The friction of both joints helps or hinders: the force is between both limits.
    least = min((np.abs(J.T @ [20.0, 0, 0]) - 0.5) / np.abs(J[0]))
    assert least - 1e-9 <= force <= 20 + 0.5 / np.abs(J[0]).min()
    np.testing.assert_allclose(J[0] @ large.v, 0, atol=1e-9)


def test_a_stiff_end_stop_and_a_wall_stop_an_arm_at_the_same_configuration():
    """The tip reaches a wall where the joint reaches its limit; both hold the same torque."""
    urdf = chain_urdf({"upper": 0.5}).replace(
        '<link name="J1_link">', f'<link name="J1_link">{TIP}'
    )
    stop = parse_arm(urdf).with_gravity((0, 0, 0))
    free = parse_arm(urdf.replace('upper="0.5"', 'upper="3"')).with_gravity((0, 0, 0))
    angle = 0.5
    normal = np.array([np.sin(angle), 0, np.cos(angle)])  # against the motion of the tip
    across = np.array([np.cos(angle), 0, -np.sin(angle)])
    wall = SceneObject(
        "wall", Shape("ground", ()), 0.5 * across - 0.02 * normal,
        np.column_stack([across, [0, 1, 0], normal]), friction=0.0,
    )  # fmt: skip
    # The tip moves against the normal: positive rotation about y lowers x-z.
    command, start = Command("effort", np.array([2.0])), State.of([0.3])
    touching = ContactPlant(free, Scene([wall])).step(start, command, DT, 600)
    stopped = Plant(stop).step(start, command, DT, 3000)
    np.testing.assert_allclose(touching.q, angle, atol=1e-6)
    np.testing.assert_allclose(stopped.q, angle, atol=0.01)
    np.testing.assert_allclose(
        np.linalg.norm(touching.contacts.force_on("wall")) * 0.5, 2.0, rtol=1e-6
    )


def pressing_slide(mu=0.0, **slide):
    """Return a slide along x with a limit at 0.1 m, with one along z with a ball on a ground."""
    urdf = chain_urdf(
        {"kind": "prismatic", "axis": "1 0 0", "upper": 0.1, "friction": slide.pop("friction", 0)},
        {"kind": "prismatic", "axis": "0 0 1"},
    ).replace('<link name="J2_link">', f'<link name="J2_link">{TIP}')
    arm = parse_arm(urdf).with_joint("J1", **slide).with_gravity((0, 0, 0))
    data = arm.model.createData()
    pin.forwardKinematics(arm.model, data, np.zeros(2))
    height = data.oMi[2].translation[2] - 0.02
    ground = SceneObject("ground", Shape("ground", ()), np.array([0, 0, height]), friction=mu)
    return arm, ContactPlant(arm, Scene([ground]))


def test_an_end_stop_in_contact_is_the_spring_damper_of_the_plant():
    """Motion into the limit at 0.163 s, while the stop pushes: the order of the step, and F / k."""
    arm, plant = pressing_slide(stop_stiffness=2e3, stop_damping=40.0)
    start, effort = State.of([0.0, 0.0], [0.5, 0.0]), np.array([3.0, -5.0])
    exact = Plant(arm, "rk4").step(start, Command("effort", effort), 1e-5, 19_000)
    errors = []
    for dt, steps in ((2e-4, 950), (1e-4, 1900)):
        after = plant.step(start, Command("effort", effort), dt, steps)
        errors.append(abs(after.q[0] - exact.q[0]))
        assert after.contacts.force_on("ground")[2] == pytest.approx(-5.0, abs=1e-9)
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.3), errors
    assert errors[1] < 3e-5
    rest = plant.step(start, Command("effort", effort), DT, 5000)
    assert rest.q[0] == pytest.approx(0.1 + 3.0 / 2e3, abs=1e-12)


@pytest.mark.parametrize("stiffness", [2e5, 1e8])
@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_stiff_end_stops_need_no_small_time_step_in_contact(stiffness, friction):
    """The joint rests at F / k, within the friction of joint and ground, without a rebound."""
    damping = 2 * np.sqrt(2.0 * stiffness)  # critical: both links have 2 kg
    _, plant = pressing_slide(
        0.5, stop_stiffness=stiffness, stop_damping=damping, friction=friction
    )
    state, effort = State.of([0.0, 0.0], [1.0, 0.0]), Command("effort", np.array([9.0, -5.0]))
    furthest = -np.inf
    for _ in range(500):
        state = plant.step(state, effort, DT)
        furthest = max(furthest, state.q[0])
        assert state.contacts.converged
    np.testing.assert_allclose(state.v, 0, atol=1e-9)
    held = (state.q[0] - 0.1) * stiffness
    assert abs(held - 9.0) <= friction + 5.0 * np.sqrt(0.8 * 0.5) + 1e-9 * stiffness
    assert furthest - 0.1 < 2.0 / np.sqrt(stiffness)


def test_a_cube_leaves_a_slide_that_meets_its_end_stop():
    """The slide pushes the cube at its speed; at the limit the cube keeps the velocity."""
    urdf = chain_urdf({"kind": "prismatic", "axis": "1 0 0", "upper": 0.1}).replace(
        '<link name="J1_link">', f'<link name="J1_link">{BOX}'
    )
    arm = parse_arm(urdf).with_joint("J1", stop_stiffness=1e5, stop_damping=450.0)
    arm = arm.with_gravity((0, 0, 0))
    data = arm.model.createData()
    pin.forwardKinematics(arm.model, data, np.zeros(1))
    place = data.oMi[1].translation + np.array([0.15, 0, 0])
    cube = SceneObject("cube", Shape("box", (0.1,) * 3), place, mass=0.5, friction=0.0)
    plant, none = ContactPlant(arm, Scene([cube])), Command("effort", np.zeros(1))
    state = plant.step(State.of([0.0], [0.6]), none, DT)
    speed = state.v[0]
    assert state.bodies.velocity[0, 0] == pytest.approx(speed, rel=1e-12)
    assert 0.0 < speed < 0.6
    after = plant.step(state, none, DT, 400)
    assert after.q[0] < 0.1 + 1e-3
    assert after.bodies.velocity[0, 0] == pytest.approx(speed, rel=1e-9)


def test_a_link_that_cannot_leave_a_contact_does_not_disturb_the_others():
    """A joint about the vertical does not move its link out of the ground; a cube rests on it."""
    urdf = chain_urdf({"axis": "0 0 1"})
    arm = parse_arm(urdf.replace('<link name="J1_link">', f'<link name="J1_link">{TIP}'))
    cube = SceneObject("cube", Shape("box", (0.1,) * 3), np.array([3.0, 0, 0.05]), mass=2.0)
    plant = ContactPlant(arm, Scene([SceneObject("ground", Shape("ground", ())), cube]))
    after = plant.step(State.of([0.3], [1.0]), Command("effort", np.zeros(1)), DT, 10)
    assert {"J1_link", "cube"} == {*after.contacts.first, *after.contacts.second} - {"ground"}
    np.testing.assert_allclose(after.contacts.force_on("cube"), [0, 0, 2 * 9.81], atol=1e-9)
    np.testing.assert_allclose(after.contacts.force_on("J1_link"), 0, atol=1e-9)
    np.testing.assert_allclose(after.v, 1.0, atol=1e-12)


def test_an_object_rests_on_the_base_of_an_arm_that_is_far():
    base = f'<link name="base">{BOX}</link>'
    arm = parse_arm(chain_urdf({}).replace('<link name="base"/>', base))
    cube = SceneObject("cube", Shape("box", (0.1,) * 3), np.array([0, 0, 0.15]), mass=2.0)
    plant = ContactPlant(arm, Scene([cube]))
    after = plant.step(State.of([0.0]), Command("effort", np.zeros(1)), DT, 20)
    np.testing.assert_allclose(after.contacts.force_on("base"), [0, 0, -2 * 9.81], atol=1e-9)
    np.testing.assert_allclose(after.bodies.position, [[0, 0, 0.15]], atol=1e-14)


def test_other_integrators_are_rejected_by_name():
    with pytest.raises(InvalidValue, match="integrator = 'rk4'; expected 'semi_implicit_euler'"):
        ContactPlant(planar(), Scene(), "rk4")


def test_an_arm_alone_needs_no_bodies():
    arm = planar()
    after = ContactPlant(arm, Scene()).step(
        State.of([0.1, 0.2]), Command("effort", np.zeros(2)), DT
    )
    assert isinstance(after, SceneState)
    assert len(after.bodies) == 0
    assert ContactDynamics(Scene()).step(after.bodies, DT)[1].converged
