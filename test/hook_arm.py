"""An arm whose links are meshes that are not convex."""

import warnings

import numpy as np

from arm_dynamics.model.load import parse_arm

LINK = """<link name="l{k}"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0.02 0 0" rpy="0.1 0 0"/>
<geometry><mesh filename="{mesh}.stl" scale="1 1 1.2"/></geometry></collision>{extra}</link>"""
JOINT = """<joint name="J{k}" type="{kind}"><parent link="l{i}"/><child link="l{k}"/>
<origin xyz="{x} 0 0.05" rpy="{roll} 0 0"/><axis xyz="{axis}"/>
<limit lower="{low}" upper="{high}" velocity="2" effort="50"/></joint>"""
BALL = """<collision><origin xyz="0.3 0 0"/><geometry><sphere radius="0.05"/></geometry>
</collision>"""


def box(low, high):
    """Return the 12 triangles (12, 3, 3) of a box."""
    corners = np.array(
        [[(low, high)[b][i] for i, b in enumerate(bits)] for bits in np.ndindex(2, 2, 2)]
    )
    faces = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    return np.array([corners[list(t)] for a, b, c, d in faces for t in ((a, b, c), (a, c, d))])


def write_stl(path, triangles):
    """Write triangles (n, 3, 3) [m] as text."""
    facets = (
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {} {} {}\n".format(*corner) for corner in triangle)
        + "endloop\nendfacet\n"
        for triangle in triangles.tolist()
    )
    path.write_text(f"solid mesh\n{''.join(facets)}endsolid mesh\n")


def hooks(folder):
    """Return an arm of hooks, which are not convex, and of a plate of no thickness."""
    hook = np.vstack(
        (
            box((0, -0.03, -0.03), (0.4, 0.03, 0.03)),
            box((0.34, -0.03, 0.03), (0.4, 0.03, 0.25)),
            box((0, -0.03, 0.03), (0.06, 0.03, 0.2)),
        )
    )
    write_stl(folder / "hook.stl", hook)
    plate = np.array(
        [
            [[0.1, -0.1, 0], [0.3, -0.1, 0], [0.3, 0.1, 0]],
            [[0.1, -0.1, 0], [0.3, 0.1, 0], [0.1, 0.1, 0]],
        ]
    )
    write_stl(folder / "plate.stl", plate)
    meshes = ("hook", "hook", "plate", "hook", "hook")
    links = [LINK.format(k=k, mesh=m, extra=BALL if k == 3 else "") for k, m in enumerate(meshes)]
    kinds = (
        ("revolute", "0 0 1"),
        ("revolute", "0 0.6 0.8"),
        ("prismatic", "0 0 1"),
        ("revolute", "0 1 0"),
    )
    joints = [
        JOINT.format(
            k=k,
            i=k - 1,
            kind=kind,
            axis=axis,
            x=0.3 if k > 1 else 0.1,
            roll=0.3 * k,
            low=-0.2 if kind == "prismatic" else -3,
            high=0.2 if kind == "prismatic" else 3,
        )
        for k, (kind, axis) in enumerate(kinds, 1)
    ]
    text = f'<robot name="hooks">{"".join(links + joints)}</robot>'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parse_arm(text, folder / "arm.urdf")
