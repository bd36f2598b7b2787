"""Points of contact of two convex shapes: spheres, cylinders, polytopes and half spaces.

A contact is a row (point (3,) [m], normal (3,) from the first to the second shape, gap [m]); the
gap is negative where the shapes overlap. All rows with a gap below a margin are returned: a step
admits the approach that closes its gap.

References
----------
C. Ericson, Real-Time Collision Detection (2005), sections 5.1 and 5.2.

"""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import IntArray, Matrix, Vector
from arm_dynamics.core.compiled_math import (
    MATRIX,
    MATRIX_OUT,
    NUMBER,
    VECTOR,
    Kind,
    compiled,
    compiled_for,
)

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

POLYTOPE = (MATRIX, MATRIX, VECTOR, Kind("int64", 2), MATRIX)
"""Vertices, outward normals and offsets of faces, indices of their vertices, edge directions."""
Polytope = tuple[Matrix, Matrix, Vector, IntArray, Matrix]


@compiled_for(POLYTOPE, VECTOR, MATRIX)
def placed_polytope(polytope: Polytope, position: Vector, rotation: Matrix) -> Polytope:
    """Return a polytope at a pose: position (3,) [m] and rotation (3, 3)."""
    vertices, normals, offsets, faces, directions = polytope
    moved, turned = np.zeros((len(vertices), 3)), np.zeros((len(normals), 3))
    shifted, along = offsets.copy(), np.zeros((len(directions), 3))
    for k in range(3):
        for i in range(moved.shape[0]):
            moved[i, k] = position[k]
        for j in range(3):
            for i in range(moved.shape[0]):
                moved[i, k] += rotation[k, j] * vertices[i, j]
            for i in range(turned.shape[0]):
                turned[i, k] += rotation[k, j] * normals[i, j]
            for i in range(along.shape[0]):
                along[i, k] += rotation[k, j] * directions[i, j]
        for i in range(shifted.size):
            shifted[i] += turned[i, k] * position[k]
    return moved, turned, shifted, faces, along


@compiled
def write_row(
    rows: Matrix, count: int, x: float, y: float, z: float, normal: Vector, gap: float
) -> None:
    """Write the contact (x, y, z), on the surface of the first shape, halfway in the gap."""
    rows[count, 0] = x + 0.5 * gap * normal[0]
    rows[count, 1] = y + 0.5 * gap * normal[1]
    rows[count, 2] = z + 0.5 * gap * normal[2]
    for k in range(3):
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


@compiled_for(VECTOR, VECTOR, MATRIX, NUMBER, MATRIX_OUT)
def ground_points(
    origin: Vector, normal: Vector, points: Matrix, margin: float, rows: Matrix
) -> int:
    """Write the contacts of a half space below a plane with ``points`` (n, 3); return the number.

    The origin (3,) [m] lies on the plane; its normal points out of the half space.
    """
    count = 0
    for i in range(points.shape[0]):
        gap = 0.0
        for k in range(3):
            gap += normal[k] * (points[i, k] - origin[k])
        if gap < margin and count < ROWS:
            x, y, z = points[i, 0], points[i, 1], points[i, 2]
            write_row(
                rows, count, x - gap * normal[0], y - gap * normal[1], z - gap * normal[2],
                normal, gap,
            )  # fmt: skip
            count += 1
    return reduced(rows, count)


@compiled_for(VECTOR, NUMBER, VECTOR, NUMBER, VECTOR, MATRIX_OUT)
def round_points(
    first: Vector, radius: float, second: Vector, other: float, fallback: Vector, rows: Matrix
) -> int:
    """Write the contact of two spheres, the first one of radius 0 for a point; return 1.

    ``fallback`` (3,) is the normal where the centers are equal.
    """
    normal, distance = np.empty(3), 0.0
    for k in range(3):
        normal[k] = second[k] - first[k]
        distance += normal[k] * normal[k]
    distance = np.sqrt(distance)
    for k in range(3):
        normal[k] = normal[k] / distance if distance > 0.0 else fallback[k]
    write_row(
        rows, 0, first[0] + radius * normal[0], first[1] + radius * normal[1],
        first[2] + radius * normal[2], normal, distance - radius - other,
    )  # fmt: skip
    return 1


@compiled
def corners_of(faces: IntArray, face: int) -> int:
    """Return the number of vertices of a face."""
    size = int(faces.shape[1])
    while size > 0 and faces[face, size - 1] < 0:
        size -= 1
    return size


@compiled
def nearest_on_face(
    polytope: Polytope, face: int, center: Vector, height: float, point: Vector
) -> float:
    """Write the point of a face nearest to ``center``, ``height`` above it; return the square.

    It is the projection onto the plane, or a point of an edge that the projection is beyond.
    """
    vertices, normals, _, faces, _ = polytope
    n0, n1, n2 = normals[face, 0], normals[face, 1], normals[face, 2]
    x, y, z = center[0] - height * n0, center[1] - height * n1, center[2] - height * n2
    point[0], point[1], point[2] = x, y, z
    least, size, inside = np.inf, corners_of(faces, face), True
    for i in range(size):
        a, b = vertices[faces[face, i]], vertices[faces[face, (i + 1) % size]]
        e0, e1, e2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        side = (
            (e1 * n2 - e2 * n1) * (x - a[0])
            + (e2 * n0 - e0 * n2) * (y - a[1])
            + (e0 * n1 - e1 * n0) * (z - a[2])
        )
        if side <= 0.0:
            continue
        inside = False
        t = e0 * (center[0] - a[0]) + e1 * (center[1] - a[1]) + e2 * (center[2] - a[2])
        t = min(max(t / (e0 * e0 + e1 * e1 + e2 * e2), 0.0), 1.0)
        c0, c1, c2 = a[0] + t * e0, a[1] + t * e1, a[2] + t * e2
        square = (center[0] - c0) ** 2 + (center[1] - c1) ** 2 + (center[2] - c2) ** 2
        if square < least:
            least = square
            point[0], point[1], point[2] = c0, c1, c2
    return height * height if inside else least


@compiled_for(POLYTOPE, VECTOR, NUMBER, NUMBER, MATRIX_OUT)
def sphere_points(
    polytope: Polytope, center: Vector, radius: float, margin: float, rows: Matrix
) -> int:
    """Write the contact of a polytope, the first shape, with a sphere; return the number."""
    _, normals, offsets, _, _ = polytope
    best, nearest, closest = -np.inf, 0, np.empty(3)
    for f in range(offsets.size):
        height = -offsets[f]
        for k in range(3):
            height += normals[f, k] * center[k]
        if height > best:
            best, nearest = height, f
    if best > radius + margin:
        return 0
    if best <= 0.0:
        normal = normals[nearest].copy()
        gap = best - radius
        write_row(
            rows, 0, center[0] - best * normal[0], center[1] - best * normal[1],
            center[2] - best * normal[2], normal, gap,
        )  # fmt: skip
        return 1
    least, point = np.inf, np.empty(3)
    for f in range(offsets.size):
        height = -offsets[f]
        for k in range(3):
            height += normals[f, k] * center[k]
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
def support(vertices: Matrix, axis: Vector, sign: float) -> float:
    """Return the largest value of sign axisᵀ x of the vertices."""
    best = -np.inf
    for i in range(vertices.shape[0]):
        value = sign * (
            axis[0] * vertices[i, 0] + axis[1] * vertices[i, 1] + axis[2] * vertices[i, 2]
        )
        best = max(best, value)
    return best


@compiled
def best_face(polytope: Polytope, others: Matrix) -> tuple[float, int]:
    """Return the largest separation [m] of other vertices from a face, and the face."""
    _, normals, offsets, _, _ = polytope
    best, face = -np.inf, 0
    for f in range(offsets.size):
        separation = -support(others, normals[f], -1.0) - offsets[f]
        if separation > best:
            best, face = separation, f
    return best, face


@compiled
def clip(polygon: Matrix, count: int, origin: Vector, outward: Vector, kept: Matrix) -> int:
    """Write the part of a polygon on the inner side of a plane; return its number of vertices."""
    total = 0
    for j in range(count):
        m, here, there = (j + 1) % count, 0.0, 0.0
        for k in range(3):
            here += outward[k] * (polygon[j, k] - origin[k])
            there += outward[k] * (polygon[m, k] - origin[k])
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


@compiled
def clipped_face(
    polytope: Polytope, face: int, other: Polytope, sign: float, margin: float, rows: Matrix
) -> int:
    """Write the contacts of a polytope's ``face`` with the opposite one of another polytope.

    ``sign`` is 1 where the face belongs to the first shape and -1 for the second.
    """
    vertices, normals, offsets, faces, _ = polytope
    other_vertices, other_normals, _, other_faces, _ = other
    n0, n1, n2 = normals[face, 0], normals[face, 1], normals[face, 2]
    lowest, opposite = np.inf, 0
    for f in range(other_normals.shape[0]):
        value = n0 * other_normals[f, 0] + n1 * other_normals[f, 1] + n2 * other_normals[f, 2]
        if value < lowest:
            lowest, opposite = value, f
    polygon, kept, count = np.empty((ROWS, 3)), np.empty((ROWS, 3)), 0
    for i in range(other_faces.shape[1]):
        index = other_faces[opposite, i]
        if index >= 0:
            for k in range(3):
                polygon[count, k] = other_vertices[index, k]
            count += 1
    size, side = corners_of(faces, face), np.empty(3)
    for i in range(size):
        a, b = vertices[faces[face, i]], vertices[faces[face, (i + 1) % size]]
        e0, e1, e2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        side[0], side[1], side[2] = e1 * n2 - e2 * n1, e2 * n0 - e0 * n2, e0 * n1 - e1 * n0
        count = clip(polygon, count, a, side, kept)
        polygon, kept = kept, polygon
    normal, found = np.empty(3), 0
    for k in range(3):
        normal[k] = sign * normals[face, k]
    for j in range(count):
        gap = n0 * polygon[j, 0] + n1 * polygon[j, 1] + n2 * polygon[j, 2] - offsets[face]
        m, length = (j + 1) % count, 0.0
        for k in range(3):
            length += abs(polygon[m, k] - polygon[j, k])
        if gap < margin and (length > EQUAL or count == 1):
            # On the first shape: of the face, or of the other polytope.
            shift = gap if sign > 0.0 else 0.0
            write_row(
                rows, found, polygon[j, 0] - shift * n0, polygon[j, 1] - shift * n1,
                polygon[j, 2] - shift * n2, normal, gap,
            )  # fmt: skip
            found += 1
    return reduced(rows, found)


@compiled
def support_middle(vertices: Matrix, axis: Vector, sign: float) -> Vector:
    """Return the mean of the vertices with the largest coordinate along the axis."""
    height = support(vertices, axis, sign)
    point, count = np.zeros(3), 0
    for i in range(vertices.shape[0]):
        value = sign * (
            axis[0] * vertices[i, 0] + axis[1] * vertices[i, 1] + axis[2] * vertices[i, 2]
        )
        if value > height - PREFERENCE:
            for k in range(3):
                point[k] += vertices[i, k]
            count += 1
    for k in range(3):
        point[k] /= count
    return point


@compiled_for(POLYTOPE, POLYTOPE, NUMBER, MATRIX_OUT)
def polytope_points(first: Polytope, second: Polytope, margin: float, rows: Matrix) -> int:
    """Write the contacts of two polytopes; return the number.

    The axis of largest separation is a normal of a face or the perpendicular of two edges. Then
    both polytopes have opposite faces, which are clipped with each other.
    """
    separation, face = best_face(first, second[0])
    if separation > margin:
        return 0
    other_separation, other_face = best_face(second, first[0])
    if other_separation > margin:
        return 0
    most = max(separation, other_separation)
    axis, edge_axis = np.empty(3), np.empty(3)
    edge_separation, own, others = -np.inf, 0, 0
    directions, other_directions = first[4], second[4]
    for i in range(directions.shape[0]):
        for j in range(other_directions.shape[0]):
            a, b = directions[i], other_directions[j]
            axis[0], axis[1] = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2]
            axis[2] = a[0] * b[1] - a[1] * b[0]
            size = np.sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2])
            if size < PARALLEL:
                continue
            for k in range(3):
                axis[k] /= size
            forward = -support(second[0], axis, -1.0) - support(first[0], axis, 1.0)
            backward = -support(first[0], axis, -1.0) - support(second[0], axis, 1.0)
            value = max(forward, backward)
            if value > edge_separation:
                edge_separation, own, others = value, i, j
                for k in range(3):
                    edge_axis[k] = axis[k] if forward >= backward else -axis[k]
            if value > margin:
                return 0
    if edge_separation > most + PREFERENCE:
        a, b = directions[own], other_directions[others]
        p = support_middle(first[0], edge_axis, 1.0)
        q = support_middle(second[0], edge_axis, -1.0)
        # Nearest point of the first line to the second one.
        ab, ad, bd = 0.0, 0.0, 0.0
        for k in range(3):
            ab += a[k] * b[k]
            ad += a[k] * (q[k] - p[k])
            bd += b[k] * (q[k] - p[k])
        t = (ad - ab * bd) / (1.0 - ab * ab)
        write_row(
            rows, 0, p[0] + t * a[0], p[1] + t * a[1], p[2] + t * a[2], edge_axis, edge_separation
        )
        return 1
    if other_separation > separation + PREFERENCE:
        return clipped_face(second, other_face, first, -1.0, margin, rows)
    return clipped_face(first, face, second, 1.0, margin, rows)
