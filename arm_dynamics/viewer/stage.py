"""Floor, light and camera, sized by what the arm can reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sin
from typing import Any

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.viewer.skeleton import Skeleton
from arm_dynamics.viewer.sliders import slider_range

FIELD_OF_VIEW = 40 * pi / 180
VIEW = np.array([0.80, -1.0, 0.52])
TOP, BOTTOM = np.array([58, 68, 84]), np.array([20, 24, 31])


@dataclass(frozen=True, slots=True)
class Reach:
    """A sphere around most of the places the arm gets to: centre [m], radius [m]."""

    center: Vector
    radius: float


def reach(skeleton: Skeleton, limits: Sequence[tuple[float, float]]) -> Reach:
    """Return the sphere around the link frames in 300 poses drawn within ``limits``."""
    ranges = [slider_range(low, high) for low, high in limits]
    lower, upper = np.array(ranges).reshape(-1, 2).T
    poses = np.random.default_rng(0).uniform(lower, upper, (300, len(limits)))
    placed = [skeleton.poses(q.tolist()).values() for q in poses]
    points = np.array([[pose.position for pose in links] for links in placed]).reshape(-1, 3)
    low, high = np.percentile(points, 2, axis=0), np.percentile(points, 98, axis=0)
    low[2] = max(low[2], 0.0) if high[2] > 0.2 * np.ptp(points[:, 2]) else low[2]
    radius = float(np.linalg.norm(high - low) / 2)
    return Reach((low + high) / 2, max(radius, 0.1))


def set_stage(server: Any, sphere: Reach) -> None:
    """Add floor, grid and light to ``server``, and place the camera to see ``sphere``."""
    scene, size = server.scene, sphere.radius
    cell = 10.0 ** np.floor(np.log10(size))
    scene.add_grid(
        "/floor", width=20 * cell * np.ceil(size / cell), height=20 * cell * np.ceil(size / cell),
        cell_size=cell / 4, section_size=cell, cell_color=(74, 84, 100),
        section_color=(98, 110, 130), plane_color=(44, 51, 63), plane_opacity=0.55,
        shadow_opacity=0.35, fade_distance=10 * size, fade_strength=1.5, fade_from="origin",
    )  # fmt: skip
    scene.configure_environment_map(hdri=None)
    scene.set_background_image(_gradient(), format="png")
    _light(scene, size)
    _aim(server.initial_camera, sphere)


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


def _aim(camera: Any, sphere: Reach) -> None:
    distance = 0.86 * sphere.radius / sin(FIELD_OF_VIEW / 2)
    camera.look_at = sphere.center
    camera.position = sphere.center + distance * VIEW / np.linalg.norm(VIEW)
    camera.up = (0.0, 0.0, 1.0)
    camera.fov = FIELD_OF_VIEW
    camera.near = distance / 100
    camera.far = distance * 100


def _gradient() -> Any:
    height = np.linspace(0, 1, 128)[:, None, None]
    rows = TOP + (BOTTOM - TOP) * height
    return np.repeat(rows, 16, axis=1).astype(np.uint8)
