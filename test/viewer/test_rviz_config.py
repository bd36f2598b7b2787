"""RViz configuration of every arm: displays, and an arm that fills the view."""

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

from arm_dynamics import load_arm
from arm_dynamics.core import resources
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.kinematics.link_points import LinkPoints
from arm_dynamics.viewer.rviz import FIELD_OF_VIEW, TF_AXES, link_length, rviz_config

ROOT = Path(__file__).parents[2]
ARMS = resources.resource_names("urdf", ".urdf")
WINDOW, MENUS = (1400, 900), 90
"""Window size, and height of menus, tools and status line [pixels]."""


@cache
def manager(name, prefix=""):
    return yaml.safe_load(rviz_config(load_arm(name), prefix))["Visualization Manager"]


def display(name, kind):
    return next(d for d in manager(name)["Displays"] if d["Class"].endswith(f"/{kind}"))


def projected(name, points):
    """Return points (n, 3) [m] in view coordinates, from -1 to 1 to the right and upward."""
    view = manager(name)["Views"]["Current"]
    assert view["Class"] == "rviz_default_plugins/Orbit"
    pitch, yaw = view["Pitch"], view["Yaw"]
    away = np.array(
        [math.cos(yaw) * math.cos(pitch), math.sin(yaw) * math.cos(pitch), math.sin(pitch)]
    )
    focus = np.array([view["Focal Point"][axis] for axis in "XYZ"])
    right = np.cross(-away, (0, 0, 1))
    right /= np.linalg.norm(right)
    seen = np.array(points) - (focus + view["Distance"] * away)
    depth = -seen @ away
    assert depth.min() > view["Near Clip Distance"]
    half = math.tan(FIELD_OF_VIEW / 2)
    aspect = 0.7 * WINDOW[0] / (WINDOW[1] - MENUS)
    return (
        np.transpose([seen @ right / aspect, seen @ np.cross(right, -away)]) / depth[:, None] / half
    )


@pytest.mark.parametrize("name", ARMS)
def test_the_arm_fills_the_view(name):
    arm = load_arm(name)
    points, initial = LinkPoints(arm), arm.configuration("initial")
    home = projected(name, points.placed(initial))
    assert np.abs(home).max() < 0.95
    assert 0.3 < np.ptp(home, axis=0).max() / 2 < 0.9
    lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    poses = np.random.default_rng(1).uniform(lower, upper, (100, arm.nv))
    every = projected(name, np.concatenate([points.placed(q) for q in poses]))
    assert (np.abs(every).max(axis=1) > 1).mean() < 0.03


@pytest.mark.parametrize("name", ARMS)
def test_grid_and_axes_scale_with_the_arm(name):
    arm = load_arm(name)
    lowest = LinkPoints(arm).placed(arm.configuration("initial"))[:, 2].min()
    grid = display(name, "Grid")
    view = manager(name)["Views"]["Current"]
    assert grid["Offset"]["Z"] <= lowest + 1e-9
    assert 3 < view["Distance"] / grid["Cell Size"] < 40
    assert grid["Cell Size"] * grid["Plane Cell Count"] > 1.5 * view["Distance"]
    axes = display(name, "TF")["Marker Scale"] * TF_AXES
    assert 0.2 < axes / link_length(arm) < 0.5
    assert axes < view["Distance"] / 8


def test_the_background_contrasts_with_the_arm():
    grounds = {name: manager(name)["Global Options"]["Background Color"] for name in ARMS}
    bright = {n: sum(map(int, text.split("; "))) > 3 * 128 for n, text in grounds.items()}
    assert bright["so101"]
    assert bright["five_dof"]
    assert not bright["puma560"]


def test_frames_have_the_prefix_and_topics_do_not():
    shown = manager("two_link", "left/")
    assert shown["Global Options"]["Fixed Frame"] == "left/base_link"
    prefixes = [d["TF Prefix"] for d in shown["Displays"] if "TF Prefix" in d]
    assert prefixes == ["left", "left"]  # RViz adds the slash
    topics = [d.get("Topic", d.get("Description Topic")) for d in shown["Displays"]]
    names = [topic["Value"] for topic in topics if topic]
    assert len(names) >= 9
    assert not any(name.startswith("/") for name in names)
    assert not any(name.endswith(("target_pose", "target_wrench")) for name in names)
    with pytest.raises(InvalidValue, match="such as 'left/'"):
        rviz_config(load_arm("two_link"), "left_")


def test_the_template_shows_the_arm_its_reference_and_interactive_markers():
    config = yaml.safe_load((ROOT / "config/arm.rviz").read_text())
    displays = config["Visualization Manager"]["Displays"]
    kinds = [d["Class"].removeprefix("rviz_default_plugins/") for d in displays]
    assert kinds == [
        "Grid", "RobotModel", "TF", "Path", "MarkerArray", "Pose", "Pose", "MarkerArray",
        "MarkerArray", "MarkerArray", "Path",
        "InteractiveMarkers", "Effort", "Wrench",
    ]  # fmt: skip
    assert all(d["Enabled"] and d["Value"] for d in displays)
    assert len({d["Name"] for d in displays}) == len(displays)


def test_the_view_has_most_of_the_window():
    """Displays at the left, nothing else: numbers of QMainWindow's saved state."""
    window = yaml.safe_load((ROOT / "config/arm.rviz").read_text())["Window Geometry"]
    assert (window["Width"], window["Height"]) == WINDOW
    assert window["Hide Right Dock"] is True
    state = bytes.fromhex(window["QMainWindow State"])
    after = {}
    for name in ("Displays", "Views", "Time"):
        text = name.encode("utf-16-be")
        key = len(text).to_bytes(4, "big") + text
        assert state.count(key) == 1
        after[name] = state[state.index(key) + len(key)]
    assert after == {"Displays": 1, "Views": 0, "Time": 0}  # visible, closed
    start = state.index(b"\x00\x00\x00\x00", 12)  # area of the left docks, then its width
    dock = int.from_bytes(state[start + 4 : start + 8], "big")
    assert 200 < dock < 0.25 * WINDOW[0]
