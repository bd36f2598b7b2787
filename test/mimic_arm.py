"""An arm of two joints with a hand: one driven joint and three mimic joints."""

from conftest import chain_urdf

LINK = """<link name="{name}_link"><inertial><origin xyz="{center}"/><mass value="{mass}"/>
<inertia ixx="2e-3" iyy="3e-3" izz="4e-3" ixy="1e-4" ixz="0" iyz="0"/></inertial><collision>
<geometry><box size="0.02 0.03 0.04"/></geometry></collision></link>"""
JOINT = """<joint name="{name}" type="{kind}"><parent link="{parent}_link"/>
<child link="{name}_link"/><origin xyz="0.1 0.05 0" rpy="0.2 -0.4 0.3"/><axis xyz="{axis}"/>
<limit lower="-2" upper="2" effort="9" velocity="3"/><dynamics damping="{damping}"
friction="{friction}"/>{mimic}</joint>"""
FOLLOWS = '<mimic joint="{}" multiplier="{}" offset="{}"/>'
# Name, kind, parent, axis, <mimic>: the tip follows the knuckle that moves it, the slide the tip.
JOINTS = (
    ("knuckle", "revolute", "J2", "0 0 1", ""),
    ("tip", "revolute", "knuckle", "0.6 0 0.8", FOLLOWS.format("knuckle", -1.5, 0.2)),
    ("a_slide", "prismatic", "J2", "0 1 0", FOLLOWS.format("tip", 0.1, 0.01)),
    ("pad", "revolute", "a_slide", "1 0 0", FOLLOWS.format("knuckle", 0.5, 0.0)),
)
RATIO = {"tip": -1.5, "a_slide": -0.15, "pad": 0.5}
SHIFT = {"tip": 0.2, "a_slide": 0.03, "pad": 0.0}
"""Position of each mimic joint is RATIO q_knuckle + SHIFT, by hand."""


POST = """<link name="post"><collision><origin xyz="0.3 0.5 0.2"/><geometry><sphere radius="0.1"/>
</geometry></collision></link><joint name="stand" type="fixed"><parent link="base"/>
<child link="post"/></joint>"""


def text(damping=0.0, friction=0.0):
    more = "".join(
        LINK.format(name=name, mass=0.3 + 0.1 * k, center=f"0.05 {0.01 * k} 0.02")
        + JOINT.format(name=name, kind=kind, parent=parent, axis=axis, mimic=mimic,
                       damping=damping, friction=friction)
        for k, (name, kind, parent, axis, mimic) in enumerate(JOINTS)
    )  # fmt: skip
    return chain_urdf({}, {"axis": "0 0 1"}, more=POST + more)
