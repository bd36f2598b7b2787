"""Gear between motor and joint: load-dependent losses and backlash."""

from __future__ import annotations

from math import sqrt

from arm_dynamics.core.compiled_math import clip, compiled, maximum, minimum, where
from arm_dynamics.core.errors import InvalidValue


@compiled
def gear_loss(effort: float, efficiency: float, back_efficiency: float) -> float:
    """Return the friction [N·m] of a gear against forward motion under the motor's ``effort``.

    f = (1 - η) τ for τ > 0, the motor driving;  f = (1/η_b - 1) |τ| for τ < 0, back-driven.

    In forward motion the joint receives η τ of a driving motor, and needs τ / η_b to turn a
    resisting one; at rest it sticks between the two. η, η_b in (0, 1]. Against backward motion
    the loss is that of -τ. Thus the power at the joint is η times that of a driving motor, and
    the power of a back-driven motor is η_b times that of the joint, as both efficiencies are
    defined.
    """
    return maximum(effort, 0.0) * (1.0 - efficiency) + maximum(-effort, 0.0) * (
        1.0 / back_efficiency - 1.0
    )


@compiled
def contact_effort(
    gap: float, closing: float, backlash: float, stiffness: float, damping: float
) -> float:
    """Return the effort [N·m] of a rotor on the joint through backlash; teeth only push.

    τ = k (s - clip(s, ±β/2)) + d ṡ, with the sign of its spring; zero between the flanks.

    s rotor angle over N minus joint angle [rad], ṡ [rad/s], backlash β [rad], k [N·m/rad],
    d [N·m·s/rad]. Source: M. Nordin and P.-O. Gutman, Controlling mechanical systems with
    backlash: a survey, Automatica 38 (2002), its dead-zone model with a damper; a damper that
    would pull parting teeth together is cut off.
    """
    bent = gap - clip(gap, -0.5 * backlash, 0.5 * backlash)
    push = stiffness * bent + damping * closing
    return where(bent > 0.0, maximum(push, 0.0), where(bent < 0.0, minimum(push, 0.0), 0.0))


def require_stable_tooth_contact(
    joint: str,
    stiffness: float,
    damping: float,
    rotor: float,
    compliance: float,
    braking: float,
    dt: float,
) -> None:
    """Raise InvalidValue if a step of dt [s] is unstable at tooth contact.

    Stable while (ω dt)² + 2 c dt < 4.

    ω² = k (1/J + 1/M), c = d / M + b / J: rotor J and joint M on the spring k with damper d and
    the rotor's explicit damping b; d acts on the rotor exactly.

    stiffness k [N·m/rad], damping d and braking b [N·m·s/rad], rotor inertia J [kg·m²] seen at
    the joint, compliance 1/M [1/(kg·m²)]. Raises InvalidValue naming the joint.
    Source: the Jury criterion for semi-implicit Euler of s̈ = -ω² s - c ṡ.
    """
    square = stiffness * (1 / rotor + compliance)
    explicit = damping * compliance + braking / rotor
    if dt * (dt * square + 2 * explicit) >= 4:
        allowed = 4 / (explicit + sqrt(explicit**2 + 4 * square))
        raise InvalidValue(
            f"joint '{joint}': dt = {dt:g} s; expected below {allowed:.4g} s, for tooth contact"
            f" with gear_stiffness = {stiffness:g} N·m/rad between rotor ({rotor:.4g} kg·m² at the"
            f" joint) and joint ({1 / compliance:.4g} kg·m²) oscillates at {sqrt(square):.4g} rad/s"
        )
