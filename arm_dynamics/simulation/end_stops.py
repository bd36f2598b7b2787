"""End stops of the joints as damped springs."""

from __future__ import annotations

from arm_dynamics.core.compiled_math import compiled, where


@compiled
def end_stop_effort(
    q: float, v: float, lower: float, upper: float, stiffness: float, damping: float
) -> float:
    """Return the effort of a damped spring beyond a limit, zero between the limits.

    tau = k (lower - q) - b v  below, tau = k (upper - q) - b v  above.

    q [rad], v [rad/s], stiffness k [N·m/rad], damping b [N·m·s/rad]; returns [N·m].
    Source: penalty forces of joint limits in DynaMechs (McMillan, Orin, McGhee 1995).
    """
    beyond = where(q < lower, lower - q, where(q > upper, upper - q, 0.0))
    return where(beyond == 0.0, 0.0, stiffness * beyond - damping * v)
