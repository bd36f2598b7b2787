"""Stage of the scene: floor, light and camera, scaled to a sphere around the workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import atan, pi, sin, tan
from typing import Any, NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.dynamics.kinematics.link_points import LinkPoints
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.viewer.server import configure_panel
from arm_dynamics.viewer.skeleton import ScenePose, Skeleton
from arm_dynamics.viewer.sliders import slider_range

VIEW = np.array([0.80, -1.0, 0.52]) / np.linalg.norm([0.80, -1.0, 0.52])
"""Direction from the arm to the camera."""
FILLED = 0.86
"""Visible fraction of the sphere's radius: few configurations reach its boundary."""
MIN_RADIUS = 1e-3
"""Smallest radius [m] of the sphere, for an arm without any extent."""
CONFIGURATIONS = 300
"""Number of random configurations of which the sphere is computed."""


@dataclass(frozen=True, slots=True)
class BoundingSphere:
    """Sphere around most of the workspace, and height of the floor below it [m]."""

    center: Vector
    radius: float
    floor: float = 0.0

    def camera_distance(self, half: float) -> float:
        """Return the camera distance [m]; ``half`` is the tangent of half the field of view."""
        return FILLED * self.radius / sin(atan(half))


def reach_sphere(
    placed: Callable[[Vector], Matrix],
    base: Matrix,
    limits: Sequence[tuple[float, float]],
    initial: Vector,
) -> BoundingSphere:
    """Return the sphere around an arm's points in random configurations within ``limits``.

    It contains the ``initial`` configuration, and all but 2 % of the points at each end of each
    axis. The floor is at the lowest point of the fixed links or of the initial configuration.

    Parameters
    ----------
    placed : callable
        Points (n, 3) [m] of the arm in the base frame at a configuration (nv,).
    base : ndarray
        Points (m, 3) [m] of the fixed links.
    limits : sequence of pairs
        Position limits [rad or m]; infinite ones of continuous joints.
    initial : ndarray
        Initial configuration (nv,) [rad or m].

    """
    ranges = [slider_range(low, high) for low, high in limits]
    lower, upper = np.array(ranges).reshape(-1, 2).T
    configurations = np.random.default_rng(0).uniform(lower, upper, (CONFIGURATIONS, len(limits)))
    points, start = np.concatenate([placed(q) for q in configurations]), placed(initial)
    low, high = np.percentile(points, 2, axis=0), np.percentile(points, 98, axis=0)
    floor = min(start[:, 2].min(), base[:, 2].min())
    upright = high[2] - floor > 0.2 * np.ptp(points[:, 2])
    low[2] = max(low[2], floor) if upright else low[2]
    low, high = np.minimum(low, start.min(axis=0)), np.maximum(high, start.max(axis=0))
    radius = max(float(np.linalg.norm(high - low) / 2), MIN_RADIUS)
    return BoundingSphere((low + high) / 2, radius, float(floor))


def arm_reach(arm: ArmModel) -> BoundingSphere:
    """Return the bounding sphere of ``arm`` and its geometry."""
    points, initial = LinkPoints(arm), arm.configuration("initial")
    limits = [(joint.lower, joint.upper) for joint in arm.joints]
    return reach_sphere(points.placed, points.base(initial), limits, initial)


FIELD_OF_VIEW = 40 * pi / 180
"""Vertical field of view [rad] of the page's camera."""
FREE = 0.55
"""Fraction of the height of an upright screen above the panel."""
Color = tuple[int, int, int]


class Theme(NamedTuple):
    """Colors of the scene: gradient of the background, and floor."""

    dark: bool
    top: Color
    bottom: Color
    cell: Color
    section: Color
    plane: Color


THEMES = {
    "dark": Theme(True, (58, 68, 84), (20, 24, 31), (74, 84, 100), (98, 110, 130), (44, 51, 63)),
    "light": Theme(
        False, (236, 240, 245), (205, 212, 221), (176, 184, 196), (146, 156, 170), (222, 227, 233)
    ),
}
ABOVE_FLOOR = 0.02
"""Smallest height of the camera above the floor, as a fraction of the radius."""


def page_reach(
    skeleton: Skeleton, limits: Sequence[tuple[float, float]], initial: Vector, urdf: Any
) -> BoundingSphere:
    """Return the bounding sphere of the visible geometry of a URDF loaded by yourdfpy.

    The points of a link are its origin and the corners of the boxes around its geometry.
    """
    links = (skeleton.base, *(link.name for link in skeleton.links))
    boxes = {name: [np.zeros((1, 3))] for name in links}
    graph = urdf.scene.graph
    for geometry, mesh in urdf.scene.geometry.items():
        box = np.array(list(product(*np.transpose(mesh.bounds))))
        for node in graph.geometry_nodes[geometry]:
            parent = graph.transforms.parents[node]
            matrix = graph.get(node, parent)[0]
            boxes[parent].append(box @ matrix[:3, :3].T + matrix[:3, 3])
    corners = {name: np.concatenate(points) for name, points in boxes.items()}

    def points(q: Vector) -> Matrix:
        poses = skeleton.poses(q.tolist()).items()
        return np.concatenate([_transformed(pose, corners[name]) for name, pose in poses])

    fixed, poses = {skeleton.base}, skeleton.poses(initial.tolist())
    for link in skeleton.links:
        if link.kind == "fixed" and link.parent in fixed:
            fixed.add(link.name)
    base = np.concatenate([_transformed(poses[name], corners[name]) for name in fixed])
    return reach_sphere(points, base, limits, initial)


def _transformed(pose: ScenePose, points: Matrix) -> Matrix:
    """Return position + R points, shape (n, 3)."""
    w, u = pose.wxyz[0], np.array(pose.wxyz[1:])
    turned = np.cross(u, points)
    moved: Matrix = points + 2 * (w * turned + np.cross(u, turned)) + pose.position
    return moved


class Stage:
    """Floor, grid, light and background of the scene; each browser's camera aims at ``sphere``.

    The camera stays above the floor.
    """

    def __init__(self, server: Any, sphere: BoundingSphere) -> None:
        self._server, self._sphere = server, sphere
        scene, size, colors = server.scene, sphere.radius, THEMES["dark"]
        cell = 10.0 ** np.round(np.log10(size / 3))
        side = 20 * cell * np.ceil(size / cell)
        self._grid = scene.add_grid(
            "/floor", width=side, height=side,
            cell_size=cell / 4, section_size=cell, cell_color=colors.cell,
            section_color=colors.section, plane_color=colors.plane, plane_opacity=0.55,
            shadow_opacity=0.35, fade_distance=10 * size, fade_strength=1.5, fade_from="origin",
            position=(0.0, 0.0, sphere.floor),
        )  # fmt: skip
        scene.configure_environment_map(hdri=None)
        scene.configure_default_lights(enabled=False)
        scene.add_light_hemisphere(
            "/light/sky", sky_color=(225, 236, 255), ground_color=(96, 92, 88), intensity=2.1
        )
        scene.add_light_directional(
            "/light/key", intensity=2.2, cast_shadow=True, position=(2 * size, -3 * size, 5 * size)
        )
        scene.add_light_directional(
            "/light/rim", intensity=0.9, color=(190, 215, 255), position=(-4 * size, 3 * size, size)
        )
        self.set_theme("dark")
        server.initial_camera.up = (0.0, 0.0, 1.0)
        _aim(server.initial_camera, sphere, 1.0)
        server.on_client_connect(self._aim_camera)

    def set_theme(self, name: str) -> None:
        """Set the colors of panel and scene to those of a theme, one of THEMES."""
        colors = THEMES[name]
        configure_panel(self._server, dark=colors.dark)
        grid, top, bottom = self._grid, np.array(colors.top), np.array(colors.bottom)
        grid.cell_color, grid.section_color = colors.cell, colors.section
        grid.plane_color = colors.plane
        rows = top + (bottom - top) * np.linspace(0, 1, 128)[:, None, None]
        self._server.scene.set_background_image(
            np.repeat(rows, 16, axis=1).astype(np.uint8), format="png"
        )

    def _aim_camera(self, client: Any) -> None:
        if client.camera.aspect < 1:  # the panel covers the lower part of an upright screen
            _aim(client.camera, self._sphere, client.camera.aspect)
        self._keep_above_floor(client)

    def _keep_above_floor(self, client: Any) -> None:
        """Lift a camera that a user moves below the floor; it still looks at the same point.

        Before the first position above the floor the browser may not have the initial camera yet.
        """
        lowest = self._sphere.floor + ABOVE_FLOOR * self._sphere.radius
        aimed = False

        async def lift(camera: Any) -> None:  # awaited in order, unlike a callback in a thread
            nonlocal aimed
            x, y, z = camera.position.tolist()
            if aimed and z < lowest:
                center = camera.look_at
                with client.atomic():
                    camera.position = (x, y, lowest)
                    camera.look_at = center  # after the position, which also moves it
            aimed = aimed or z > lowest

        client.camera.on_update(lift)


def _aim(camera: Any, sphere: BoundingSphere, aspect: float) -> None:
    """Fit ``sphere`` into a screen of width / height = ``aspect``, above the panel if upright."""
    half = tan(FIELD_OF_VIEW / 2)
    free = FREE if aspect < 1 else 1.0
    distance = sphere.camera_distance(half * min(aspect, free))
    side = np.cross(VIEW, (0.0, 0.0, 1.0))
    up = np.cross(side / np.linalg.norm(side), VIEW)
    center = sphere.center - (1 - free) * distance * half * up
    camera.position = center + distance * VIEW
    camera.look_at = center  # after the position, which also moves it
    camera.fov = FIELD_OF_VIEW
    camera.near = distance / 100
    camera.far = distance * 100
