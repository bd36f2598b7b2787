"""Friction compensation: dead band, scale, and a controller model with wrong dry friction."""

import numpy as np
import pytest

from arm_dynamics import Reference, State, load_arm
from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.friction_compensation import (
    SLOW,
    FrictionCompensation,
    compensated_friction,
)
from arm_dynamics.control.controllers.impedance import Impedance
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.controllers.resolved_rate import ResolvedRate
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.controllers.velocity_pid import VelocityPid
from arm_dynamics.control.lqr_design.lqr_gain import coulomb, viscous_damping
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.model.model_error import with_model_error

CONTROLLERS = (ComputedTorque, Impedance, Lqr, ResolvedRate, TaskSpace, VelocityPid)
PUMA = load_arm("puma560")
Q = np.array([0.0, 0.7, -2.4, 0.0, 0.8, 0.0])


def test_dry_friction_is_linear_in_the_dead_band_and_0_at_rest():
    friction, dry = FrictionCompensation(PUMA), coulomb(PUMA)

    def effort(v):
        pairs = zip(friction.viscous, friction.dry, strict=True)
        return np.array([compensated_friction(b, f, v, v) for b, f in pairs])

    assert not effort(0.0).any()
    assert effort(SLOW / 2) == pytest.approx(dry / 2 + viscous_damping(PUMA) * SLOW / 2, rel=1e-12)
    assert effort(-1.0) == pytest.approx(-dry - viscous_damping(PUMA), rel=1e-12)


@pytest.mark.parametrize("kind", CONTROLLERS)
def test_the_compensation_can_be_disabled(kind):
    v = np.array([0.3, -0.2, 0.1, 0.3, -0.3, 0.2])
    reference, state = Reference(Q, v, np.zeros(6)), State.of(Q, v)

    def effort(scale):
        controller = kind(PUMA, {"controller": {"friction_compensation": scale}})
        controller.reset(state)
        for _ in range(2):
            command = controller.update(state, reference, 1e-3)
        return command.value

    added = effort(1.0) - effort(0.0)
    assert np.sign(added).tolist() == np.sign(v).tolist()
    assert (np.abs(added) >= 0.5 * coulomb(PUMA)).all()


@pytest.mark.parametrize("error", [-30.0, 30.0])
@pytest.mark.parametrize("kind", CONTROLLERS)
def test_friction_wrong_by_30_percent_does_not_oscillate(kind, error):
    """The arm comes to rest and stays there; a limit cycle would reverse its joints."""
    controller = kind(with_model_error(PUMA, friction=error))
    hold = JointTrajectory.hold(Q + 0.002, 0.0)
    trace = simulate_closed_loop(
        PUMA, controller, hold, State.of(Q), seconds=1.0, period=2e-3, dt=5e-4,
        integrator="semi_implicit_euler",
    )  # fmt: skip
    late = trace.v[len(trace.time) // 2 :]
    moving = np.sign(np.where(np.abs(late) > 1e-9, late, 0.0))
    reversals = np.abs(np.diff(moving, axis=0)).sum(axis=0)
    assert reversals.max() <= 4
    assert np.abs(late).max() < 0.01
