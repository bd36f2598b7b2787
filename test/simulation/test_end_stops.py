"""End stops: a damped spring beyond the limits, no effort between them."""

import numpy as np
import pytest
from conftest import chain, five_dof
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.core.state import Command, State
from arm_dynamics.simulation.end_stops import end_stop_effort
from arm_dynamics.simulation.plant import Plant

some = st.floats(-100, 100)


@given(some, some, some, some, st.floats(0, 1e4), st.floats(0, 1e3))
def test_end_stop_effort_in_closed_form(q, v, one, other, k, b):
    lower, upper = sorted((one, other))
    effort = end_stop_effort(q, v, lower, upper, k, b)
    if lower <= q <= upper:
        assert effort == 0
    else:
        edge = lower if q < lower else upper
        assert effort == pytest.approx(k * (edge - q) - b * v, rel=1e-12, abs=1e-12)


@given(some, some)
def test_a_continuous_joint_has_no_end_stop(q, v):
    assert end_stop_effort(q, v, -np.inf, np.inf, 50.0, 5.0) == 0.0


def test_an_end_stop_catches_a_moving_joint_and_dissipates_its_energy():
    arm = chain({"axis": "0 0 1"}).with_joint("J1", stop_stiffness=500.0, stop_damping=5.0)
    arm = arm.with_gravity([0, 0, 0])
    plant, state, far = Plant(arm), State.of([2.9], [2.0]), 0.0
    for _ in range(20000):
        state = plant.step(state, Command.checked("effort", [0.0], 1), 1e-4)
        far = max(far, state.q[0])
    inertia = 0.02 + 0.25**2
    # A spring without damper deflects by v sqrt(I / k); with damping by less.
    assert 3.0 < far < 3.0 + 2.0 * np.sqrt(inertia / 500)
    assert state.q[0] < 3.0
    assert -2.0 < state.v[0] < 0.0


def test_end_stops_of_the_urdf_and_default_ones():
    joints = {joint.name: joint for joint in five_dof().joints}
    assert (joints["R2"].stop_stiffness, joints["R2"].stop_damping) == (50.0, 5.0)
    joint = chain({}).joints[0]
    inertia = 0.02 + 0.25**2
    assert joint.stop_stiffness == pytest.approx(inertia * 100**2, rel=1e-9)
    assert joint.stop_damping == pytest.approx(2 * inertia * 100, rel=1e-9)
