"""Rollouts in a scene: closed forms, and the trajectories of ``ContactPlant``.

The kernel visits each contact once in a step, and its links are spheres. The tolerances are those
differences, with a margin above the measured ones; spheres as links make the shapes equal.
"""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from conftest import chain_urdf, five_dof

from arm_dynamics import Command, State
from arm_dynamics.batch import rollout, rollout_closed_loop
from arm_dynamics.batch.kernels.contact_integrator import ContactEuler
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions
from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts
from arm_dynamics.batch.kernels.step_trace import trace_step
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene, SceneObject
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.solids import Shape
from arm_dynamics.simulation.contact.contact_plant import ContactPlant
from arm_dynamics.simulation.plant import Plant

DT, G, FRICTION = 1e-3, 9.81, np.sqrt(0.5 * 0.8)
BALL = '<collision><origin xyz="{x} 0 0"/><geometry><sphere radius="0.05"/></geometry></collision>'
SLIDE = {
    "kind": "prismatic",
    "xyz": "0 0 0",
    "center": "0 0 0",
    "mass": 1e-6,
    "ixx": 1e-10,
    "effort": 1e3,
}
FACING_X = pin.exp3(np.array([0, -np.pi / 2, 0]))
"""Rotation of a ground whose surface faces -x."""


def arm_with(shapes, *joints):
    """Return a chain with collision shapes by joint."""
    urdf = chain_urdf(*joints)
    for name, shape in shapes.items():
        urdf = urdf.replace(f'<link name="{name}_link">', f'<link name="{name}_link">{shape}')
    return parse_arm(urdf)


@cache
def ball():
    """Return a ball of 1 kg that moves along three axes."""
    axes = ({**SLIDE, "axis": axis} for axis in ("1 0 0", "0 1 0"))
    return arm_with(
        {"J3": BALL.format(x=0)}, *axes, {**SLIDE, "axis": "0 0 1", "mass": 1.0, "ixx": 1e-3}
    )


@cache
def two_links(**joint):
    return arm_with({"J2": BALL.format(x=0.5)}, dict(joint), dict(joint))


@cache
def three_links():
    shapes = {"J2": BALL.format(x=0.5), "J3": BALL.format(x=0.5)}
    return arm_with(shapes, {}, {"axis": "0 0 1"}, {"axis": "0 1 0"})


def ground(height=0.0):
    return Scene([SceneObject("ground", Shape("ground", ()), np.array([0, 0, height]))])


def moved(arm, q, v, efforts, scene, time, dt=DT, **options):
    """Return the rollout under constant efforts."""
    steps = round(time / dt)
    options = {"record_every": steps, "threads": 1} | options
    return rollout(arm, State.of(q, v), np.array(efforts, float), dt, interface="effort",
                   steps_per_command=steps, scene=scene, **options)  # fmt: skip


def plant_after(arm, q, efforts, scene, time, dt=DT):
    command = Command("effort", np.array(efforts, float))
    return ContactPlant(arm, scene).step(State.of(q), command, dt, round(time / dt))


# Closed forms -----------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_ball_falls_to_rest_and_stays(precision):
    """It sinks by at most the 10 µm that remain, and creeps by 3e-6 of g dt a second."""
    found = moved(ball(), [0, 0, 0.3], [0, 0, 0], [0, 0, 0], ground(), 10.0, precision=precision)
    np.testing.assert_allclose(found.q[0, -1], [0, 0, 0.05], atol=1.1e-5)
    np.testing.assert_allclose(found.v[0, -1], 0, atol=1e-5 * G * DT)


@pytest.mark.parametrize("angle", [0.0, np.pi / 4, 2.0])
@pytest.mark.parametrize("factor", [0.999, 1.001, 1.5])
def test_a_pushed_ball_sticks_and_slides_at_the_round_cone(factor, angle):
    """v = (F - μ m g) t / m above the cone, in every direction; below it at most 1e-5 of g dt."""
    direction = np.array([np.cos(angle), np.sin(angle), 0])
    force = factor * FRICTION * G
    found = moved(ball(), [0, 0, 0.05], [0, 0, 0], force * direction, ground(), 1.0)
    expected = max(0.0, force - FRICTION * G) * direction
    np.testing.assert_allclose(found.v[0, -1], expected, atol=1e-5)


def test_a_sliding_ball_stops_after_the_distance_of_its_speed():
    """v² / (2 μ g), to the first order of the step."""
    found = moved(ball(), [0, 0, 0.05], [0.6, 0.8, 0], [0, 0, 0], ground(), 0.5, dt=1e-4)
    distance = np.hypot(*found.q[0, -1, :2])
    np.testing.assert_allclose(distance, 1 / (2 * FRICTION * G), atol=1e-4 * 1.0)
    np.testing.assert_allclose(found.v[0, -1], 0, atol=1e-7)


def tip(arm, q):
    data = arm.model.createData()
    pin.computeJointJacobians(arm.model, data, q)
    point = data.oMi[2].act(np.array([0.5, 0, 0]))
    return point, (data.J[:3] - pin.skew(point) @ data.J[3:])[[0, 2]]


def test_a_pressing_arm_has_the_force_of_its_torques_at_the_wall():
    """F = J⁻ᵀ τ, from the change of velocity by contact, M G u / dt."""
    arm, q, force = two_links().with_gravity((0, 0, 0)), np.array([0.4, 0.7]), np.array([5.0, 1.0])
    point, J = tip(arm, q)
    wall = SceneObject("wall", Shape("ground", ()), point + np.array([0.05, 0, 0]), FACING_X)
    contacts = SphereContacts.of(arm, Scene([wall]))
    kernel = Kernel(arm, KernelOptions(contacts=contacts))
    x = kernel.block({"q": q, "v": np.zeros(2), "command": J.T @ force, "dt": np.array([DT])})
    for _ in range(100):
        kernel.step(x)
    rows = {n: x.reshape(kernel.layout.rows, -1)[kernel.layout.block(n), 0]
            for n in ("q", "v", "root", "change")}  # fmt: skip
    root = np.zeros((2, 2))
    root[np.tril_indices(2)] = rows["root"]
    torque = mass_matrix(arm, rows["q"]) @ root @ rows["change"] / DT
    np.testing.assert_allclose(np.linalg.solve(J.T, torque), -force, rtol=1e-8)
    np.testing.assert_allclose(rows["v"], 0, atol=1e-6)


# The plant ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dt", "tolerance"), [(1e-3, 3e-4), (1e-4, 3e-5)])
def test_a_falling_arm_moves_as_that_of_the_plant(dt, tolerance):
    """One contact: 1 s with impact, sliding and separation, to 0.3 mrad with 1 ms."""
    arm, q, scene = two_links(), [-0.5, 0.6], ground(-0.3)
    for time in (0.5, 1.0):
        found = moved(arm, q, [0, 0], [0, 0], scene, time, dt)
        expected = plant_after(arm, q, [0, 0], scene, time, dt)
        np.testing.assert_allclose(found.q[0, -1], expected.q, atol=tolerance)
        np.testing.assert_allclose(found.v[0, -1], expected.v, atol=10 * tolerance)


@pytest.mark.parametrize("one", [
    SceneObject("ground", Shape("ground", ()), np.array([0, 0, -0.3])),
    SceneObject("ball", Shape("sphere", (0.3,)), np.array([1.0, 0.1, -0.6])),
    SceneObject("box", Shape("box", (0.4, 0.4, 0.3)), np.array([0.9, 0, -0.45]),
                pin.exp3(np.array([0.2, 0.1, 0.3]))),
], ids=lambda one: one.name)  # fmt: skip
def test_two_contacts_come_to_rest_as_in_the_plant(one):
    """Two contacts differ by 0.3 mrad: where they have slid to until they stick."""
    arm, q, scene = three_links(), [-0.1, 0.1, 0.3], Scene([one])
    found = moved(arm, q, [0, 0, 0], [0, 0, 0], scene, 0.6)
    expected = plant_after(arm, q, [0, 0, 0], scene, 0.6)
    assert len(expected.contacts)
    np.testing.assert_allclose(found.q[0, -1], expected.q, atol=1e-3)


def test_a_falling_five_dof_stands_where_that_of_the_plant_stands():
    """10 mm at the tool (measured: 4 mm): 4 mm are missing at the rim of its last cylinder."""
    arm, scene, dt = five_dof(), ground(), 2e-4
    q = np.array([0.0, -0.45, 0.6, 0.0, -0.2])
    outputs = ("q", "v", "tool_position")
    found = moved(arm, q, np.zeros(5), np.zeros(5), scene, 1.0, dt, outputs=outputs)
    expected = plant_after(arm, q, np.zeros(5), scene, 1.0, dt)
    data = arm.model.createData()
    pin.framesForwardKinematics(arm.model, data, expected.q)
    tool = data.oMf[arm.model.getFrameId(arm.tool_frame)].translation
    np.testing.assert_allclose(found.tool_position[0, -1], tool, atol=0.01)
    assert np.abs(found.v[0, -1]).max() < 0.02


def test_the_plant_as_backend_has_its_own_contact():
    arm, scene = two_links(), ground(-0.3)
    found = moved(arm, [-0.5, 0.6], [0, 0], [0, 0], scene, 0.1, backend="plant")
    expected = plant_after(arm, [-0.5, 0.6], [0, 0], scene, 0.1)
    np.testing.assert_array_equal(found.q[0, -1], expected.q)


# Properties -------------------------------------------------------------------------------------


def test_a_kernel_takes_the_steps_of_its_reference():
    """Also over many steps of impact and sliding, and with dry friction."""
    arm, scene = two_links(friction=0.2), ground(-0.3)
    plant = Plant(arm)
    plant.integrator = ContactEuler(arm, SphereContacts.of(arm, scene))
    expected = plant.step(State.of([-0.5, 0.6]), Command("effort", np.zeros(2)), DT, 400)
    found = moved(arm, [-0.5, 0.6], [0, 0], [0, 0], scene, 0.4)
    np.testing.assert_allclose(found.q[0, -1], expected.q, atol=1e-9)


def test_energy_does_not_rise_on_the_ground():
    """E(t) <= E(0), but for the first order of free motion: 1e-3 of it with 0.1 ms."""
    arm, q = three_links(), np.array([-0.1, 0.1, 0.3])
    found = moved(arm, q, [0, 0, 0], [0, 0, 0], ground(-0.3), 1.0, 1e-4, record_every=20)
    data = arm.model.createData()
    energy = [pin.computeKineticEnergy(arm.model, data, *state)
              + pin.computePotentialEnergy(arm.model, data, state[0])
              for state in zip(found.q[0], found.v[0], strict=True)]  # fmt: skip
    assert np.diff(energy).max() < 1e-3
    assert energy[-1] < energy[0] - 1.0


def test_a_rollout_does_not_depend_on_its_neighbors():
    """One of 40 in contact with the ground, bit by bit the same alone."""
    arm, random, options = five_dof(), np.random.default_rng(0), {"interface": "effort"}
    q = np.array([0, -0.3, 0.6, 0, -1.1]) + 0.2 * random.normal(size=(40, 5))
    states = np.hstack([q, random.normal(size=(40, 5))])
    options |= {"steps_per_command": 500, "record_every": 500, "scene": ground()}
    every = rollout(arm, states, np.zeros(5), 1e-4, **options)
    for k in (0, 17, 39):
        alone = rollout(arm, states[k : k + 1], np.zeros(5), 1e-4, **options)
        np.testing.assert_array_equal(alone.q[0], every.q[k])


def test_far_from_objects_the_motion_is_that_without_a_scene():
    arm = five_dof()
    states = np.hstack([arm.configuration("initial"), np.full(5, 0.1)])[None]
    options = {"interface": "effort", "steps_per_command": 100, "record_every": 100}
    free = rollout(arm, states, np.full(5, 0.2), 1e-4, **options)
    found = rollout(arm, states, np.full(5, 0.2), 1e-4, scene=ground(), **options)
    np.testing.assert_allclose(found.q, free.q, rtol=1e-12)
    out_of_reach = ground(-2.0)
    again = rollout(arm, states, np.full(5, 0.2), 1e-4, scene=out_of_reach, **options)
    np.testing.assert_array_equal(again.q, free.q)


def test_without_a_scene_a_kernel_has_no_row_of_contact():
    trace = trace_step(five_dof(), "semi_implicit_euler", "effort", ())
    assert not {"contacts", "jacobian", "root", "change"} & set(trace.layout.sizes)
    assert [function.name for function in trace.functions] == ["step"]
    assert KernelOptions().key == ("semi_implicit_euler", "effort", (), "float64", 32, None)


def test_a_controlled_arm_presses_on_a_box_as_that_of_the_plant():
    """The tool rests within 5 mm (measured: 1.6 mm) of the plant's, with and without a payload."""
    arm = five_dof()
    scene = Scene([SceneObject("box", Shape("box", (0.3, 0.3, 0.2)), np.array([0.5, 0, 0.1]))])
    start, goal = np.array([[0, -0.95, 0.6, 0, -0.9], [0, -0.45, 0.6, 0, -0.9]])
    generated, plant = (
        rollout_closed_loop(
            arm, State.of(start), PidGravity(arm), goal, 1e-4, 2e-3, 0.2, scene=scene,
            vary={"payload": [0.0, 0.2]}, outputs=("tool_position",), record_every=100,
            backend=backend,
        ).tool_position[:, -1]
        for backend in ("generated", "plant")
    )  # fmt: skip
    np.testing.assert_allclose(generated, plant, atol=5e-3)
    assert generated[0, 2] > 0.2


def test_a_joint_that_dry_friction_holds_in_contact_stands_still():
    """Friction acts after the contact: the arm stops within 0.05 rad of the plant's."""
    arm, scene, q = two_links(friction=1.0), ground(-0.3), [-0.5, 0.6]
    found = moved(arm, q, [0, 0], [0, 0], scene, 2.0)
    np.testing.assert_allclose(found.v[0, -1], 0, atol=1e-12)
    np.testing.assert_allclose(found.q[0, -1], plant_after(arm, q, [0, 0], scene, 2.0).q, atol=0.05)


# Bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scene", "options", "message"), [
    ("table", {}, "scene = 'table'; expected"),
    (Scene([SceneObject("cube", Shape("box", (0.1, 0.1, 0.1)), mass=0.2)]), {"backend": "plant"},
     r"'cube': mass = 0.2 kg; expected 0 with backend 'plant'.*use Simulation"),
    (Scene([SceneObject("can", Shape("cylinder", (0.1, 0.1)))]), {},
     r"'can': shape = 'cylinder'; expected ground, sphere, box.*backend 'plant'"),
    (ground(), {"integrator": "rk4"}, "integrator = 'rk4'; expected 'semi_implicit_euler'"),
])  # fmt: skip
def test_a_scene_without_a_kernel_is_rejected_by_name(scene, options, message):
    arm = five_dof()
    with pytest.raises(InvalidValue, match=message):
        rollout(arm, State.of(np.zeros(5)), np.zeros(5), DT, interface="effort", scene=scene,
                **options)  # fmt: skip


def test_an_empty_scene_changes_nothing():
    arm, state = five_dof(), State.of(np.zeros(5))
    one = rollout(arm, state, np.zeros(5), 1e-4, interface="effort", scene=EMPTY_SCENE)
    other = rollout(arm, state, np.zeros(5), 1e-4, interface="effort")
    np.testing.assert_array_equal(one.q, other.q)
