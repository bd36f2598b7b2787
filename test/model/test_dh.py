"""Standard-DH tables: kinematics and dynamics of the generated URDF."""

from math import cos, pi, sin

import numpy as np
import pinocchio as pin
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model import mdh
from arm_dynamics.model.dh import DhLink, DhRow, chain_segments, urdf_text
from arm_dynamics.model.mdh import MdhLink, MdhRow
from arm_dynamics.model.solids import box, compose, cylinder, sphere
from arm_dynamics.model.urdf_writer import JointSpec

lengths = st.floats(-2, 2)
turns = st.floats(-pi, pi)
right_angles = st.sampled_from([-pi, -pi / 2, 0.0, pi / 2, pi])
rows = st.builds(DhRow, turns | right_angles, lengths, lengths, turns | right_angles)
kinds = st.sampled_from(["revolute", "prismatic"])
chains = st.lists(st.tuples(rows, kinds, turns), min_size=1, max_size=5)
points = st.tuples(lengths, lengths, lengths)

BODY = (box((0.1, 0.2, 0.3), 2.0, (0.1, -0.2, 0.05)), cylinder("y", 0.3, 0.04, 0.7, (0, 0.3, 0.1)))
BALL = sphere(0.1, 1.0)


def rotation(axis, angle):
    c, s = cos(angle), sin(angle)
    T = np.eye(4)
    i, j = ((axis + 1) % 3, (axis + 2) % 3)
    T[i, i], T[i, j], T[j, i], T[j, j] = c, -s, s, c
    return T


def translation(x, y, z):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def step(row, kind, q):
    """Return frame i in frame i-1, the product of the four defining motions."""
    turn, slide = (q, 0.0) if kind == "revolute" else (0.0, q)
    moved = rotation(2, row.theta + turn) @ translation(0, 0, row.d + slide)
    return moved @ translation(row.a, 0, 0) @ rotation(0, row.alpha)


def frames(chain, positions):
    """Return the frames 0 to n in the base."""
    found = [np.eye(4)]
    for (row, kind, *_), q in zip(chain, positions, strict=True):
        found.append(found[-1] @ step(row, kind, q))
    return found


def link(name, row, kind="revolute", solids=(BALL,)):
    return DhLink(row, JointSpec(name, 1.0, 1.0, solids, kind=kind, lower=-10, upper=10))


def load(chain, tool=(0, 0, 0)):
    links = [link(f"j{i}", row, kind, BODY) for i, (row, kind, *_) in enumerate(chain)]
    model = pin.buildModelFromXML(urdf_text("chain", links, tool))
    return model, model.createData()


@given(chains, points)
def test_the_tool_pose_is_the_product_of_the_table(chain, tool):
    """Position and axes of the last frame."""
    model, data = load(chain, tool)
    q = np.array([entry[2] for entry in chain])
    pin.framesForwardKinematics(model, data, q)
    placed = data.oMf[model.getFrameId("tool")].homogeneous
    np.testing.assert_allclose(placed, frames(chain, q)[-1] @ translation(*tool), atol=1e-13)


def motions(chain, q, body):
    """Return for each link the Jacobian (6, n) of its center, its axes and its center."""
    at = frames(chain, q)
    for i in range(len(chain)):
        center = (at[i + 1] @ [*body.center, 1.0])[:3]
        J = np.zeros((6, len(chain)))
        for j in range(i + 1):
            z, origin = at[j][:3, 2], at[j][:3, 3]
            turning = chain[j][1] == "revolute"
            J[:3, j] = np.cross(z, center - origin) if turning else z
            J[3:, j] = z if turning else 0
        yield J, at[i + 1][:3, :3], center


@settings(max_examples=examples(50))
@given(chains)
def test_mass_matrix_and_gravity_follow_from_bodies_in_the_table_frames(chain):
    """M = Σ m Jv^T Jv + Jw^T R I R^T Jw, and U = Σ m g h with every body given in frame i."""
    model, data = load(chain)
    q = np.array([entry[2] for entry in chain])
    body = compose(BODY)
    M, energy = np.zeros((len(chain), len(chain))), 0.0
    for J, R, center in motions(chain, q, body):
        M += body.mass * J[:3].T @ J[:3] + J[3:].T @ R @ body.inertia @ R.T @ J[3:]
        energy += body.mass * 9.81 * center[2]
    found = np.array(pin.crba(model, data, q))
    found = np.triu(found) + np.triu(found, 1).T
    np.testing.assert_allclose(found, M, rtol=0, atol=1e-12 * max(1.0, np.abs(M).max()))
    assert pin.computePotentialEnergy(model, data, q) == pytest.approx(energy, abs=1e-10)


def test_a_modified_table_of_the_same_arm_gives_the_same_urdf():
    """a and alpha belong to the next row there; the last row has none."""
    proximal = [(0, 0, 0.4, 0.1), (0.3, pi / 2, 0, -0.2), (0.2, -pi / 2, 0.1, 0)]
    solids = (sphere(0.1, 1.0, (0.1, 0.2, 0.3)),)
    ends = [(0.3, pi / 2), (0.2, -pi / 2), (0, 0)]
    distal, same = [], []
    for i, ((a, alpha, d, theta), (a_end, alpha_end)) in enumerate(
        zip(proximal, ends, strict=True)
    ):
        row = DhRow(theta, d, a_end, alpha_end)
        back = np.linalg.inv(row.end)
        inside = tuple(solid.transformed(back[:3, :3], back[:3, 3]) for solid in solids)
        distal.append(link(f"j{i}", row, solids=inside))
        same.append(MdhLink(MdhRow(a, alpha, d, theta), link(f"j{i}", row, solids=solids).joint))
    for ours, theirs in zip(chain_segments(distal), mdh.chain_segments(same), strict=True):
        np.testing.assert_allclose(ours.placement, theirs.placement, atol=1e-15)
        np.testing.assert_allclose(ours.joint.solids[0].center, (0.1, 0.2, 0.3), atol=1e-15)
        np.testing.assert_allclose(
            ours.joint.solids[0].inertia, solids[0].inertia, rtol=0, atol=1e-15
        )
    q = np.array([0.3, -0.4, 0.5])
    places = []
    for text in (urdf_text("arm", distal), mdh.urdf_text("arm", same)):
        model = pin.buildModelFromXML(text)
        data = model.createData()
        pin.framesForwardKinematics(model, data, q)
        places.append(data.oMf[model.getFrameId("tool")].homogeneous)
    np.testing.assert_allclose(places[0], places[1], atol=1e-15)


def test_right_angles_add_no_rounding_errors():
    """No 0.30000000000000004 from a cosine that should be zero."""
    ball = sphere(0.1, 1.0, (0.1, 0.2, 0.3))
    written = urdf_text("one", [link("j0", DhRow(a=0.5, alpha=-pi / 2), solids=(ball,))])
    assert '<origin xyz="0.6 0.3 -0.2"' in written


@pytest.mark.parametrize("entry", ["theta", "d", "a", "alpha"])
def test_a_row_that_is_not_finite_is_rejected(entry):
    with pytest.raises(InvalidValue, match=f"{entry} = inf"):
        DhRow(**{entry: float("inf")})


def test_a_tool_that_is_not_a_point_is_rejected():
    with pytest.raises(InvalidValue, match="tool"):
        urdf_text("one", [link("j0", DhRow())], (0, 0))
