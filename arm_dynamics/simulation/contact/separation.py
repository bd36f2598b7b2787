"""Normal velocity that a contact requires: closed gaps, removed overlaps and rebounds."""

from __future__ import annotations

from arm_dynamics.core.compiled_math import compiled

OVERLAP = 1e-5
"""Overlap [m] of two shapes that remains: rounding of the first-order motion of a step."""
CORRECTION = 0.2
"""Part of a larger overlap that a step removes."""
CORRECTION_SPEED = 0.1
"""Largest speed [m/s] at which an overlap is removed."""
IMPACT_SPEED = 0.02
"""Speed [m/s] below which no rebound occurs."""


@compiled
def least_speed(
    gap: float, before: float, restitution: float, compliance: float, dt: float
) -> float:
    """Return the least normal velocity [m/s] of a contact after the step, without its compliance.

    ``before`` [m/s] is the one at its start.
    """
    if gap > 0.0 or compliance > 0.0:
        least = -gap / dt
    else:
        least = min(CORRECTION / dt * max(-gap - OVERLAP, 0.0), CORRECTION_SPEED)
    if restitution > 0.0 and before < -IMPACT_SPEED and gap + dt * before <= 0.0:
        least = max(least, -restitution * before)
    return least
