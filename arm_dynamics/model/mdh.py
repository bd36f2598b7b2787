"""Modified Denavit-Hartenberg tables (Craig's convention) as chains of URDF joints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import cos, sin
from typing import Any

from arm_dynamics.core.arrays import Matrix, as_readonly, check_float
from arm_dynamics.model.urdf_writer import ArmDescription, ChainSegment, JointSpec, format_urdf


@dataclass(frozen=True, slots=True)
class MdhRow:
    """Frame i from frame i-1: a [m], alpha [rad], d [m], theta [rad] at joint position zero.

    Raises InvalidValue for a number that is not finite.
    """

    a: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            check_float(name, getattr(self, name))

    @property
    def placement(self) -> Matrix:
        """Tx(a) Rx(alpha) Tz(d) Rz(theta), (4, 4): frame i in frame i-1 at zero.

        Multiplied out; source: Craig, Introduction to Robotics (3rd ed.), eq. 3.6.
        """
        ca, sa = cos(self.alpha), sin(self.alpha)
        ct, st = cos(self.theta), sin(self.theta)
        return as_readonly(
            [
                [ct, -st, 0.0, self.a],
                [st * ca, ct * ca, -sa, -sa * self.d],
                [st * sa, ct * sa, ca, ca * self.d],
                [0.0, 0.0, 0.0, 1.0],
            ]
        )


@dataclass(frozen=True, slots=True)
class MdhLink:
    """A row of the table and its joint, with motor and solids.

    The joint turns about (slides along) z of frame i: it adds to theta (to d).
    """

    row: MdhRow
    joint: JointSpec


def chain_segments(links: Iterable[MdhLink]) -> tuple[ChainSegment, ...]:
    """Return the chain; the joint frames of this convention are those of URDF."""
    return tuple(ChainSegment(link.row.placement, link.joint) for link in links)


def urdf_text(name: str, links: Iterable[MdhLink], **described: Any) -> str:
    """Return the URDF text of an arm given by a modified DH table.

    Parameters
    ----------
    name : str
        Name of the robot.
    links : iterable of MdhLink
        Rows of the table with their joints, from the base to the tool.
    **described : Any
        Other fields of ``ArmDescription``.

    Returns
    -------
    str
        Text of the URDF.

    """
    return format_urdf(ArmDescription(name, chain_segments(links), **described))
