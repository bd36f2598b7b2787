"""Standard (distal) Denavit-Hartenberg tables as chains of URDF joints.

Frame i is at the end of link i, and joint i turns about z of frame i-1. URDF places a link's frame
at its joint. Tz(d) commutes with the joint's motion about (along) z:

Rz(theta + q) Tz(d) Tx(a) Rx(alpha) = [Rz(theta) Tz(d)] Rz(q) [Tx(a) Rx(alpha)].

The URDF frame of link i is therefore frame i without its last two motions: the frame of the
modified table. Those two carry over to the next joint, to the solids given in frame i, and to the
tool.
Source: Siciliano et al., Robotics (2009), section 2.8.2, eq. 2.52.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import cos, sin
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Matrix, as_readonly, check_float, check_vector
from arm_dynamics.model import mdh
from arm_dynamics.model.mdh import MdhLink, MdhRow
from arm_dynamics.model.solids import ORIGIN
from arm_dynamics.model.urdf_writer import ArmDescription, ChainSegment, JointSpec, format_urdf


@dataclass(frozen=True, slots=True)
class DhRow:
    """Frame i from frame i-1: theta [rad], d [m] at joint position zero, a [m], alpha [rad].

    Raises InvalidValue for a number that is not finite.
    """

    theta: float = 0.0
    d: float = 0.0
    a: float = 0.0
    alpha: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            check_float(name, getattr(self, name))

    @property
    def end(self) -> Matrix:
        """Tx(a) Rx(alpha), (4, 4): frame i in the URDF frame of its link."""
        # Rounding of a zero sine or cosine is removed: the URDF keeps the table's numbers.
        c, s = (0.0 if abs(x) < 1e-15 else x for x in (cos(self.alpha), sin(self.alpha)))
        rows = [[1.0, 0.0, 0.0, self.a], [0.0, c, -s, 0.0], [0.0, s, c, 0.0], [0.0, 0.0, 0.0, 1.0]]
        return as_readonly(rows)


@dataclass(frozen=True, slots=True)
class DhLink:
    """A row of the table and the joint of its link; the joint's solids are given in frame i.

    The joint turns about (slides along) z of frame i-1: it adds to theta (to d).
    """

    row: DhRow
    joint: JointSpec


def chain_segments(links: Sequence[DhLink]) -> tuple[ChainSegment, ...]:
    """Return the chain with the joint frames of URDF and the solids in these frames."""
    last, modified = DhRow(), []
    for link in links:  # a row of the modified table begins with the end of the link before it
        row, end = link.row, link.row.end
        solids = tuple(solid.transformed(end[:3, :3], end[:3, 3]) for solid in link.joint.solids)
        placed = MdhRow(a=last.a, alpha=last.alpha, d=row.d, theta=row.theta)
        modified.append(MdhLink(placed, replace(link.joint, solids=solids)))
        last = row
    return mdh.chain_segments(modified)


def urdf_text(
    name: str, links: Sequence[DhLink], tool: ArrayLike = ORIGIN, **described: Any
) -> str:
    """Return the URDF text of an arm given by a standard DH table.

    Parameters
    ----------
    name : str
        Name of the robot.
    links : sequence of DhLink
        Rows of the table with their joints, from the base to the tool.
    tool : ArrayLike
        Tool center point (3,) [m] in the last frame of the table, whose axes are those of the tool.
    **described : Any
        Other fields of ``ArmDescription``.

    Returns
    -------
    str
        Text of the URDF.

    Raises
    ------
    InvalidValue
        For a number that is not finite.

    """
    end = links[-1].row.end if links else np.eye(4)
    x, y, z = end[:3, :3] @ check_vector("tool", tool, 3) + end[:3, 3]
    point = (float(x), float(y), float(z))
    return format_urdf(
        ArmDescription(
            name,
            chain_segments(links),
            tool=point,
            tool_rotation=as_readonly(end[:3, :3]),
            **described,
        )
    )
