"""Configuration of RViz for one arm: camera, grid and axes in proportion to its workspace."""

from __future__ import annotations

from collections.abc import Mapping
from math import asin, atan2, ceil, floor, log10, pi, tan
from typing import Any

import numpy as np
import yaml

from arm_dynamics.core import resources
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.kinematics.frames import joint_origins
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.visuals import visuals
from arm_dynamics.viewer.scene_stage import VIEW, BoundingSphere, arm_reach

TEMPLATE = "arm.rviz"
FIELD_OF_VIEW = 45 * pi / 180
"""Vertical field of view [rad] of RViz's camera."""
TF_AXES = 0.2
"""Length [m] of the axes of the TF display at a marker scale of 1."""
AXES = 0.35
"""Length of a frame's axes, as a fraction of the mean distance between joints."""
CELLS = 6
"""Approximate number of grid cells in the radius of the workspace."""
LIGHT, DARK = (214, 219, 226), (48, 52, 58)
"""Background colors."""
BRIGHT = 0.62
"""Mean brightness of an arm, 0 to 1, above which the background is dark."""


def check_rviz_prefix(frame_prefix: str) -> None:
    """Raise InvalidValue for a prefix without "/" at its end: RViz inserts it before the link."""
    if frame_prefix and not frame_prefix.endswith("/"):
        raise InvalidValue(
            f"frame_prefix = '{frame_prefix}'; expected a prefix that ends in '/', such as"
            f" '{frame_prefix.rstrip('_')}/', as RViz requires"
        )


def rviz_config(arm: ArmModel, frame_prefix: str = "") -> str:
    """Return RViz's configuration (YAML) for ``arm``, from config/arm.rviz.

    Camera direction and bounding sphere are those of the browser page.

    Parameters
    ----------
    arm : ArmModel
        Arm to show.
    frame_prefix : str
        Prefix of the frames on /tf, as of robot_state_publisher; empty or ending in "/".

    Returns
    -------
    str
        Text of a file for ``rviz2 -d``.

    Raises
    ------
    InvalidValue
        If the prefix does not end in "/": RViz inserts "/" between prefix and link.

    """
    check_rviz_prefix(frame_prefix)
    text = (resources.resource_folder("config") / TEMPLATE).read_text(encoding="utf-8")
    config: dict[str, Any] = yaml.safe_load(text)
    manager, sphere = config["Visualization Manager"], arm_reach(arm)
    fixed = manager["Global Options"]
    fixed["Fixed Frame"] = frame_prefix + arm.base_frame
    fixed["Background Color"] = "; ".join(map(str, _background(arm)))
    distance = sphere.camera_distance(tan(FIELD_OF_VIEW / 2))
    x, y, z = VIEW.tolist()
    manager["Views"]["Current"] |= {
        "Distance": distance,
        "Focal Point": dict(zip("XYZ", map(float, sphere.center), strict=True)),
        "Focal Shape Size": sphere.radius / 20,
        "Near Clip Distance": distance / 100,
        "Pitch": asin(z),
        "Yaw": atan2(y, x) % (2 * pi),
    }
    axes = axes_length(arm)
    for display in manager["Displays"]:
        kind = display["Class"].rpartition("/")[2]
        display.update(_sizes(kind, sphere, axes))
        if "TF Prefix" in display:
            display["TF Prefix"] = frame_prefix.rstrip("/")
    return yaml.safe_dump(config, sort_keys=False)


def axes_length(arm: ArmModel) -> float:
    """Return the length [m] of a frame's axes in proportion to the links of ``arm``."""
    return AXES * link_length(arm)


def link_length(arm: ArmModel) -> float:
    """Return the mean distance [m] of consecutive joints and the tool, coincident ones excluded."""
    points = joint_origins(arm, arm.configuration("initial"))
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    lengths = steps[steps > 0.02 * steps.sum()]
    return float(lengths.mean()) if lengths.size else arm_reach(arm).radius


def _sizes(kind: str, sphere: BoundingSphere, axes: float) -> Mapping[str, Any]:
    """Return the properties of a display that depend on the size of the arm [m]."""
    size = sphere.radius
    arrows = {"Head Length": size / 20, "Head Radius": size / 30}
    if kind == "Grid":
        length = size / CELLS  # rounded down to 1, 2 or 5 times a power of ten
        power = 10.0 ** floor(log10(length))
        cell = max(step * power for step in (1, 2, 5) if step * power <= length * (1 + 1e-9))
        count = 2 * ceil(2 * size / cell)
        offset = {"X": 0.0, "Y": 0.0, "Z": sphere.floor}
        return {"Cell Size": cell, "Plane Cell Count": count, "Offset": offset}
    if kind == "TF":
        return {"Marker Scale": axes / TF_AXES}
    if kind == "Pose":
        shaft = {"Shaft Length": size / 10, "Shaft Radius": size / 100}
        return {"Axes Length": 1.5 * axes, "Axes Radius": axes / 15, **arrows, **shaft}
    if kind == "Effort":
        return {"Scale": size / 5, "Width": size / 150}
    if kind == "Wrench":
        return {"Arrow Width": size / 5}
    return {}


def _background(arm: ArmModel) -> tuple[int, int, int]:
    """Return the background color with contrast to the arm; LIGHT for an arm without colors."""
    weighted = [
        (visual.color, float(np.linalg.norm(np.ptp(visual.corners(), axis=0))))
        for visual in visuals(arm)
        if visual.color is not None and visual.kind != "mesh"
    ]
    total = sum(size for _, size in weighted)
    bright = sum(sum(color[:3]) / 3 * size for color, size in weighted if color)
    return DARK if total and bright / total > BRIGHT else LIGHT
