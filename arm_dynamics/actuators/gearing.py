"""A gear between motor and joint: losses that depend on the load, and play between its teeth."""

from __future__ import annotations

from arm_dynamics.scalar import clip, compiled, maximum, minimum, where


@compiled
def gear_loss(effort: float, efficiency: float, back_efficiency: float) -> float:
    """Friction [N·m] of a gear against forward motion, when the motor passes ``effort`` through it.

    f = (1 - η) τ for τ > 0, the motor driving;  f = (1/η_b - 1) |τ| for τ < 0, back-driven.

    Moving forward, the joint so gets η τ of a driving motor, and must give τ / η_b to turn a
    resisting one; at rest it sticks between the two. η, η_b in (0, 1]. Against backward motion
    the loss is that of -τ. Source: J. Shigley, Mechanical Engineering Design, screw and worm
    efficiency; A. Wahrburg et al., IEEE RA-L 3 (2018) for the load-dependent form.
    """
    return maximum(effort, 0.0) * (1.0 - efficiency) + maximum(-effort, 0.0) * (
        1.0 / back_efficiency - 1.0
    )


@compiled
def contact_effort(
    gap: float, closing: float, play: float, stiffness: float, damping: float
) -> float:
    """Effort [N·m] that a rotor passes to the joint through a gear with play; teeth only push.

    τ = k (s - clip(s, ±β/2)) + d ṡ, with the sign of its spring; zero between the flanks.

    s rotor angle over N minus joint angle [rad], ṡ [rad/s], play β [rad], k [N·m/rad],
    d [N·m·s/rad]. Source: M. Nordin and P.-O. Gutman, Automatica 38 (2002), section 2.2.
    """
    bent = gap - clip(gap, -0.5 * play, 0.5 * play)
    push = stiffness * bent + damping * closing
    return where(bent > 0.0, maximum(push, 0.0), where(bent < 0.0, minimum(push, 0.0), 0.0))
