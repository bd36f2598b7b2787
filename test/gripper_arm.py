"""A hand on a slide with a fixed finger and a turning jaw, and a ball between them."""

from math import asin, atan2, hypot

import numpy as np

from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.solids import Shape

PIVOT, FACE, DEPTH, RADIUS = 0.03, -0.03, 0.07, 0.02
"""Positions [m] of the jaw's pivot, of the finger's face and of the ball, its radius."""
BODY = """<link name="{name}"><inertial><mass value="{mass}"/><inertia ixx="1e-4" iyy="1e-4"
izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial>{shape}</link>"""
FINGER = """<collision><origin xyz="{x} -0.045 0"/>
<geometry><box size="0.01 0.07 0.03"/></geometry></collision>"""
HAND = f"""<robot name="hand"><link name="base"/>
{BODY.format(name="palm", mass=0.3, shape=FINGER.format(x=FACE - 0.005))}
{BODY.format(name="jaw_link", mass=0.05, shape=FINGER.format(x=0.005))}
<joint name="slide" type="prismatic"><parent link="base"/><child link="palm"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="50" velocity="1"/></joint>
<joint name="jaw" type="revolute"><origin xyz="{PIVOT} 0 0"/><parent link="palm"/>
<child link="jaw_link"/><axis xyz="0 0 -1"/>
<limit lower="-0.5" upper="0.6" effort="3" velocity="4"/></joint></robot>"""
SECOND_JAW = f"""{BODY.format(name="second", mass=0.05, shape=FINGER.format(x=-0.005))}
<joint name="right" type="revolute"><origin xyz="{PIVOT + 0.05} 0 0"/><parent link="palm"/>
<child link="second"/><axis xyz="0 0 1"/>
<limit lower="-0.5" upper="0.6" effort="3" velocity="4"/></joint></robot>"""
"""Another jaw right of the first one, whose negative positions are towards it."""
LEVER = (hypot(PIVOT - FACE - RADIUS, DEPTH) ** 2 - RADIUS**2) ** 0.5
"""Distance [m] along the jaw from its pivot to the ball: its face is a line through the pivot."""
TOUCH = atan2(PIVOT - FACE - RADIUS, DEPTH) - asin(RADIUS / hypot(PIVOT - FACE - RADIUS, DEPTH))
"""Position [rad] of the jaw that touches the ball."""


def hand(weightless=True):
    arm = parse_arm(HAND)
    return arm.with_gravity((0, 0, 0)) if weightless else arm


def ball(mass=0.05, gap=1e-4):
    """Return a free ball that touches the finger, except for a gap [m]."""
    center = np.array([FACE + RADIUS + gap, -DEPTH, 0.0])
    return Scene([SceneObject("ball", Shape("sphere", (RADIUS,)), center, mass=mass)])
