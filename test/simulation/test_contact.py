"""Bodies in contact: closed forms of rigid bodies with Coulomb friction."""

import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.solids import Shape
from arm_dynamics.simulation.contact.contact_dynamics import ContactDynamics
from arm_dynamics.simulation.contact.free_bodies import BodyStates

G = 9.81
DT = 1e-3


LEVEL = np.eye(3)


def ground(mu=0.5, turn=LEVEL, **more):
    return SceneObject("ground", Shape("ground", ()), rotation=turn, friction=mu, **more)


def body(name, kind, size, position, mass=1.0, mu=0.5, **more):
    return SceneObject(
        name, Shape(kind, size), np.asarray(position, float), mass=mass, friction=mu, **more
    )


def cube(position, mass=1.0, mu=0.5, edge=0.1, **more):
    return body("cube", "box", (edge,) * 3, position, mass, mu, **more)


def moving(dynamics, *velocities):
    start = dynamics.initial
    return BodyStates.of(start.position, start.rotation, np.array(velocities, float))


def run(dynamics, states, time, dt=DT, each=None):
    contacts = None
    for _ in range(round(time / dt)):
        states, contacts = dynamics.step(states, dt)
        if each is not None:
            each(states, contacts)
    return states, contacts


def scene(*objects, **more):
    return ContactDynamics(Scene(objects), **more)


def test_a_resting_box_has_the_impulse_of_its_weight_and_never_sinks():
    dynamics = scene(ground(), cube([0, 0, 0.05], mass=2.0))

    def check(states, contacts):
        np.testing.assert_allclose(contacts.force.sum(axis=0), [0, 0, 2 * G], atol=1e-11)
        assert contacts.gap.min() > -1e-14

    states, contacts = run(dynamics, dynamics.initial, 0.3, each=check)
    np.testing.assert_allclose(states.position, [[0, 0, 0.05]], atol=1e-14)
    np.testing.assert_allclose(contacts.force[:, 2], G / 2, rtol=1e-6)  # its four corners
    assert set(contacts.first) == {"ground"}
    np.testing.assert_allclose(contacts.force_on("cube"), [0, 0, 2 * G], atol=1e-11)
    np.testing.assert_allclose(contacts.force_on("ground"), [0, 0, -2 * G], atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size"), [("sphere", (0.05,)), ("box", (0.1, 0.1, 0.1)),
                                            ("cylinder", (0.05, 0.1))])  # fmt: skip
def test_a_body_rests_over_1e5_steps(kind, size):
    """The impulse is m g dt in every step, and the body does not sink."""
    dynamics, impulses, heights = scene(ground(), body("b", kind, size, [0, 0, 0.05], 2.0)), [], []

    def record(states, contacts):
        impulses.append(DT * contacts.force[:, 2].sum())
        heights.append(states.position[0, 2])

    run(dynamics, dynamics.initial, 1e5 * DT, each=record)
    np.testing.assert_allclose(impulses, 2 * G * DT, rtol=1e-13)
    np.testing.assert_allclose(heights, 0.05, rtol=0, atol=1e-15)


@pytest.mark.parametrize("azimuth", [0.0, np.pi / 4])
@pytest.mark.parametrize("mu", [0.2, 0.5])
def test_a_box_sticks_up_to_the_angle_of_friction_and_slides_above(mu, azimuth):
    limit = np.arctan(mu)
    about = pin.exp3(np.array([0, 0, azimuth]))
    for angle, sticks in ((limit - 1e-6, True), (limit + 1e-6, False), (limit + 0.2, False)):
        turn = about @ pin.exp3(np.array([0, angle, 0])) @ about.T
        box = cube(turn[:, 2] * 0.05, mu=mu, rotation=turn)
        dynamics = scene(ground(mu, turn), box)
        states, _ = run(dynamics, dynamics.initial, 0.1)
        down = turn @ about @ [1, 0, 0]
        expected = 0.0 if sticks else 0.1 * G * (np.sin(angle) - mu * np.cos(angle))
        np.testing.assert_allclose(states.velocity[0, :3], expected * down, atol=1e-12)
        np.testing.assert_allclose(states.velocity[0, 3:], 0, atol=1e-12)


@pytest.mark.parametrize("azimuth", [0.0, np.pi / 4])
def test_a_sliding_box_stops_after_the_square_of_its_speed(azimuth):
    speed, mu = 1.0, 0.4
    direction = np.array([np.cos(azimuth), np.sin(azimuth), 0])
    dynamics = scene(ground(mu), cube([0, 0, 0.05], mu=mu))
    distances = []
    for dt in (2e-3, 1e-3):
        states, _ = run(dynamics, moving(dynamics, [*(speed * direction), 0, 0, 0]), 0.3, dt)
        np.testing.assert_allclose(states.velocity, 0, atol=1e-12)
        np.testing.assert_allclose(np.cross(states.position[0], direction)[2], 0, atol=1e-12)
        distances.append(states.position[0] @ direction)
    exact = speed**2 / (2 * mu * G)
    np.testing.assert_allclose(distances, exact, rtol=1e-2)
    assert abs(distances[1] - exact) < 0.6 * abs(distances[0] - exact)  # first order


def test_a_sliding_sphere_rolls_at_five_sevenths_of_its_speed():
    speed, mu, radius = 1.0, 0.5, 0.1
    dynamics = scene(ground(mu), body("ball", "sphere", (radius,), [0, 0, radius], mu=mu))
    slip = []

    def record(states, _):
        slip.append(states.velocity[0, 0] - radius * states.velocity[0, 4])

    states, _ = run(dynamics, moving(dynamics, [speed, 0, 0, 0, 0, 0]), 0.08, 1e-3, record)
    np.testing.assert_allclose(states.velocity[0, [0, 4]], [5 / 7, 50 / 7], rtol=1e-13)
    rolling = 1e-3 * (1 + np.flatnonzero(np.abs(slip) < 1e-12)[0])
    assert 0 <= rolling - 2 * speed / (7 * mu * G) <= 1e-3


@pytest.mark.parametrize(
    ("kind", "size", "points"), [("sphere", (0.02,), 1), ("box", (0.04,) * 3, 4)]
)
def test_a_body_rests_at_the_depth_of_its_weight_on_a_compliant_ground(kind, size, points):
    """Depth = c m g / n of n points; the energy of the implicit step only decreases."""
    mass, compliance = 0.3, 1e-4
    soft = ground(compliance=0.4 * compliance)
    ball = body("ball", kind, size, [0, 0, 0.021], mass, compliance=0.6 * compliance)
    dynamics, energy = scene(soft, ball), []

    def record(states, _):
        height, v = states.position[0, 2], states.velocity[0]
        depth = max(0.0, 0.02 - height)
        spring = points * depth**2 / (2 * compliance)
        energy.append(mass * (G * height + v[:3] @ v[:3] / 2) + spring)

    states, contacts = run(dynamics, dynamics.initial, 2.0, 1e-3, record)
    depth = compliance * mass * G / points
    np.testing.assert_allclose(0.02 - states.position[0, 2], depth, rtol=1e-9)
    np.testing.assert_allclose(contacts.force[:, 2].sum(), mass * G, rtol=1e-9)
    assert np.diff(energy).max() < 1e-12


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_a_ball_rebounds_to_the_square_of_its_restitution(restitution):
    dynamics = scene(
        ground(), body("ball", "sphere", (0.02,), [0, 0, 0.22], restitution=restitution)
    )
    heights = []
    run(dynamics, dynamics.initial, 0.45, 2e-4, lambda s, _: heights.append(s.position[0, 2]))
    heights = np.array(heights) - 0.02
    impact = np.argmin(heights[:1100])
    np.testing.assert_allclose(heights[impact:].max(), 0.2 * restitution**2, atol=1e-3)
    assert heights.min() > -1e-9


@pytest.mark.parametrize(("first", "second"), [("sphere", "sphere"), ("box", "sphere"),
                                                ("box", "box"), ("cylinder", "box")])  # fmt: skip
def test_two_bodies_keep_their_momentum(first, second):
    sizes = {"sphere": (0.05,), "box": (0.1, 0.1, 0.1), "cylinder": (0.05, 0.1)}
    dynamics = scene(
        body("a", first, sizes[first], [0, 0, 0], 2.0),
        body("b", second, sizes[second], [0.11, 0.02, 0.01], 0.5, restitution=0.3),
        gravity=np.zeros(3),
    )
    start = moving(dynamics, [1.0, 0.2, 0, 0, 0, 0], [-1.0, 0, 0.1, 0, 0, 0])

    def momentum(states):
        linear = dynamics.bodies.mass[:, None] * states.velocity[:, :3]
        own = np.einsum("nij,njk,nlk,nl->ni", states.rotation, dynamics.bodies.inertia,
                        states.rotation, states.velocity[:, 3:])  # fmt: skip
        return linear.sum(axis=0), (np.cross(states.position, linear) + own).sum(axis=0)

    touched = []
    states, _ = run(dynamics, start, 0.03, 1e-3, lambda _, c: touched.append(len(c)))
    assert max(touched) > 0
    for before, after in zip(momentum(start), momentum(states), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-4 if first == "cylinder" else 1e-14)
    assert dynamics.bodies.energy(states, np.zeros(3)) <= dynamics.bodies.energy(start, np.zeros(3))


@pytest.mark.parametrize("height", [0.095, 0.105])
def test_a_pushed_box_tips_above_half_its_base_over_friction(height):
    """b = 0.1 m, μ = 0.5: it slides below h = b/(2 μ) = 0.1 m, and tips above."""
    mu, mass = 0.5, 1.0
    box = body("box", "box", (0.1, 0.1, 0.2), [0, 0, 0.1], mass, mu)
    dynamics = scene(ground(mu), box)
    force = mu * mass * G * 1.001  # the least that moves it
    states = dynamics.initial
    impulse = np.array([force / mass, 0, 0]) * DT
    for _ in range(20):
        velocity = states.velocity.copy()
        velocity[0, :3] += impulse
        lever = np.array([0, 0, height]) - states.position[0]
        lever[0] = 0.0
        torque = np.cross(lever, [force, 0, 0])
        velocity[0, 3:] += DT * np.linalg.solve(dynamics.bodies.inertia[0], torque)
        states, _ = dynamics.step(BodyStates(states.position, states.rotation, velocity), DT)
    tips = states.velocity[0, 4] > 1e-4
    assert tips == (height > 0.1)
    assert states.velocity[0, 0] > 0


@pytest.mark.parametrize("seed", range(4, 8))
def test_energy_never_rises_in_a_heap_of_bodies(seed):
    random = np.random.default_rng(seed)
    kinds = [("box", (0.06, 0.05, 0.04)), ("sphere", (0.03,)), ("cylinder", (0.025, 0.06))]
    bodies = [
        body(f"b{k}", *kinds[k % 3], [0.01 * (k % 2), 0.012 * (k % 3), 0.06 + 0.075 * k],
             random.uniform(0.1, 1), rotation=pin.exp3(random.normal(size=3)))
        for k in range(6)
    ]  # fmt: skip
    dynamics = scene(ground(), *bodies)
    start = moving(dynamics, *(random.normal(size=6) * 0.3 for _ in bodies))
    gravity = np.array([0, 0, -G])
    energies = [dynamics.bodies.energy(start, gravity)]
    contacts = []

    def record(states, found):
        energies.append(dynamics.bodies.energy(states, gravity))
        contacts.append(len(found))
        assert found.converged or seed > 4, found.residual
        assert found.residual < 1e-4

    states, found = run(dynamics, start, 0.6, 2e-3, record)
    assert np.diff(energies).max() < 1e-4 * energies[0]
    assert energies[-1] < 0.5 * energies[0]
    assert max(contacts) > 10
    assert found.gap.min() > -5e-4
    assert states.position[:, 2].min() > 0.015


def test_a_free_body_keeps_energy_and_the_size_of_its_angular_momentum():
    dynamics = scene(body("box", "box", (0.1, 0.2, 0.3), [0, 0, 0]), gravity=np.zeros(3))
    start = moving(dynamics, [0, 0, 0, 0.01, 8.0, 0.01])  # unstable about its middle axis
    states, _ = run(dynamics, start, 3.0, 2e-3)
    inertia, turn = dynamics.bodies.inertia[0], states.rotation[0]
    own, at_start = turn.T @ states.velocity[0, 3:], start.velocity[0, 3:]
    np.testing.assert_allclose(own @ inertia @ own, at_start @ inertia @ at_start, rtol=1e-10)
    np.testing.assert_allclose(
        np.linalg.norm(inertia @ own), np.linalg.norm(inertia @ at_start), rtol=1e-10
    )
    assert own[1] < 0.9 * at_start[1]  # it turns over


def test_a_step_depends_on_its_arguments_only():
    dynamics = scene(ground(), cube([0, 0, 0.06]), body("b", "sphere", (0.03,), [0.01, 0, 0.16]))
    first, _ = run(dynamics, dynamics.initial, 0.1)
    again, _ = run(dynamics, dynamics.initial, 0.1)
    np.testing.assert_array_equal(first.position, again.position)
    np.testing.assert_array_equal(first.velocity, again.velocity)


def test_objects_that_overlap_at_the_start_are_rejected_by_name():
    with pytest.raises(InvalidValue, match="'ground' and 'cube' overlap by 10 mm at the start"):
        scene(ground(), cube([0, 0, 0.04]))
