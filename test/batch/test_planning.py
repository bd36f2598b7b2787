"""Planning: the kernel against plant and Python cost, the methods against closed forms."""

import math
import threading
import tracemalloc
from dataclasses import replace
from functools import partial

import casadi as ca
import numpy as np
import pytest

from arm_dynamics import load_arm, load_scene
from arm_dynamics.batch import (
    Cost,
    CrossEntropy,
    Horizon,
    Ilqr,
    Mpc,
    Mppi,
    NoPlan,
    Planner,
    PredictiveSampling,
)
from arm_dynamics.batch.kernels import plan_loop, riccati
from arm_dynamics.batch.kernels.cost import cost_geometry
from arm_dynamics.batch.kernels.symbolic_math import Symbol, traced
from arm_dynamics.batch.planning.knots import SPLINES, KnotSpline
from arm_dynamics.batch.planning.sampling_methods import _coloring
from arm_dynamics.control import ControlLoop, JointTrajectory, Waypoint
from arm_dynamics.control.linear_controller import linearized_controller
from arm_dynamics.control.stability_margins import TimedArm, copied
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.demos import swing_up
from arm_dynamics.dynamics import kinetic_energy
from arm_dynamics.hardware import SimulationDriver
from arm_dynamics.simulation import Simulation, maximum, squared, where
from arm_dynamics.simulation.plant import Plant

NOISE = {"noise": 1.0, "samples": 64, "knots": 4}


def distance(x):
    return math.sqrt(x @ x + 1e-12)


def whole_stage(s, p):
    """Every quantity of a stage."""
    gaps = sum(maximum(0.1 - gap, 0.0) for gap in (*s.object_gaps, *s.own_gaps))
    gaps += sum(s.sphere_gaps(p.target, 0.1))
    return (
        p.weight * distance(s.tool_position - p.target)
        + s.tool_velocity @ s.tool_velocity
        + s.tool_rotation[0, 1]
        + s.position_excess @ s.position_excess
        + 0.1 * (s.effort @ s.effort + s.command @ s.command)
        + s.kinetic_energy
        + s.potential_energy
        + gaps
    )


def rest(s, p):
    return 10 * (s.v @ s.v)


def reach(s, p):
    return (
        (s.q - p.q_ref) @ (s.q - p.q_ref) + 0.1 * (s.v @ s.v) + p.effort * (s.command @ s.command)
    )


@pytest.fixture(scope="module")
def two_link():
    arm = load_arm("two_link")
    joints = tuple(replace(j, damping=0.0, effort=50.0) for j in arm.joints)
    return replace(arm, joints=joints)


def planner_of(arm, method, **options):
    cost = Cost(reach, rest, {"q_ref": [0.5, -0.3], "effort": 1e-5})
    return Planner(arm, cost, method, Horizon(12, 0.05, 2), **options)


@pytest.mark.parametrize("policy", ["command", "gravity", "acceleration"])
def test_costs_are_those_of_the_plant(policy):
    arm, scene = load_arm("five_dof"), load_scene("ground")
    cost = Cost(whole_stage, rest, {"target": [0.3, 0.0, 0.2], "weight": 10.0})
    horizon = Horizon(8, 0.004, 2, delay=2)
    planner = Planner(arm, cost, Mppi(**NOISE), horizon, policy=policy, scene=scene)
    kernel, random = planner.kernel, np.random.default_rng(0)
    planner.set_parameters({"target": random.uniform(0.1, 0.4, (8, 3))})
    kernel.knots[:] = 0.3 * random.normal(size=kernel.knots.shape)
    kernel.inputs[:], kernel.states[:] = 0.1, 0.2
    kernel.gains[:] = 0.02 * random.normal(size=kernel.gains.shape)
    kernel.feedback = True
    q, v, sent = np.full(5, 0.1), np.full(5, 0.3), 0.3 * random.normal(size=(2, 5))
    kernel.start_from(np.concatenate([q, v, arm.initial_act]), planner.parameters, sent)
    costs = kernel.costs()
    W = KnotSpline("cubic", 4).matrix(np.arange(6) / 5)
    plant, geometry, data = Plant(arm), cost_geometry(arm, scene), arm.model.createData()
    for k_sample in (0, 5):
        state, total = State.of(q, v, act=arm.initial_act), 0.0
        for k in range(8):
            command = sent[k] if k < 2 else None
            if command is None:
                u = kernel.inputs[k - 2] + W[k - 2] @ kernel.knots[0, :4, :, k_sample]
                u = u + kernel.gains[k - 2] @ (
                    kernel.states[k - 2] - np.concatenate([state.q, state.v])
                )
                command = planner.spec.command(arm, data, state.q, state.v, u)
            state = plant.step(state, Command("effort", command), 0.002, 2)
            stage = geometry.stage(state, command)
            total += cost.evaluate(stage, planner.parameters[k])
        total += cost.evaluate(stage, planner.parameters[7], terminal=True)
        assert costs[k_sample] == pytest.approx(total, rel=1e-9)


def test_voltages_and_float32():
    arm = load_arm("five_dof")
    cost = Cost(lambda s, p: s.q @ s.q + 1e-3 * (s.command @ s.command))
    plans = [
        Planner(arm, cost, Mppi(**NOISE), Horizon(6, 2e-3, 4), interface="voltage", precision=name)
        for name in ("float64", "float32")
    ]
    for planner in plans:
        planner.kernel.knots[:] = np.random.default_rng(0).normal(size=planner.kernel.knots.shape)
        start = np.concatenate([np.full(5, 0.2), np.zeros(5), arm.initial_act])
        planner.kernel.start_from(start, planner.parameters, np.empty((0, 5)))
    double, single = (planner.kernel.costs() for planner in plans)
    np.testing.assert_allclose(single, double, rtol=1e-4)


@pytest.mark.parametrize("kind", SPLINES)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_splines_interpolate(kind, count):
    spline, times = KnotSpline(kind, count), np.linspace(0, 1, 23)
    W = spline.matrix(times)
    np.testing.assert_allclose(W.sum(axis=1), 1.0, atol=1e-12)  # constants are reproduced
    at, weights = spline.taps(times)
    padded = np.concatenate([np.arange(float(count)) ** 2, np.zeros(3)])
    found = [w @ padded[i : i + 4] for i, w in zip(at, weights, strict=True)]
    np.testing.assert_allclose(found, W @ padded[:count], atol=1e-12)
    if kind != "zero_order" and count > 1:
        ends = np.linspace(0, 1, count)
        np.testing.assert_allclose(spline.matrix(ends), np.eye(count), atol=1e-12)
        np.testing.assert_allclose(W @ ends, times, atol=1e-12)  # and straight lines


def test_cubic_splines_have_a_continuous_slope():
    spline, h = KnotSpline("cubic", 6), 1e-6
    for knot in (0.2, 0.4, 0.6, 0.8):
        left, at, right = spline.matrix(np.array([knot - h, knot, knot + h]))
        np.testing.assert_allclose((at - left) / h, (right - at) / h, atol=1e-3)


@pytest.mark.parametrize("color", [0.0, 1.0, 2.0])
def test_colored_noise_has_unit_variance(color):
    C = _coloring(8, color)
    covariance = C @ C.T
    np.testing.assert_allclose(np.diag(covariance), 1.0, atol=1e-12)
    assert covariance[0, 1] == pytest.approx(0.0, abs=1e-12) if color == 0 else covariance[0, 1] > 0
    if color:
        slow = _coloring(8, color + 1)
        assert (slow @ slow.T)[0, 1] > covariance[0, 1]


def test_ilqr_solves_a_linear_quadratic_problem_in_one_step(two_link):
    """Computed torque makes a double integrator: gains are those of the Riccati equation."""
    horizon, cost = Horizon(12, 0.05, 1), Cost(quadratic, terminal_quadratic)
    planner = Planner(two_link, cost, Ilqr(), horizon, policy="acceleration")
    plan = planner.update(State.of([0.4, -0.2], [0.1, 0.3]))
    dt, n = 0.05, 2
    A = np.block([[np.eye(n), dt * np.eye(n)], [np.zeros((n, n)), np.eye(n)]])
    B = np.vstack([dt**2 * np.eye(n), dt * np.eye(n)])
    Q, V = np.diag([2.0, 2.0, 0.2, 0.2]), np.diag([0.0, 0.0, 20.0, 20.0])
    gains = []
    for _ in range(12):
        W = V + Q
        K = np.linalg.solve(B.T @ W @ B, B.T @ W @ A)
        gains.insert(0, K)
        V = A.T @ W @ A - A.T @ W @ B @ K
    np.testing.assert_allclose(plan.gains, gains, rtol=1e-5, atol=1e-8)
    x, total = np.array([0.4, -0.2, 0.1, 0.3]), 0.0
    for k, K in enumerate(gains):
        np.testing.assert_allclose(plan.inputs[k], -K @ x, atol=1e-4)
        np.testing.assert_allclose(plan.states[k], x, atol=1e-5)
        u = -K @ x
        x = A @ x + B @ u
        total += 0.5 * x @ Q @ x
    total += 10 * x[2:] @ x[2:]
    assert plan.cost == pytest.approx(total, rel=1e-4)


def quadratic(s, p):
    return s.q @ s.q + 0.1 * (s.v @ s.v)


def terminal_quadratic(s, p):
    return 10 * (s.v @ s.v)


def test_ilqr_keeps_limits_and_lowers_the_cost(two_link):
    arm = replace(two_link, joints=tuple(replace(j, effort=4.0) for j in two_link.joints))
    planner = planner_of(arm, Ilqr(iterations=1))
    state, costs = State.of([-1.5, 0.2]), []
    for _ in range(12):
        plan = planner.update(state)
        costs.append(plan.cost)
        assert (np.abs(plan.inputs) <= 4.0 * (1 + 1e-12)).all()
    assert (np.diff(costs) <= 1e-9 * costs[0]).all()
    assert costs[-1] < costs[0]
    assert (np.abs(plan.inputs) > 3.99).any()  # gravity needs more than the limit


@pytest.mark.parametrize("kind", [Mppi, CrossEntropy, PredictiveSampling])
def test_sampling_approaches_the_optimum(two_link, kind):
    state, optimal = State.of([0.3, -0.2]), planner_of(two_link, Ilqr(20), policy="gravity")
    optimal.set_parameters({"effort": 0.01})
    least = optimal.update(state).cost
    method = kind(2.0, samples=128, knots=6, iterations=100, seed=3)
    planner = planner_of(two_link, method, policy="gravity")
    planner.set_parameters({"effort": 0.01})
    start = planner.update(state).cost
    assert least * (1 - 1e-3) <= start <= 1.2 * least


def test_mppi_weights_are_exponential(two_link):
    planner = planner_of(two_link, Mppi(1.0, samples=32, knots=3, temperature=0.5))
    planner.kernel.knots[:] = np.random.default_rng(0).normal(size=planner.kernel.knots.shape)
    costs = np.linspace(1.0, 5.0, 32)
    costs[7] = np.inf
    excess = costs - 1.0
    weights = np.exp(-excess / (0.5 * np.median(excess[np.isfinite(excess)])))
    expected = planner.kernel.knots[0, :3] @ (weights / weights.sum())
    np.testing.assert_allclose(planner.method._mean(costs), expected, atol=1e-12)


@pytest.mark.parametrize("kind", [Mppi, CrossEntropy, PredictiveSampling])
def test_equal_seeds_give_equal_bits(two_link, kind):
    def plan(threads=1, seed=0):
        planner = planner_of(two_link, kind(1.0, samples=96, seed=seed, color=1.0), threads=threads)
        planner.update(State.of([0.3, -0.2]))
        return planner.update(State.of([0.3, -0.2], time=0.03))

    first = plan()
    for other in (plan(), plan(threads=3)):
        np.testing.assert_array_equal(first.inputs, other.inputs)
        assert first.cost == other.cost
    assert (plan(seed=1).inputs != first.inputs).any()


def test_reset_forgets(two_link):
    planner = planner_of(two_link, Mppi(1.0, samples=32), feedback=True)
    first = planner.update(State.of([0.3, -0.2]))
    planner.update(State.of([0.4, -0.2], time=0.1))
    planner.reset()
    np.testing.assert_array_equal(planner.update(State.of([0.3, -0.2])).inputs, first.inputs)


def test_a_plan_continues_the_one_before(two_link):
    """After whole periods along the predicted motion nothing is left to improve at its start."""
    planner = planner_of(two_link, Ilqr(20), policy="gravity")
    plan = planner.update(State.of([0.3, -0.2]))
    q, v = np.split(plan.states[2], 2)
    planner.method.iterations = 1
    planner.local_model.change_damping(1e9)  # a step that changes nothing
    later = planner.update(State.of(q, v, time=0.1))
    np.testing.assert_allclose(later.inputs[:10], plan.inputs[2:], atol=5e-3)
    np.testing.assert_allclose(later.states[:10], plan.states[2:12], atol=1e-2)


def test_commands_follow_the_plan_with_feedback(two_link):
    planner = planner_of(two_link, Ilqr(5), policy="gravity")
    plan = planner.update(State.of([0.3, -0.2]))
    at, after = plan.states[3], np.array([0.01, 0.0, 0.0, 0.02])
    for offset in (np.zeros(4), after):
        q, v = np.split(at + offset, 2)
        state = State.of(q, v, time=3 * plan.period)
        u = plan.inputs[3] - plan.gains[3] @ offset
        expected = planner.spec.command(two_link, two_link.model.createData(), q, v, u)
        np.testing.assert_allclose(planner.command(state).value, expected, atol=1e-9)
    assert plan.end == pytest.approx(0.6)


def test_two_link_stands_up_with_half_of_the_gravity_torque():
    """two_link starts anywhere, and stands upright at rest after at most 9 s."""
    arm = swing_up.weak_arm()
    planner, plant = swing_up.planner(arm), Plant(arm)
    random = np.random.default_rng(0)
    for start in [State.of(random.uniform(-3, 3, 2), random.uniform(-1, 1, 2)) for _ in range(2)]:
        planner.reset()
        state = start
        while state.time < 9:
            planner.update(state)
            for _ in range(4):
                state = plant.step(state, planner.command(state), 0.01)
        turns = (state.q - [math.pi / 2, 0.0]) / (2 * math.pi)
        np.testing.assert_allclose(turns, np.round(turns), atol=1e-3)
        np.testing.assert_allclose(state.v, 0.0, atol=1e-2)


def test_a_tick_allocates_no_array(two_link):
    planner = planner_of(two_link, Mppi(1.0, samples=512))
    planner.update(State.of([0.3, -0.2]))
    planner.kernel.costs()
    tracemalloc.start()
    for _ in range(5):
        planner.kernel.costs()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 512 * 8  # less than one number per sample


def branches(s, p):
    if s.q[0] > 0:
        return s.q[0]
    return -s.q[0]


def vector_cost(s, p):
    return s.q


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (branches, "cost 'branches', line "),
        (vector_cost, r"cost 'vector_cost': shape of its value = \(2,\); expected a number"),
        (lambda s, p: None, "value = None; expected a finite number"),
        (lambda s, p: math.nan, "value = nan; expected a finite number"),
        (lambda s, p: p.missing, "cost '<lambda>', line .*missing"),
        (lambda s, p: float(s.q[0]), "expected arithmetic"),
    ],
)
def test_a_cost_that_cannot_be_traced_is_named(two_link, cost, message):
    with pytest.raises(InvalidValue, match=message):
        Planner(two_link, Cost(cost), Mppi(**NOISE))


def test_the_line_of_a_cost_is_that_of_the_file(two_link):
    line = branches.__code__.co_firstlineno + 1
    with pytest.raises(InvalidValue, match=f"line {line}: TypeError"):
        Planner(two_link, Cost(branches), Mppi(**NOISE))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Horizon(3, delay=3), "horizon: periods = 3; expected more than the delay of 3"),
        (lambda: Horizon(3, period=0), "period"),
        (lambda: Mppi(-1.0), "noise = -1.0; expected numbers above 0"),
        (lambda: Mppi("a"), "'a'"),
        (lambda: Cost(reach).packed([1]), r"parameters = \[1\]; expected a Mapping"),
        (lambda: Mppi(1.0, temperature=0), "temperature"),
        (lambda: CrossEntropy(1.0, elites=2.0), "elites"),
        (lambda: Cost(3), "cost: running = 3; expected a function"),
        (lambda: Cost(partial(reach)), "write it with 'def' or 'lambda'"),
        (lambda: Cost(reach, None, {"a": []}), r"parameter 'a' = \[\]; expected finite"),
        (lambda: Cost(reach, None, [1]), "cost: parameters"),
        (lambda: Ilqr(seed=-1), "seed = -1"),
        (lambda: Cost(reach, parameters={"a": np.nan}), "parameter 'a' = nan"),
        (lambda: KnotSpline("square", 3), "square"),
    ],
)
def test_values_out_of_range_are_rejected(make, message):
    with pytest.raises((InvalidValue, UnknownName), match=message):
        make()


def test_planners_reject_what_does_not_fit(two_link):
    with pytest.raises(InvalidValue, match="knots = 20; expected at most the 12 periods"):
        planner_of(two_link, Mppi(1.0, knots=20))
    with pytest.raises(InvalidValue, match=r"noise: size = 3; expected one number or 2"):
        planner_of(two_link, Mppi(np.ones(3)))
    with pytest.raises(InvalidValue, match="policy 'gravity': interface = 'voltage'"):
        planner_of(load_arm("five_dof"), Mppi(1.0), interface="voltage", policy="gravity")
    with pytest.raises(UnknownName, match="policy"):
        planner_of(two_link, Mppi(1.0), policy="torque")
    planner = planner_of(two_link, Mppi(1.0, samples=32))
    with pytest.raises(UnknownName, match="goal"):
        planner.set_parameters({"goal": 1.0})
    with pytest.raises(InvalidValue, match="periods = 3; expected 12"):
        planner.set_parameters({"q_ref": np.zeros((3, 2))})
    with pytest.raises(InvalidValue, match="pending commands"):
        planner.update(State.of([0, 0]), np.zeros((1, 2)))
    with pytest.raises(InvalidValue, match="plan = None"):
        planner.command(State.of([0, 0]))
    with pytest.raises(InvalidValue, match="state q"):
        planner.update(State.of([0, 0, 0]))


def test_a_cost_that_is_not_finite_raises(two_link):
    def undefined(s, p):
        return math.log(p.zero) + s.q[0]

    planner = Planner(two_link, Cost(undefined, parameters={"zero": 1.0}), Mppi(1.0, samples=32))
    good = planner.update(State.of([0.1, 0.0]))
    planner.set_parameters({"zero": -1.0})
    text = r"t = 0.02 s: finite costs = 0 of 32 samples; expected at least one; .*; check the cost"
    with pytest.raises(NoPlan, match=text):
        planner.update(State.of([0.1, 0.0], time=0.02))
    planner.set_parameters({"zero": 1.0})
    assert planner.plan is good
    assert np.isfinite(planner.update(State.of([0.1, 0.0], time=0.04)).cost)


def test_a_start_beyond_a_hard_limit_names_the_joint(two_link):
    """A cost that is infinite beyond the limits has no sample within them."""

    def hard(s, p):
        return where(s.position_excess @ s.position_excess > 0, math.inf, s.v @ s.v)

    upper = replace(two_link.joints[1], upper=0.5)
    arm = replace(two_link, joints=(two_link.joints[0], upper))
    planner = Planner(arm, Cost(hard), Mppi(1.0, samples=32), Horizon(8, 0.01, 2))
    planner.update(State.of([0.0, 0.4]))
    text = "finite costs = 0 of 32 .*'J2' at 0.8 rad, limits .* to 0.5; move it into its range"
    with pytest.raises(NoPlan, match=text):
        planner.update(State.of([0.0, 0.8], time=0.01))


def test_a_motion_that_diverges_names_the_joint_and_the_period(two_link):
    def speed(s, p):
        return s.v @ s.v

    planner = Planner(two_link, Cost(speed), Mppi(1.0, samples=32), Horizon(8, 0.01, 2))
    with pytest.raises(NoPlan, match=r"joint '\w+' is not finite after \d of 8 periods; reduce"):
        planner.update(State.of([0.0, 0.0], [1e150, 0.0]))


def loop_of(planner, **options):
    driver = SimulationDriver(planner.arm, Simulation(planner.arm, dt=1e-3, period=5e-3))
    controller = Mpc(planner, **options)
    loop = ControlLoop(driver, controller)
    return loop, controller


def advance(loop, duration):
    """Run a loop of 200 Hz in lockstep."""
    for _ in range(round(duration / 5e-3)):
        loop.step()


@pytest.mark.parametrize("background", [False, True])
def test_a_control_loop_follows_a_trajectory(two_link, background):
    planner = planner_of(two_link, Ilqr(2), policy="gravity")
    loop, controller = loop_of(planner, background=background)
    loop.step()
    goal = np.array([0.3, -0.2])
    loop.follow(JointTrajectory((Waypoint(1.0, goal, np.zeros(2)),)))
    for _ in range(60):
        advance(loop, 0.05)
        if background and controller._running is not None:
            controller._running.result(30)
    np.testing.assert_allclose(loop.state.q, goal, atol=0.02)
    np.testing.assert_allclose(loop.state.v, 0.0, atol=0.02)
    assert controller.failed == 0


def recursive(x, n):
    return x if n == 0 else math.sin(recursive(x, n - 1))


def test_a_cost_may_use_functions_that_call_themselves():
    assert traced(recursive)(Symbol(ca.SX.sym("x")), 2).constant is None
    assert traced(recursive)(0.3, 2) == math.sin(math.sin(0.3))


def energy_of(s):
    return s.kinetic_energy


def test_a_global_with_the_name_of_a_quantity_is_not_traced():
    """``kinetic_energy`` of this module has checks that cannot be traced."""
    assert traced(energy_of).__globals__["kinetic_energy"] is kinetic_energy


@pytest.mark.parametrize("method", [Mppi(**NOISE), Ilqr(2)])
@pytest.mark.parametrize("time", [-1.0, 1e9])
def test_a_plan_of_another_time_is_forgotten(two_link, method, time):
    """Time that goes back, or beyond the horizon, gives the plan of a new planner."""
    state = State.of([0.3, 0.1], time=time)
    used, new = (planner_of(two_link, method) for _ in range(2))
    used.update(State.of([0.0, 0.0]))
    assert used.method is not new.method
    np.testing.assert_array_equal(used.update(state).inputs, new.update(state).inputs)


def test_a_failed_plan_moves_the_nominal_motion_once(two_link, monkeypatch):
    planner = planner_of(two_link, PredictiveSampling(**NOISE))
    before = planner.update(State.of([0.0, 0.0])).inputs
    monkeypatch.setattr(planner.method, "improve", lambda: math.inf)
    for time in (0.05, 0.1):
        with pytest.raises(NoPlan):
            planner.update(State.of([0.0, 0.0], time=time))
    np.testing.assert_allclose(planner.kernel.inputs[:-2], before[2:], atol=1e-9)


def test_an_interrupted_plan_does_not_block(two_link, monkeypatch):
    controller = Mpc(planner_of(two_link, Mppi(**NOISE)))
    state, reference = State.of([0.0, 0.0]), Reference.hold([0.0, 0.0])

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(controller.planner, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            controller.update(state, reference, 0.05)
    controller.reset(state)
    assert controller.update(state, reference, 0.05).value.shape == (2,)


def test_a_clock_set_back_starts_again(two_link):
    controller = Mpc(planner_of(two_link, Mppi(**NOISE)))
    reference = Reference.hold([0.0, 0.0])
    for time in (5.0, 1.0):
        controller.update(State.of([0.0, 0.0], time=time), reference, 0.05)
        assert controller.planner.plan.time == time


def test_runs_are_reproducible(two_link):
    def run():
        method = Mppi(2.0, samples=64, knots=4)
        loop, _ = loop_of(planner_of(two_link, method, policy="gravity"))
        advance(loop, 0.5)
        return loop.state.q

    np.testing.assert_array_equal(run(), run())


def test_plans_that_stop_coming_end_the_commands(two_link, monkeypatch):
    planner = planner_of(two_link, Ilqr(2), policy="gravity")
    loop, controller = loop_of(planner, max_age=0.2)
    advance(loop, 0.3)
    assert loop.command is not None

    def fails(state, pending):
        raise NoPlan("finite costs = 0 of 32 samples")

    monkeypatch.setattr(planner, "update", fails)
    advance(loop, 0.15)
    assert loop.command is not None  # the plan before is followed
    advance(loop, 0.15)
    assert loop.command is None
    text = "expected at most 0.2 s; finite costs = 0 of 32 samples"
    assert text in loop.events.latest["controller_failed"]
    rest = [loop.driver.read().q for _ in range(2) if advance(loop, 1.0) is None]
    np.testing.assert_allclose(*rest, atol=1e-6)  # the arm holds after its controlled stop
    assert controller.failed > 3


def test_late_plans_are_counted(two_link, monkeypatch):
    planner = planner_of(two_link, Ilqr(2), policy="gravity")
    loop, controller = loop_of(planner, background=True, max_age=10)
    advance(loop, 0.1)
    update, released = planner.update, threading.Event()

    def waits(state, pending):
        released.wait(30)
        return update(state, pending)

    monkeypatch.setattr(planner, "update", waits)
    before = controller.late
    advance(loop, 0.3)
    released.set()
    assert controller.late >= before + 4
    controller.reset(loop.state)


def test_a_known_delay_is_compensated(two_link):
    """Commands act two periods late; a planner without that delay oscillates."""
    period, errors = 0.02, {}
    for delay in (0, 2):
        cost = Cost(reach, rest, {"q_ref": [0.5, -0.3], "effort": 1e-5})
        horizon = Horizon(20 + delay, period, 2, delay=delay)
        planner = Planner(two_link, cost, Ilqr(2), horizon, policy="gravity")
        controller, plant = Mpc(planner), Plant(two_link)
        state, sent = State.of([0.0, 0.0]), [np.zeros(2)] * 2
        for _ in range(200):
            command = controller.update(state, Reference.hold([0.5, -0.3]), period)
            sent.append(command.value)
            state = plant.step(state, Command("effort", sent.pop(0)), period / 4, 4)
        errors[delay] = np.abs(state.q - [0.5, -0.3]).max() + np.abs(state.v).max()
    assert errors[2] < 1e-2
    assert errors[0] > 10 * errors[2]


def test_stability_margins_of_a_planned_motion(two_link):
    """The analysis of a loop copies its controller, and linearizes the feedback of the plan."""
    planner = planner_of(two_link, Ilqr(5), policy="gravity")
    controller, q = Mpc(planner, background=True), np.array([0.5, -0.3])
    trial = copied(controller)
    assert trial.planner is not planner
    linear = linearized_controller(trial, q, 5e-3)
    gains = trial._plan.gains[0]
    np.testing.assert_allclose(linear.J, -gains, rtol=1e-3, atol=1e-3 * np.abs(gains).max())
    assert not TimedArm(two_link, LoopTiming(5e-3), [q]).oscillation(controller, 1.5)


@pytest.mark.parametrize("method", [Ilqr(), Mppi(**NOISE)])
def test_no_plan_compiles(two_link, method, monkeypatch):
    """A plan is made by the constructor, since torque is enabled when the next one is made."""
    functions = [plan_loop.evaluate, riccati.expand, riccati.backward]
    update, states = Planner.update, []
    monkeypatch.setattr(
        Planner, "update", lambda self, s, sent=(): states.append(s) or update(self, s, sent)
    )
    planner = planner_of(two_link, method, feedback=True)
    before = [len(function.signatures) for function in functions]
    assert (len(states), planner.plan) == (1, None)
    planner.update(State.of([0.3, -0.2]))
    assert [len(function.signatures) for function in functions] == before


def test_squared_terms_have_the_gauss_newton_form():
    """2 ∇x ∇xᵀ instead of the exact derivative 2 ∇x ∇xᵀ + 2 x ∇²x; values and gradients agree."""

    def exact(s, p):
        return (s.q[0] ** 2 - 3.0) ** 2 + s.command @ s.command

    def least_squares(s, p):
        return squared(s.q[0] ** 2 - 3.0) + s.command @ s.command

    arm, found = load_arm("two_link"), []
    for function in (exact, least_squares):
        planner = Planner(arm, Cost(function), Ilqr(1), Horizon(4, 0.02, 2))
        planner.update(State.of([0.5, 0.0]))
        gradients, hessians = planner.local_model.costs
        found.append((gradients[0].copy(), hessians[0].copy()))
    (gradient, hessian), (same, newton) = found
    np.testing.assert_allclose(same, gradient, rtol=1e-12)
    assert newton[0, 0] > 1.0  # 8 q², of (q² - 3)² exactly 12 q² - 12
    assert hessian[0, 0] == pytest.approx(1.5 * newton[0, 0] - 12, rel=1e-9)
    np.testing.assert_allclose(newton[1:, 1:], hessian[1:, 1:], atol=1e-12)
