"""How well a joint follows: numbers that grow with the periods, so that no path is stored."""

from __future__ import annotations

from arm_dynamics.core.compiled_math import compiled, maximum, where

METRICS = ("iae", "peak_effort", "overshoot", "settled_error")
"""IAE = Σ T |e| [rad s]; max |effort| [N·m]; largest way beyond the reference, seen from the
start, [rad]; max |e| [rad] in the last part of the time. e = q_ref - q at the ends of periods."""


@compiled
def update_metrics(
    q: float,
    effort: float,
    q_ref: float,
    way: float,
    iae: float,
    peak: float,
    overshoot: float,
    settled: float,
    late: float,
    period: float,
) -> tuple[float, float, float, float]:
    """iae, peak, overshoot and settled after one more period, see ``law.METRICS``.

    way: sign of the first error q_ref - q, along which going beyond the reference is overshoot;
    0: either way is. late: 1 in the part of the time in which the joint should have settled.
    """
    error = q_ref - q
    size = abs(error)
    beyond = where(way == 0.0, size, -way * error)
    return (
        iae + period * size,
        maximum(peak, abs(effort)),
        maximum(overshoot, beyond),
        maximum(settled, late * size),
    )
