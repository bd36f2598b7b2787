"""A law on an arm in continuous time: the command of every instant, not of the last period."""

import itertools
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

from arm_dynamics.motion import ArmMotion
from arm_dynamics.state import State

DATA = Path(__file__).parent / "data"


def table(path):
    """Columns of a CSV file of reference data, by name."""
    return np.genfromtxt(DATA / path, delimiter=",", names=True)


def columns(data, *names):
    return np.stack([data[name] for name in names], axis=1)


def followed(arm, law, trajectory, q, times, rtol=1e-10):
    """q, v (n, nv) each and tau (n, nv) at ``times``, from rest at ``q``; DOP853."""
    motion, nv = ArmMotion(arm), arm.nv
    law.reset(State.of(q, time=times[0]))

    def command(t, x):
        return law.update(State.of(x[:nv], x[nv:], time=t), trajectory.at(t), 0.0)

    def rate(t, x):
        motion.use(command(t, x))
        return np.concatenate([x[nv:], motion.acceleration(x[:nv], x[nv:], np.zeros(0))])

    x, found = np.concatenate([q, np.zeros(nv)]), []
    corners = {times[0], times[-1], *(w.time for w in trajectory.waypoints)}
    corners = sorted(c for c in corners if times[0] <= c <= times[-1])
    for begin, end in itertools.pairwise(corners):
        inside = times[(times >= begin) & (times < end)]
        run = solve_ivp(rate, (begin, end), x, "DOP853", [*inside, end], rtol=rtol, atol=1e-13)
        found.append(run.y.T[:-1])
        x = run.y.T[-1]
    y = np.concatenate([*found, x[None]])
    tau = [command(t, now).value for t, now in zip(times, y, strict=True)]
    return y[:, :nv], y[:, nv:], np.array(tau)
