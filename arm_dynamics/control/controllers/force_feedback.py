"""Controller of a leader arm: weightless, and coupled to the position of its follower."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.controller import Controller, Gains
from arm_dynamics.control.controllers.pid import DAMPING, MAX_DAMPING_RATE, uniform_bandwidth
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State

BANDWIDTH = 15.0
"""Natural frequency of the coupling without given gains [rad/s]."""


class ForceFeedback(Controller):
    """tau = g(q) + c (clip(p (q_ref - q), ±r tau_max) + d (v_ref - v)).

    The reference is the measured state of the follower. With c = ``coupling`` = 0 the arm is
    weightless; with 1 it is pulled toward the follower, at most with the fraction r = max_scale of
    its effort limits, so that a hand can always overcome the feedback.

    Without gains: p = w² m, d = 1.6 w m, with m = M_ii and w = BANDWIDTH, or less. The coupling is
    a sampled spring: with the period T and a delay of n periods it is stable up to about
    w = 0.6 / ((n + 1/2) T). ``ControlLoop`` lowers w until the gain margin at the period and delay
    of the driver is 2. The coupled arms are stable if in addition the follower tracks without
    overshoot and faster than w.

    References
    ----------
    J. Colgate and G. Schenkel, Passivity of a Class of Sampled-Data Systems, J. Robotic Systems 14
    (1997), 37; D. Lawrence, Stability and Transparency in Bilateral Teleoperation, IEEE Trans.
    Robotics and Automation 9 (1993), 624 (position-position coupling).

    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("p", None, "N·m/rad", "stiffness of the coupling", lower=0, upper=1e6, order=2),
        Parameter("d", None, "N·m·s/rad", "damping of the coupling", lower=0, upper=1e6, order=1),
        Parameter("max_scale", 0.5, "1", "maximum fraction of the effort limit", lower=0, upper=1),
    )

    coupling = 1.0
    """Factor c on the force feedback, from 0 to 1; 1 after a reset."""

    def reset(self, state: State) -> None:
        """Couple the arm to the reference, which holds the measured configuration.

        Checks of the gains therefore always include the coupling.
        """
        del state
        self.coupling = 1.0

    def default_gains(self) -> Gains:
        """Return gains of uniform bandwidth at the initial configuration."""
        w, inertia = uniform_bandwidth(self.arm, BANDWIDTH, MAX_DAMPING_RATE)
        return {
            name: {"p": w**2 * m, "d": DAMPING * w * m}
            for name, m in zip(self.arm.joint_names, inertia.tolist(), strict=True)
        }

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the effort command (nv,) [N·m] within the effort limits."""
        state, reference = self.bounded_inputs(state, reference, dt)
        limit = self.gains["max_scale"] * self.arm.effort_limit
        spring = np.clip(self.gains["p"] * (reference.q - state.q), -limit, limit)
        feedback = spring + self.gains["d"] * (reference.v - state.v)
        effort = self.dynamics.gravity(state.q) + self.coupling * feedback
        return self.effort_command(effort, state)
