"""Solids: closed forms compared with sums over slices; composition of inertias."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.model.solids import (
    Inertial,
    box,
    compose,
    cylinder,
    flat_bar,
    point_mass,
    rod,
    sphere,
)

sizes = st.floats(0.01, 2)
masses = st.floats(0.01, 10)
places = st.tuples(*[st.floats(-2, 2)] * 3)
angles = st.tuples(*[st.floats(-3, 3)] * 3)
solids = st.one_of(
    st.builds(cylinder, st.sampled_from("xyz"), sizes, sizes, masses, places),
    st.builds(rod, st.sampled_from("xyz"), sizes, masses, places),
    st.builds(box, st.tuples(sizes, sizes, sizes), masses, places),
    st.builds(sphere, sizes, masses, places),
    st.builds(point_mass, masses, places),
)


def assert_same(left, right, tolerance=1e-12):
    assert left.mass == pytest.approx(right.mass, rel=tolerance)
    np.testing.assert_allclose(left.center, right.center, rtol=0, atol=tolerance * 10)
    scale = 1 + np.abs(right.inertia).max()
    np.testing.assert_allclose(left.inertia, right.inertia, rtol=0, atol=tolerance * scale * 10)


def grid_inertia(inside, half, mass, n=100):
    """Return the inertia of ``mass`` distributed over the cells of a grid that lie ``inside``."""
    axes = [h * (2 * np.arange(n) + 1 - n) / n for h in half]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    points = points[inside(points)]
    square = (points**2).sum()
    return mass / len(points) * (square * np.eye(3) - points.T @ points)


def test_cylinder_closed_form():
    solid = cylinder("z", 0.3, 0.085, 3.0, (1, 2, 3))
    across = 3.0 * (3 * 0.085**2 + 0.3**2) / 12
    np.testing.assert_allclose(np.diag(solid.inertia), [across, across, 3.0 * 0.085**2 / 2])
    np.testing.assert_array_equal(solid.center, [1, 2, 3])


@pytest.mark.parametrize("axis", "xyz")
def test_cylinder_is_the_sum_of_its_cells(axis):
    a = "xyz".index(axis)
    radius, height, mass = 0.3, 0.8, 2.0
    half = np.full(3, radius)
    half[a] = height / 2
    summed = grid_inertia(
        lambda p: np.delete(p, a, axis=1).__pow__(2).sum(1) <= radius**2, half, mass
    )
    np.testing.assert_allclose(cylinder(axis, height, radius, mass).inertia, summed, atol=3e-4)


@pytest.mark.parametrize("axis", "xyz")
def test_cylinder_is_the_sum_of_thin_discs(axis):
    a = "xyz".index(axis)
    n, radius, height, mass = 2000, 0.3, 0.8, 2.0
    along = height * (np.arange(n) + 0.5) / n - height / 2
    disc = np.full(3, radius**2 / 4)
    disc[a] = radius**2 / 2
    offset = np.full(3, (along**2).mean())
    offset[a] = 0
    expected = np.diag(mass * (disc + offset))
    np.testing.assert_allclose(cylinder(axis, height, radius, mass).inertia, expected, atol=1e-7)


def test_sphere_and_box_are_the_sums_of_their_cells():
    summed = grid_inertia(lambda p: (p**2).sum(1) <= 0.25, (0.5, 0.5, 0.5), 2.0)
    np.testing.assert_allclose(sphere(0.5, 2.0).inertia, summed, atol=3e-4)
    summed = grid_inertia(lambda p: np.full(len(p), True), (0.1, 0.2, 0.3), 2.0)
    np.testing.assert_allclose(box((0.2, 0.4, 0.6), 2.0).inertia, summed, atol=2e-5)


@pytest.mark.parametrize("axis", "xyz")
def test_a_rod_is_a_thin_cylinder_and_a_row_of_points(axis):
    thin = rod(axis, 0.7, 1.3)
    np.testing.assert_allclose(thin.inertia, cylinder(axis, 0.7, 1e-9, 1.3).inertia, atol=1e-15)
    direction = np.eye(3)["xyz".index(axis)]
    n = 1000
    points = [point_mass(1.3 / n, direction * 0.7 * (k + 0.5 - n / 2) / n) for k in range(n)]
    np.testing.assert_allclose(compose(points).inertia, thin.inertia, atol=1e-7)


@pytest.mark.parametrize("axis", "xyz")
def test_a_round_rod_has_the_transverse_inertia_of_a_thin_one(axis):
    height = np.sqrt(0.7**2 - 3 * 0.02**2)
    equal = cylinder(axis, height, 0.02, 1.3).inertia
    np.testing.assert_allclose(rod(axis, 0.7, 1.3, radius=0.02).inertia, equal, atol=1e-16)
    with pytest.raises(InvalidValue, match="radius"):
        rod(axis, 0.7, 1.3, radius=0.5)


def test_a_flat_bar_is_a_box_without_height():
    thin = box((0.7, 1e-9, 0.05), 1.3).inertia
    np.testing.assert_allclose(flat_bar(0.7, 0.05, 1.3).inertia, thin, rtol=1e-11)
    xx, yy, zz = np.diag(flat_bar(0.7, 0.05, 1.3).inertia)
    assert zz == 1.3 * 0.7 * 0.7 / 12
    assert 0 < xx + zz - yy < 1e-12


def test_the_visual_shape_lies_along_the_axis():
    for axis, direction in zip("xyz", np.eye(3), strict=True):
        np.testing.assert_array_equal(cylinder(axis, 1, 1, 1).rotation @ [0, 0, 1], direction)
        assert np.linalg.det(cylinder(axis, 1, 1, 1).rotation) == 1


@given(angles, st.sampled_from("xyz"))
def test_the_visual_shape_moves_with_the_inertia(rotation_vector, axis):
    """The axis of minimum inertia of a slender cylinder is the axis of its visual shape."""
    R = Rotation.from_rotvec(rotation_vector).as_matrix()
    solid = cylinder(axis, 1.0, 0.1, 2.0).transformed(R, (0, 0, 0))
    drawn = solid.rotation @ [0, 0, 1]
    np.testing.assert_allclose(solid.inertia @ drawn, 2.0 * 0.1**2 / 2 * drawn, atol=1e-12)


def test_two_halves_compose_to_the_whole():
    halves = [cylinder("y", 0.2, 0.05, 0.5, (1, dy, 2)) for dy in (-0.1, 0.1)]
    assert_same(compose(halves), cylinder("y", 0.4, 0.05, 1.0, (1, 0, 2)))


@given(solids)
def test_a_single_solid_equals_its_composition(solid):
    assert_same(compose([solid]), solid)


@given(st.lists(solids, min_size=1, max_size=5), st.randoms())
def test_order_does_not_matter(parts, random):
    shuffled = random.sample(parts, len(parts))
    assert_same(compose(shuffled), compose(parts))


@given(solids, solids, solids)
def test_composition_is_associative(a, b, c):
    whole = compose([a, b, c])
    assert_same(compose([compose([a, b]), c]), whole)
    assert_same(compose([a, compose([b, c])]), whole)


@given(st.lists(solids, min_size=1, max_size=4), angles, places)
def test_moving_all_parts_moves_the_composition(parts, rotation_vector, translation):
    R = Rotation.from_rotvec(rotation_vector).as_matrix()
    moved = compose([part.transformed(R, translation) for part in parts])
    whole = compose(parts)
    expected = Inertial(whole.mass, R @ whole.center + translation, R @ whole.inertia @ R.T)
    assert_same(moved, expected)


@given(st.lists(solids, min_size=1, max_size=4), angles)
def test_kinetic_energy_is_that_of_the_parts(parts, omega):
    """Rotating about the origin: |w x c|² m + w·I w, summed over parts or of the composition."""

    def energy(body):
        v = np.cross(omega, body.center)
        return (body.mass * v @ v + omega @ body.inertia @ omega) / 2

    omega = np.array(omega)
    expected = sum(energy(part) for part in parts)
    assert energy(compose(parts)) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@given(st.lists(solids, min_size=1, max_size=4))
def test_principal_moments_obey_the_triangle_inequality(parts):
    low, middle, high = np.linalg.eigvalsh(compose(parts).inertia)
    assert low >= -1e-12 * (1 + high)
    assert high <= (low + middle) + 1e-12 * (1 + high)


def test_a_massless_solid_changes_nothing():
    weighed = [box((1, 2, 3), 4.0), sphere(0.1, 1.0, (1, 0, 0))]
    assert_same(compose([*weighed, cylinder("z", 1, 1, 0.0, (9, 9, 9))]), compose(weighed))


def test_solids_are_read_only():
    solid = sphere(1.0, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        solid.inertia[0, 0] = 5
    with pytest.raises(AttributeError):
        solid.mass = 2.0
    assert solid.with_material("red").material == "red"
    assert solid.material == ""


def test_a_point_has_a_visual_shape_only_on_request():
    assert point_mass(1.0).shape is None
    assert point_mass(1.0, drawn=0.02).shape.size == (0.02,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cylinder("z", -0.3, 0.1, 1.0), "height = -0.3"),
        (lambda: cylinder("z", 0.3, 0.0, 1.0), "radius = 0.0"),
        (lambda: sphere(0.1, -1.0), "mass = -1.0"),
        (lambda: sphere(0.1, float("nan")), "mass = nan"),
        (lambda: box((1, 0, 1), 1.0), "size = 0.0"),
        (lambda: point_mass(1.0, (0, float("inf"), 0)), r"center\[1\] = inf"),
        (lambda: compose([]), "total mass of 0 solids = 0.0 kg"),
        (lambda: compose([sphere(1.0, 0.0)]), "expected above 0"),
    ],
)
def test_rejections_name_the_cause(make, message):
    with pytest.raises(InvalidValue, match=message):
        make()


def test_an_unknown_axis_lists_the_supported_ones():
    with pytest.raises(UnknownName, match="unknown axis 'w'; known: x, y, z"):
        cylinder("w", 1, 1, 1)
