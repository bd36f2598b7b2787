"""Rendered images: projection of known shapes, nearer shapes in front, motion, cameras."""

import numpy as np
import pytest
from conftest import chain_urdf

from arm_dynamics import load_arm
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.load import parse_arm
from arm_dynamics.viewer import ArmRenderer

SPHERE = """<visual><origin xyz="{at}"/><geometry><sphere radius="{radius}"/></geometry>
<material name="m{radius}"><color rgba="{color} 1"/></material></visual>"""
RED, GREEN = (0, 1)
EYE = {"position": (0.0, -0.8, 2.0), "look_at": (0.0, 0.0, 2.0)}
"""A horizontal view along y, high above the floor."""


def with_spheres(*spheres):
    """Return an arm with spheres in its base: (x y z), radius [m] and color."""
    shapes = "".join(SPHERE.format(at=at, radius=r, color=c) for at, r, c in spheres)
    text = chain_urdf({}).replace('<link name="base"/>', f'<link name="base">{shapes}</link>')
    return parse_arm(text)


def mask(image, channel):
    """Return where a color dominates."""
    others = np.delete(image.astype(int), channel, axis=2).max(axis=2)
    return image[..., channel] > others + 40


def test_a_sphere_has_the_size_and_place_of_its_projection():
    """Pinhole camera: u = w/2 + f x / z; radius f tan(asin(r / z))."""
    arm = with_spheres(("0.1 0 2.06", 0.08, "1 0 0"))
    image = ArmRenderer(arm, 400, 300, **EYE, field_of_view=np.radians(60)).image([0.0])
    rows, columns = np.nonzero(mask(image, RED))
    f = 150 / np.tan(np.radians(30))
    assert columns.mean() + 0.5 == pytest.approx(200 + f * 0.1 / 0.8, abs=1.5)
    assert rows.mean() + 0.5 == pytest.approx(150 - f * 0.06 / 0.8, abs=1.5)
    radius = f * np.tan(np.arcsin(0.08 / 0.8))
    assert np.sqrt(rows.size / np.pi) == pytest.approx(radius, rel=0.04)


@pytest.mark.parametrize("order", [1, -1])
def test_the_nearer_shape_is_in_front(order):
    spheres = [("0 -0.2 2", 0.04, "1 0 0"), ("0 0.2 2", 0.06, "0 1 0")][::order]
    image = ArmRenderer(with_spheres(*spheres), 200, 150, **EYE).image([0.0])
    assert mask(image, RED)[75, 100]
    assert not mask(image, GREEN)[75, 100]


def test_shapes_behind_the_camera_are_not_drawn():
    arm = with_spheres(("0 -1.6 2", 0.1, "1 0 0"), ("0 -0.8 2", 0.1, "0 1 0"))
    image = ArmRenderer(arm, 100, 80, **EYE).image([0.0])
    assert not mask(image, RED).any()


@pytest.mark.parametrize("name", ["so101", "five_dof"])
def test_the_default_view_contains_the_arm(name):
    arm = load_arm(name)
    renderer = ArmRenderer(arm, 160, 120)
    background = renderer._background.astype(int)
    drawn = (np.abs(renderer.image(arm.configuration("initial")) - background) > 8).any(axis=2)
    assert 0.01 < drawn.mean() < 0.6
    edge = np.concatenate([drawn[0], drawn[-1], drawn[:, 0], drawn[:, -1]])
    assert not edge.any()


def test_a_moved_joint_changes_the_image_and_the_same_configuration_does_not():
    arm = load_arm("so101")
    renderer, q = ArmRenderer(arm, 160, 120), np.array(arm.configuration("initial"))
    first = renderer.image(q)
    moved = q.copy()
    moved[1] += 0.5
    assert (renderer.image(moved) != first).any()
    np.testing.assert_array_equal(renderer.image(q), first)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"width": 0}, "width"),
        ({"height": 1e9}, "height"),
        ({"field_of_view": 4.0}, "field of view"),
        ({"position": (0, 0, 1), "look_at": (0, 0, 1)}, "expected another point"),
        ({"position": (0, np.nan, 1)}, "position"),
    ],
)
def test_invalid_cameras_are_rejected(options, text):
    with pytest.raises(InvalidValue, match=text):
        ArmRenderer(load_arm("so101"), **options)
