"""Closed loops in continuous time: written-out equations of the controllers, and sampled loops."""

import numpy as np
import pytest
from conftest import chain
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from arm_dynamics import load_arm
from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.impedance import Impedance
from arm_dynamics.control.controllers.pid import Pid, PidGravity
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.control.trajectories.joint_splines import cubic_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import State
from arm_dynamics.dynamics import rigid_body

ONE = chain({"damping": 0.4, "effort": 6.0, "axis": "0 1 0"})
STEP = JointTrajectory.hold([0.8])
GAINS = {"p": 9.0, "i": 12.0, "d": 1.5, "i_clamp": 0.7, "d_filter": 0.05}


def follow(arm, controller, trajectory=STEP, q=(0.0,), **options):
    options = {"seconds": 1.0, "period": 0.1, "continuous": True} | options
    return simulate_closed_loop(arm, controller, trajectory, State.of(q), **options)


@pytest.mark.parametrize("lag", [0.05, 0.0])
def test_pid_with_filter_clamp_and_saturation_satisfies_its_equations(lag):
    """İ = i e within ±i_clamp and while not saturated outward, v̇_f = (v - v_f) / d_filter."""

    def rate(t, y):
        q, v, integral, filtered = y
        seen = filtered if lag else v
        computed = 9.0 * (0.8 - q) + integral - 1.5 * seen
        tau = np.clip(computed, -6.0, 6.0)
        grows = 12.0 * (0.8 - q) if (computed - tau) * (0.8 - q) <= 0 else 0.0
        grows = 0.0 if abs(integral) >= 0.7 and integral * grows > 0 else grows
        a = rigid_body.aba(ONE, [q], [v], [tau - 0.4 * v])[0]
        return [v, a, grows, (v - filtered) / lag if lag else 0.0]

    times = np.arange(21) * 0.1
    exact = solve_ivp(
        rate, (0, 2.0), np.zeros(4), t_eval=times, max_step=1e-3, rtol=1e-8, atol=1e-10
    )
    assert exact.y[2].max() == pytest.approx(0.7, abs=0.01)  # the clamp is reached
    found = follow(ONE, Pid(ONE, {"J1": GAINS | {"d_filter": lag}}), seconds=2.0, tolerance=1e-8)
    assert found.tau[0] == 6.0  # the limit is reached
    np.testing.assert_allclose(found.q[:, 0], exact.y[0], atol=2e-5)


def test_computed_torque_with_integral_is_a_linear_system():
    """ë + kd ė + kp e + ki ∫e = 0 in every joint, for any motion."""
    arm = load_arm("two_link")
    arm = arm.with_joint("J1", damping=0.0).with_joint("J2", damping=0.0)
    A = np.array([[0.0, 1.0, 0.0], [-900.0, -48.0, -1.0], [4500.0, 0.0, 0.0]])
    gains = {joint: {"kp": 900.0, "kd": 48.0, "ki": 4500.0} for joint in arm.joint_names}
    found = follow(arm, ComputedTorque(arm, gains), JointTrajectory.hold([0.3, 0.2]), [0.29, 0.21])
    for time, q in zip(found.time, found.q, strict=True):
        for joint, (goal, sign) in enumerate(((0.3, 1.0), (0.2, -1.0))):
            error = expm(A * time) @ [0.01 * sign, 0.0, 0.0]
            assert goal - q[joint] == pytest.approx(error[0], abs=1e-9)


def test_sampled_control_converges_to_continuous_control():
    """The difference is proportional to the period; other arguments are equal."""
    arm, start = load_arm("two_link"), [-1.0, 1.2]
    move = cubic_trajectory([start, [-0.8, 1.1]], [0.0, 0.5])
    ideal = follow(arm, PidGravity(arm), move, start, period=8e-3, seconds=0.8)
    differences = []
    for period in (4e-3, 2e-3, 1e-3):
        run = follow(
            arm, PidGravity(arm), move, start, period=period, dt=5e-4, seconds=0.8,
            continuous=False,
        )  # fmt: skip
        every = round(8e-3 / period)
        np.testing.assert_allclose(run.time[::every], ideal.time, atol=1e-12)
        differences.append(np.abs(run.q[::every] - ideal.q).max())
    assert differences[0] / differences[1] == pytest.approx(2, rel=0.15)
    assert differences[1] / differences[2] == pytest.approx(2, rel=0.15)


def test_actuator_states_and_end_stops_are_simulated():
    """A winding, and a joint pressed into its end stop: equal to a sampled loop of short period."""
    arm = chain({"lower": -0.5, "upper": 0.5, "axis": "0 1 0"}).with_actuator(
        "dc_motor", kt=0.5, ke=0.5, resistance=1.0, inductance=2e-3, gear_ratio=5.0,
        rotor_inertia=1e-3,
    )  # fmt: skip
    arm = arm.with_joint("J1", stop_stiffness=200.0, stop_damping=5.0)
    gains = {"J1": {"p": 20.0, "i": 0.0, "d": 2.0}}
    found = follow(arm, Pid(arm, gains), seconds=0.5)
    sampled = follow(arm, Pid(arm, gains), seconds=0.5, period=2.5e-4, continuous=False)
    assert found.q[-1] > 0.5
    np.testing.assert_allclose(sampled.q[::400], found.q, atol=1e-3)


class UndeclaredIntegral(Controller):
    """Controller with an undeclared integral state."""

    total = 0.0

    def update(self, state, reference, dt):
        """Return integral action."""
        self.total = self.total + dt * (reference.q - state.q)
        return self.effort_command(self.total, state)


@pytest.mark.parametrize(
    ("arm", "kind", "message"),
    [
        (
            ONE,
            UndeclaredIntegral,
            "controller UndeclaredIntegral: its command depends on earlier updates",
        ),
        (ONE.with_joint("J1", friction=0.3), Pid, "'J1': dry friction = 0.3 N·m; expected 0"),
        (
            ONE.with_actuator("rate_limited"),
            PositionController,
            "'J1': actuator with prescribed motion",
        ),
    ],
    ids=["hidden memory", "dry friction", "prescribed"],
)
def test_what_has_no_continuous_form_is_rejected_by_name(arm, kind, message):
    with pytest.raises(InvalidValue, match=message):
        follow(arm, kind(arm))
    follow(arm, kind(arm), continuous=False, period=2e-3, seconds=0.01)


def test_a_discrete_time_recursion_is_rejected_by_name():
    with pytest.raises(InvalidValue, match="controller Impedance: its closed-loop inverse kinem"):
        follow(ONE, Impedance(ONE))


def test_times_must_be_integer_multiples_of_the_period():
    for options in ({"seconds": 0.95}, {"dt": 0.03}):
        with pytest.raises(InvalidValue, match="whole multiple"):
            follow(ONE, Pid(ONE), **options)
    with pytest.raises(InvalidValue, match="tolerance"):
        follow(ONE, Pid(ONE), tolerance=0.0)
