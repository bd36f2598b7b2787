"""Points of contact of two convex shapes: spheres, cylinders, polytopes and half spaces.

A contact is a row (point (3,) [m], normal (3,) from the first to the second shape, gap [m]); the
gap is negative where the shapes overlap. All rows with a gap below a margin are returned: a step
admits the approach that closes its gap.

References
----------
C. Ericson, Real-Time Collision Detection (2005), sections 5.1 and 5.2.

"""

from __future__ import annotations

from typing import Any

import numpy as np

from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector
from arm_dynamics.core.compiled_math import (
    COUNT,
    NUMBER,
    Kind,
    compiled,
    compiled_for,
    compiled_without_inlining,
)
from arm_dynamics.core.small_matrices import cross, dot

ROWS = 128
"""Largest number of rows of two shapes before their reduction."""
MANIFOLD = 8
"""Largest number of points of two shapes: more do not change the forces between rigid bodies."""
PREFERENCE = 1e-6
"""Distance [m] by which a pair of edges separates more than a face where it replaces the face."""
EQUAL = 1e-6
"""Distance [m] of two vertices of a clipped face below which they are one."""
PARALLEL = 1e-6
"""Sine of the angle between edges below which they have no common perpendicular."""

GROUND, POLYTOPE, CYLINDER, SPHERE = range(4)
"""Kinds of shapes; of two shapes the one with the smaller number is the first below."""
SOLID = np.dtype([
    ("kind", "i8"), ("size", "f8", 2), ("radius", "f8"), ("position", "f8", 3),
    ("rotation", "f8", (3, 3)), ("frame", "i8"), ("friction", "f8"), ("restitution", "f8"),
    ("compliance", "f8"),
], align=True)  # fmt: skip
"""A convex shape of a body. size: (radius, length) [m] of a sphere or cylinder; a ground is the
half space z <= 0, a cylinder lies along z. radius [m]: of the sphere about its origin that contains
it. position, rotation: its pose in the frame number ``frame``."""
LIST, TABLE = Kind("float64", 1, layout="C"), Kind("float64", 2, layout="C")
INDEX_TABLE = Kind("int64", 2, layout="C")
CUBES = Kind("float64", 3, written=True, layout="C")
SHAPES = (Kind(SOLID, 1, layout="C"), (TABLE, TABLE, LIST, INDEX_TABLE, TABLE, INDEX_TABLE))
Polytope = tuple[Matrix, Matrix, Vector, IntArray, Matrix]
"""Vertices, outward normals and offsets of faces, indices of their vertices, edge directions."""
Shapes = tuple[Any, tuple[Matrix, Matrix, Vector, IntArray, Matrix, IntArray]]
"""Solids, and their polytopes in one; the last array (n + 1, 3) has the index of the first vertex,
face and edge direction of each."""


@compiled
def rotated(rotation: Matrix, points: Matrix) -> Matrix:
    """Return R p of points (n, 3)."""
    after = np.empty(points.shape)
    for i in range(points.shape[0]):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        for k in range(3):
            after[i, k] = rotation[k, 0] * x + rotation[k, 1] * y + rotation[k, 2] * z
    return after


@compiled
def placed_polytope(shapes: Shapes, n: int, position: Vector, rotation: Matrix) -> Polytope:
    """Return the polytope of shape n at a pose: position (3,) [m] and rotation (3, 3)."""
    vertices, normals, offsets, faces, directions, starts = shapes[1]
    v, f, e = starts[n, 0], starts[n, 1], starts[n, 2]
    v_end, f_end, e_end = starts[n + 1, 0], starts[n + 1, 1], starts[n + 1, 2]
    moved, turned = rotated(rotation, vertices[v:v_end]), rotated(rotation, normals[f:f_end])
    shifted = offsets[f:f_end].copy()
    for k in range(3):
        for i in range(moved.shape[0]):
            moved[i, k] += position[k]
        for i in range(shifted.size):
            shifted[i] += turned[i, k] * position[k]
    return moved, turned, shifted, faces[f:f_end], rotated(rotation, directions[e:e_end])


@compiled
def write_row(
    rows: Matrix, count: int, point: Vector, height: float, normal: Vector, gap: float
) -> None:
    """Write the contact halfway in the gap above a surface, ``height`` above ``point``."""
    for k in range(3):
        rows[count, k] = point[k] + (height + 0.5 * gap) * normal[k]
        rows[count, 3 + k] = normal[k]
    rows[count, 6] = gap


@compiled
def reduced(rows: Matrix, count: int) -> int:
    """Keep the deepest row and those that span the largest area; return their number."""
    if count <= MANIFOLD:
        return count
    for k in range(MANIFOLD):
        best, chosen = -1.0, k
        for i in range(k, count):
            if k == 0:
                value = 1e3 - rows[i, 6]
            else:
                value = np.inf
                for j in range(k):
                    distance = 0.0
                    for a in range(3):
                        distance += (rows[i, a] - rows[j, a]) ** 2
                    value = min(value, distance)
            if value > best:
                best, chosen = value, i
        for a in range(7):
            rows[k, a], rows[chosen, a] = rows[chosen, a], rows[k, a]
    return MANIFOLD


@compiled
def ground_points(
    origin: Vector, normal: Vector, points: Matrix, radius: float, margin: float, rows: Matrix
) -> int:
    """Write the contacts of a half space with spheres about ``points``; return the number.

    The origin (3,) [m] lies on the plane; its normal points out of the half space.
    """
    count, offset = 0, dot(normal, origin)
    for i in range(points.shape[0]):
        height = dot(normal, points[i]) - offset
        if height - radius < margin and count < ROWS:
            write_row(rows, count, points[i], -height, normal, height - radius)
            count += 1
    return reduced(rows, count)


@compiled
def rim_points(solid: Any, position: Vector, rotation: Matrix, normal: Vector) -> Matrix:
    """Return points (8, 3) on the rims of a cylinder, of which one is the lowest along a normal."""
    x, y, local = 0.0, 0.0, np.empty((8, 3))
    for k in range(3):
        x, y = x - normal[k] * rotation[k, 0], y - normal[k] * rotation[k, 1]
    size = np.sqrt(x * x + y * y)
    x, y = (x / size, y / size) if size > PARALLEL else (1.0, 0.0)
    radius, half = solid["size"][0], 0.5 * solid["size"][1]
    for i in range(8):
        local[i, 0], local[i, 1], local[i, 2] = radius * x, radius * y, half if i < 4 else -half
        x, y = -y, x
    points = rotated(rotation, local)
    for i in range(8):
        for k in range(3):
            points[i, k] += position[k]
    return points


@compiled
def round_points(
    first: Vector, radius: float, second: Vector, other: float, fallback: Vector, rows: Matrix
) -> int:
    """Write the contact of two spheres, the first one of radius 0 for a point; return 1.

    ``fallback`` (3,) is the normal where the centers are equal.
    """
    normal = np.empty(3)
    for k in range(3):
        normal[k] = second[k] - first[k]
    distance = np.sqrt(dot(normal, normal))
    for k in range(3):
        normal[k] = normal[k] / distance if distance > 0.0 else fallback[k]
    write_row(rows, 0, first, radius, normal, distance - radius - other)
    return 1


@compiled_without_inlining
def cylinder_and_sphere(
    cylinder: Any, position: Vector, rotation: Matrix, center: Vector, radius: float, rows: Matrix
) -> int:
    """Write the contact of a cylinder with a sphere; return 1."""
    x, y, z, local = 0.0, 0.0, 0.0, np.zeros((2, 3))
    for k in range(3):
        offset = center[k] - position[k]
        x, y = x + rotation[k, 0] * offset, y + rotation[k, 1] * offset
        z += rotation[k, 2] * offset
    size, half, across = cylinder["size"][0], 0.5 * cylinder["size"][1], np.sqrt(x * x + y * y)
    x, y = (x / across, y / across) if across > 0.0 else (1.0, 0.0)
    to_side, to_end, out = size - across, half - abs(z), 1.0 if z > 0.0 else -1.0
    is_inside, is_side = min(to_side, to_end) > 0.0, to_side < to_end
    # The nearest point of the surface, and the normal where the center is inside.
    reach = size if is_inside and is_side else min(across, size)
    local[0, 0], local[0, 1], local[0, 2] = reach * x, reach * y, min(max(z, -half), half)
    if is_side:
        local[1, 0], local[1, 1] = x, y
    else:
        local[1, 2] = out
        if is_inside:
            local[0, 2] = out * half
    turned = rotated(rotation, local)
    point, normal = turned[0], turned[1]
    for k in range(3):
        point[k] += position[k]
    if not is_inside:
        return int(round_points(point, 0.0, center, radius, normal, rows))
    write_row(rows, 0, point, 0.0, normal, -min(to_side, to_end) - radius)
    return 1


@compiled
def corners_of(faces: IntArray, face: int) -> int:
    """Return the number of vertices of a face."""
    size = int(faces.shape[1])
    while size > 0 and faces[face, size - 1] < 0:
        size -= 1
    return size


@compiled
def edge_of(polytope: Polytope, face: int, i: int, edge: Vector) -> Vector:
    """Write the vector (3,) along edge i of a face; return its first vertex."""
    vertices, _, _, faces, _ = polytope
    start, end = faces[face, i], faces[face, (i + 1) % corners_of(faces, face)]
    for k in range(3):
        edge[k] = vertices[end, k] - vertices[start, k]
    first: Vector = vertices[start]
    return first


@compiled
def nearest_on_face(
    polytope: Polytope, face: int, center: Vector, height: float, point: Vector
) -> float:
    """Write the point of a face nearest to ``center``, ``height`` above it; return the square.

    It is the projection onto the plane, or a point of an edge that the projection is beyond.
    """
    normal, least, inside = polytope[1][face], np.inf, True
    edge, side, offset = np.empty(3), np.empty(3), np.empty(3)
    for k in range(3):
        point[k] = center[k] - height * normal[k]
    for i in range(corners_of(polytope[3], face)):
        start = edge_of(polytope, face, i, edge)
        cross(edge, normal, side)
        for k in range(3):
            offset[k] = center[k] - start[k]
        if dot(side, offset) <= 0.0:
            continue
        inside = False
        t = min(max(dot(edge, offset) / dot(edge, edge), 0.0), 1.0)
        for k in range(3):
            offset[k] -= t * edge[k]
        if dot(offset, offset) < least:
            least = dot(offset, offset)
            for k in range(3):
                point[k] = center[k] - offset[k]
    return height * height if inside else least


@compiled_without_inlining
def sphere_points(
    polytope: Polytope, center: Vector, radius: float, margin: float, rows: Matrix
) -> int:
    """Write the contact of a polytope, the first shape, with a sphere; return the number."""
    _, normals, offsets, _, _ = polytope
    best, nearest, closest = -np.inf, 0, np.empty(3)
    for f in range(offsets.size):
        height = dot(normals[f], center) - offsets[f]
        if height > best:
            best, nearest = height, f
    if best > radius + margin:
        return 0
    if best <= 0.0:
        write_row(rows, 0, center, -best, normals[nearest], best - radius)
        return 1
    least, point = np.inf, np.empty(3)
    for f in range(offsets.size):
        height = dot(normals[f], center) - offsets[f]
        if height > 0.0:
            distance = nearest_on_face(polytope, f, center, height, point)
            if distance < least:
                least = distance
                for k in range(3):
                    closest[k] = point[k]
    distance = np.sqrt(least)
    if distance > radius + margin:
        return 0
    return int(round_points(closest, 0.0, center, radius, normals[nearest], rows))


@compiled
def extent(vertices: Matrix, axis: Vector) -> tuple[float, float]:
    """Return the smallest and the largest value of axisᵀ x of the vertices."""
    low, high = np.inf, -np.inf
    for i in range(vertices.shape[0]):
        value = dot(axis, vertices[i])
        low, high = min(low, value), max(high, value)
    return low, high


@compiled
def best_face(polytope: Polytope, others: Matrix) -> tuple[float, int]:
    """Return the largest separation [m] of other vertices from a face, and the face."""
    _, normals, offsets, _, _ = polytope
    best, face = -np.inf, 0
    for f in range(offsets.size):
        separation = extent(others, normals[f])[0] - offsets[f]
        if separation > best:
            best, face = separation, f
    return best, face


@compiled
def clip(polygon: Matrix, count: int, origin: Vector, outward: Vector, kept: Matrix) -> int:
    """Write the part of a polygon on the inner side of a plane; return its number of vertices."""
    total, offset = 0, dot(outward, origin)
    for j in range(count):
        m = (j + 1) % count
        here, there = dot(outward, polygon[j]) - offset, dot(outward, polygon[m]) - offset
        if here <= 0.0 and total < ROWS:
            for k in range(3):
                kept[total, k] = polygon[j, k]
            total += 1
        if (here < 0.0 < there or there < 0.0 < here) and total < ROWS:
            t = here / (here - there)
            for k in range(3):
                kept[total, k] = polygon[j, k] + t * (polygon[m, k] - polygon[j, k])
            total += 1
    return total


@compiled_without_inlining
def clipped_face(
    polytope: Polytope, face: int, other: Polytope, sign: float, margin: float, rows: Matrix
) -> int:
    """Write the contacts of a polytope's ``face`` with the opposite one of another polytope.

    ``sign`` is 1 where the face belongs to the first shape and -1 for the second.
    """
    _, normals, offsets, _, _ = polytope
    other_vertices, other_normals, _, other_faces, _ = other
    lowest, opposite = np.inf, 0
    for f in range(other_normals.shape[0]):
        value = dot(normals[face], other_normals[f])
        if value < lowest:
            lowest, opposite = value, f
    polygon, kept, count = np.empty((ROWS, 3)), np.empty((ROWS, 3)), 0
    for i in range(other_faces.shape[1]):
        index = other_faces[opposite, i]
        if index >= 0:
            for k in range(3):
                polygon[count, k] = other_vertices[index, k]
            count += 1
    edge, side = np.empty(3), np.empty(3)
    for i in range(corners_of(polytope[3], face)):
        start = edge_of(polytope, face, i, edge)
        cross(edge, normals[face], side)
        count = clip(polygon, count, start, side, kept)
        polygon, kept = kept, polygon
    normal, found = np.empty(3), 0
    for k in range(3):
        normal[k] = sign * normals[face, k]
    for j in range(count):
        gap = dot(normals[face], polygon[j]) - offsets[face]
        m, length = (j + 1) % count, 0.0
        for k in range(3):
            length += abs(polygon[m, k] - polygon[j, k])
        if gap < margin and (length > EQUAL or count == 1):
            # On the first shape: of the face, or of the other polytope.
            write_row(rows, found, polygon[j], -gap if sign > 0.0 else 0.0, normal, gap)
            found += 1
    return reduced(rows, found)


@compiled
def highest_middle(vertices: Matrix, axis: Vector, sign: float) -> Vector:
    """Return the mean of the vertices with the largest value of sign axisᵀ x."""
    low, high = extent(vertices, axis)
    point, count, height = np.zeros(3), 0, high if sign > 0.0 else -low
    for i in range(vertices.shape[0]):
        if sign * dot(axis, vertices[i]) > height - PREFERENCE:
            for k in range(3):
                point[k] += vertices[i, k]
            count += 1
    for k in range(3):
        point[k] /= count
    return point


@compiled
def best_edges(
    first: Polytope, second: Polytope, margin: float, best_axis: Vector
) -> tuple[float, int, int]:
    """Return the largest separation [m] along a perpendicular of two edges, and the edges.

    Write the perpendicular (3,). The first one with a separation above the margin is returned.
    """
    best, own, others, axis = -np.inf, 0, 0, np.empty(3)
    for i in range(first[4].shape[0]):
        for j in range(second[4].shape[0]):
            cross(first[4][i], second[4][j], axis)
            size = np.sqrt(dot(axis, axis))
            if size < PARALLEL:
                continue
            for k in range(3):
                axis[k] /= size
            low, high = extent(first[0], axis)
            other_low, other_high = extent(second[0], axis)
            forward, backward = other_low - high, low - other_high
            if max(forward, backward) > best:
                best, own, others = max(forward, backward), i, j
                for k in range(3):
                    best_axis[k] = axis[k] if forward >= backward else -axis[k]
            if best > margin:
                return best, own, others
    return best, own, others


@compiled_without_inlining
def polytope_points(first: Polytope, second: Polytope, margin: float, rows: Matrix) -> int:
    """Write the contacts of two polytopes; return the number.

    The axis of largest separation is a normal of a face or the perpendicular of two edges. Then
    both polytopes have opposite faces, which are clipped with each other.
    """
    separation, face = best_face(first, second[0])
    other_separation, other_face = best_face(second, first[0])
    if max(separation, other_separation) > margin:
        return 0
    axis = np.empty(3)
    edge_separation, own, others = best_edges(first, second, margin, axis)
    if edge_separation > margin:
        return 0
    if edge_separation > max(separation, other_separation) + PREFERENCE:
        a, b = first[4][own], second[4][others]
        p, q = highest_middle(first[0], axis, 1.0), highest_middle(second[0], axis, -1.0)
        # Nearest point of the first line to the second one.
        for k in range(3):
            q[k] -= p[k]
        ab = dot(a, b)
        t = (dot(a, q) - ab * dot(b, q)) / (1.0 - ab * ab)
        for k in range(3):
            p[k] += t * a[k]
        write_row(rows, 0, p, 0.0, axis, edge_separation)
        return 1
    if other_separation > separation + PREFERENCE:
        return clipped_face(second, other_face, first, -1.0, margin, rows)
    return clipped_face(first, face, second, 1.0, margin, rows)


@compiled_for(
    SHAPES, COUNT, COUNT, TABLE._replace(written=True), CUBES, NUMBER,
    TABLE._replace(written=True), inline=False,
)  # fmt: skip
def shape_points(
    shapes: Shapes,
    first: int,
    second: int,
    positions: Matrix,
    rotations: FloatArray,
    margin: float,
    rows: Matrix,
) -> int:
    """Write the contacts of two shapes; return the number.

    Parameters
    ----------
    shapes : tuple
        Solids and their polytopes.
    first, second : int
        Indices of the shapes.
    positions, rotations : (n, 3), (n, 3, 3) array
        Poses [m] of all shapes in base axes.
    margin : float
        Gap [m] below which a contact is written.
    rows : (ROWS, 7) array
        Point, normal from the first to the second shape, and gap of each contact.

    """
    solids, is_swapped = shapes[0], shapes[0][first]["kind"] > shapes[0][second]["kind"]
    i, j = (second, first) if is_swapped else (first, second)
    kind, other, radius = solids[i]["kind"], solids[j]["kind"], solids[j]["size"][0]
    p, q, R, S = positions[i], positions[j], rotations[i], rotations[j]
    if kind == GROUND:
        normal = R[:, 2].copy()
        if other == SPHERE:
            count = ground_points(p, normal, positions[j : j + 1], radius, margin, rows)
        elif other == CYLINDER:
            rim = rim_points(solids[j], q, S, normal)
            count = ground_points(p, normal, rim, 0.0, margin, rows)
        else:
            points = placed_polytope(shapes, j, q, S)[0]
            count = ground_points(p, normal, points, 0.0, margin, rows)
    elif kind == SPHERE:
        count = round_points(p, solids[i]["size"][0], q, radius, np.array([0.0, 0.0, 1.0]), rows)
    elif other == SPHERE and kind == CYLINDER:
        count = cylinder_and_sphere(solids[i], p, R, q, radius, rows)
    elif other == SPHERE:
        count = sphere_points(placed_polytope(shapes, i, p, R), q, radius, margin, rows)
    else:
        polytope = placed_polytope(shapes, i, p, R)
        count = polytope_points(polytope, placed_polytope(shapes, j, q, S), margin, rows)
    kept = 0
    for n in range(count):
        if rows[n, 6] < margin:
            for k in range(7):
                rows[kept, k] = -rows[n, k] if is_swapped and 3 <= k < 6 else rows[n, k]
            kept += 1
    return kept
