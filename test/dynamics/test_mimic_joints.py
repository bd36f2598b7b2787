"""Mimic joints against the same arm with a coordinate for each of them: q_t = G q + c."""

import pickle
import re
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from conftest import chain_urdf, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from mimic_arm import FOLLOWS, JOINT, LINK, RATIO, SHIFT, text

from arm_dynamics.batch import rollout
from arm_dynamics.batch.kernels.kernel_cache import fingerprint
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.control.linear_controller import linear_controller
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import inverse_kinematics, rigid_body
from arm_dynamics.dynamics.kinematics import frames
from arm_dynamics.identification.parameters.dynamic_parameters import regressor
from arm_dynamics.model.audit.fault import UrdfRejected
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.model_error import with_model_error
from arm_dynamics.recording.segment_header import require_recordable
from arm_dynamics.simulation.linearization import linearize
from arm_dynamics.simulation.plant import Plant

REST = [State.of(np.zeros(3))]


@cache
def arms():
    """Return the arm, the same with independent joints, and G and c between their coordinates."""
    arm = parse_arm(text(), tool_frame="J2_link")
    tree = parse_arm(re.sub("<mimic[^>]*>", "", text()), tool_frame="J2_link")
    G, c = np.zeros((tree.nv, arm.nv)), np.zeros(tree.nv)
    for row, name in enumerate(tree.joint_names):
        G[row, arm.index("knuckle" if name in RATIO else name)] = RATIO.get(name, 1.0)
        c[row] = SHIFT.get(name, 0.0)
    with_payload = arm.with_payload(0.4, (0.1, 0, 0)), tree.with_payload(0.4, (0.1, 0, 0))
    return *with_payload, G, c


def motion(seed=0):
    random = np.random.default_rng(seed)
    return [random.uniform(-1, 1, 3) for _ in range(4)]


def difference(function, x, h=1e-6):
    """Return the central difference of ``function`` in each entry of ``x``, last axis."""
    steps = np.eye(x.size) * h
    return np.stack([(function(x + e) - function(x - e)) / (2 * h) for e in steps], axis=-1)


def test_driven_joints_are_coordinates():
    arm, _, _, _ = arms()
    assert arm.joint_names == ("J1", "J2", "knuckle")
    assert arm.gripper_joints == ("knuckle",)
    assert arm.locked == ()
    found = {mimic.name: mimic for mimic in arm.mimic_joints}
    for name, ratio in RATIO.items():
        assert found[name].joint == "knuckle"
        assert found[name].multiplier == pytest.approx(ratio)
        assert found[name].offset == pytest.approx(SHIFT[name])
    again = pickle.loads(pickle.dumps(arm))
    assert again.mimic_joints == arm.mimic_joints
    require_recordable(parse_arm(text()))


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_dynamics_are_those_of_the_tree_projected_by_the_ratios(seed):
    """M = Gᵀ M_t G, τ = Gᵀ τ_t and U = U_t, as Ġ = 0."""
    arm, tree, G, c = arms()
    q, v, a, _ = motion(seed)
    there, speed, same = G @ q + c, G @ v, {"rtol": 1e-11, "atol": 1e-11}
    mass = G.T @ rigid_body.mass_matrix(tree, there) @ G
    tau = G.T @ rigid_body.rnea(tree, there, speed, G @ a)
    bias = G.T @ rigid_body.nle(tree, there, speed)
    np.testing.assert_allclose(rigid_body.mass_matrix(arm, q), mass, **same)
    np.testing.assert_allclose(rigid_body.rnea(arm, q, v, a), tau, **same)
    np.testing.assert_allclose(rigid_body.nle(arm, q, v), bias, **same)
    np.testing.assert_allclose(rigid_body.aba(arm, q, v, tau), a, rtol=1e-9, atol=1e-9)
    energy = rigid_body.potential_energy(tree, there)
    assert rigid_body.potential_energy(arm, q) == pytest.approx(energy, rel=1e-12)
    C, g = rigid_body.coriolis_matrix(arm, q, v), rigid_body.gravity(arm, q)
    np.testing.assert_allclose(C @ v + g, bias, **same)


def test_derivatives_are_finite_differences():
    """∂U/∂q = g, Ṁ = C + Cᵀ, derivatives of the accelerations, of J and of the gravity torque."""
    arm, _, _, _ = arms()
    q, v, tau, _ = motion(1)
    near = {"rtol": 1e-6, "atol": 1e-6}
    energy = difference(lambda x: rigid_body.potential_energy(arm, x), q)
    np.testing.assert_allclose(rigid_body.gravity(arm, q), energy, **near)
    rate = difference(lambda x: rigid_body.mass_matrix(arm, x), q) @ v
    C = rigid_body.coriolis_matrix(arm, q, v)
    np.testing.assert_allclose(C + C.T, rate, **near)
    by_q, by_v, inverse = rigid_body.aba_derivatives(arm, q, v, tau)
    np.testing.assert_allclose(
        by_q, difference(lambda x: rigid_body.aba(arm, x, v, tau), q), **near
    )
    np.testing.assert_allclose(
        by_v, difference(lambda x: rigid_body.aba(arm, q, x, tau), v), **near
    )
    np.testing.assert_allclose(inverse @ rigid_body.mass_matrix(arm, q), np.eye(3), **near)
    J = difference(lambda x: frames.jacobian(arm, x, "pad_link"), q) @ v
    np.testing.assert_allclose(frames.jacobian_derivative(arm, q, v, "pad_link"), J, **near)
    linear = linear_controller(PidGravity(arm), q, 1e-3)
    slope = difference(lambda x: rigid_body.gravity(arm, x), q)
    np.testing.assert_allclose(linear.K[:, :3], slope, **near)
    linearize(arm, State.of(q, v), Command("effort", tau))


def test_kinematics_are_those_of_the_tree():
    arm, tree, G, c = arms()
    q, v, a, _ = motion(2)
    there = G @ q + c
    for link, (position, rotation) in frames.link_poses(tree, there).items():
        own = frames.link_poses(arm, q)[link]
        np.testing.assert_allclose(own[0], position, atol=1e-14)
        np.testing.assert_allclose(own[1], rotation, atol=1e-14)
    for frame in ("pad_link", "tip_link"):
        J, J_t = frames.jacobian(arm, q, frame), frames.jacobian(tree, there, frame)
        np.testing.assert_allclose(J, J_t @ G, atol=1e-13)
        own = frames.acceleration(arm, q, v, a, frame)
        expected = frames.acceleration(tree, there, G @ v, G @ a, frame)
        np.testing.assert_allclose(own, expected, atol=1e-12)


def test_energy_is_constant_without_friction():
    arm, _, _, _ = arms()
    q, v, _, _ = motion(3)
    plant, state = Plant(arm, "rk4"), State.of(0.3 * q, v)

    def energy(now):
        kinetic = rigid_body.kinetic_energy(arm, now.q, now.v)
        return kinetic + rigid_body.potential_energy(arm, now.q)

    after = plant.step(state, Command("effort", np.zeros(3)), 1e-3, 300)
    assert np.abs(after.q - state.q).max() > 0.2
    assert energy(after) == pytest.approx(energy(state), abs=1e-8)


def test_friction_of_mimic_joints_acts_on_the_driven_one():
    """Σ r² d and Σ |r| f: the joint sticks below and slides above the sum of dry friction."""
    arm = parse_arm(text(0.1, 0.2)).with_gravity((0, 0, 0))
    knuckle = arm.joints[2]
    assert knuckle.damping == pytest.approx(0.1 * (1 + 1.5**2 + 0.15**2 + 0.5**2))
    assert knuckle.friction == pytest.approx(0.2 * (1 + 1.5 + 0.15 + 0.5))
    plant, start = Plant(arm), State.of(np.array([0.1, 0.2, 0.3]))
    for factor, moves in ((0.999, False), (1.01, True)):
        effort = np.array([0, 0, factor * knuckle.friction])
        after = plant.step(start, Command("effort", effort), 1e-3, 5)
        assert (after.v[2] > 0) == moves
        assert moves or after.q[2] == start.q[2]


def test_the_limits_of_both_joints_hold():
    """-2 <= -1.5 q + 0.2 <= 2; |v_tip| = 1.5 |v| <= 3."""
    knuckle = parse_arm(text()).joints[2]
    assert (knuckle.lower, knuckle.upper) == pytest.approx((-1.8 / 1.5, 2.2 / 1.5))
    assert knuckle.velocity == pytest.approx(2.0)
    assert knuckle.effort == 9
    far = text().replace('offset="0.2"', 'offset="9"')
    endless = re.sub(r'name="knuckle" type="revolute"', 'name="knuckle" type="continuous"', text())
    assert parse_arm(endless).joints[2].lower == knuckle.lower
    assert not parse_arm(endless).is_continuous.any()
    with pytest.raises(UrdfRejected, match=r"'knuckle' <limit>: no position .*'tip'"):
        parse_arm(far)


def test_motor_windings_act_on_the_driven_joint():
    """The compiled steps are those of the integrator's equations."""
    motor = {"kt": 0.05, "ke": 0.05, "resistance": 2.0, "inductance": 1e-4, "gear_ratio": 50.0,
             "rotor_inertia": 1e-5, "coulomb_friction": 1e-3, "supply_voltage": 12.0}  # fmt: skip
    arm = arms()[0].with_actuator("dc_motor", ["knuckle"], **motor)
    plant, start = Plant(arm), State.of(np.array([0.1, 0.2, 0.3]), act=arm.initial_act)
    assert plant._motion.compiled
    command = Command("effort", np.array([0.5, 0.2, 1.5]))
    fast = plant.step(start, command, 1e-3, 50)
    plain = start
    for _ in range(50):
        q, v, act = plain.q.copy(), plain.v.copy(), plain.act.copy()
        plant._motion.set_command(command)
        plant.integrator.step(plant._motion, q, v, act, 1e-3)
        plain = State.of(q, v, act=act)
    np.testing.assert_allclose(fast.q, plain.q, atol=1e-12)
    assert fast.v[2] != 0


def test_mimic_joints_of_a_locked_joint_keep_their_place():
    initial = "<state_interface name='position'><param name='initial_value'>0.4</param>"
    joint = f"<joint name='knuckle'><command_interface name='effort'/>{initial}</state_interface>"
    block = f"<ros2_control name='c' type='system'>{joint}</joint></ros2_control></robot>"
    with pytest.warns(RuntimeWarning, match="ideal actuator"):
        arm = parse_arm(text().replace("</robot>", block), lock=["knuckle"])
    free = parse_arm(text())
    assert arm.joint_names == ("J1", "J2")
    assert set(arm.locked) == {"knuckle", *RATIO}
    q = np.array([0.3, -0.2])
    expected = frames.link_poses(free, np.append(q, 0.4))
    for link, (position, _) in frames.link_poses(arm, q).items():
        np.testing.assert_allclose(position, expected[link][0], atol=1e-14)
    require_recordable(arm)
    alone = parse_arm(text(), lock=["tip"])
    assert alone.joint_names == ("J1", "J2", "knuckle")
    assert [mimic.name for mimic in alone.mimic_joints] == ["pad"]


def test_distances_are_those_of_the_tree():
    """And they change by at most Σ reach_i |δ_i| where the joints move by δ."""
    arm, tree, G, c = arms()
    start = np.array([0.1, 0.2, 0.3])
    own = SelfCollision(arm, 1e-3, start)
    data, results = tree.model.createData(), own.shapes.createData()
    own_data, own_results = arm.model.createData(), own.shapes.createData()
    names = [tree.model.frames[x.parentFrame].name for x in own.shapes.geometryObjects]
    shapes = pin.GeometryModel(own.shapes)
    for shape, frame in zip(shapes.geometryObjects, own.shapes.geometryObjects, strict=True):
        joint = arm.model.names[frame.parentJoint]
        shape.parentJoint = tree.model.getJointId(joint)
        shape.parentFrame = tree.model.getFrameId(names[0], pin.BODY)
    before, q = None, start
    assert own.pairs > 2
    for seed in range(5):
        step = 0.1 * motion(seed)[0]
        q = q + step
        pin.computeDistances(arm.model, own_data, own.shapes, own_results, q)
        pin.computeDistances(tree.model, data, shapes, results, G @ q + c)
        found = [x.min_distance for x in own_results.distanceResults]
        expected = [x.min_distance for x in results.distanceResults]
        np.testing.assert_allclose(found, expected, atol=1e-9)
        if before is not None:
            assert (np.abs(np.array(found) - before) <= own.reaches @ np.abs(step) + 1e-9).all()
        before = np.array(found)
    assert (
        len(list(own.near(np.tile(start, (3, 1)), np.full((3, own.pairs), 1.0)))) == 3 * own.pairs
    )


@pytest.mark.parametrize(
    ("use", "purpose"),
    [
        (lambda arm: fingerprint(arm, ()), "generated kernels"),
        (
            lambda arm: rollout(
                arm, REST, np.zeros((2, 3)), 1e-3, interface="effort", backend="generated"
            ),
            "generated kernels",
        ),
        (lambda arm: regressor(arm, *np.zeros((3, 1, 3))), "identification"),
        (lambda arm: inverse_kinematics(arm, [0.1, 0, 0], frame="pad_link"), "'pad_link', which"),
    ],
)
def test_what_has_no_mimic_joints_rejects_them_by_name(use, purpose):
    arm = arms()[0]
    remedy = r"expected none for .*{}.*; load_arm\(..., lock=\['knuckle'\]\) locks them"
    with pytest.raises(InvalidValue, match=remedy.format(purpose)):
        use(arm)


def test_rollouts_take_the_plant():
    arm, command = arms()[0], np.array([0.1, 0.2, 0.3])
    with pytest.warns(RuntimeWarning, match="expected none for generated kernels"):
        rolled = rollout(
            arm, REST, command[None], 1e-3, interface="effort", vary={"link.mass": [[1, 1, 0.3]]}
        )
    after = Plant(arm).step(REST[0], Command("effort", command), 1e-3)
    np.testing.assert_array_equal(rolled.q[0, -1], after.q)


def test_model_errors_have_a_factor_for_each_body():
    arm = arms()[0]
    q = np.array([0.1, 0.2, 0.3])
    heavier = rigid_body.mass_matrix(with_model_error(arm, mass=10, inertia=10), q)
    np.testing.assert_allclose(heavier, 1.1 * rigid_body.mass_matrix(arm, q), rtol=1e-12)
    with_model_error(arm, mass=10, length=3, seed=1)


def test_an_old_pinocchio_is_named(monkeypatch):
    monkeypatch.delattr(pin, "transformJointIntoMimic")
    with pytest.raises(ConfigError, match="has no mimic joints; install a newer one, or lock"):
        parse_arm(text())


def test_an_initial_position_is_within_the_limits_of_both_joints():
    block = (
        "<ros2_control name='c' type='system'><joint name='knuckle'>"
        "<command_interface name='effort'/><state_interface name='position'>"
        "<param name='initial_value'>1.9</param></state_interface></joint></ros2_control></robot>"
    )
    with pytest.raises(UrdfRejected, match=r"is outside the limits; choose .* -1.2 to 1.4"):
        parse_arm(text().replace("</robot>", block))


def test_two_branches_that_follow_each_other_are_rejected_by_name():
    """Pinocchio needs the driven joint before the mimic joint."""
    limbs = "".join(
        LINK.format(name=name, mass=0.3, center="0.1 0 0")
        + JOINT.format(name=name, kind="revolute", parent=parent, axis="0 0 1", damping=0,
                       friction=0, mimic=FOLLOWS.format(*follows) if follows else "")
        for name, parent, follows in (
            ("a", "J1", ()), ("b", "J1", ()),
            ("a_end", "a", ("b", 1, 0)), ("b_end", "b", ("a", 1, 0)),
        )
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"joint 'a_end' follows 'b'; .* lock 'a_end'"):
        parse_arm(chain_urdf({}, more=limbs))
