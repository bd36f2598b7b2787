"""A free object in the kernels: closed forms, conservation, and the bodies of ``ContactPlant``.

The kernel visits each contact four times in a step. The tolerances are the differences that this
leaves, with a margin above the measured ones.
"""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from test_contact_rollout import ball

from arm_dynamics import Command, State
from arm_dynamics.batch import Cost, Horizon, Ilqr, Mppi, Planner, rollout
from arm_dynamics.batch.kernels.free_object import body_rows, body_state, moved_body
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions
from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts
from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.solids import Shape
from arm_dynamics.simulation.contact.contact_plant import ContactPlant, SceneState
from arm_dynamics.simulation.contact.free_bodies import BodyStates

G, MU, EDGE, MASS = 9.81, 0.5, 0.12, 0.3
FAR = [0.0, 0.0, 2.0]
"""Positions of the ball far from the cube."""


def cube(position=(0.3, 0, EDGE / 2), rotation=None, **quantities):
    """Return a free cube."""
    rotation = np.eye(3) if rotation is None else rotation
    quantities = {"mass": MASS, "friction": MU} | quantities
    return SceneObject(
        "cube", Shape("box", (EDGE,) * 3), np.array(position), rotation, **quantities
    )


def floor():
    return SceneObject("ground", Shape("ground", ()))


@cache
def on_ground():
    return Scene([floor(), cube()])


class Rollout:
    """One arm and the cube in a kernel."""

    def __init__(self, arm, scene, q, v=None, command=None, dt=1e-3, **body):
        contacts = SphereContacts.of(arm, scene)
        self.kernel = Kernel(arm, KernelOptions(contacts=contacts))
        rows = body_rows(body_state(contacts.body)) | {
            "q": np.array(q), "v": np.zeros(arm.nv) if v is None else np.array(v),
            "command": np.zeros(arm.nv) if command is None else np.array(command),
            "dt": np.array([dt]), **body,
        }  # fmt: skip
        self.x = self.kernel.block({name: np.asarray(x, float) for name, x in rows.items()})

    def step(self, count=1):
        """Take steps; return the run."""
        for _ in range(count):
            assert not self.kernel.step(self.x)
        return self

    def __getitem__(self, name):
        rows = self.x.reshape(self.kernel.layout.rows, -1)
        return rows[self.kernel.layout.block(name), 0].copy()


# Closed forms -----------------------------------------------------------------------------------


def test_a_thrown_cube_is_on_a_parabola_and_keeps_its_angular_velocity():
    """x = v t, z = z0 + v t - g t (t + dt) / 2; a cube rotates by 2 atan(dt ω / 2) a step."""
    spin = np.array([1.0, -2.0, 3.0])
    start = [0.3, 0, 1.0]
    run = Rollout(ball(), on_ground(), FAR, body_position=start, body_velocity=[1, 0, 2, *spin])
    run.step(100)
    expected = [0.3 + 0.1, 0, 1 + 0.2 - 0.5 * G * 0.1 * 0.101]
    np.testing.assert_allclose(run["body_position"], expected, atol=1e-12)
    np.testing.assert_allclose(run["body_velocity"], [1, 0, 2 - 0.1 * G, *spin], atol=1e-12)
    speed = np.linalg.norm(spin)
    turned = pin.exp3(100 * 2 * np.arctan(0.5e-3 * speed) * spin / speed)
    np.testing.assert_allclose(run["body_rotation"].reshape(3, 3), turned, atol=1e-12)


def test_a_tumbling_box_keeps_its_angular_momentum():
    """Also about its axis of medium inertia, which is unstable."""
    box = SceneObject("box", Shape("box", (0.02, 0.1, 0.2)), mass=1.0)
    inertia = box.inertial.inertia
    position, rotation, velocity = np.zeros(3), np.eye(3), np.array([0, 0, 0, 0.01, 5.0, 0.01])
    momentum = inertia @ velocity[3:]
    for _ in range(2000):
        after = moved_body(box, position, rotation, velocity, 1e-3)
        rotation, velocity = after["body_rotation"].reshape(3, 3), after["body_velocity"]
    assert rotation[1, 1] < 0.9
    found = rotation @ inertia @ rotation.T @ velocity[3:]
    np.testing.assert_allclose(found, momentum, atol=1e-14)


def test_a_cube_rests_on_its_four_corners():
    """It sinks by 13 µm and creeps by 0.05 mm/s."""
    run = Rollout(ball(), on_ground(), FAR).step(1000)
    position = run["body_position"]
    assert -2e-5 < position[2] - EDGE / 2 <= 0
    np.testing.assert_allclose(position[:2], [0.3, 0], atol=1e-4)
    np.testing.assert_allclose(run["body_rotation"].reshape(3, 3), np.eye(3), atol=1e-3)


def test_a_sliding_cube_stops_after_the_distance_of_its_speed():
    """v² / (2 μ g), to the first order of the step: v dt / 2."""
    run = Rollout(ball(), on_ground(), FAR, body_velocity=[0.6, 0.8, 0, 0, 0, 0]).step(600)
    moved = run["body_position"] - [0.3, 0, EDGE / 2]
    np.testing.assert_allclose(np.hypot(*moved[:2]), 1 / (2 * MU * G), atol=6e-4)
    np.testing.assert_allclose(moved[:2] / np.hypot(*moved[:2]), [0.6, 0.8], atol=3e-3)


def test_a_push_without_ground_keeps_the_momentum():
    """The ball hits a smooth cube off its center: the momenta of both stay the same."""
    arm = ball().with_gravity((0, 0, 0))
    run = Rollout(arm, Scene([cube((0.3, 0, 0), friction=0.0)]), [0.2, 0.02, 0.01], [1.0, 0, 0])

    def momentum():
        q, v, body = run["q"], run["v"], run["body_velocity"]
        inertia = MASS * EDGE**2 / 6
        linear = (1.0 + np.array([2e-6, 1e-6, 0.0])) * v
        angular = np.cross(q, linear) + np.cross(run["body_position"], MASS * body[:3])
        return linear + MASS * body[:3], angular + inertia * body[3:]

    (linear, angular) = momentum()
    run.step(100)
    assert run["body_velocity"][0] > 0.5
    after = momentum()
    np.testing.assert_allclose(after[0], linear, atol=1e-12)
    np.testing.assert_allclose(after[1], angular, atol=1e-8)
    assert np.abs(run["body_velocity"][3:]).max() > 1.0


def test_a_pushed_cube_moves_on_with_the_force_beyond_friction():
    """(F - μ m g) = (M + m) a."""
    force = 4.0
    run = Rollout(ball(), on_ground(), [0.3 - 0.05 - EDGE / 2, 0, 0.055], command=[force, 0, G])
    run.step(500)
    expected = (force - MU * MASS * G) / (1.0 + MASS) * 0.5
    np.testing.assert_allclose(run["body_velocity"][0], expected, rtol=2e-3)
    np.testing.assert_allclose(run["v"][0], expected, rtol=2e-3)


# The plant ----------------------------------------------------------------------------------------


def test_a_cube_is_pushed_as_in_the_plant():
    """Off its center, over the ground, 0.5 s: to 0.3 mm (measured: 0.07 mm) and 1 mrad (0.12)."""
    arm, scene = ball(), on_ground()
    q, force = [0.3 - 0.05 - EDGE / 2 - 0.01, 0.01, 0.055], [3.0, 0.0, G]
    run = Rollout(arm, scene, q, command=force).step(500)
    command = Command("effort", np.array(force))
    expected = ContactPlant(arm, scene).step(State.of(q), command, 1e-3, 500)
    assert expected.bodies.position[0, 0] > 0.4
    np.testing.assert_allclose(run["q"], expected.q, atol=5e-4)
    np.testing.assert_allclose(run["body_position"], expected.bodies.position[0], atol=3e-4)
    rotation = run["body_rotation"].reshape(3, 3)
    np.testing.assert_allclose(rotation, expected.bodies.rotation[0], atol=1e-3)


def test_a_sphere_rolls_over_a_fixed_box_as_in_the_plant():
    one = SceneObject("ball", Shape("sphere", (0.04,)), np.array([0.3, 0, 0.14]), mass=0.2)
    scene = Scene([SceneObject("box", Shape("box", (0.4, 0.4, 0.2)), np.array([0.3, 0, 0.0])), one])
    arm, velocity = ball(), np.array([0.5, 0.1, 0, 0, 0, 0])
    run = Rollout(arm, scene, FAR, command=[0, 0, G], body_velocity=velocity).step(300)
    start = BodyStates.of(one.position[None], np.eye(3)[None], velocity[None])
    state = SceneState(0.0, np.array(FAR), np.zeros(3), np.zeros(3), bodies=start)
    command = Command("effort", np.array([0, 0, G]))
    expected = ContactPlant(arm, scene).step(state, command, 1e-3, 300).bodies
    np.testing.assert_allclose(run["body_position"], expected.position[0], atol=1e-9)
    np.testing.assert_allclose(run["body_velocity"], expected.velocity[0], atol=1e-8)


# Rollouts and plans -----------------------------------------------------------------------------


def test_a_rollout_records_the_object():
    """From rest at its pose in the scene, which needs no other kernel."""
    scene = Scene([floor(), cube((0.4, 0.1, 0.2))])
    outputs = ("body_position", "body_rotation", "body_velocity")
    options = {"steps_per_command": 100, "record_every": 50, "outputs": outputs, "scene": scene}
    effort = np.array([0, 0, G])
    found = rollout(ball(), State.of(FAR), effort, 1e-3, interface="effort", **options)
    fallen = -0.5 * G * 0.1 * 0.101
    np.testing.assert_allclose(found["body_position"][0, -1], [0.4, 0.1, 0.2 + fallen], atol=1e-12)
    np.testing.assert_array_equal(found["body_rotation"][0, -1], np.eye(3).ravel())
    np.testing.assert_allclose(found["body_velocity"][0, -1, 2], -G * 0.1, atol=1e-12)


def test_another_mass_friction_and_pose_need_no_compilation():
    """Equal source texts; the pose is not a part of the kernel at all."""

    def kernel(one):
        contacts = SphereContacts.of(ball(), Scene([floor(), one]))
        return Kernel(ball(), KernelOptions(contacts=contacts))

    quantities = (0.31, 0.43), (0.7, 0.23)
    first, other = (kernel(cube(mass=mass, friction=mu)) for mass, mu in quantities)
    assert first._source().text == other._source().text
    assert first._source().constants != other._source().constants
    moved = kernel(cube((1, 2, 3), mass=0.31, friction=0.43))
    assert moved.options.key == first.options.key


def pushing(s, p):
    """Return the cost of the distance of the cube along x, and of the ball from its height."""
    e, h = s.body_position[0] - p.target, s.q[2] - 0.06
    return 100 * e * e + 10 * h * h + 10 * s.q[1] * s.q[1] + 0.01 * s.v @ s.v


def planner(**options):
    """Return a planner of the ball, which pushes the cube."""
    options = {"scene": on_ground(), "contact": True} | options
    method = options.pop("method", Mppi(10.0, samples=64, temperature=0.05))
    cost = Cost(pushing, None, {"target": 0.45})
    return Planner(ball(), cost, method, Horizon(20, 0.02, 4), policy="gravity", **options)


def test_plans_push_the_cube_and_equal_seeds_give_equal_ones():
    start, ends = [0.3 - EDGE / 2 - 0.06, 0, 0.06], []
    for one in (planner(), planner()):
        plant, state = ContactPlant(ball(), on_ground()), State.of(start)
        for _ in range(50):
            one.update(state)
            state = plant.step(state, one.command(state), 2e-3, 10)
        ends.append(state.bodies.position[0])
    np.testing.assert_array_equal(*ends)
    np.testing.assert_allclose(ends[0][0], 0.45, atol=0.02)


# Bad input --------------------------------------------------------------------------------------


def box(name, **quantities):
    return SceneObject(name, Shape("box", (0.1, 0.1, 0.1)), np.array([2.0, 0, 0.05]), **quantities)


@pytest.mark.parametrize(("more", "message"), [
    ((cube(), box("other", mass=0.2)), r"'other': mass = 0.2 kg; expected 0 .*'cube'.*Simulation"),
    ((cube(), box("wall")), r"'wall': shape = 'box'; expected ground .*free box 'cube'"),
    ((SceneObject("can", Shape("cylinder", (0.1, 0.1)), mass=1.0),),
     r"'can': shape = 'cylinder'; expected .*ground, sphere, box"),
    ((cube(restitution=0.5),), r"'cube': restitution = 0.5; expected 0"),
])  # fmt: skip
def test_a_free_object_without_a_kernel_is_rejected_by_name(more, message):
    with pytest.raises(InvalidValue, match=message):
        planner(scene=Scene([floor(), *more]))


@pytest.mark.parametrize(("options", "message"), [
    ({"contact": False}, r"'cube': mass = 0.3 kg; expected 0 without contact; set contact=True"),
    ({"feedback": True}, r"planner with contact: feedback = True; expected a sampling method"),
    ({"method": Ilqr()}, r"planner with contact: method = Ilqr; expected a sampling method"),
    ({"scene": Scene([floor()])}, r"body_position: free objects = 0; expected 1"),
])  # fmt: skip
def test_a_plan_that_cannot_predict_the_object_is_rejected(options, message):
    with pytest.raises(InvalidValue, match=message):
        planner(**options)


def test_a_state_without_the_object_and_a_rollout_of_plants_are_rejected():
    none = SceneState(0.0, np.array(FAR), np.zeros(3), np.zeros(3))
    with pytest.raises(InvalidValue, match=r"free objects = 0; expected 1 .'cube'."):
        body_state(cube(), none)
    options = {"interface": "effort", "scene": on_ground()}
    with pytest.raises(
        InvalidValue, match=r"'cube': mass = 0.3 kg; expected 0 with backend 'plant'"
    ):
        rollout(ball(), State.of(FAR), np.zeros(3), 1e-3, backend="plant", **options)
    options["scene"] = Scene([floor()])
    with pytest.raises(InvalidValue, match="'body_position': free objects = 0; expected 1"):
        rollout(ball(), State.of(FAR), np.zeros(3), 1e-3, outputs=("body_position",), **options)
