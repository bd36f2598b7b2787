"""Rollouts of many arms: the plant's results with every backend and batch size."""

import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics import Command, Plant, State
from arm_dynamics.batch import rollout, variation
from arm_dynamics.batch.rollouts.open_loop import simulate
from arm_dynamics.batch.rollouts.rollout_task import require_memory_limit
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName

BATCH, DT = 70, 1e-4
OUTPUTS = ("q", "v", "effort")


def batch_data(selection=slice(None)):
    """Return states, commands and payloads; the batch size is not a multiple of the block size."""
    random, n = np.random.default_rng(0), five_dof().nv
    q = np.array(five_dof().configuration("initial")) + 0.3 * random.normal(size=(BATCH, n))
    states = np.concatenate([q, random.normal(size=(BATCH, n))], axis=1)
    commands = 5 * random.normal(size=(BATCH, 4, n))
    return states[selection], commands[selection], random.uniform(0, 0.3, BATCH)[selection]


def run(selection=slice(None), **options):
    states, commands, payload = batch_data(selection)
    options = {
        "interface": "voltage",
        "steps_per_command": 10,
        "record_every": 20,
        "outputs": OUTPUTS,
        **options,
    }
    return rollout(five_dof(), states, commands, DT, vary={"payload": payload}, **options)


@cache
def reference():
    return run()


def same(found, expected):
    return all(np.array_equal(found[name], expected[name]) for name in OUTPUTS)


# Equal results --------------------------------------------------------------------------------


def test_every_rollout_equals_the_plant():
    batch = reference()
    states, commands, payload = batch_data()
    assert batch.backend == "generated"
    for k in (0, 37, 69):
        arm = variation.rollout_arm(five_dof(), {"payload": [payload[k]]})
        state = State.of(states[k, :5], states[k, 5:])
        for period, command in enumerate(commands[k]):
            state = Plant(arm).step(state, Command("voltage", command), DT, 10)
            if period % 2:
                np.testing.assert_allclose(batch.q[k, period // 2], state.q, rtol=1e-12)
                scale = 1e-12 * np.abs(state.v).max()
                np.testing.assert_allclose(batch.v[k, period // 2], state.v, atol=scale)
                np.testing.assert_allclose(batch.effort[k, period // 2], state.tau, rtol=1e-10)
        end = batch.final_state(k)
        np.testing.assert_array_equal(end.q, batch.q[k, -1])
        np.testing.assert_array_equal(end.tau, batch.effort[k, -1])
        assert end.time == pytest.approx(40 * DT)
    np.testing.assert_allclose(batch.time[0], [20 * DT, 40 * DT])


def test_all_backends_agree():
    found, expected = run(backend="plant"), reference()
    for name in OUTPUTS:
        scale = np.abs(expected[name]).max()
        np.testing.assert_allclose(found[name], expected[name], atol=2e-12 * scale)


@pytest.mark.parametrize("selection", [slice(37, 38), slice(5, 41), slice(69, None, -1)])
def test_rollouts_are_independent(selection):
    found, expected = run(selection), reference()
    for name in OUTPUTS:
        np.testing.assert_array_equal(found[name], expected[name][selection])


@pytest.mark.quick(1)
@pytest.mark.parametrize("size", [8, 16])
def test_results_do_not_depend_on_the_block_size(size, monkeypatch):
    for module in ("backends", "task_runner"):
        monkeypatch.setattr(f"arm_dynamics.batch.rollouts.{module}.BLOCK", size)
    assert same(run(), reference())


def test_results_do_not_depend_on_the_number_of_threads():
    assert same(run(threads=1), run(threads=3))


def test_continuing_from_the_final_states_equals_one_rollout():
    states, commands, payload = batch_data()
    first = run(slice(0, 2), outputs=("v",))
    more = rollout(
        five_dof(), first.final_states, commands[:2], DT, interface="voltage",
        steps_per_command=10, record_every=40,
        vary={"payload": payload[:2]},
    )  # fmt: skip
    twice = rollout(
        five_dof(), states[:2], np.concatenate([commands[:2]] * 2, axis=1), DT,
        steps_per_command=10,
        interface="voltage", record_every=80, vary={"payload": payload[:2]},
    )  # fmt: skip
    np.testing.assert_array_equal(more.v, twice.v)


def test_constant_commands_and_a_common_table():
    arm, (states, commands, _) = five_dof(), batch_data()
    options = {"interface": "voltage", "vary": {"payload": np.zeros(BATCH)}, "steps_per_command": 3}
    table = rollout(arm, states, commands[0], DT, **options)
    assert table.q.shape == (BATCH, 12, 5)
    each = rollout(arm, states, np.tile(commands[0], (BATCH, 1, 1)), DT, **options)
    np.testing.assert_array_equal(table.q, each.q)
    constant = rollout(arm, states, commands[0, 0], DT, **options)
    np.testing.assert_array_equal(constant.q, each.q[:, :3])
    by_rollout = rollout(arm, states, commands[:, 0], DT, **options)
    np.testing.assert_array_equal(by_rollout.q[0], each.q[0, :3])


# Executors ------------------------------------------------------------------------------------


def test_an_arm_can_be_pickled():
    arm = five_dof().with_motors(gear_ratio=2.0).with_payload(0.2, (0.0, 0.1, 0.0))
    other = pickle.loads(pickle.dumps(arm))
    assert other.joints == arm.joints
    assert not other.gravity.flags.writeable
    state, command = (
        State.of(arm.configuration("initial")),
        Command.checked("voltage", [1.0] * 5, 5),
    )
    both = [Plant(one).step(state, command, DT, 50).v for one in (arm, other)]
    np.testing.assert_array_equal(*both)


@pytest.mark.slow
def test_processes_give_equal_results():
    reference()  # the kernel is compiled here, not in each process
    reported = []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = run(executor=pool, progress=lambda done, total: reported.append((done, total)))
    assert same(found, reference())
    assert reported[-1] == (BATCH * 40, BATCH * 40)
    assert len(reported) == 3


@pytest.mark.slow
def test_a_dask_cluster_gives_equal_results():
    from distributed import Client

    reference()
    cluster = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with Client(**cluster, host="127.0.0.1") as client:
        assert same(run(executor=client.get_executor()), reference())


# Failures ------------------------------------------------------------------------------------


def test_a_diverged_rollout_is_named_and_the_others_continue():
    states, commands, payload = batch_data()
    states[3, 6] = 1e200
    batch = rollout(
        five_dof(), states, commands, DT, interface="voltage", steps_per_command=10,
        record_every=20,
        outputs=OUTPUTS, vary={"payload": payload},
    )  # fmt: skip
    assert batch.failed_step[3] == 1
    assert np.isnan(batch.v[3]).any()
    assert (np.delete(batch.failed_step, 3) == -1).all()
    for name in OUTPUTS:
        others = np.delete(batch[name], 3, axis=0)
        np.testing.assert_array_equal(others, np.delete(reference()[name], 3, axis=0))


def test_a_diverged_rollout_of_other_backends():
    states, commands, _ = batch_data(slice(0, 3))
    states[1, 6] = 1e200
    batch = rollout(
        five_dof(), states, commands, DT, interface="voltage", steps_per_command=10, backend="plant"
    )
    assert batch.failed_step.tolist() == [-1, 1, -1]
    assert np.isfinite(batch.q[[0, 2]]).all()


def test_memory_is_checked_first():
    with pytest.raises(
        InvalidValue, match=rf"{BATCH * 2 * (15 + 1) * 8} bytes \(70 rollouts.*at most 1000 bytes"
    ):
        run(memory_limit=1000)
    require_memory_limit(0, None, "nothing")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"record_every": 50}, InvalidValue, "record_every = 50; expected at most 40 time steps"),
        ({"steps_per_command": 0}, InvalidValue, "steps_per_command = 0; expected an integer"),
        ({"outputs": ("x",)}, UnknownName, "output of a rollout 'x'; known: act"),
        ({"backend": "fast"}, UnknownName, "backend 'fast'; known: auto"),
        ({"precision": "float16"}, UnknownName, "precision 'float16'"),
        ({"interface": "torque"}, UnknownName, "interface of joint 'R1' 'torque'"),
        (
            {"integrator": "adaptive", "backend": "generated"},
            InvalidValue,
            "expected an arm with a kernel: kernel: integrator = 'adaptive'; expected one of",
        ),
    ],
)
def test_invalid_options_are_rejected(changes, error, words):
    with pytest.raises(error, match=words):
        run(**changes)


@pytest.mark.parametrize(
    ("states", "commands", "dt", "vary", "words"),
    [
        (np.zeros((2, 9)), np.zeros(5), DT, {}, r"shape = \(2, 9\); expected \(batch, 10\)"),
        (np.full((2, 10), np.nan), np.zeros(5), DT, {}, r"states\[0, 0\] = nan"),
        (np.zeros((2, 10)), np.zeros((3, 1, 5)), DT, {}, "states = 2; expected 3 or 1"),
        (np.zeros((2, 10)), np.zeros(5), 0.0, {}, "dt = 0 s; expected above 0"),
        (np.zeros((2, 10)), np.zeros(5), DT, {"payload": [1.0, -1.0]}, "rollout 1: payload mass"),
        (
            np.zeros((2, 10)),
            np.zeros(5),
            DT,
            {"link.mass": [1.0, 0.0]},
            "rollout 1, joint 'R1': link.mass = 0; expected above 0",
        ),
        (
            np.zeros((2, 10)),
            np.zeros(5),
            DT,
            {"payload": [1.0, 1, 1]},
            "states = 2; expected 3 or 1",
        ),
    ],
)
def test_invalid_input_is_named(states, commands, dt, vary, words):
    with pytest.raises(InvalidValue, match=words):
        rollout(five_dof(), states, commands, dt, interface="voltage", vary=vary)


def test_non_finite_commands_are_rejected():
    with pytest.raises(CommandRejected, match=r"voltage commands\[1\] = nan"):
        rollout(five_dof(), np.zeros((2, 10)), [0, np.nan, 0, 0, 0], DT, interface="voltage")


def test_an_arm_without_kernel_uses_the_plant_with_a_warning():
    arm = five_dof().with_actuator("rate_limited")
    state, pose = State.of(arm.configuration("initial")), arm.configuration("initial")
    with pytest.warns(
        RuntimeWarning, match="backend 'plant', slower, because 'generated': kernel, joint 'R1'"
    ):
        batch = simulate(arm, state, pose, 1e-3, 5, interface="position")
    end = Plant(arm).step(state, Command("position", pose), 1e-3, 5)
    np.testing.assert_array_equal(batch.final_state(0).q, end.q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one warning only
        simulate(arm, state, pose, 1e-3, 5, interface="position")


WITHOUT = """
import sys, warnings
for name in {blocked}:
    sys.modules[name] = None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from arm_dynamics import State, load_arm
    from arm_dynamics.batch.rollouts.open_loop import simulate
    arm = load_arm("five_dof").with_payload(0.123456)
    start = State.of(arm.configuration("initial"))
    batch = simulate(arm, start, [1.0] * 5, 1e-4, 20, interface="voltage")
    simulate(arm, State.of(arm.configuration("initial")), [1.0] * 5, 1e-4, 20, interface="voltage")
print(batch.backend)
print(sum("rollouts use backend" in str(w.message) for w in caught))
print(*(x.hex() for x in batch.final_state(0).v.tolist()))
"""


def test_results_without_casadi_and_numba_are_equal():
    """Without CasADi an empty cache gets no kernel; without numba kernels cannot run."""
    answers = []
    for blocked, backend in ((("casadi",), "plant"), (("casadi", "numba"), "plant")):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT.format(blocked=blocked)],
            cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        name, count, numbers = done.stdout.splitlines()
        assert (name, count) == (backend, "1")
        answers.append([float.fromhex(x) for x in numbers.split()])
    arm = five_dof().with_payload(0.123456)
    start = State.of(arm.configuration("initial"))
    end = Plant(arm).step(start, Command("voltage", np.ones(5)), 1e-4, 20).v
    for answer in answers:
        np.testing.assert_allclose(answer, end, rtol=1e-11)
