"""What a camera has to hold: a sphere around most of the places that an arm gets to.

Floor, light and camera, sized by what the arm can reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import atan, pi, sin, tan
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.dynamics.kinematics import link_poses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.visuals import visuals
from arm_dynamics.viewer.skeleton import ScenePose, Skeleton
from arm_dynamics.viewer.sliders import slider_range

VIEW = np.array([0.80, -1.0, 0.52]) / np.linalg.norm([0.80, -1.0, 0.52])
"""Direction from the arm to the camera."""
FILLED = 0.86
"""Radius of the sphere in view, as a fraction of that of the reach: few poses come to its edge."""
MIN_RADIUS = 1e-3
"""Least radius [m] of the reach: of an arm without any extent."""
POSES = 300


@dataclass(frozen=True, slots=True)
class BoundingSphere:
    """A sphere around most of the places the arm gets to, and the floor below it [m]."""

    center: Vector
    radius: float
    floor: float = 0.0

    def camera_distance(self, half: float) -> float:
        """Distance [m] of a camera with the tangent ``half`` of half its angle of view."""
        return FILLED * self.radius / sin(atan(half))


def reach_sphere(
    placed: Callable[[Vector], Vector],
    base: Vector,
    limits: Sequence[tuple[float, float]],
    initial: Vector,
) -> BoundingSphere:
    """Return the sphere around an arm's points in configurations drawn within ``limits``.

    It contains the ``initial`` configuration, and all but 2 % of the points at each end of each
    axis. The floor is at the lowest point of what does not move, or of the initial configuration
    if that is lower.

    Parameters
    ----------
    placed : callable
        Points (n, 3) [m] of the arm in the base frame at a configuration (nv,).
    base : ndarray
        Points (m, 3) [m] of what does not move.
    limits : sequence of pairs
        Position limits [rad or m]; infinite ones of continuous joints.
    initial : ndarray
        Configuration (nv,) [rad or m] at the start.

    """
    ranges = [slider_range(low, high) for low, high in limits]
    lower, upper = np.array(ranges).reshape(-1, 2).T
    configurations = np.random.default_rng(0).uniform(lower, upper, (POSES, len(limits)))
    points, start = np.concatenate([placed(q) for q in configurations]), placed(initial)
    low, high = np.percentile(points, 2, axis=0), np.percentile(points, 98, axis=0)
    floor = min(start[:, 2].min(), base[:, 2].min())
    upright = high[2] - floor > 0.2 * np.ptp(points[:, 2])
    low[2] = max(low[2], floor) if upright else low[2]
    low, high = np.minimum(low, start.min(axis=0)), np.maximum(high, start.max(axis=0))
    radius = max(float(np.linalg.norm(high - low) / 2), MIN_RADIUS)
    return BoundingSphere((low + high) / 2, radius, float(floor))


class ArmPoints:
    """Points of an arm, fixed in its links: their origins and the corners of what is drawn."""

    def __init__(self, arm: ArmModel) -> None:
        self._arm, folder = arm, arm.source.parent if arm.source else None
        corners = {frame.name: [np.zeros((1, 3))] for frame in arm.model.frames}
        for visual in visuals(arm):
            corners[visual.link].append(visual.corners(folder))
        self._local = {link: np.concatenate(boxes) for link, boxes in corners.items()}
        self._fixed = {frame.name for frame in arm.model.frames if frame.parentJoint == 0}

    def placed(self, q: Vector) -> Vector:
        """Return all points (n, 3) [m] in the base frame at ``q`` (nv,)."""
        return np.concatenate(list(self._links(q).values()))

    def base(self, q: Vector) -> Vector:
        """Return the points (m, 3) [m] of the links that no joint moves."""
        return np.concatenate([x for link, x in self._links(q).items() if link in self._fixed])

    def _links(self, q: Vector) -> dict[str, Vector]:
        poses = link_poses(self._arm, q).items()
        return {link: self._local[link] @ turned.T + at for link, (at, turned) in poses}


def arm_reach(arm: ArmModel) -> BoundingSphere:
    """Return the reach of ``arm``."""
    points, initial = ArmPoints(arm), arm.configuration("initial")
    limits = [(joint.lower, joint.upper) for joint in arm.joints]
    return reach_sphere(points.placed, points.base(initial), limits, initial)


FIELD_OF_VIEW = 40 * pi / 180
FREE = 0.4
"""Fraction of an upright screen's height that the panel leaves free, at the top."""
TOP, BOTTOM = np.array([58, 68, 84]), np.array([20, 24, 31])

Corners = Mapping[str, Vector]


def page_reach(
    skeleton: Skeleton, limits: Sequence[tuple[float, float]], initial: Vector, urdf: Any
) -> BoundingSphere:
    """Return the reach of the visible geometry of a URDF that yourdfpy has loaded."""
    corners = _corners(skeleton, urdf)
    poses = partial(_placed, skeleton, corners)
    return reach_sphere(poses, _base(skeleton, corners, initial), limits, initial)


def _corners(skeleton: Skeleton, urdf: Any) -> Corners:
    """Corners (n, 3) [m] of the boxes around each link's geometry, and its frame's origin."""
    links = (skeleton.base, *(link.name for link in skeleton.links))
    found = {name: [np.zeros((1, 3))] for name in links}
    graph = urdf.scene.graph
    for name, mesh in urdf.scene.geometry.items():
        box = np.array(list(product(*np.transpose(mesh.bounds))))
        for node in graph.geometry_nodes[name]:
            link = graph.transforms.parents[node]
            matrix = graph.get(node, link)[0]
            found[link].append(box @ matrix[:3, :3].T + matrix[:3, 3])
    return {name: np.concatenate(boxes) for name, boxes in found.items()}


def _placed(skeleton: Skeleton, corners: Corners, q: Vector) -> Vector:
    """All corners (n, 3) [m] in the base frame at ``q``."""
    poses = skeleton.poses(q.tolist()).items()
    return np.concatenate([_applied(pose, corners[name]) for name, pose in poses])


def _base(skeleton: Skeleton, corners: Corners, q: Vector) -> Vector:
    """Corners (n, 3) [m] of the base and of what is fixed to it."""
    fixed, poses = {skeleton.base}, skeleton.poses(q.tolist())
    for link in skeleton.links:
        if link.kind == "fixed" and link.parent in fixed:
            fixed.add(link.name)
    return np.concatenate([_applied(poses[name], corners[name]) for name in fixed])


def _applied(pose: ScenePose, points: Vector) -> Vector:
    """position + R points, (n, 3) each."""
    w, u = pose.wxyz[0], np.array(pose.wxyz[1:])
    turned = np.cross(u, points)
    moved: Vector = points + 2 * (w * turned + np.cross(u, turned)) + pose.position
    return moved


def set_stage(server: Any, sphere: BoundingSphere) -> None:
    """Add floor, grid and light to ``server``, and aim every page's camera at ``sphere``."""
    scene, size = server.scene, sphere.radius
    cell = 10.0 ** np.round(np.log10(size / 3))
    scene.add_grid(
        "/floor", width=20 * cell * np.ceil(size / cell), height=20 * cell * np.ceil(size / cell),
        cell_size=cell / 4, section_size=cell, cell_color=(74, 84, 100),
        section_color=(98, 110, 130), plane_color=(44, 51, 63), plane_opacity=0.55,
        shadow_opacity=0.35, fade_distance=10 * size, fade_strength=1.5, fade_from="origin",
        position=(0.0, 0.0, sphere.floor),
    )  # fmt: skip
    scene.configure_environment_map(hdri=None)
    scene.set_background_image(_gradient(), format="png")
    _light(scene, size)
    server.initial_camera.up = (0.0, 0.0, 1.0)
    _aim(server.initial_camera, sphere, 1.0)
    server.on_client_connect(lambda client: _aim_upright(client.camera, sphere))


def _light(scene: Any, size: float) -> None:
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


def _aim_upright(camera: Any, sphere: BoundingSphere) -> None:
    """Aim at ``sphere`` on a screen that is higher than wide, where the panel is below."""
    if camera.aspect < 1:
        _aim(camera, sphere, camera.aspect)


def _aim(camera: Any, sphere: BoundingSphere, aspect: float) -> None:
    """Have ``sphere`` fill a screen of width / height = ``aspect``, or its free part."""
    half = tan(FIELD_OF_VIEW / 2)
    free = FREE if aspect < 1 else 1.0
    distance = sphere.camera_distance(half * min(aspect, free))
    side = np.cross(VIEW, (0.0, 0.0, 1.0))
    up = np.cross(side / np.linalg.norm(side), VIEW)
    center = sphere.center - (1 - free) * distance * half * up
    camera.position = center + distance * VIEW
    camera.look_at = center  # after the position, which takes it along
    camera.fov = FIELD_OF_VIEW
    camera.near = distance / 100
    camera.far = distance * 100


def _gradient() -> Any:
    height = np.linspace(0, 1, 128)[:, None, None]
    rows = TOP + (BOTTOM - TOP) * height
    return np.repeat(rows, 16, axis=1).astype(np.uint8)
