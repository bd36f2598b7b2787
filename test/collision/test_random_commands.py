"""Random commands to an arm that stops before contacts: no pair comes nearer than its clearance.

Joints are ideal: they follow position, velocity and acceleration commands within the velocity
limits and the default deceleration of the arm, and brake with the deceleration of a stop.
"""

import warnings

import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics import load_arm, load_scene
from arm_dynamics.collision.clearance_monitor import CLEARANCE, TOLERANCE
from arm_dynamics.control.collision_avoidance import CollisionAvoidance
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.safety.braking import HARD_STOP, default_deceleration

DT = 4e-3
CYCLES = 12
"""Cycles of a command."""
FASTEST = 3.0
"""Largest velocity [rad/s or m/s]."""
ERROR = 3e-4
"""Error of a distance between two cycles [m]."""


def acceleration(random, arm, q, v, limit, most):
    """Return a function of q, v that is the acceleration of a random command."""
    kind = random.integers(3)
    target = random.uniform(np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi))
    speed, push = random.uniform(-limit, limit), random.uniform(-most, most)
    if kind == 0:
        return lambda q, v: np.clip(8 * (target - q), -limit, limit) / DT - v / DT
    return (lambda q, v: (speed - v) / DT) if kind == 1 else (lambda q, v: push)


def run(arm, commands, scene):
    """Return the smallest distance less the required one [m], and the number of stops."""
    random = np.random.default_rng(0)
    braking = CollisionAvoidance(arm, scene=scene).braking
    monitor = braking._distances
    data, results = arm.model.createData(), monitor.shapes.createData()
    # Links that are nearer at the start keep about half of their distance there.
    required = np.minimum(monitor.margins - TOLERANCE - ERROR, CLEARANCE)
    limit = np.minimum(arm.velocity_limit, FASTEST)
    brake = HARD_STOP * default_deceleration(arm)
    most = brake / HARD_STOP
    q, v = np.array(arm.configuration("initial")), np.zeros(arm.nv)
    least, stops = np.inf, 0
    for number in range(commands):
        command, stopping = acceleration(random, arm, q, v, limit, most), False
        cycle = 0
        while cycle < CYCLES or (stopping and np.abs(v).max() > 0):
            cycle += 1
            if not stopping and braking.contact_ahead(q, v) is not None:
                stopping, stops = True, stops + 1
            if stopping:
                change = -np.sign(v) * np.minimum(np.abs(v), brake * DT)
            else:
                change = DT * np.clip(command(q, v), -most, most)
            v = np.clip(v + change, -limit, limit)
            inside = np.clip(q + DT * v, arm.lower, arm.upper)
            v = np.where(inside == q + DT * v, v, 0.0)
            q = inside
        if not stopping and number % 5:
            continue
        pin.computeDistances(arm.model, data, monitor.shapes, results, q)
        distances = np.array([result.min_distance for result in results.distanceResults])
        least = min(least, float((distances - required).min()))
    return least, stops


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("so101", 500),
        pytest.param("so101", 10_000, marks=pytest.mark.slow),
        pytest.param("seven_dof_can", 10_000, marks=pytest.mark.slow),
        pytest.param("panda", 10_000, marks=pytest.mark.slow),
        pytest.param("ur5", 10_000, marks=pytest.mark.slow),
    ],
)
def test_random_commands_bring_no_pair_nearer_than_its_clearance(name, commands):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            arm = load_arm(name)
        except UnknownName:
            pytest.skip("example-robot-data is not installed")
        least, stops = run(arm, commands, load_scene("table"))
    assert stops > 5
    assert least > 0
