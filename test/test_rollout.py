"""Many arms at once: the plant's numbers, whoever computes them and in whatever company."""

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
from arm_dynamics.batch import rollout, simulate, variation
from arm_dynamics.batch.rollouts.rollout_task import require_memory_limit
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName

LANES, DT = 70, 1e-4
OUTPUTS = ("q", "v", "effort")


def told(lanes=slice(None)):
    """States, commands and payloads of a batch that is no whole number of blocks."""
    random, n = np.random.default_rng(0), five_dof().nv
    q = np.array(five_dof().configuration("initial")) + 0.3 * random.normal(size=(LANES, n))
    states = np.concatenate([q, random.normal(size=(LANES, n))], axis=1)
    commands = 5 * random.normal(size=(LANES, 4, n))
    return states[lanes], commands[lanes], random.uniform(0, 0.3, LANES)[lanes]


def run(lanes=slice(None), **options):
    states, commands, payload = told(lanes)
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


# The same numbers -----------------------------------------------------------------------------


def test_every_lane_is_the_plants_step():
    batch = reference()
    states, commands, payload = told()
    assert batch.backend == "generated"
    for lane in (0, 37, 69):
        arm = variation.rollout_arm(five_dof(), {"payload": [payload[lane]]})
        state = State.of(states[lane, :5], states[lane, 5:])
        for period, command in enumerate(commands[lane]):
            state = Plant(arm).step(state, Command("voltage", command), DT, 10)
            if period % 2:
                np.testing.assert_allclose(batch.q[lane, period // 2], state.q, rtol=1e-12)
                scale = 1e-12 * np.abs(state.v).max()
                np.testing.assert_allclose(batch.v[lane, period // 2], state.v, atol=scale)
                np.testing.assert_allclose(batch.effort[lane, period // 2], state.tau, rtol=1e-10)
        end = batch.final_state(lane)
        np.testing.assert_array_equal(end.q, batch.q[lane, -1])
        np.testing.assert_array_equal(end.tau, batch.effort[lane, -1])
        assert end.time == pytest.approx(40 * DT)
    np.testing.assert_allclose(batch.time[0], [20 * DT, 40 * DT])


def test_every_backend_gives_the_same():
    found, expected = run(backend="plant"), reference()
    for name in OUTPUTS:
        scale = np.abs(expected[name]).max()
        np.testing.assert_allclose(found[name], expected[name], atol=2e-12 * scale)


@pytest.mark.parametrize("lanes", [slice(37, 38), slice(5, 41), slice(69, None, -1)])
def test_company_does_not_matter(lanes):
    found, expected = run(lanes), reference()
    for name in OUTPUTS:
        np.testing.assert_array_equal(found[name], expected[name][lanes])


@pytest.mark.quick(1)
@pytest.mark.parametrize("lanes", [8, 16])
def test_size_of_the_blocks_does_not_matter(lanes, monkeypatch):
    for module in ("backends", "task_runner"):
        monkeypatch.setattr(f"arm_dynamics.batch.rollouts.{module}.BLOCK", lanes)
    assert same(run(), reference())


def test_number_of_threads_does_not_matter():
    assert same(run(threads=1), run(threads=3))


def test_going_on_from_the_last_states_is_going_on():
    states, commands, payload = told()
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


def test_constant_commands_and_a_table_for_all():
    arm, (states, commands, _) = five_dof(), told()
    options = {"interface": "voltage", "vary": {"payload": np.zeros(LANES)}, "steps_per_command": 3}
    table = rollout(arm, states, commands[0], DT, **options)
    assert table.q.shape == (LANES, 12, 5)
    each = rollout(arm, states, np.tile(commands[0], (LANES, 1, 1)), DT, **options)
    np.testing.assert_array_equal(table.q, each.q)
    constant = rollout(arm, states, commands[0, 0], DT, **options)
    np.testing.assert_array_equal(constant.q, each.q[:, :3])
    by_lane = rollout(arm, states, commands[:, 0], DT, **options)
    np.testing.assert_array_equal(by_lane.q[0], each.q[0, :3])


# Executors ------------------------------------------------------------------------------------


def test_an_arm_travels():
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
def test_processes_give_the_same():
    reference()  # the kernel is made here, not in each of them
    heard = []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = run(executor=pool, progress=lambda done, total: heard.append((done, total)))
    assert same(found, reference())
    assert heard[-1] == (LANES * 40, LANES * 40)
    assert len(heard) == 3


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same():
    from distributed import Client

    reference()
    cluster = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with Client(**cluster, host="127.0.0.1") as client:
        assert same(run(executor=client.get_executor()), reference())


# What goes wrong ------------------------------------------------------------------------------


def test_a_lost_lane_is_named_and_the_others_go_on():
    states, commands, payload = told()
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


def test_a_lost_lane_of_other_backends():
    states, commands, _ = told(slice(0, 3))
    states[1, 6] = 1e200
    batch = rollout(
        five_dof(), states, commands, DT, interface="voltage", steps_per_command=10, backend="plant"
    )
    assert batch.failed_step.tolist() == [-1, 1, -1]
    assert np.isfinite(batch.q[[0, 2]]).all()


def test_memory_is_asked_for_first():
    with pytest.raises(
        InvalidValue, match=rf"{LANES * 2 * (15 + 1) * 8} bytes \(70 rollouts.*at most 1000 bytes"
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
def test_refusals(changes, error, words):
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
def test_bad_input_is_named(states, commands, dt, vary, words):
    with pytest.raises(InvalidValue, match=words):
        rollout(five_dof(), states, commands, dt, interface="voltage", vary=vary)


def test_commands_that_are_none_are_refused():
    with pytest.raises(CommandRejected, match=r"voltage commands\[1\] = nan"):
        rollout(five_dof(), np.zeros((2, 10)), [0, np.nan, 0, 0, 0], DT, interface="voltage")


def test_an_arm_without_kernel_falls_back_and_says_so():
    arm = five_dof().with_actuator("rate_limited")
    state, pose = State.of(arm.configuration("initial")), arm.configuration("initial")
    with pytest.warns(
        RuntimeWarning, match="backend 'plant', slower, because 'generated': kernel, joint 'R1'"
    ):
        batch = simulate(arm, state, pose, 1e-3, 5, interface="position")
    end = Plant(arm).step(state, Command("position", pose), 1e-3, 5)
    np.testing.assert_array_equal(batch.final_state(0).q, end.q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        simulate(arm, state, pose, 1e-3, 5, interface="position")


WITHOUT = """
import sys, warnings
for name in {blocked}:
    sys.modules[name] = None
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from arm_dynamics import State, load_arm
    from arm_dynamics.batch import simulate
    arm = load_arm("five_dof").with_payload(0.123456)
    start = State.of(arm.configuration("initial"))
    batch = simulate(arm, start, [1.0] * 5, 1e-4, 20, interface="voltage")
    simulate(arm, State.of(arm.configuration("initial")), [1.0] * 5, 1e-4, 20, interface="voltage")
print(batch.backend)
print(sum("rollouts use backend" in str(w.message) for w in said))
print(*(x.hex() for x in batch.final_state(0).v.tolist()))
"""


def test_the_same_without_what_makes_it_fast():
    """No kernel can be made in an empty cache without CasADi, nor run without numba."""
    answers = []
    for blocked, backend in ((("casadi",), "plant"), (("casadi", "numba"), "plant")):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT.format(blocked=blocked)],
            cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        name, count, numbers = done.stdout.splitlines()
        assert (name, count) == (backend, "1")
        answers.append([float.fromhex(x) for x in numbers.split()])
    arm = five_dof().with_payload(0.123456)
    start = State.of(arm.configuration("initial"))
    end = Plant(arm).step(start, Command("voltage", np.ones(5)), 1e-4, 20).v
    for answer in answers:
        np.testing.assert_allclose(answer, end, rtol=1e-11)
