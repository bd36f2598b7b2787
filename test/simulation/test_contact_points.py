"""Points of contact: against the distances of coal, and closed forms."""

from itertools import product
from typing import NamedTuple

import coal
import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.simulation.contact.contact_points import ROWS, shape_points
from arm_dynamics.simulation.contact.convex_shapes import BOX, ConvexShape, Solid, shape_table

ZERO, ONE = np.zeros(3), np.eye(3)
SIZE = np.array([0.1, 0.2, 0.3])
SHAPES = {
    "box": ConvexShape("polytope", (), ZERO, ONE, BOX * SIZE),
    "sphere": ConvexShape("sphere", (0.05,), ZERO, ONE),
    "cylinder": ConvexShape("cylinder", (0.05, 0.2), ZERO, ONE),
}
GROUND = ConvexShape("ground", (), ZERO, ONE)
PEERS = {"box": coal.Box(*SIZE), "sphere": coal.Sphere(0.05), "cylinder": coal.Cylinder(0.05, 0.2)}


class Placed(NamedTuple):
    shape: ConvexShape
    position: Vector
    rotation: Matrix


def points(*placed, margin=1e-3):
    shapes = shape_table([Solid("", one.shape, 0, 0.5, 0.0, 0.0) for one in placed])
    positions, rotations = (np.array([one[k] for one in placed]) for k in (1, 2))
    rows = np.empty((ROWS, 7))
    return rows[: shape_points(shapes, 0, 1, positions, rotations, margin, rows)]


@pytest.mark.parametrize(("first", "second"), [*product(SHAPES, SHAPES)])
def test_the_least_gap_is_the_distance(first, second):
    """Exact for spheres and overlapping boxes; a cylinder at another shape is a prism."""
    random = np.random.default_rng(1)
    is_exact = "sphere" in (first, second)
    checked = 0
    for _ in range(150):
        turns = pin.exp3(random.normal(size=3) * 2), pin.exp3(random.normal(size=3) * 2)
        offset = random.normal(size=3)
        offset *= random.uniform(0.08, 0.25) / np.linalg.norm(offset)
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        request.gjk_tolerance = 1e-9
        distance = coal.distance(
            PEERS[first], coal.Transform3s(turns[0], ZERO),
            PEERS[second], coal.Transform3s(turns[1], offset), request, result,
        )  # fmt: skip
        inside = distance < -0.05  # coal and this package differ where a center is inside
        if inside or (not is_exact and distance > 0):
            continue
        rows = points(Placed(SHAPES[first], ZERO, turns[0]),
                      Placed(SHAPES[second], offset, turns[1]), margin=1.0)  # fmt: skip
        checked += 1
        tolerance = 3e-4 if "cylinder" in (first, second) and not is_exact else 1e-8
        np.testing.assert_allclose(rows[:, 6].min(), distance, atol=tolerance)
        np.testing.assert_allclose(np.linalg.norm(rows[:, 3:6], axis=1), 1.0)
    assert checked > 10


@pytest.mark.parametrize("name", SHAPES)
def test_a_ground_touches_the_lowest_points(name):
    random = np.random.default_rng(2)
    for _ in range(20):
        turn = pin.exp3(random.normal(size=3))
        rows = points(
            Placed(GROUND, np.array([1.0, 2, 0]), ONE), Placed(SHAPES[name], ZERO, turn), margin=1.0
        )
        down = turn.T @ [0, 0, -1]
        lowest = {
            "box": np.abs(down) @ SIZE / 2,
            "sphere": 0.05,
            "cylinder": 0.1 * abs(down[2]) + 0.05 * np.hypot(*down[:2]),
        }[name]
        np.testing.assert_allclose(rows[:, 6].min(), -lowest, atol=1e-15)
        np.testing.assert_array_equal(rows[:, 3:6], np.tile([0, 0, 1.0], (len(rows), 1)))


def test_stacked_boxes_touch_in_their_common_rectangle():
    lower = Placed(SHAPES["box"], ZERO, ONE)
    upper = Placed(SHAPES["box"], np.array([0.02, 0.01, 0.3005]), ONE)
    rows = points(lower, upper)
    expected = {(x, y) for x in (-0.03, 0.05) for y in (-0.09, 0.1)}
    assert {tuple(np.round(row[:2], 12)) for row in rows} == expected
    np.testing.assert_allclose(rows[:, 2], 0.15025)
    np.testing.assert_allclose(rows[:, 3:], np.tile([0, 0, 1, 5e-4], (4, 1)), atol=1e-15)
    swapped = points(upper, lower)
    assert sorted(map(tuple, np.round(swapped[:, :3], 12))) == sorted(
        map(tuple, np.round(rows[:, :3], 12))
    )
    np.testing.assert_array_equal(swapped[:, 5], -1.0)


def test_crossed_edges_touch_in_one_point():
    """Two boxes, each on an edge, at a right angle."""
    quarter = pin.exp3(np.array([np.pi / 4, 0, 0])), pin.exp3(np.array([0, np.pi / 4, 0]))
    cube = ConvexShape("polytope", (), ZERO, ONE, BOX * 0.1)
    height = 0.1 * np.sqrt(2) + 1e-4
    rows = points(
        Placed(cube, ZERO, quarter[0]), Placed(cube, np.array([0, 0, height]), quarter[1])
    )
    np.testing.assert_allclose(rows, [[0, 0, height / 2, 0, 0, 1, 1e-4]], atol=1e-9)


def test_a_rod_across_a_box_touches_along_a_line():
    rod = Placed(SHAPES["cylinder"], np.array([0, 0, 0.2]), pin.exp3(np.array([np.pi / 2, 0, 0])))
    rows = points(Placed(SHAPES["box"], ZERO, ONE), rod)
    assert len(rows) >= 2
    np.testing.assert_allclose(np.ptp(rows[:, 1]), 0.2, atol=1e-12)
    np.testing.assert_allclose(rows[:, 6], 0.0, atol=1e-3)


@pytest.mark.parametrize(("center", "normal", "gap"), [
    ([0.04, 0, 0.02], [1, 0, 0], -0.06), ([0.01, 0, -0.09], [0, 0, -1], -0.06),
])  # fmt: skip
def test_a_sphere_within_a_cylinder_leaves_by_the_nearest_surface(center, normal, gap):
    turn = pin.exp3(np.array([0.3, -0.2, 0.5]))
    rows = points(Placed(SHAPES["cylinder"], np.array([0.1, 0.2, 0.3]), turn),
                  Placed(SHAPES["sphere"], turn @ center + [0.1, 0.2, 0.3], ONE))  # fmt: skip
    np.testing.assert_allclose(rows[:, 3:], [[*(turn @ normal), gap]], atol=1e-15)
