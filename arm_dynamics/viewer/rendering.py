"""Offscreen images of an arm, computed without a window, a browser or a graphics card.

Each triangle of the visible geometry is projected and drawn with a depth buffer:

    u = w/2 + f x / z,   v = h/2 + f y / z,   f = h / (2 tan(θ/2))

with the camera's axes x to the right, y down, z forward, and the vertical field of view θ. The
inverse depth 1/z is linear in the image.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil, cos, floor, pi, sin, tan
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.compiled_math import MATRIX, MATRIX_OUT, compiled_for
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.kinematics.frames import link_poses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.visuals import Visual, load_mesh, visuals
from arm_dynamics.viewer.scene_stage import FIELD_OF_VIEW, THEMES, VIEW, arm_reach

Image = NDArray[np.uint8]
"""Image (height, width, 3), red, green, blue."""

MAX_SIZE = 4096
"""Maximum width and height [pixels]."""
SIDES, RINGS = 24, 12
"""Faces around a cylinder or sphere, and rings of a sphere."""
NEAR = 1e-3
"""Depth [m] below which a triangle is not drawn."""
GRAY = (0.7, 0.7, 0.7)
"""Color of a shape whose color is not known."""
LIGHTS = (((0.35, -0.5, 0.8), 0.65), ((-0.6, 0.5, 0.2), 0.2))
"""Directions to the lights in the base frame, and their intensity."""
AMBIENT = 0.35
FLOOR = np.array([[62.0, 71.0, 86.0], [74.0, 84.0, 100.0]])
"""Colors of the squares of the floor."""


@compiled_for(MATRIX, MATRIX_OUT, MATRIX_OUT, on_demand=True)
def draw_triangles(corners: Matrix, inverse_depth: Matrix, drawn: Matrix) -> None:
    """Draw triangles (n, 9), three corners (u, v, 1/z) each, in place.

    A pixel of ``inverse_depth`` (h, w) [1/m] and of ``drawn`` (h, w), the number of its triangle,
    changes where a triangle is nearer.
    """
    height, width = inverse_depth.shape
    for k in range(corners.shape[0]):
        u0, v0, w0 = corners[k, 0], corners[k, 1], corners[k, 2]
        u1, v1, w1 = corners[k, 3], corners[k, 4], corners[k, 5]
        u2, v2, w2 = corners[k, 6], corners[k, 7], corners[k, 8]
        area = (u1 - u0) * (v2 - v0) - (u2 - u0) * (v1 - v0)
        if area == 0.0:
            continue
        first = max(0, floor(min(v0, v1, v2)))
        last = min(height - 1, ceil(max(v0, v1, v2)))
        left = max(0, floor(min(u0, u1, u2)))
        right = min(width - 1, ceil(max(u0, u1, u2)))
        for i in range(first, last + 1):
            v = i + 0.5
            for j in range(left, right + 1):
                u = j + 0.5
                a = ((u1 - u) * (v2 - v) - (u2 - u) * (v1 - v)) / area
                b = ((u2 - u) * (v0 - v) - (u0 - u) * (v2 - v)) / area
                c = 1.0 - a - b
                if a >= 0.0 and b >= 0.0 and c >= 0.0:
                    w = a * w0 + b * w1 + c * w2
                    if w > inverse_depth[i, j]:
                        inverse_depth[i, j] = w
                        drawn[i, j] = k


class ArmRenderer:
    """Images of an arm from a fixed camera, with the view of the page by default.

    Shapes that cannot be read are omitted. Triangles with a corner behind the camera are not drawn.

    Parameters
    ----------
    arm : ArmModel
        Arm with its visible geometry.
    width, height : int
        Size of the images [pixels].
    position, look_at : (3,) arrays, optional
        Position of the camera, and the point in the middle of the image [m], in the base frame;
        default: the workspace fills the image.
    field_of_view : float
        Vertical field of view [rad].

    Raises
    ------
    InvalidValue
        For a size or field of view out of range, and a camera that looks at its own position.

    """

    def __init__(
        self,
        arm: ArmModel,
        width: int = 640,
        height: int = 480,
        *,
        position: ArrayLike | None = None,
        look_at: ArrayLike | None = None,
        field_of_view: float = FIELD_OF_VIEW,
    ) -> None:
        for name, size in (("width", width), ("height", height)):
            check_float(f"{name} [pixels]", size, lower=1, upper=MAX_SIZE)
        angle = check_float("field of view [rad]", field_of_view, above=0, upper=0.95 * pi)
        self.arm, self.width, self.height = arm, int(width), int(height)
        half, sphere = tan(angle / 2), arm_reach(arm)
        target = sphere.center if look_at is None else check_vector("look_at", look_at, 3)
        distance = sphere.camera_distance(half * min(1.0, width / height))
        default = target + distance * VIEW
        self._position = default if position is None else check_vector("position", position, 3)
        self._axes = _camera_axes(target - self._position)
        self._focal_length = height / (2 * half)
        self._links = _link_meshes(arm)
        self._background, self._floor_depth = self._draw_floor(sphere.floor, sphere.radius)

    def image(self, q: ArrayLike) -> Image:
        """Return the image of the arm at the configuration q (nv,) [rad or m]."""
        position = check_vector("q", q, self.arm.nv)
        poses = link_poses(self.arm, position)
        corners, colors = [], []
        for link, (triangles, normals, shades) in self._links.items():
            at, rotation = poses[link]
            corners.append((triangles @ rotation.T + (at - self._position)) @ self._axes.T)
            light = AMBIENT + sum(
                strength * np.maximum(normals @ (rotation.T @ _unit(direction)), 0.0)
                for direction, strength in LIGHTS
            )
            colors.append(255 * np.minimum(shades * light[:, None], 1.0))
        depth, drawn = self._floor_depth.copy(), np.full((self.height, self.width), -1.0)
        image: Image = self._background.copy()
        if corners:
            points, color = np.concatenate(corners), np.concatenate(colors)
            seen = (points[..., 2] > NEAR).all(axis=1)
            draw_triangles(self._projected(points[seen]), depth, drawn)
            index = drawn.astype(np.intp)
            image[index >= 0] = color[seen][index[index >= 0]]
        return image

    def _projected(self, points: Matrix) -> Matrix:
        """Return corners (n, 3, 3) [m] in the camera's axes as (n, 9) of (u, v, 1/z)."""
        inverse = 1 / points[..., 2]
        u = self.width / 2 + self._focal_length * points[..., 0] * inverse
        v = self.height / 2 + self._focal_length * points[..., 1] * inverse
        flat: Matrix = np.stack([u, v, inverse], axis=-1).reshape(-1, 9)
        return flat

    def _draw_floor(self, level: float, radius: float) -> tuple[Image, Matrix]:
        """Return the background (h, w, 3) with a floor at ``level`` [m], and its inverse depth."""
        top, bottom = np.array(THEMES["dark"].top), np.array(THEMES["dark"].bottom)
        rows = top + (bottom - top) * np.linspace(0, 1, self.height)[:, None, None]
        image = np.repeat(rows, self.width, axis=1)
        u = (np.arange(self.width) + 0.5 - self.width / 2) / self._focal_length
        v = (np.arange(self.height) + 0.5 - self.height / 2) / self._focal_length
        rays = np.stack(np.broadcast_arrays(u[None, :], v[:, None], 1.0), axis=-1) @ self._axes
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = rays[..., 2] / (level - self._position[2])
            seen = (inverse > 1 / (20 * radius)) & np.isfinite(inverse)
            x, y = (self._position[i] + rays[..., i] / inverse for i in (0, 1))
            cell = 10.0 ** np.round(np.log10(radius / 3))
            square = np.where(seen, np.mod(np.floor(x / cell) + np.floor(y / cell), 2), 0)
        fade = np.clip(np.hypot(x, y) / (6 * radius), 0, 1)[..., None]
        floor = FLOOR[square.astype(int)]
        blended = floor + (image - floor) * np.where(np.isfinite(fade), fade, 1.0)
        image = np.where(seen[..., None], blended, image)
        return image.astype(np.uint8), np.where(seen, inverse, 0.0)


def _camera_axes(direction: Vector) -> Matrix:
    """Return the rows right, down and forward (3, 3) of a camera that looks in a direction."""
    if not np.linalg.norm(direction) > 0:
        raise InvalidValue("camera: look_at = position; expected another point")
    forward = _unit(direction)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    if np.linalg.norm(right) < 1e-6:  # straight up or down
        right = np.array((0.0, -1.0, 0.0))
    right = _unit(right)
    return np.array([right, np.cross(forward, right), forward])


def _unit(direction: ArrayLike) -> Vector:
    """Return a direction (3,) of length 1."""
    vector = np.asarray(direction, dtype=float)
    unit: Vector = vector / np.linalg.norm(vector)
    return unit


def _link_meshes(arm: ArmModel) -> dict[str, tuple[Matrix, Matrix, Matrix]]:
    """Return triangles (n, 3, 3) [m], normals (n, 3) and colors (n, 3) of each link."""
    folder = arm.source.parent if arm.source else None
    parts: dict[str, list[tuple[Matrix, Matrix]]] = {}
    for visual in visuals(arm):
        triangles = _triangles(visual, folder)
        if triangles.size:
            placed = triangles * visual.scale @ visual.rotation.T + visual.position
            color = GRAY if visual.color is None else visual.color[:3]
            shades = np.broadcast_to(color, (len(placed), 3))
            parts.setdefault(visual.link, []).append((placed, shades))
    meshes = {}
    for link, shapes in parts.items():
        triangles, shades = (np.concatenate(x) for x in zip(*shapes, strict=True))
        sides = np.diff(triangles, axis=1)
        normals = np.cross(sides[:, 0], sides[:, 1])
        size = np.linalg.norm(normals, axis=1)
        good = size > 0
        unit = normals[good] / size[good, None]
        meshes[link] = tuple(as_readonly(x) for x in (triangles[good], unit, shades[good]))
    return meshes  # type: ignore[return-value]


def _triangles(visual: Visual, folder: Path | None) -> Matrix:
    """Return the triangles (n, 3, 3) of the unit shape, counterclockwise from outside."""
    if visual.kind == "mesh":
        mesh = load_mesh(visual.uri, folder)
        if mesh is None:
            return np.zeros((0, 3, 3))
        vertices = np.array(mesh.vertices())
        faces = (mesh.tri_indices(i) for i in range(mesh.num_tris))
        indices = np.array([(face[0], face[1], face[2]) for face in faces], dtype=int)
        triangles: Matrix = vertices[indices.reshape(-1, 3)]
        return triangles
    if visual.kind == "box":
        return np.array(list(_box()))
    profile = [(0.5, -0.5), (0.5, 0.5)]
    if visual.kind == "sphere":
        angles = [pi * (k / RINGS - 0.5) for k in range(RINGS + 1)]
        profile = [(cos(a) / 2, sin(a) / 2) for a in angles]
    return np.array(list(_revolved(profile)))


def _box() -> Iterator[list[list[float]]]:
    """Yield the triangles of the unit box."""
    for axis in range(3):
        for side in (-0.5, 0.5):
            square = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]
            corners = [list(np.roll((side, *point), axis)) for point in square]
            ordered = corners if side > 0 else corners[::-1]
            yield [ordered[0], ordered[1], ordered[2]]
            yield [ordered[0], ordered[2], ordered[3]]


def _revolved(profile: list[tuple[float, float]]) -> Iterator[list[list[float]]]:
    """Yield the triangles of a profile of (radius, z), from below, turned about z, and its ends."""
    closed = [(0.0, profile[0][1]), *profile, (0.0, profile[-1][1])]
    for k in range(SIDES):
        directions = [2 * pi * j / SIDES for j in (k, k + 1)]
        (c0, s0), (c1, s1) = ((cos(a), sin(a)) for a in directions)
        for (r, z), (outer, above) in pairwise(closed):
            low, next_low = [r * c0, r * s0, z], [r * c1, r * s1, z]
            high, next_high = [outer * c0, outer * s0, above], [outer * c1, outer * s1, above]
            yield [low, next_low, next_high]
            yield [low, next_high, high]
