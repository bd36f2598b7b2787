"""The published gain search: its kernel, path and digits, and better gains."""

import json
import os
import subprocess
import sys
from pathlib import Path

import five_dof_gains
import numpy as np
import published_kernel
import published_search
import pytest
from conftest import chain, examples, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st
from published_gains import (
    PUBLISHED_I,
    PUBLISHED_P,
    effort_gains,
    published_file,
)
from published_kernel import PublishedKernel
from published_search import (
    BEST_I,
    BEST_P,
    OBJECTIVE_P,
    OBJECTIVE_PI,
    improve,
    objectives_of,
    search,
)
from simplex_search import StoppingRule, minimize_simplex

from arm_dynamics import Command, Plant, Reference, State
from arm_dynamics.batch.kernels.kernel_cache import KernelRejected
from arm_dynamics.control.config import build_controller
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.simulation import dynamechs
from arm_dynamics.simulation.dynamechs import CONTROLLED, LOST, objective, published_arm

pytestmark = pytest.mark.slow  # of one publication; the package does not use it
ROWS = json.loads((Path(__file__).parents[1] / "data/five_dof/objectives.json").read_text())
P = np.array([PUBLISHED_P[joint] for joint in CONTROLLED])
INTEGRAL = np.array([PUBLISHED_I[joint] for joint in CONTROLLED])
SHORT = {"duration": 0.2}


@pytest.fixture(scope="module")
def kernel():
    return PublishedKernel(published_arm())


@pytest.fixture(scope="module")
def found():
    return search()


def test_the_kernel_reproduces_the_original_objectives(kernel):
    p = np.array([row["P"] for row in ROWS], dtype=float)
    i = np.array([row["I"] or [0, 0, 0] for row in ROWS])
    expected = [row["objective"] for row in ROWS]
    np.testing.assert_allclose(kernel.objectives(p, i), expected, rtol=1e-9)


def test_the_kernel_equals_the_objective_for_all_gains(kernel):
    """Up to half of the stability limit: beyond, rounding errors grow with the motion."""
    random = np.random.default_rng(5)
    p = P * 0.5 * np.exp(random.uniform(-6, 0, (6, 3)))
    i = INTEGRAL * np.exp(random.uniform(-3, 1, (6, 3)))
    expected = [objective(published_arm(), *gains, **SHORT) for gains in zip(p, i, strict=True)]
    np.testing.assert_allclose(kernel.objectives(p, i, **SHORT), expected, rtol=1e-9)


def test_rollouts_are_independent(kernel):
    p, i = np.outer((1.0, 0.3, 50.0, 0.01, 0.7), P), np.outer((1.0, 0, 1, 2, 0.5), INTEGRAL)
    together = kernel.objectives(p, i, **SHORT)
    alone = [kernel.objectives(p[k : k + 1], i[k : k + 1], **SHORT)[0] for k in range(5)]
    np.testing.assert_array_equal(together, alone)
    assert together[2] == LOST
    assert (np.delete(together, 2) < LOST).all()


def test_a_diverged_arm_stays_diverged(kernel):
    """Also if its errors fall below the limit again, or are not finite."""
    hot = np.full((1, 3), 20000.0)
    assert kernel.objectives(hot, 0 * hot).item() == objective(published_arm(), hot[0]) == LOST


def test_a_changed_equation_changes_the_kernel(monkeypatch, tmp_path):
    """The kernel is traced from the equations of ``dynamechs``."""
    trace = pytest.importorskip("published_trace")

    def stronger(x):
        total = 0.0
        for i in range(x.shape[1]):
            error = x[dynamechs.ACTIVE, i] * (x[dynamechs.TARGET, i] - x[dynamechs.Q, i])
            x[dynamechs.VOLTAGE, i] = 2 * x[dynamechs.GAIN_P, i] * error
            total += abs(error)
        return total

    before = trace.published_source(published_arm(), CONTROLLED, 4)
    monkeypatch.setattr(dynamechs, "published_control_step", stronger)
    assert trace.published_source(published_arm(), CONTROLLED, 4) != before


def test_joints_that_symmetry_keeps_at_rest_have_no_rows():
    """Unless one of them is controlled, or the payload is not symmetric."""
    trace = pytest.importorskip("published_trace").trace_published
    arm = published_arm()
    assert trace(arm, CONTROLLED)[2] == [1, 2, 4]
    assert trace(arm, ("R1", "R2", "R3"))[2] == [0, 1, 2, 3, 4]
    assert trace(arm.with_payload(0.1, (0, 0, 0.02)), CONTROLLED)[2] != [1, 2, 4]


@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (1.0, 2.0, -9.0)])
def test_the_trace_equals_plant_and_controller(gravity):
    """Call by call, with end stops reached, for a planar and a spatial motion.

    A joint that only rounding errors move has a different sign in every program. With the artifact
    that stops a joint for one call, no two programs agree on it.
    """
    trace = pytest.importorskip("published_trace").trace_published
    arm = published_arm().with_gravity(gravity)
    layout, part, moving = trace(arm, CONTROLLED)
    assert len(moving) == (3 if gravity[0] == 0 else 5)
    plant, columns = dynamechs.Dynamechs(arm), [arm.index(joint) for joint in CONTROLLED]
    x, pose = plant.rows, arm.configuration("initial")
    given = {"target": pose[columns] + 0.3, "gain_p": [70, 400, 20], "gain_i": [0.1, 0.2, 0.3]}
    x[dynamechs.Q], x[dynamechs.TARGET] = pose, pose + 0.3
    x[dynamechs.ACTIVE, columns] = 1
    x[dynamechs.GAIN_P, columns], x[dynamechs.GAIN_I, columns] = given["gain_p"], given["gain_i"]
    rows = {name: np.zeros(size) for name, size in layout.sizes.items()}
    rows |= {name: np.array(value) for name, value in given.items()} | {"dt": np.array([1e-4])}
    rows["q"], total = pose[moving], 0.0
    for _ in range(1000):
        after = part.function(*rows.values())
        rows |= {n: np.array(a).ravel() for n, a in zip(part.outputs, after, strict=True)}
        plant.call(1e-4)
        total += dynamechs.published_control_step(x)
    np.testing.assert_allclose(rows["q"], x[dynamechs.Q, moving], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rows["total"], total, rtol=1e-9)
    assert (x[dynamechs.Q] > arm.upper).any()
    rest = np.delete(np.arange(arm.nv), moving)
    np.testing.assert_allclose(x[dynamechs.Q, rest], pose[rest], rtol=0, atol=1e-12)


def test_a_kernel_that_differs_is_rejected(monkeypatch, kernel):
    monkeypatch.setattr(published_kernel, "objective", lambda *a, **k: 1.0)
    with pytest.raises(KernelRejected, match=r"P, I = \(6"):
        kernel._check(kernel._module)


def test_an_arm_without_motors_has_no_objective():
    with pytest.raises(InvalidValue, match="'J1': actuator = 'ideal'; expected dc_motor"):
        objectives_of(chain({}), ("J1",))


def test_without_a_kernel_the_objective_is_equal_with_a_warning(monkeypatch, kernel):
    def missing(*_):
        raise ConfigError("CasADi is missing")

    published_search._warn_once.cache_clear()
    monkeypatch.setattr(published_kernel, "PublishedKernel", missing)
    with pytest.warns(RuntimeWarning, match="slower: CasADi is missing"):
        plain = objectives_of(published_arm())
    p, i = np.stack([P, 100 + 0 * P]), np.stack([INTEGRAL, 0 * P])
    np.testing.assert_allclose(plain(p, i), kernel.objectives(p, i), rtol=1e-9)


def test_without_casadi_a_cached_kernel_is_used_and_a_new_one_is_an_error(kernel):
    code = """
import sys; sys.modules["casadi"] = None
from arm_dynamics.simulation.dynamechs import published_arm
from arm_dynamics.core.errors import ConfigError
from published_kernel import PublishedKernel
PublishedKernel(published_arm())
try:
    PublishedKernel(published_arm().with_payload(0.123456))
except ConfigError as error:
    print(error)
"""
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(published_kernel.__file__).parent)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "CasADi is not installed" in process.stdout


def test_the_search_reproduces_the_published_digits(found):
    for joint, (p, i) in found.gains.items():
        assert p == pytest.approx(PUBLISHED_P[joint], rel=1e-12)
        assert i == pytest.approx(PUBLISHED_I[joint], rel=1e-12)
    assert found.p.cost == pytest.approx(OBJECTIVE_P, rel=1e-12)
    assert found.i.cost == pytest.approx(OBJECTIVE_PI, rel=1e-11)
    assert (found.p.evaluated, found.i.evaluated) == (214, 224)


def rosenbrock(points):
    return [100 * (y - x * x) ** 2 + (1 - x) ** 2 + z * z for x, y, z in points]


@settings(max_examples=examples(40))
@given(st.tuples(*[st.floats(-3, 3)] * 3), st.floats(0.05, 1))
def test_the_final_cost_is_at_most_the_initial_one(start, step):
    seen = []
    end = minimize_simplex(rosenbrock, start, step, StoppingRule(1e-9, 400), seen.append)
    assert end.cost <= rosenbrock([start])[0]
    assert seen[-1].evaluated == end.evaluated
    assert seen[-1].cost <= end.cost


def test_a_simplex_shrinks_to_its_best_vertex():
    """If neither reflection nor contraction helps, all others move halfway to the best."""
    values = iter([0.0, 1.0, 2.0, 5.0, 2.0, 1.0, 2.0])
    points = []

    def costs(batch):
        points.extend(batch)
        return [next(values, 0.0) for _ in batch]

    minimize_simplex(costs, (0.0, 0.0), 1.0, StoppingRule(0.0, 0))
    assert points[:3] == [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
    assert points[3:] == [(1.0, -1.0), (0.25, 0.5), (0.5, 0.0), (0.0, 0.5)]


def test_a_simplex_finds_the_minimum_of_a_quadratic():
    end = minimize_simplex(
        lambda x: [sum(v * v for v in p) for p in x], (3.0, -2.0), 0.5, StoppingRule(1e-12)
    )
    np.testing.assert_allclose(end.point, 0, atol=1e-4)
    short = minimize_simplex(lambda x: [p[0] for p in x], (0.0, 0.0), 1.0, StoppingRule(0.0, 10))
    assert short.iterations == 11  # counted as by the original


def test_better_gains_than_the_published_ones(kernel):
    best = kernel.objectives(np.array([BEST_P]), np.array([BEST_I])).item()
    assert best == pytest.approx(objective(published_arm(), BEST_P, BEST_I), rel=1e-9)
    assert best < 0.00661


def test_improve_finds_better_gains(kernel):
    pytest.importorskip("cma")
    better = improve(400, objectives=kernel.objectives)
    again = improve(400, objectives=kernel.objectives)
    assert better.objective < 0.1
    assert better.objective == again.objective
    assert kernel.objectives(better.p[None], better.i[None]).item() == pytest.approx(
        better.objective, rel=1e-12
    )


def test_the_effort_controller_of_the_file_commands_the_same_torque(found, tmp_path):
    """τ of P e + I e (the first call of the sum) - back-EMF, by the package's motors."""
    arm = published_arm()
    file = tmp_path / "gains.yaml"
    file.write_text(published_file(arm, found.gains), encoding="utf-8")
    unlimited = arm.with_motors(supply_voltage=np.inf)
    controller = build_controller(unlimited, None, file)
    q, v = arm.configuration("initial") + 1e-4, np.array([0.1, -0.2, 0.03, 0.0, 0.01])
    controller.reset(State.of(q, v))
    effort = controller.update(
        State.of(q, v), Reference.hold(arm.configuration("initial")), 0.0
    ).value
    volts = np.zeros(5)
    volts[[1, 2, 4]] = P * -1e-4
    plant = Plant(arm)
    driven = plant.step(State.of(q, v), Command("voltage", volts), 1e-6).v - v
    pushed = plant.step(State.of(q, v), Command("effort", effort), 1e-6).v - v
    np.testing.assert_allclose(driven, pushed, rtol=1e-9)
    gains = effort_gains(arm, found.gains)["R2"]
    assert gains["i"] == pytest.approx(10 * PUBLISHED_I["R2"] / 1e-4, rel=1e-12)


def test_the_command_prints_both_gains_and_writes_a_file(capsys, tmp_path):
    out = tmp_path / "gains.yaml"
    assert five_dof_gains.main(["search", "--output", str(out)]) == 0
    output = capsys.readouterr().out
    for text in ("1688.61035631972", "5529.51939064412", "0.451883276796821", "16.3888758427019"):
        assert output.count(text) >= 2, text
    assert "438 gains" in output
    assert build_controller(five_dof(), None, out).gains["p"][1] == pytest.approx(16886.1, rel=1e-5)


def test_the_published_gains_fail_in_validation_cases(capsys):
    assert five_dof_gains.main(["validate", "--validation-cases", "4", "--duration", "0.2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "published, explicit Euler, no supply limit",
        "published, semi-implicit Euler, supply limit",
    ]


def test_a_file_that_cannot_be_written_is_one_line(capsys):
    assert five_dof_gains.main(["search", "--output", "/no/x"]) == 2
    assert "/no" in capsys.readouterr().err


def test_the_script_runs_in_its_folder():
    script = Path(five_dof_gains.__file__)
    done = subprocess.run(
        [sys.executable, str(script), "stability", "--integrator", "rk9"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("five_dof_gains.py: unknown integrator 'rk9'; known: adaptive")
