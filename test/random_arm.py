"""URDFs of random serial arms of 2 to 9 joints with sufficiently strong motors."""

import numpy as np

from arm_dynamics.control.trajectories.demo_trajectory import demo_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.load import parse_arm

STEP = 0.02
"""Step [rad or m] within the effort limits."""
RESERVE = 2.0
"""Ratio of the effort limits to the largest required effort."""
JOINT = """<joint name="J{i}" type="{kind}"><parent link="L{parent}"/><child link="L{i}"/>
<origin xyz="0 0 {before:.6g}" rpy="{rpy}"/><axis xyz="{axis}"/>
<limit lower="{lower:.6g}" upper="{upper:.6g}" effort="{effort:.6g}" velocity="{speed:.6g}"/>
<dynamics damping="{damping:.6g}" friction="{friction:.6g}"/></joint>"""
LINK = """<link name="L{i}"><inertial><origin xyz="0 0 {middle:.6g}"/><mass value="{mass:.6g}"/>
<inertia ixx="{across:.6g}" iyy="{across:.6g}" izz="{along:.6g}" ixy="0" ixz="0" iyz="0"/>
</inertial></link>"""
TOOL = """<link name="tool"/><joint name="tool" type="fixed"><parent link="L{i}"/>
<child link="tool"/><origin xyz="0 0 {before:.6g}"/></joint>"""


def random_arm(seed, payload):
    """Return an arm with RESERVE times the effort of its demo trajectory and a step with
    ``payload`` [kg].
    """
    joints = random_joints(np.random.default_rng(seed))
    strong = parse_arm(urdf(seed, joints, [1e6] * len(joints))).with_payload(payload)
    return parse_arm(urdf(seed, joints, RESERVE * required_effort(strong)))


def required_effort(arm):
    """Return the largest abs(effort) (nv,) along the demo trajectory plus that of a step with
    computed torque.
    """
    trajectory = JointTrajectory(demo_trajectory(arm))
    along = [trajectory.at(t) for t in np.linspace(0, trajectory.end, 400)]
    moving = [np.abs(rigid_body.rnea(arm, r.q, r.v, r.a)) for r in along]
    step = (
        900.0 * STEP * np.abs(rigid_body.mass_matrix(arm, arm.configuration("initial"))).sum(axis=1)
    )
    friction = [joint.friction + joint.damping * joint.velocity for joint in arm.joints]
    return np.max(moving, axis=0) + step + friction


def random_joints(rng):
    """Return the parameters of each joint and of its rod; one joint in five is prismatic.

    Rods of 0.05 to 0.4 m and up to 6 kg, lighter toward the tool. Axes along and across the rod or
    in a random direction. Some ranges exclude zero. Half the joints have viscous, half have dry
    friction.
    """
    joints, before = [], 0.0
    for i in range(1, int(rng.integers(2, 10)) + 1):
        prismatic, length = rng.random() < 0.2, rng.uniform(0.05, 0.4)
        axis = np.eye(3)[rng.integers(3)] if rng.random() < 0.7 else rng.normal(size=3)
        mass, radius = rng.uniform(0.2, 6.0) * 0.75 ** (i - 1), rng.uniform(0.02, 0.05)
        low, high = rng.uniform(0.1, 0.4, 2) if prismatic else rng.uniform(0.5, 3.0, 2)
        beyond_zero = rng.random() < 0.15
        friction = rng.uniform(0, 1, 2) * rng.integers(0, 2, 2) * 0.8**i
        joints.append({
            "i": i, "parent": i - 1, "kind": "prismatic" if prismatic else "revolute",
            "before": before, "rpy": spaced(rng.choice([-np.pi / 2, 0, np.pi / 2], 3)),
            "axis": spaced(axis / np.linalg.norm(axis)), "mass": mass, "middle": length / 2,
            "lower": 0.2 * high if beyond_zero else -low, "upper": high,
            "speed": rng.uniform(1.0, 3.5) * (0.5 if prismatic else 1.0),
            "damping": friction[0], "friction": friction[1],
            "across": mass * (3 * radius**2 + length**2) / 12, "along": mass * radius**2 / 2,
        })  # fmt: skip
        before = length
    return joints


def urdf(seed, joints, efforts):
    """Return the URDF of a random arm with these effort limits (nv,)."""
    parts = [
        part.format(**joint, effort=effort)
        for joint, effort in zip(joints, efforts, strict=True)
        for part in (JOINT, LINK)
    ]
    end = TOOL.format(i=len(joints), before=2 * joints[-1]["middle"])
    return f'<robot name="random_{seed}"><link name="L0"/>{"".join(parts)}{end}</robot>'


def spaced(numbers):
    return " ".join(f"{number:.9f}" for number in numbers)
