"""The published joint-space controller and gravity compensation on ``two_link``, against reference
data.
"""

import numpy as np
import pytest
from conftest import chain
from continuous import columns, simulate_continuous, table
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from arm_dynamics import load_arm
from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
from arm_dynamics.control.controllers.velocity_pid import VelocityPid
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.model_error import with_model_error

ARM = load_arm("two_link")
GAINS = {"J1": {"kv": 100.0, "kx": 200.0, "ka": 0.5}, "J2": {"kv": 20.0, "kx": 50.0, "ka": 0.05}}
NONE = as_readonly([0.0, 0.0])
START, END = as_readonly([-1.0, 1.2]), as_readonly([0.8, 0.5])
CUBIC = JointTrajectory((Waypoint(0.0, START, NONE), Waypoint(4.0, END, NONE)))
vectors = st.lists(st.floats(-10, 10), min_size=2, max_size=2).map(np.array)


GAINS_TABLE = [list(row.values()) for row in GAINS.values()]


def published(model=ARM, gravity=1.0):
    return VelocityPid(model, GAINS | {"controller": {"gravity_scale": gravity}})


@pytest.mark.slow
def test_the_motion_equals_the_published_one_with_gravity_compensation():
    expected = table("two_link/jointspace_pid_g.csv")
    reference = [CUBIC.at(t) for t in expected["t"]]
    given = columns(expected, "q1_ref", "q2_ref")
    np.testing.assert_allclose([r.q for r in reference], given, atol=1e-11)
    q, v, tau = simulate_continuous(ARM, published(), CUBIC, START, expected["t"])
    np.testing.assert_allclose(q, columns(expected, "q1", "q2"), atol=1e-7)
    np.testing.assert_allclose(v, columns(expected, "qd1", "qd2"), atol=1e-7)
    smooth = ~np.isin(expected["t"], [0.0, 4.0])  # where a_ref is continuous
    published_tau = columns(expected, "tau1", "tau2")
    np.testing.assert_allclose(tau[smooth], published_tau[smooth], atol=1e-6)
    first = published().update(State.of(START), CUBIC.at(1e-12), 0.0).value
    np.testing.assert_allclose(first, published_tau[0], atol=1e-9)
    np.testing.assert_allclose(given - q, columns(expected, "int_e1", "int_e2"), atol=1e-7)


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("gravity", "error", "errors", "digit"),
    [
        (0.0, 0, (-0.063, -0.035), 1e-3),
        (1.0, 0, (7e-4, 5e-4), 1e-4),
        (1.0, 5, (6.6e-3, 3.1e-3), 1e-4),
    ],
    ids=["PID", "PID+G", "PID+G with 5 % error"],
)
@pytest.mark.parametrize("continuous", [True, False], ids=["continuous", "500 Hz"])
def test_final_errors_equal_the_published_ones(gravity, error, errors, digit, continuous):
    """q - q_ref at 5 s, to the digits published; masses and lengths of the model are wrong."""
    controller = published(with_model_error(ARM, mass=error, length=error), gravity)
    ended = simulate_closed_loop(
        ARM, controller, CUBIC, State.of(START), seconds=5, period=5.0 if continuous else 2e-3,
        continuous=continuous, tolerance=1e-8,
    )  # fmt: skip
    np.testing.assert_allclose(ended.q[-1] - END, errors, atol=0.51 * digit)


@pytest.mark.slow
def test_a_wrong_model_acts_only_through_its_gravity_torque():
    """(M + ka) a = kv ė + kx e + ka a_ref + g_model - C v - g - b v, written out and integrated."""
    model, kv, kx, ka = with_model_error(ARM, mass=5, length=5), *np.array(list(GAINS_TABLE)).T
    still = 4.0

    def rate(t, y):
        q, v, r = y[:2], y[2:], CUBIC.at(min(t, np.nextafter(still, 0)))
        command = kv * (r.v - v) + kx * (r.q - q) + ka * r.a + rigid_body.gravity(model, q)
        left = command - rigid_body.nle(ARM, q, v) - 0.1 * v
        return [*v, *np.linalg.solve(rigid_body.mass_matrix(ARM, q) + np.diag(ka), left)]

    exact = solve_ivp(rate, (0, still), [*START, 0, 0], "DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    q, v, _ = simulate_continuous(ARM, published(model), CUBIC, START, np.array([0.0, still]))
    np.testing.assert_allclose([*q[-1], *v[-1]], exact, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [{"mass": 5}, {"mass": 5, "length": 5}])
def test_the_final_error_of_a_wrong_model_is_that_of_its_gravity_torque(wrong):
    """In the end kx (q - q_ref) = g_model - g: no acceleration, so no feedback of it."""
    model = with_model_error(ARM, **wrong)
    q, _, _ = simulate_continuous(ARM, published(model), CUBIC, START, np.array([0.0, 25.0]), 1e-8)
    excess = rigid_body.gravity(model, q[-1]) - rigid_body.gravity(ARM, q[-1])
    np.testing.assert_allclose(q[-1] - END, excess / [200.0, 50.0], atol=1e-7)


@given(q=vectors, v=vectors, goal=vectors, speed=vectors, push=vectors)
def test_the_acceleration_feedback_is_consistent_with_the_motion(q, v, goal, speed, push):
    controller = VelocityPid(ARM, GAINS)
    tau = controller.update(State.of(q, v), Reference(goal, speed, push), 0.0).value
    a = rigid_body.aba(ARM, q, v, tau - 0.1 * v)
    kv, kx, ka = (controller.gains[name] for name in ("kv", "kx", "ka"))
    expected = kv * (speed - v) + kx * (goal - q) + ka * (push - a) + rigid_body.gravity(ARM, q)
    inside = np.abs(tau) < ARM.effort_limit
    if inside.all():
        np.testing.assert_allclose(tau, expected, atol=1e-8)


def test_default_gains_of_a_single_joint_give_30_rad_per_second_and_a_damping_ratio_of_0_8():
    """m a = kv ė + kx e: w² = kx / m, 2 d w = kv / m, as documented."""
    arm = chain({"mass": 3.0, "ixx": 0.1})
    m = float(rigid_body.mass_matrix(arm, arm.configuration("initial"))[0, 0])
    gains = VelocityPid(arm).gains
    assert gains["kx"] / m == pytest.approx(30.0**2)
    assert gains["kv"] / m == pytest.approx(2 * 0.8 * 30.0)
    assert gains["ka"] == 0.0


def test_default_gains_of_coupled_joints_are_damped_at_400_per_second_at_most():
    """Two joints close together on one heavy link: each inertia exceeds the coupled one."""
    arm = chain({"mass": 0.05, "ixx": 1e-4, "center": "0 0 0"}, {"mass": 3.0, "xyz": "0.01 0 0"})
    mass = rigid_body.mass_matrix(arm, arm.configuration("initial"))
    gains = VelocityPid(arm).gains
    rates = np.linalg.eigvals(np.linalg.solve(mass, np.diag(gains["kv"]))).real
    assert rates.max() == pytest.approx(400.0)
    w = gains["kv"] / (1.6 * np.diag(mass))
    np.testing.assert_allclose(w, w[0])
    assert w[0] < 30.0
    np.testing.assert_allclose(gains["kx"], w[0] ** 2 * np.diag(mass))


# Gravity compensation -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "error"), [("exact", 0.0), ("mass_0.1pct_high", 0.1)])
def test_gravity_compensation_equals_the_published_motion(name, error):
    expected = table(f"two_link/gravcomp_{name}.csv")
    controller = GravityCompensation(with_model_error(ARM, mass=error))
    still = JointTrajectory.hold(NONE)
    q, v, _ = simulate_continuous(ARM, controller, still, NONE, expected["t"], 1e-12)
    np.testing.assert_allclose(q, columns(expected, "q1", "q2"), atol=1e-9)
    np.testing.assert_allclose(v, columns(expected, "qd1", "qd2"), atol=1e-9)


def test_excessive_compensation_stays_bounded():
    """The report calls its drift unbounded; with friction the arm settles upright."""
    controller = GravityCompensation(with_model_error(ARM, mass=0.1))
    times = np.array([0.0, 1000.0])
    q, v, _ = simulate_continuous(ARM, controller, JointTrajectory.hold(NONE), NONE, times, 1e-8)
    np.testing.assert_allclose(q[-1], [np.pi / 2, 0.0], atol=0.01)
    np.testing.assert_allclose(v[-1], 0.0, atol=1e-3)
