"""Recorded motion of an arm as arrays."""

from __future__ import annotations

from dataclasses import dataclass

from arm_dynamics.core.arrays import Matrix, Vector


@dataclass(frozen=True, slots=True, eq=False)
class MotionData:
    """Positions and efforts of a motion.

    ``time`` (n,) [s], increasing; ``q`` (n, nv) [rad or m]; ``effort`` (n, nv) [N·m or N] or None;
    ``source`` names the file in messages.
    """

    joint_names: tuple[str, ...]
    time: Vector
    q: Matrix
    effort: Matrix | None
    source: str = "motion"
