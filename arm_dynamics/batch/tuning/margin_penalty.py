"""Penalty for missing stability margins, which keeps a search away from the stability limit.

In a short rollout a loop near the limit hardly oscillates: its errors do not show it.
"""

from __future__ import annotations

from cmath import exp
from dataclasses import dataclass, replace
from math import pi
from typing import Any

import numpy as np

from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.batch.tuning.gain_space import GainSpace
from arm_dynamics.batch.tuning.margins import linear_controller_at, sampled_plant
from arm_dynamics.batch.tuning.python_controller import with_gains
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.linear_controller import NEUTRAL, closed_loop_map
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.errors import InvalidValue

FACTORS = (2.0, 0.5, exp(-1j * pi / 6))
"""Factors on all gains with which the loop must be stable: 6 dB up and down, 30 degrees of phase.
K. J. Åström, R. M. Murray, Feedback Systems (2008), section 9.3, recommend 2 to 5, and 30 to 60
degrees."""
MAX_CASES = 8
"""Linearized cases, in addition to the nominal arm at its initial configuration."""


@dataclass(frozen=True, eq=False)
class SampledLoop:
    """An arm at rest at ``q`` [rad]: Φ, Γ over one control period."""

    q: Vector
    phi: Matrix
    gamma: Matrix


@dataclass(frozen=True, eq=False)
class MarginPenalty:
    """R = max over loops and FACTORS f of max(0, ρ - 1), ρ the spectral radius with f times H, J.

    A complex factor rotates the phase of the whole loop in both directions, of z^k and of its
    conjugate. R is computed over one control period and does not depend on the time step.
    """

    space: GainSpace
    cases: Cases
    loops: tuple[SampledLoop, ...]

    @classmethod
    def of(cls, space: GainSpace, cases: Cases) -> MarginPenalty:
        """Linearize the nominal arm at its initial configuration, and cases at their targets.

        Without a linear loop, as with backlash, R = 0.
        """
        arm = cases.arm
        places = [(arm, arm.configuration("initial"))]
        places += [(cases.true_arm(k), cases.target[k]) for k in range(min(MAX_CASES, len(cases)))]
        c, loops = cases.conditions, []
        for one, q in places:
            try:
                phi, gamma = sampled_plant(one, q, c.period, c.interface)
                linear_controller_at(space.law, q, c.period, c.interface)
            except InvalidValue:
                continue
            loops.append(SampledLoop(q, phi, gamma))
        return cls(space, cases, tuple(loops))

    def __call__(self, x: Vector) -> Vector:
        """Return R (m,) of points (m, size)."""
        return np.array([self._one(point) for point in x])

    def _one(self, point: Vector) -> float:
        if not self.loops:
            return 0.0
        rows = self.space.gains(point[None])
        law = with_gains(self.space.law, {name.partition(".")[2]: r[0] for name, r in rows.items()})
        closed = np.array([one for loop in self.loops for one in self._closed(law, loop)])
        values = np.linalg.eigvals(closed)
        size = np.where(np.abs(values - 1) > NEUTRAL, np.abs(values), 0.0)
        return max(0.0, float(size.max()) - 1.0)

    def _closed(self, law: Controller, loop: SampledLoop) -> list[Vector]:
        """Maps of the closed loop, one for each of FACTORS."""
        c = self.cases.conditions
        own: Any = linear_controller_at(law, loop.q, c.period, c.interface)
        laws = (replace(own, H=factor * own.H, J=factor * own.J) for factor in FACTORS)
        return [closed_loop_map(loop.phi, loop.gamma, one, delay=int(c.delay)) for one in laws]
