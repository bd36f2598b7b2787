"""Closed loops in continuous time: the controller is evaluated at every instant."""

from pathlib import Path

import numpy as np

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.core.state import State

DATA = Path(__file__).parent / "data"


def table(path):
    """Return the columns of a CSV file of reference data by name."""
    return np.genfromtxt(DATA / path, delimiter=",", names=True)


def columns(data, *names):
    return np.stack([data[name] for name in names], axis=1)


def simulate_continuous(arm, controller, trajectory, q, times, rtol=1e-10):
    """Return q, v and tau (n, nv) at evenly spaced ``times``, from rest at ``q``."""
    period, seconds = float(times[1] - times[0]), float(times[-1] - times[0])
    trace = simulate_closed_loop(
        arm, controller, trajectory, State.of(q, time=times[0]), seconds=seconds, period=period,
        continuous=True, tolerance=rtol,
    )  # fmt: skip
    np.testing.assert_allclose(trace.time, times, atol=1e-9)
    return trace.q, trace.v, trace.tau
