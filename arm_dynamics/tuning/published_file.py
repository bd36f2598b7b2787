"""The published gains as a parameter file: the effort law that is the same loop."""

from __future__ import annotations

from arm_dynamics.controllers.pid import Pid
from arm_dynamics.dynamechs import KE, KT, RESISTANCE, constants
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.stability.loops import PUBLISHED_DT
from arm_dynamics.tuning.parameter_file import parameter_text
from arm_dynamics.tuning.published import PublishedSearch


def effort_gains(
    arm: ArmModel, gains: dict[str, tuple[float, float]], dt: float = PUBLISHED_DT
) -> dict[str, dict[str, float]]:
    """PID gains on efforts with the torque of V = P e + I Σe at steps of ``dt`` [s].

    τ = Kt (V - Ke q̇) / R  =  p e + i ∫e dt - d q̇,   p = Kt P / R,  i = Kt I / (R dt),
    d = Kt Ke / R; joints without gains are braked by their motors alone.

    gains: joint → P, I [V/rad]; result: joint → p, i, d in the units of ``Pid``.
    """
    found, rows = {}, constants(arm)
    for k, joint in enumerate(arm.joint_names):
        p, i = gains.get(joint, (0.0, 0.0))
        share = float(rows[KT, k] / rows[RESISTANCE, k])
        found[joint] = {"p": share * p, "i": share * i / dt, "d": share * float(rows[KE, k])}
    return found


def published_file(arm: ArmModel, found: PublishedSearch) -> str:
    """The text of a parameter file with the ``found`` gains for controller pid."""
    notes = (
        "five_dof: the gains of the published search, as efforts of the same loop.",
        f"They hold the initial pose at a control period of {PUBLISHED_DT:g} s, at the edge of",
        "stability, without limits of effort; not made for an arm, nor for a longer period.",
    )
    gains = effort_gains(arm, found.gains)
    return parameter_text(arm.name, "pid", Pid(arm, gains), gains, notes)
