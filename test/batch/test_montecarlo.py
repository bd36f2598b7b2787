"""Monte Carlo analysis: metrics of a run, sampled parameters, reproducibility by the seed."""

from functools import cache

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.batch import rollout_closed_loop
from arm_dynamics.batch.tuning import report
from arm_dynamics.batch.tuning.montecarlo import StepMotion, montecarlo, settling_time, step_from
from arm_dynamics.batch.tuning.tolerance import (
    Tolerance,
    data_sheet_tolerances,
    draw_values,
    read_tolerances,
)
from arm_dynamics.cli.main import main
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName

RUNS, KT = 40, 20.0


@cache
def arm():
    motor = {
        "kt": KT, "ke": 1.0, "resistance": 1.0, "supply_voltage": 24.0,
        "coulomb_friction": 0.1, "stiction": 0.15,
    }  # fmt: skip
    return load_arm("two_link").with_actuator("dc_motor", **motor).with_payload(0.2)


@cache
def motion():
    return StepMotion(*step_from(arm(), 0.2), duration=0.4, dt=1e-3)


@cache
def results(runs=RUNS, tolerance=0.1, seed=0):
    spread = data_sheet_tolerances(arm(), Tolerance(tolerance))
    return montecarlo(arm(), PidGravity(arm()), motion(), spread, runs, seed)


# What is measured -----------------------------------------------------------------------------


@given(rate=st.floats(2, 50), band=st.floats(0.01, 0.5))
def test_settling_time_of_an_exponential_decay(rate, band):
    period = 1e-2
    time = period * np.arange(1, 501)
    error = np.exp(-rate * time)[None, :, None]
    last = time[error[0, :, 0] > band]
    expected = last[-1] if len(last) else 0.0
    assert settling_time(error, period, band)[0, 0] == pytest.approx(expected)
    if len(last):
        assert expected == pytest.approx(np.log(1 / band) / rate, abs=period)


def test_settling_time_is_that_of_the_last_return():
    error = np.array([[[1.0], [0.0], [1.0], [0.0]], [[0.0]] * 4, [[0.0], [0.0], [0.0], [1.0]]])
    assert settling_time(error, 0.5, 0.1)[:, 0].tolist() == [1.5, 0.0, np.inf]
    assert settling_time(np.full((1, 3, 1), np.nan), 0.5, 0.1)[0, 0] == np.inf


@pytest.mark.slow
def test_peak_current_is_peak_torque_over_each_runs_own_constant():
    whole = results()
    for run in (0, 7, 39):
        kt = whole.parameters(run)["motor.kt"]
        torque = whole.values["peak_torque"][run]
        assert whole.values["peak_current"][run] == pytest.approx(torque / kt)
    assert np.isfinite(whole.max_over_joints("peak_current")).all()


def test_an_arm_without_motor_model_has_no_current():
    plain = load_arm("two_link")
    controller, spread = PidGravity(plain), data_sheet_tolerances(plain, Tolerance())
    some = montecarlo(
        plain, controller, StepMotion(*step_from(plain, 0.1), duration=0.1, dt=1e-3), spread, 2
    )
    assert "peak_current" not in some.values
    assert set(spread) == {"link.mass", "link.inertia", "joint.damping"}


# What is drawn --------------------------------------------------------------------------------


def test_factors_lie_within_their_tolerance():
    random, many = np.random.default_rng(0), (200_000,)
    even = Tolerance(0.1, "uniform").factors(random, many) - 1
    bell = Tolerance(0.1, "normal").factors(random, many) - 1
    assert np.abs(even).max() <= 0.1 + 1e-12
    assert np.abs(bell).max() <= 0.1 + 1e-12
    assert even.std() == pytest.approx(0.1 / np.sqrt(3), rel=0.01)
    assert bell.std() == pytest.approx(0.1 / 3, rel=0.02)
    assert abs(even.mean()) < 1e-3 > abs(bell.mean())


def test_breakaway_stays_above_coulomb_friction():
    values = draw_values(
        arm(), data_sheet_tolerances(arm(), Tolerance(0.5)), np.random.default_rng(0), 500
    )
    ratio = values["motor.stiction"] / values["motor.coulomb_friction"]
    assert ratio == pytest.approx(np.full((500, 2), 1.5))
    assert values["payload"].shape == (500, 1)


def test_a_run_does_not_depend_on_the_number_of_runs():
    few, many = results(), results(70)
    for name, values in few.values.items():
        assert np.array_equal(values, many.values[name][:RUNS])
    assert not np.array_equal(few.values["overshoot"], results(seed=1).values["overshoot"])


def test_listed_parameters_reproduce_the_run():
    whole = results()
    worst = whole.worst_runs("peak_torque", 3)
    assert (
        whole.max_over_joints("peak_torque")[worst[0]] == whole.max_over_joints("peak_torque").max()
    )
    vary = {name: values[None] for name, values in whole.parameters(worst[0]).items()}
    m, states = motion(), np.append(motion().start, np.zeros(2))[None]
    again = rollout_closed_loop(
        arm(), states, PidGravity(arm()), m.target, m.dt, m.period, m.duration, vary=vary
    )
    peak = whole.values["peak_torque"][worst[0]]
    assert again.metrics["peak_effort"][0] == pytest.approx(peak, rel=1e-12)


def test_without_tolerance_all_runs_are_equal():
    exact = results(tolerance=0.0)
    for values in exact.values.values():
        assert np.array_equal(values, np.broadcast_to(values[0], values.shape))
    assert exact.percentiles("overshoot") == pytest.approx(
        np.full(6, exact.max_over_joints("overshoot")[0])
    )


def test_larger_tolerances_increase_the_spread():
    narrow, wide = (
        results(tolerance=tolerance).max_over_joints("overshoot") for tolerance in (0.02, 0.2)
    )
    assert wide.std() > 3 * narrow.std()


# Rejected input--------------------------------------------------------------------------------


def test_invalid_numbers_are_rejected():
    with pytest.raises(InvalidValue, match="runs = 0"):
        results(0)
    with pytest.raises(InvalidValue, match=r"memory of the records = .*1000000000000 runs"):
        results(10**12)
    with pytest.raises(InvalidValue, match="seed = -1"):
        results(1, seed=-1)
    with pytest.raises(InvalidValue, match=r"tolerance = -0\.1"):
        Tolerance(-0.1)
    with pytest.raises(UnknownName, match="distribution 'odd'"):
        Tolerance(0.1, "odd")
    with pytest.raises(InvalidValue, match="no tolerances"):
        montecarlo(arm(), PidGravity(arm()), motion(), {}, 1)
    with pytest.raises(InvalidValue, match=r"'R2' = 1.9 rad; expected"):
        step_from(load_arm("five_dof"), 3.0)


def test_tolerances_from_a_file(tmp_path):
    file = tmp_path / "spread.yaml"
    file.write_text("motor.kt: 0.05\npayload: {fraction: 0.5, distribution: uniform}\n")
    assert read_tolerances(file, arm()) == {
        "motor.kt": Tolerance(0.05),
        "payload": Tolerance(0.5, "uniform"),
    }
    for content, text in (
        ("motor.k: 0.1", "motor.k"),
        ("motor.kt: -0.1", "motor.kt: tolerance = -0.1"),
        ("motor.kt: yes", "expected a fraction"),
        ("motor.kt: {width: 1}", "expected a fraction"),
        ("motor.rotor_inertia: 0.1", "= 0 or inf"),
        ("[]", "entries"),
        ("{", "YAML"),
    ):
        file.write_text(content)
        with pytest.raises((ConfigError, UnknownName, InvalidValue), match=text):
            read_tolerances(file, arm())
    file.write_text("{[1]: 2}")
    with pytest.raises(ConfigError) as rejected:
        read_tolerances(file, arm())
    assert "\n" not in str(rejected.value)


def run(*options):
    with pytest.raises(SystemExit) as ended:
        main(["montecarlo", "two_link", "--dt", "1e-3", "--duration", "0.4", *map(str, options)])
    return ended.value.code


def test_the_command_writes_table_figure_and_worst_runs(tmp_path, capsys):
    assert run("--runs", 20, "--output", tmp_path / "a") == 0
    assert run("--runs", 20, "--output", tmp_path / "b") == 0
    assert "20 runs" in capsys.readouterr().out
    table = (tmp_path / "a" / "runs.csv").read_text()
    assert len(table.splitlines()) == 21
    assert table == (tmp_path / "b" / "runs.csv").read_text()
    assert (tmp_path / "a" / "montecarlo.png").stat().st_size > 1000
    worst = yaml.safe_load((tmp_path / "a" / "worst.yaml").read_text())
    peaks = [one["peak_torque_Nm"] for one in worst["peak_torque"]]
    assert peaks == sorted(peaks, reverse=True)
    assert len(worst["peak_torque"][0]["values"]["link.mass"]) == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--runs", 0), "runs = 0"),
        (("--tolerance", -1), "tolerance = -1"),
        (("--distribution", "odd"), "odd"),
        (("--controller", "unknown"), "unknown controller"),
        (("--target", "1,x"), "--target"),
        (("--tolerance-file", "absent.yaml"), "absent.yaml"),
        (("--settling-tolerance", 0), "--settling-tolerance"),
        (("--duration", 0), "--duration = 0 s; expected"),
        (("--runs", 10**12), "runs = 1000000000000"),
        (("--dt", 0), "dt"),
    ],
)
def test_invalid_options_are_rejected(options, text, tmp_path, capsys):
    assert run("--output", tmp_path, *options) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("name", ["peak_effort", "settling"])
@pytest.mark.parametrize("difference", [0.0, 1e-15, 1e-8, 1.0])
def test_values_that_differ_by_round_off_have_bins(name, difference):
    """A saturated effort is the same in all runs."""
    values = 2.94 + difference * np.linspace(0, 1, 50)
    edges = report._edges(values, name, 0.01)
    assert (np.diff(edges) > 0).all()
    assert edges[0] <= values.min()
    assert edges[-1] >= values.max()
