"""Visuals of the Puma 560: cylinders and boxes without mass, with sizes of its outline.

Lengths [m]. Shapes are in the link frames of the standard Denavit-Hartenberg table.
"""

from __future__ import annotations

from arm_dynamics.model.solids import Solid, box, cylinder, sphere

BASE = (
    cylinder("z", 0.03, 0.17, 0.0, (0, 0, 0.015)).with_material("graphite"),
    cylinder("z", 0.5, 0.085, 0.0, (0, 0, 0.28)).with_material("white"),
)

# y is up along the trunk, z points from the shoulder toward the upper arm.
_TRUNK = (
    cylinder("y", 0.11, 0.1, 0.0, (0, -0.085, 0)).with_material("white"),
    cylinder("z", 0.32, 0.09, 0.0, (0, 0, 0.025)).with_material("white"),
    cylinder("z", 0.02, 0.092, 0.0, (0, 0, -0.14)).with_material("graphite"),
)

# x lies along the upper arm, from the shoulder at -0.4318 to the elbow at 0, z across it.
_UPPER_ARM = (
    cylinder("z", 0.09, 0.105, 0.0, (-0.4318, 0, 0.235)).with_material("white"),
    box((0.21, 0.19, 0.09), 0.0, (-0.51, 0, 0.235)).with_material("white"),
    box((0.22, 0.175, 0.088), 0.0, (-0.32, 0, 0.235)).with_material("white"),
    box((0.22, 0.14, 0.084), 0.0, (-0.11, 0, 0.235)).with_material("white"),
    cylinder("z", 0.084, 0.075, 0.0, (0, 0, 0.235)).with_material("white"),
    cylinder("z", 0.01, 0.05, 0.0, (-0.4318, 0, 0.282)).with_material("graphite"),
    cylinder("z", 0.01, 0.035, 0.0, (0, 0, 0.28)).with_material("graphite"),
)

# z points along the forearm, from the elbow at x = -0.0203 to the wrist at z = 0.4318.
_FOREARM = (
    cylinder("y", 0.09, 0.07, 0.0, (-0.0203, 0, 0)).with_material("white"),
    box((0.13, 0.088, 0.19), 0.0, (-0.014, 0, 0.03)).with_material("white"),
    box((0.11, 0.086, 0.14), 0.0, (-0.007, 0, 0.18)).with_material("white"),
    box((0.09, 0.084, 0.12), 0.0, (0, 0, 0.3)).with_material("white"),
    cylinder("z", 0.02, 0.04, 0.0, (0, 0, 0.365)).with_material("graphite"),
)

# y points along the forearm, z along the axis of joint 5.
_FORK = (
    cylinder("y", 0.05, 0.036, 0.0, (0, -0.035, 0)).with_material("steel"),
    cylinder("z", 0.075, 0.032, 0.0).with_material("white"),
)

# z points out of the flange.
_WRIST = (cylinder("z", 0.038, 0.026, 0.0, (0, 0, 0.025)).with_material("steel"),)
_FLANGE = (cylinder("z", 0.012, 0.033, 0.0, (0, 0, 0.05)).with_material("graphite"),)

VISUALS: tuple[tuple[Solid, ...], ...] = (_TRUNK, _UPPER_ARM, _FOREARM, _FORK, _WRIST, _FLANGE)
TOOL_SHAPES = (sphere(0.008, 0.0).with_material("red"),)
