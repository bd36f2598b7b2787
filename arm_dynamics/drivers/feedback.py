"""What an arm's motors told last, joint by joint, and how old that is."""

from __future__ import annotations

from dataclasses import dataclass

from arm_dynamics.arrays import Vector


@dataclass(frozen=True, slots=True, eq=False)
class Feedback:
    """Time [s] of the newest reading; q [rad], v [rad/s], tau [N·m] at the joint, each (nv,).

    ``temperature`` [°C], ``supply`` [V] and ``age`` [s] are (nv,) too. What a motor does not
    tell is NaN, and so is everything of a joint that is silent for too long; a joint that never
    answered has an infinite age. ``fault`` is each motor's own word, "" for none; ``enabled``
    whether it applies torque, None where that is not known.
    """

    time: float
    q: Vector
    v: Vector
    tau: Vector
    temperature: Vector
    supply: Vector
    age: Vector
    fault: tuple[str, ...]
    enabled: tuple[bool | None, ...]
