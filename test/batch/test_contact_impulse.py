"""Contact of kernels: impulses of one contact, distances and spheres, against their definitions."""

from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest
from conftest import chain, five_dof
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from arm_dynamics import load_arm
from arm_dynamics.batch.kernels.contact_impulse import (
    contact_impulse,
    friction_impulse,
    gap_and_normal,
    normal_and_tangents,
    target_speed,
)
from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts
from arm_dynamics.collision.link_spheres import (
    LinkSphere,
    between,
    covering_spheres,
    enclosing_sphere,
    link_spheres,
    rounded_box,
)
from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.collision.scene_shapes import object_shape
from arm_dynamics.collision.self_collision import collision_shapes
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.solids import Shape

TURN = pin.exp3(np.array([0.3, -0.5, 0.7]))
PLACE = np.array([0.1, -0.2, 0.3])
small, positive = st.floats(-3, 3), st.floats(0.01, 1.0)


def matrix(stretch, angle):
    """Return a symmetric matrix (2, 2) with the eigenvalues 1 and ``stretch``."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return turn @ np.diag([1.0, stretch]) @ turn.T


def response(entries):
    """Return a positive definite response (3, 3) of a contact."""
    factor = np.reshape(entries, (3, 3))
    return factor @ factor.T + 0.05 * np.eye(3)


@given(st.floats(0.1, 1.0), small, small, small, st.floats(1e-3, 10.0))
def test_friction_dissipates_the_most_in_a_round_cone(stretch, angle, x, y, bound):
    """λ = -(A + s)⁻¹ v, by the exact root s; up to 1e-4 while the eigenvalues differ by 10."""
    A, v = matrix(stretch, angle), np.array([x, y])
    found, free = friction_impulse(A, v, bound), -np.linalg.solve(A, v)
    if np.linalg.norm(free) <= bound:
        np.testing.assert_allclose(found, free, rtol=1e-9, atol=1e-12)
        return

    def excess(s):
        return np.linalg.norm(np.linalg.solve(A + s * np.eye(2), v)) - bound

    s = brentq(excess, 0.0, 2 * np.linalg.norm(v) / bound, xtol=1e-14)
    expected = -np.linalg.solve(A + s * np.eye(2), v)
    np.testing.assert_allclose(found, expected, atol=1e-4 * bound)
    assert np.linalg.norm(found) <= bound * (1 + 1e-12)


@given(st.lists(small, min_size=9, max_size=9), st.lists(small, min_size=3, max_size=3),
       st.floats(-2, 0), positive)  # fmt: skip
def test_no_impulse_adds_energy_or_leaves_the_cone(entries, v, target, friction):
    """Δ½ vᵀA⁻¹v = λᵀ(v + A λ/2) <= 0 for v* <= 0, with every response, however anisotropic."""
    A, v = response(entries), np.array(v)
    impulse = contact_impulse(A, v, target, friction)
    size = np.abs(impulse).max() * (1 + np.abs(v).max())
    assert impulse @ (v + A @ impulse / 2) <= 1e-9 * size + 1e-14
    assert np.linalg.norm(impulse[1:]) <= friction * impulse[0] * (1 + 1e-9) + 1e-14
    if v[0] >= target:
        np.testing.assert_array_equal(impulse, 0)


@given(st.lists(small, min_size=9, max_size=9), st.floats(-3, -0.01))
def test_without_friction_the_normal_velocity_is_the_target(entries, speed):
    A = response(entries)
    impulse = contact_impulse(A, np.array([speed, 0.3, -0.2]), -0.005, 0.0)
    after = speed + A[0] @ impulse
    np.testing.assert_allclose(after, max(speed, -0.005), atol=1e-9)


def test_the_target_speed_closes_a_gap_and_removes_an_overlap_slowly():
    np.testing.assert_allclose(target_speed(1e-3, 1e-2), -0.1)
    assert target_speed(-5e-6, 1e-3) == 0
    np.testing.assert_allclose(target_speed(-6e-5, 1e-3), 0.2 * 5e-5 / 1e-3)
    assert target_speed(-0.3, 1e-3) == 0.1


@given(small, small, small)
def test_normal_and_tangents_are_orthonormal(x, y, z):
    normal = np.array([x, y, z + 4])
    normal = (1 if x > 0 else -1) * normal / np.linalg.norm(normal)
    axes = normal_and_tangents(normal)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(axes[0], normal)


@pytest.mark.parametrize("shape", [Shape("ground", ()), Shape("sphere", (0.2,)),
                                   Shape("box", (0.2, 0.3, 0.5))])  # fmt: skip
def test_gaps_are_those_of_coal_and_normals_their_gradients(shape):
    """Outside the object; inside, the normal is the gradient too."""
    coal = pytest.importorskip("coal")
    one, random = SceneObject("one", shape, PLACE, TURN), np.random.default_rng(0)
    place = object_shape(one)

    def gap(center):
        return gap_and_normal(shape.kind, shape.size, PLACE, TURN, center, 0.05)

    for center in PLACE + random.normal(0, 0.25, (60, 3)):
        found, normal = gap(center)
        if found > 1e-3:
            result = coal.DistanceResult()
            expected = coal.distance(
                place.geometry, coal.Transform3s(place.placement.rotation, PLACE),
                coal.Sphere(0.05), coal.Transform3s(np.eye(3), center),
                coal.DistanceRequest(), result,
            )  # fmt: skip
            np.testing.assert_allclose(found, expected, atol=1e-6)
        steps = 1e-7 * np.eye(3)
        gradient = [(gap(center + h)[0] - gap(center - h)[0]) / 2e-7 for h in steps]
        np.testing.assert_allclose(normal, gradient, atol=1e-6)


# Spheres of links -------------------------------------------------------------------------------


def one_link_urdf(geometry):
    shape = f"<collision><geometry>{geometry}</geometry></collision>"
    return chain({}).urdf.replace('<link name="J1_link">', f'<link name="J1_link">{shape}')


def one_link(geometry):
    return link_spheres(parse_arm(one_link_urdf(geometry)))


def test_spheres_lie_within_the_shape_and_touch_its_sides():
    (ball,) = one_link('<sphere radius="0.2"/>')
    assert ball.radius == 0.2
    rod = one_link('<cylinder radius="0.1" length="0.5"/>')
    np.testing.assert_allclose([s.center for s in rod], [[0, 0, z] for z in (-0.15, 0, 0.15)],
                               atol=1e-12)  # fmt: skip
    assert [s.end for s in rod] == [True, False, True]
    disc = one_link('<cylinder radius="0.1" length="0.04"/>')
    np.testing.assert_allclose([np.hypot(*s.center[:2]) + s.radius for s in disc if s.end], 0.1)
    box = one_link('<box size="0.3 0.2 0.1"/>')
    low, high = (
        f([s.center + sign * s.radius for s in box], axis=0)
        for f, sign in ((np.min, -1), (np.max, 1))
    )
    np.testing.assert_allclose(high, [0.15, 0.1, 0.05])
    np.testing.assert_allclose(low, -high)
    assert sum(s.end for s in box) == 4


def test_a_mesh_is_the_box_of_its_principal_axes(tmp_path):
    """Spheres of a mesh of a rotated box: those of the box, rotated; end to end along each axis."""
    turn = pin.exp3(np.array([0, 0, 0.4]))
    corners = (np.array([*np.ndindex(2, 2, 2)]) - 0.5) * [0.3, 0.2, 0.1] @ turn.T
    mesh = tmp_path / "box.obj"
    faces = "1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4"
    mesh.write_text("".join(
        [*(f"v {x} {y} {z}\n" for x, y, z in corners), *(f"f {face}\n" for face in faces)]
    ))  # fmt: skip
    (tmp_path / "arm.urdf").write_text(one_link_urdf('<mesh filename="box.obj"/>'))
    found = link_spheres(load_arm(tmp_path / "arm.urdf"))
    expected = one_link('<box size="0.3 0.2 0.1"/>')
    for sphere in expected:
        distances = [np.linalg.norm(turn @ sphere.center - one.center) for one in found]
        assert min(distances) < 1e-6
    np.testing.assert_allclose([one.radius for one in found], 0.05, atol=1e-6)
    assert len(found) == len(expected)


def test_a_capsule_has_its_ends():
    coal = pytest.importorskip("coal")
    sides, radius, _, _ = rounded_box(coal.Capsule(0.1, 0.5))
    np.testing.assert_allclose([*sides, radius], [0, 0, 0.5, 0.1])


@pytest.mark.parametrize(("geometry", "radius"), [
    ('<sphere radius="0.2"/>', 0.2),
    ('<cylinder radius="0.1" length="0.4"/>', np.hypot(0.1, 0.1)),
    ('<cylinder radius="0.1" length="0.05"/>', None),
    ('<box size="0.3 0.2 0.1"/>', None),
])  # fmt: skip
def test_covering_spheres_contain_the_shape(geometry, radius):
    """Points of the shape lie within a sphere; a cylinder is cut into discs."""
    arm = parse_arm(one_link_urdf(geometry))
    spheres = covering_spheres(arm)
    assert radius is None or spheres[0].radius == pytest.approx(radius)
    shape = collision_shapes(arm)[0].geometryObjects[0]
    random, x = np.random.default_rng(0), np.zeros((4000, 3))
    if hasattr(shape.geometry, "halfSide"):
        x = np.sign(random.normal(size=x.shape)) * np.ravel(shape.geometry.halfSide)
        x *= np.where(np.arange(3) == random.integers(3, size=4000)[:, None],
                      random.uniform(size=x.shape), 1.0)  # fmt: skip
    else:
        half = getattr(shape.geometry, "halfLength", None)
        x = random.normal(size=x.shape)
        x /= np.linalg.norm(x if half is None else x[:, :2], axis=1)[:, None]
        x *= shape.geometry.radius
        if half is not None:
            x[:, 2] = half * np.sign(x[:, 2])
    _assert_covered(np.array([shape.placement.act(one) for one in x]), spheres)


def test_covering_spheres_contain_meshes_and_merged_shapes():
    """Also between the vertices: their convex combinations lie within a sphere."""
    random = np.random.default_rng(0)
    for points in random.normal(size=(5, 40, 3)) * [0.1, 0.2, 0.4]:
        parts = np.linspace(points[:, 2].min(), points[:, 2].max(), 4)
        spheres = [enclosing_sphere(between(points, 2, *pair)) for pair in pairwise(parts)]
        weights = random.dirichlet(np.full(40, 0.1), 2000)
        found = [LinkSphere("a", 1, *one, True) for one in spheres]
        _assert_covered(np.vstack([points, weights @ points]), found)
    center, radius = enclosing_sphere(np.vstack([np.eye(3), -np.eye(3)]))
    assert radius == pytest.approx(1.0, rel=1e-3)
    assert center == pytest.approx(np.zeros(3), abs=0.05)
    inner = '</geometry></collision><collision><geometry><sphere radius="0.1"/>'
    (ball,) = covering_spheres(parse_arm(one_link_urdf('<sphere radius="0.2"/>' + inner)))
    assert ball.radius == 0.2


def _assert_covered(points, spheres):
    distance = np.array([np.linalg.norm(points - s.center, axis=1) - s.radius for s in spheres])
    assert distance.min(axis=0).max() <= 1e-9


def test_a_sphere_within_another_one_of_its_link_is_omitted():
    inner = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    assert len(one_link(f'<sphere radius="0.2"/></geometry></collision>{inner}<collision><geometry>'
                        '<sphere radius="0.05"/>')) == 1  # fmt: skip


# Contacts of an arm -----------------------------------------------------------------------------


def test_contacts_that_no_motion_changes_or_reaches_are_omitted():
    """The column of five_dof turns on the spot; the ball is out of reach."""
    ground, ball = Shape("ground", ()), Shape("sphere", (0.05,))
    arm = five_dof()
    floor = SphereContacts.of(arm, Scene([SceneObject("floor", ground)]))
    assert {one.sphere.link for one in floor.contacts} == {f"R{k}_link" for k in (2, 3, 4, 5)}
    far = Scene([SceneObject("far", ball, np.array([1.5, 0, 0])),
                 SceneObject("low", ground, np.array([0, 0, -1.2]))])  # fmt: skip
    assert not SphereContacts.of(arm, far).contacts


def test_unsupported_objects_are_rejected_by_name():
    arm = five_dof()
    points = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])
    for one in (SceneObject("can", Shape("cylinder", (0.05, 0.1))),
                SceneObject("can", Shape("mesh", ()), vertices=points)):  # fmt: skip
        with pytest.raises(InvalidValue, match=r"'can': shape = '(cylinder|mesh)'; expected"):
            SphereContacts.of(arm, Scene([one]))
    bouncing = SceneObject("pad", Shape("ground", ()), restitution=0.5)
    with pytest.raises(InvalidValue, match=r"'pad': restitution = 0.5; expected 0"):
        SphereContacts.of(arm, Scene([bouncing]))
    boxes = [SceneObject(f"b{k}", Shape("box", (0.1, 0.1, 0.1)), np.array([0.3, 0, 0.1 * k]))
             for k in range(9)]  # fmt: skip
    with pytest.raises(InvalidValue, match=r"contacts of spheres with objects = .* at most 256"):
        SphereContacts.of(load_arm("puma560"), Scene(boxes))
