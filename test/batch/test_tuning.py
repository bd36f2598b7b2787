"""Gain tuning: stability margins, an objective independent of dt, reproducibility by the seed."""

import io
import os
import re
import sys
from dataclasses import replace
from errno import ENOSPC
from functools import cache
from itertools import pairwise
from math import inf, nan

import numpy as np
import pytest
from conftest import chain
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from rich.console import Console

from arm_dynamics import load_arm
from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.tuning import evaluation_log, gain_search, report
from arm_dynamics.batch.tuning import objective as objective_module
from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.cases import draw_cases
from arm_dynamics.batch.tuning.evaluation_log import EvaluationLog
from arm_dynamics.batch.tuning.gain_optimizer import Budget, GainOptimizer
from arm_dynamics.batch.tuning.gain_search import TuningTask
from arm_dynamics.batch.tuning.gain_space import gain_space
from arm_dynamics.batch.tuning.margins import (
    UNSTABLE,
    joint_margins,
    linear_controller_at,
    margins,
    min_margins,
    sampled_plant,
)
from arm_dynamics.batch.tuning.objective import (
    DIVERGED_COST,
    MarginPenalty,
    Objective,
    ObjectiveWeights,
    case_costs,
)
from arm_dynamics.batch.tuning.parameter_file import parameter_text
from arm_dynamics.batch.tuning.python_controller import with_gains
from arm_dynamics.batch.tuning.tolerance import variable_values
from arm_dynamics.batch.tuning.validation import MAX_RESIDUAL_ERROR, validate
from arm_dynamics.cli import tune as tune_command
from arm_dynamics.cli.main import main
from arm_dynamics.cli.terminal import ProgressLines
from arm_dynamics.control.config import build_controller, node_parameters
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.control.linear_controller import closed_loop_map, is_stable
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter

PERIOD = 2e-3
SHORT = CaseDistribution(payload=0.3, duration=0.3, dts=(1e-3, 5e-4))


@cache
def arm():
    motor = {"kt": 20.0, "ke": 1.0, "resistance": 1.0, "supply_voltage": 24.0}
    return load_arm("two_link").with_actuator("dc_motor", **motor)


@cache
def controller():
    return PidGravity(arm())


# Margins --------------------------------------------------------------------------------------


@given(k=st.floats(0.2, 1.5), a=st.floats(0.6, 0.99))
def test_margins_of_a_first_order_loop(k, a):
    """L = k / (z - a) turns unstable at z = -1; |L| = 1 where |e^{iθ} - a| = k."""
    if not abs(a - k) < 0.999 or not 1 - a < k < 1 + a:
        return
    found = margins(lambda z: k / (z - a), PERIOD)
    angle = np.arccos((1 + a * a - k * k) / (2 * a))
    lead = np.pi - np.angle(np.exp(1j * angle) - a)
    assert found.gain_margin == pytest.approx((1 + a) / k, rel=1e-9)
    assert found.gain_reduction == 0
    assert found.phase_margin == pytest.approx(np.degrees(lead), rel=1e-6)
    assert found.crossover == pytest.approx(angle / (2 * np.pi * PERIOD), rel=1e-6)
    assert found.delay_margin == pytest.approx(lead / angle * PERIOD, rel=1e-6)


@pytest.mark.parametrize("gain", [0.5, 1.0, 3.0])
def test_margins_of_a_third_order_textbook_loop(gain):
    """L = K / (s (s + 1) (s + 2)): gain margin 6 / K at ω² = 2."""

    def response(z):
        s = np.log(z) / PERIOD
        return gain / (s * (s + 1) * (s + 2))

    found = margins(response, PERIOD)
    squares = np.roots([1, 5, 4, -(gain**2)])
    w = np.sqrt(squares[np.isclose(squares.imag, 0) & (squares.real > 0)].real[0])
    phase = 90 - np.degrees(np.arctan(w) + np.arctan(w / 2))
    assert found.gain_margin == pytest.approx(6 / gain, rel=1e-6)
    assert found.phase_margin == pytest.approx(phase, abs=1e-6)


def test_a_loop_with_gain_below_one_has_infinite_phase_margin():
    found = margins(lambda z: 0.1 / (z - 0.5), PERIOD)
    assert found.phase_margin == inf
    assert found.delay_margin == inf
    assert found.gain_margin == pytest.approx(15, rel=1e-9)


@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("interface", ["effort", "voltage"])
def test_the_gain_margin_is_the_factor_of_instability_of_the_whole_loop(interface, delay):
    q = arm().configuration("initial")
    whole, pushed = sampled_plant(arm(), q, PERIOD, interface)
    linear = linear_controller_at(controller(), q, PERIOD, interface)
    for j, one in enumerate(joint_margins(arm(), controller(), q, PERIOD, delay, interface)):
        for edge in (one.gain_margin, one.gain_reduction):
            if not 0 < edge < inf:
                continue
            for factor in (edge * 0.999, edge * 1.001):
                scale = np.ones(arm().nv)
                scale[j] = factor
                inside = one.gain_reduction < factor < one.gain_margin
                closed = closed_loop_map(whole, pushed * scale, linear, delay=delay)
                assert is_stable(closed) == inside


def test_an_unstable_loop_has_no_margins():
    wild = with_gains(controller(), {"d": 100 * controller().gains["d"]})
    found = joint_margins(arm(), wild, arm().configuration("initial"), PERIOD)
    assert found == (UNSTABLE, UNSTABLE)
    assert min_margins([found[0], margins(lambda z: 0.1 / (z - 0.5), PERIOD)]) is UNSTABLE


def test_the_penalty_is_positive_if_twice_the_gains_are_unstable(monkeypatch):
    monkeypatch.setattr(objective_module, "FACTORS", (2.0,))
    space = gain_space(controller(), ("p", "d"))
    cases = draw_cases(arm(), 3, 0, replace(SHORT, delay=False))
    reserve = MarginPenalty.of(space, cases)
    factors = np.geomspace(0.5, 20, 12)
    found = reserve(np.log(factors)[:, None] * np.ones(space.size))
    q = arm().configuration("initial")
    for factor, missing in zip(factors, found, strict=True):
        scaled = with_gains(
            controller(), {name: factor * controller().gains[name] for name in ("p", "d")}
        )
        stable = []
        for one, at in ((arm(), q), *((cases.true_arm(k), cases.target[k]) for k in range(3))):
            whole, pushed = sampled_plant(one, at, PERIOD, "effort")
            linear = linear_controller_at(scaled, at, PERIOD, "effort").scaled(2.0)
            stable.append(is_stable(closed_loop_map(whole, pushed, linear)))
        assert (missing < 1e-9) == all(stable)
    assert found[0] < 1e-9 < found[-1]


def test_the_phase_penalty_of_one_joint_follows_from_its_phase_margin():
    """One joint has one loop: the penalty starts where its phase margin is 30 degrees."""
    one = chain({}).with_gravity((0, 0, 0))
    start = PidGravity(one, {"J1": {"p": 40.0, "i": 0.0, "d": 3.0}})
    space, cases = (
        gain_space(start, ("d",)),
        draw_cases(one, 1, 0, replace(SHORT, model_error=0, payload=0)),
    )
    reserve, enough = MarginPenalty.of(space, cases), []
    for d in np.geomspace(0.3, 20, 30):
        [m] = joint_margins(one, with_gains(start, {"d": np.array([d])}), np.zeros(1), PERIOD, 1)
        missing = reserve(space.point({"d": np.array([d])})[None])[0]
        if not np.isnan(m.phase_margin):
            enough.append(m.phase_margin > 30 and m.gain_margin > 2)
            assert m.gain_reduction == 0
            assert (missing < 1e-9) == enough[-1]
    assert set(enough) == {True, False}


# Cases and objective --------------------------------------------------------------------------


def test_a_case_does_not_depend_on_the_number_of_cases():
    few, many = draw_cases(arm(), 3, 5, SHORT), draw_cases(arm(), 9, 5, SHORT)
    assert np.array_equal(few.start, many.start[:3])
    assert all(np.array_equal(few.vary[name], many.vary[name][:3]) for name in few.vary)
    assert not np.array_equal(few.start, draw_cases(arm(), 3, 6, SHORT).start)


def test_cases_are_within_their_distribution():
    cases = draw_cases(load_arm("five_dof"), 60, 0, SHORT)
    limits = cases.arm.lower, cases.arm.upper
    for q in (cases.start, cases.target):
        assert ((q >= limits[0]) & (q <= limits[1])).all()
    assert np.abs(cases.target - cases.start).max() <= SHORT.step_size
    payload = cases.vary["payload"]
    assert payload.min() == 0
    assert payload.max() == SHORT.payload
    for name in set(cases.vary) - {"payload"}:
        off = cases.vary[name] / variable_values(cases.arm, name) - 1
        assert 0.15 < np.abs(off).max() <= SHORT.model_error + 1e-12
    assert set(cases.dt) == set(SHORT.dts)


def test_invalid_distributions_are_rejected():
    for wrong in ({"model_error": 1.0}, {"model_error": -0.1}, {"payload": -1}, {"dts": (3e-4,)}):
        with pytest.raises(InvalidValue):
            replace(SHORT, **wrong)
    with pytest.raises(InvalidValue, match="cases = 0"):
        draw_cases(arm(), 0, 0, SHORT)
    with pytest.raises(InvalidValue, match=r"payload = .*; expected one that"):
        draw_cases(arm(), 1, 0, replace(SHORT, payload=1e4))


def test_candidates_are_evaluated_on_the_same_cases():
    cases, space = draw_cases(arm(), 3, 0, SHORT), gain_space(controller(), ("p", "i", "d"))
    costs = Objective.of(space, cases, ObjectiveWeights()).by_case(np.zeros((2, space.size)))
    assert np.array_equal(costs[0], costs[1])
    assert len(set(costs[0])) == 3


def test_objective_does_not_depend_on_the_time_step():
    space, costs = gain_space(controller(), ("p", "i", "d")), []
    for dt in (5e-4, 1e-4):
        cases = draw_cases(arm(), 4, 0, replace(SHORT, dts=(dt,)))
        costs.append(
            Objective.of(space, cases, ObjectiveWeights()).by_case(np.zeros((1, space.size)))[0]
        )
    assert costs[0] == pytest.approx(costs[1], rel=0.03)  # errors of the integrator are of order dt


def test_effort_commands_scale_with_the_torque_constant():
    """p, i and d scale by Kt / Kt,nominal; by voltage the motor itself scales them."""
    cases = draw_cases(arm(), 3, 0, SHORT)
    ratio = cases.vary["motor.kt"] / 20.0
    rows = cases._effective_gains(controller(), {"gains.p": np.array([[1.0, 2.0]])}, 1)
    assert rows["gains.p"] == pytest.approx(ratio * [1.0, 2.0])
    assert rows["gains.d"] == pytest.approx(ratio * controller().gains["d"])
    volts = draw_cases(arm(), 3, 0, replace(SHORT, interface="voltage"))
    assert volts._effective_gains(controller(), {}, 1)["gains.d"] == pytest.approx(
        np.tile(controller().gains["d"], (3, 1))
    )


def scores(failed=(-1, -1), iae=0.1, overshoot=0.02):
    # the second case does not pass
    late = np.array([[0.0, MAX_RESIDUAL_ERROR], [0.0, MAX_RESIDUAL_ERROR + 0.1]])
    metrics = {"iae": np.full((2, 2), iae), "overshoot": np.full((2, 2), overshoot)}
    metrics["residual_error"] = late
    effort = np.zeros((2, 4, 2))
    effort[:, 1, 0] = 3.0  # a total variation of 6 N·m
    failed = np.array(failed)
    return RolloutResult(
        arm(), np.arange(4.0), {"effort": effort}, failed, np.zeros(2), "", metrics
    )


def test_cost_of_a_case_term_by_term():
    w = ObjectiveWeights(overshoot=0.5, late=3.0, effort=0.25)
    limit, steps = np.array([12.0, inf]), np.full(2, 100.0)
    cost = case_costs(scores(), limit, steps, 2.0, w)
    held = 2 * (0.1 + 0.5 * 0.02) + 0.25 * (6 / 12) / 2
    assert cost == pytest.approx([held, held + 3.0 * 0.1])


def test_the_cost_of_a_diverged_case_decreases_with_its_duration():
    limit, steps = np.full(2, 12.0), np.full(2, 100.0)
    early, late = case_costs(scores((10, 90)), limit, steps, 1.0, ObjectiveWeights())
    worst = case_costs(scores(iae=1e9), limit, steps, 1.0, ObjectiveWeights()).max()
    assert early > late > worst == DIVERGED_COST


def test_costs_are_weighted_between_mean_and_worst():
    space, cases = gain_space(controller(), ("p",)), draw_cases(arm(), 2, 0, SHORT)
    x, costs = np.zeros((1, 2)), np.array([[1.0, 3.0]])
    for worst, expected in ((0.0, 2.0), (1.0, 3.0), (0.5, 2.5)):
        objective = Objective.of(space, cases, ObjectiveWeights(worst=worst, reserve=0.0))
        assert objective.total(x, costs) == pytest.approx(expected)


# Controllers without kernel -------------------------------------------------------------------


class UserPidGravity(PidGravity):
    """The same controller under another name, without a kernel."""


class UserController(Controller):
    """τ = s² m e - 2 s m q̇ with one gain per joint: neither a PID nor linear for the analysis."""

    parameters = (Parameter("s", None, "1/s", "bandwidth", lower=0, upper=1e3),)

    def default_gains(self):
        return {name: {"s": 3.0} for name in self.arm.joint_names}

    def update(self, state, reference, dt):
        s = self.gains["s"]
        return self.effort_command(s**2 * (reference.q - state.q) - 2 * s * state.v, state)


@pytest.mark.quick(1)
@pytest.mark.filterwarnings("ignore:controller UserPidGravity has no kernel")
@pytest.mark.parametrize("interface", ["effort", "voltage"])
def test_a_python_controller_gives_the_results_of_the_kernel(interface):
    """Same controller, cases, noise and delay; by effort without saturation.

    A kernel's gains scale with Kt before the limit, a command after it.
    """
    c = replace(SHORT, interface=interface, duration=0.1, step_size=0.01)
    flat = arm().with_gravity((0, 0, 0))
    cases = draw_cases(flat, 4, 3, c)
    gains = {"gains.p": controller().gains["p"] * [[0.5, 0.5], [1.0, 1.0]]}
    kernel = cases.run(PidGravity(flat), gains, outputs=("q", "effort"))
    python = cases.run(UserPidGravity(flat), gains, outputs=("q", "effort"))
    assert python.time == pytest.approx(kernel.time)
    assert python.q == pytest.approx(kernel.q, rel=1e-9, abs=1e-12)
    for name, values in kernel.metrics.items():
        assert python.metrics[name] == pytest.approx(values, rel=1e-6, abs=1e-9)


@pytest.mark.slow
def test_gains_of_any_controller_are_tuned():
    task = TuningTask(arm(), UserController(arm()), ("s",), replace(SHORT, duration=0.2), cases=2)
    with pytest.warns(RuntimeWarning, match="controller UserController has no kernel"):
        found = gain_search.tune(task, Budget(40))
    assert found.cost < 0.9 * found.cost_before
    assert set(found.gains["J1"]) == {"s"}
    with pytest.raises(InvalidValue, match="UserController"):
        gain_search.stability_margins(found)


def test_efforts_of_joints_without_torque_constant_are_not_scaled():
    plain = load_arm("two_link")
    mixed = replace(plain, joints=(plain.joints[0], arm().joints[1]))
    ratio = draw_cases(mixed, 3, 0, SHORT)._torque_ratio()
    assert ratio[:, 0].tolist() == [1.0] * 3
    assert np.abs(ratio[:, 1] - 1).max() > 0.01


# Optimizer ------------------------------------------------------------------------------------

OPTIMUM = np.array([0.7, -0.4, 0.2])


def bowl(x):
    return ((x - OPTIMUM) ** 2 * [1.0, 10.0, 100.0]).sum(axis=1) + 0.5


def search(costs=bowl, seed=0, known=None):
    return GainOptimizer(costs, 3, 3.0, seed, 12, known or EvaluationLog())


def test_the_optimizer_finds_the_minimum_and_its_best_cost_never_increases():
    found = search().run(Budget(2000))
    best = [one.best for one in found.history]
    assert found.x == pytest.approx(OPTIMUM, abs=1e-3)
    assert all(after <= before for before, after in pairwise(best))
    assert best[0] == bowl(np.zeros((1, 3)))[0]
    assert {one.stage for one in found.history} == {"start", "evolve", "refine"}


def test_gains_depend_only_on_the_seed_of_the_search():
    first = search().run(Budget(300))
    np.random.seed(7)
    before = np.random.get_state()[1].tolist()
    again = search().run(Budget(300))
    assert np.array_equal(first.x, again.x)
    assert np.random.get_state()[1].tolist() == before
    assert not np.array_equal(first.x, search(seed=1).run(Budget(300)).x)


@pytest.mark.parametrize("first", [50, 200, 290])
def test_a_resumed_search_equals_an_uninterrupted_one(first, tmp_path):
    whole, part = search().run(Budget(300)), EvaluationLog()
    search(known=part).run(Budget(first))
    part.save(tmp_path / "state.json", {"seed": 0})
    evaluated = []

    def counted(x):
        evaluated.append(len(x))
        return bowl(x)

    found = search(
        counted, known=evaluation_log.load_log(tmp_path / "state.json", {"seed": 0})
    ).run(Budget(300))
    assert np.array_equal(found.x, whole.x)
    assert found.cost == whole.cost
    assert 0 < sum(evaluated) < 300


def test_interrupt_keeps_the_best():
    calls = []

    def interrupted(x):
        calls.append(x)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return bowl(x)

    found = search(interrupted).run(Budget(2000))
    assert found.ended == "stopped"
    assert found.cost == min(bowl(x).min() for x in calls[:-1])


def test_an_interrupt_before_the_first_evaluation_is_raised():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(interrupted).run(Budget(50))


def test_the_spread_of_a_simplex_is_that_of_its_last_points():
    found = search().run(Budget(2000))
    spreads = [one.spread for one in found.history if one.stage == "refine"]
    assert all(spread > 0 for spread in spreads[1:])
    assert spreads[-1] < 1e-2 * max(spreads)


def test_a_missing_library_is_reported_before_the_search(monkeypatch):
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(ArmDynamicsError, match=r"cma is not installed; .* -m pip install 'cma"):
        search(lambda x: pytest.fail("tried")).run(Budget(50))


def test_the_budget_is_kept():
    found = search().run(Budget(100))
    assert found.tried <= 100
    assert found.ended == "budget"
    with pytest.raises(InvalidValue, match="budget = 0"):
        Budget(0)
    for seconds in (0.0, nan):
        with pytest.raises(InvalidValue, match="seconds"):
            Budget(1, seconds)


def test_the_state_of_another_search_is_rejected(tmp_path):
    file, known = tmp_path / "state.json", EvaluationLog()
    with pytest.raises(ConfigError, match=r"resume: .* does not exist"):
        evaluation_log.load_log(file, {})
    search(known=known).run(Budget(50))
    known.save(file, {"seed": 0})
    with pytest.raises(ConfigError, match=r"resume: seed = 1; expected 0 as in"):
        evaluation_log.load_log(file, {"seed": 1})
    with pytest.raises(ConfigError, match="resume: sum of points = "):
        search(seed=1, known=evaluation_log.load_log(file, {"seed": 0})).run(Budget(50))
    for broken in ("[]", "{", '{"version": 1, "settings": 3, "blocks": []}', "\0"):
        file.write_text(broken)
        with pytest.raises(ConfigError, match="expected the state of a search"):
            evaluation_log.load_log(file, {})


def test_a_failed_write_keeps_the_previous_state(tmp_path, monkeypatch):
    file, known = tmp_path / "state.json", EvaluationLog()
    search(known=known).run(Budget(20))
    known.save(file, {"seed": 0})
    before = file.read_text()
    search(known=known).run(Budget(40))

    def full(*_):
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ConfigError, match=r"state\.json: No space left"):
        known.save(file, {"seed": 0})
    assert file.read_text() == before
    assert [one.name for one in tmp_path.iterdir()] == ["state.json"]


def test_arms_with_equal_names_are_distinguished():
    other = arm().with_gravity((0, 0, -1.6))
    assert TuningTask(arm(), controller()).settings == TuningTask(arm(), controller()).settings
    assert (
        TuningTask(arm(), controller()).settings["model"]
        != TuningTask(other, controller()).settings["model"]
    )


# Gains and files ------------------------------------------------------------------------------


def test_gains_and_search_points_convert_in_both_directions():
    space = gain_space(controller(), ("p", "d"))
    x = np.array([[0.3, -0.2, 1.0, 0.0]])
    rows = {name.removeprefix("gains."): r[0] for name, r in space.gains(x).items()}
    assert space.point(rows) == pytest.approx(x[0])
    assert rows["p"] == pytest.approx(controller().gains["p"] * np.exp([0.3, -0.2]))


def test_a_gain_of_zero_is_searched_about_the_default_gain():
    none = with_gains(controller(), {"i": np.zeros(2)})
    assert gain_space(none, ("i",)).center[0] == pytest.approx(controller().gains["i"])
    with pytest.raises(InvalidValue, match="d_filter"):
        gain_space(controller(), ("d_filter",))
    with pytest.raises(UnknownName, match="gain 'q'"):
        gain_space(controller(), ("q",))
    with pytest.raises(InvalidValue, match="gain p: occurrences = 2"):
        gain_space(controller(), ("p", "d", "p"))
    with pytest.raises(InvalidValue, match=r"Position\w*: interface = 'position'"):
        gain_space(PositionController(arm()), ("p",))


def test_build_controller_loads_the_written_parameter_file(tmp_path):
    plain, file = load_arm("two_link"), tmp_path / "gains.yaml"
    found = {"J1": {"p": 1234.5, "i": 1e-7}, "J2": {"d": 3.25}}
    start = build_controller(plain, "pid_gravity")
    file.write_text(parameter_text("two_link", "pid", start, found, ["a note: with a colon"]))
    loaded = build_controller(plain, None, file)
    assert type(loaded).__name__ == "Pid"
    assert loaded.gains["p"].tolist() == [1234.5, start.gains["p"][1]]
    assert loaded.gains["i"][0] == 1e-7
    assert loaded.gains["d"].tolist() == [start.gains["d"][0], 3.25]
    assert loaded.gains["i_clamp"].tolist() == [inf, inf]


def test_joint_names_that_are_yaml_values_are_quoted(tmp_path):
    odd, file = chain({"name": "on"}, {"name": "1"}), tmp_path / "gains.yaml"
    gains = {"on": {"p": 12.0}, "1": {"p": 13.0}}
    file.write_text(parameter_text("a b: c.urdf", "pid_gravity", PidGravity(odd), gains, []))
    assert build_controller(odd, None, file).gains["p"].tolist() == [12.0, 13.0]
    assert node_parameters(file, "simulator")["arm"] == "a b: c.urdf"


def test_the_payload_of_the_controller_model_is_written(tmp_path):
    plain, file = load_arm("two_link"), tmp_path / "gains.yaml"
    start = build_controller(plain, "pid_gravity")
    start.set_model(plain.with_payload(0.25))
    file.write_text(parameter_text("two_link", "pid_gravity", start, {}, []))
    assert build_controller(plain, None, file).arm.payload.mass == 0.25


def test_too_small_gains_fail_validation():
    cases = draw_cases(arm(), 3, 0, replace(SHORT, step_size=0.5))
    none = with_gains(
        controller(), {name: 1e-3 * controller().gains[name] for name in ("p", "i", "d")}
    )
    weak = validate(cases, none)
    assert weak.count == 0
    assert (weak.residual_error > MAX_RESIDUAL_ERROR).all()
    assert weak.text == "0 of 3 cases passed"


# Command line ---------------------------------------------------------------------------------

TUNE = (
    "two_link",
    "--training-cases",
    "3",
    "--validation-cases",
    "3",
    "--duration",
    "0.3",
    "--dt",
    "1e-3,5e-4",
)


def tune(*options):
    with pytest.raises(SystemExit) as ended:
        main(["tune", *TUNE, *map(str, options)])
    return ended.value.code


@pytest.mark.slow
def test_tune_writes_gains_that_load_and_resumes(tmp_path, capsys):
    assert tune("--max-evaluations", 60, "--output", tmp_path / "a") in (0, 1)
    output = capsys.readouterr().out
    assert re.search(r"^tuned gains: \d of 3 cases passed", output, re.MULTILINE)
    for name in ("gains.yaml", "worst_case.yaml", "margins.yaml", "report.png", "state.json"):
        assert (tmp_path / "a" / name).stat().st_size > 100
    assert tune("--max-evaluations", 30, "--output", tmp_path / "b") in (0, 1)
    assert tune("--max-evaluations", 60, "--output", tmp_path / "b", "--resume") in (0, 1)
    texts = [(tmp_path / name / "gains.yaml").read_text() for name in "ab"]
    assert texts[0] == texts[1]
    assert node_parameters(tmp_path / "a" / "gains.yaml", "simulator")["arm"] == "two_link"
    loaded = build_controller(load_arm("two_link"), None, tmp_path / "a" / "gains.yaml")
    assert not np.array_equal(
        loaded.gains["p"], build_controller(load_arm("two_link"), "pid_gravity").gains["p"]
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--resume",), "does not exist; start without --resume"),
        (("--controller", "unknown"), "unknown controller 'unknown'"),
        (
            ("--controller", "computed_torque", "--gain-names", "p"),
            "unknown gain 'p'; known: i_clamp, kd",
        ),
        (("--controller", "lqr"), "--gain-names = ; expected gains of lqr"),
        (("--controller", "position"), "unknown controller 'position'"),
        (("--max-evaluations", 0), "--max-evaluations = 0"),
        (("--validation-cases", 0), "--validation-cases = 0"),
        (("--seed", -1), "seed = -1"),
        (("--gain-names", "x"), "unknown gain 'x'"),
        (("--gain-names", ","), "--gain-names = ,; expected gains of"),
        (("--dt", "fast"), "--dt = fast; expected numbers"),
        (("--model-error", 2), "--model-error = 2; expected"),
        (("--time-limit", -1), "--time-limit"),
        (("--time-limit", "nan"), "--time-limit"),
        (("--duration", 0), "--duration = 0 s; expected"),
        (("--period", -1), "--period = -1 s; expected"),
        (("--gain-names", "p,p"), "gain p: occurrences = 2"),
    ],
)
def test_invalid_options_are_rejected(options, text, tmp_path, capsys):
    assert tune("--output", tmp_path, *options) == 2
    assert text in capsys.readouterr().err


def test_a_failed_start_keeps_the_state_of_the_previous_search(tmp_path, capsys):
    state = tmp_path / "state.json"
    state.write_text("of before")
    assert tune("--output", tmp_path, "--payload", 1e6) == 2
    assert (tmp_path / "state.before.json").read_text() == "of before"
    assert not state.exists()
    assert tune("--output", tmp_path / "absent", "--resume") == 2
    assert not (tmp_path / "absent").exists()
    capsys.readouterr()


def test_an_interrupt_prints_one_line(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tune_command, "tune", interrupted)
    assert tune("--max-evaluations", 20) == 130
    assert capsys.readouterr().err.strip().endswith("arm-dynamics tune: interrupted")


def test_long_labels_do_not_overlap():
    figure = Figure(figsize=(4, 3), layout="constrained")
    axis = figure.subplots()
    names = [f"a_joint_with_a_name_{k}" for k in range(6)]
    report.tick_labels(axis, names)
    axis.set_xlim(-0.5, 5.5)
    figure.draw_without_rendering()
    labels = axis.get_xticklabels()
    assert [one.get_text() for one in labels] == [f"{k} {n}" for k, n in enumerate(names, 1)]
    assert {one.get_rotation() for one in labels} == {30}
    assert report.in_legend(names) == ("1", "2", "3", "4", "5", "6")
    assert report.in_legend(("R1", "R2")) == ("R1", "R2")


@pytest.mark.slow
def test_the_file_of_gains_contains_the_absolute_path_of_the_urdf(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.urdf").write_text(load_arm("two_link").urdf)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["tune", "mine.urdf", *TUNE[1:], "--max-evaluations", "20", "--output", "out"])
    assert str((tmp_path / "mine.urdf").resolve()) in (tmp_path / "out" / "gains.yaml").read_text()


def test_progress_without_a_terminal():
    text, terminal = io.StringIO(), io.StringIO()
    lines = ProgressLines(Console(file=text))
    lines.update("too early")
    lines._next = 0.0
    lines.update("12 of 30 [x]")
    lines.update("too soon")
    assert text.getvalue() == "12 of 30 [x]\n"
    shown = ProgressLines(Console(file=terminal, force_terminal=True))
    shown._next = 0.0
    shown.update("hidden")
    assert terminal.getvalue() == ""


def test_an_unknown_arm_and_an_invalid_folder_are_rejected(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["tune", "missing"])
    assert "unknown arm or URDF file 'missing'" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert tune("--output", tmp_path / "file") == 2
    assert "name another one with --out" in capsys.readouterr().err
