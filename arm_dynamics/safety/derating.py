"""How much of its effort a warm motor may still give."""

from __future__ import annotations

from arm_dynamics.scalar import NUMBER, clip, compiled_for, where


@compiled_for(NUMBER, NUMBER, NUMBER, NUMBER)
def derated_share(temperature: float, start: float, hottest: float, least: float) -> float:
    """s = clip(1 - (1 - least) (T - start) / (hottest - start), least, 1).

    Temperatures [°C]; 1 for a motor that does not tell its own (NaN).
    """
    fallen = (1.0 - least) * (temperature - start) / (hottest - start)
    return where(fallen > 0.0, clip(1.0 - fallen, least, 1.0), 1.0)
