"""Batches with invalid input, failing callbacks, failing executors and corrupt files."""

import hashlib
from concurrent.futures import Executor, Future, ThreadPoolExecutor, TimeoutError

import numpy as np
import pytest
from conftest import chain, five_dof

from arm_dynamics import Command, State, load_arm
from arm_dynamics.batch import MeasurementNoise, rollout, rollout_closed_loop, variation
from arm_dynamics.batch.kernels import kernel_cache
from arm_dynamics.batch.rollouts.open_loop import simulate
from arm_dynamics.batch.rollouts.task_runner import tool_positions
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.errors import (
    ArmDynamicsError,
    CommandRejected,
    ConfigError,
    InvalidValue,
    UnknownName,
)
from arm_dynamics.core.files import file_lock
from arm_dynamics.dynamics.kinematics.frames import tool_position

COUNT, DT = 3, 1e-4
HERE = State.of(five_dof().configuration("initial"))


def starts(count=COUNT):
    return np.tile(np.concatenate([HERE.q, HERE.v]), (count, 1))


def run(**changes):
    options = {
        "arm": five_dof(), "states": starts(), "commands": np.zeros(5), "dt": DT,
        "interface": "voltage", "backend": "plant",
    } | changes  # fmt: skip
    return rollout(**options)


def loop(**changes):
    options = {
        "arm": five_dof(), "states": starts(), "controller": Pid(five_dof()),
        "reference": np.zeros(5), "dt": DT, "period": 2e-3, "duration": 0.01, "backend": "plant",
    } | changes  # fmt: skip
    return rollout_closed_loop(**options)


def one(**changes):
    options = {
        "arm": five_dof(), "state": HERE, "command": Command("voltage", np.zeros(5)), "dt": DT,
        "steps": 2, "backend": "plant",
    } | changes  # fmt: skip
    return simulate(**options)


BOTH = [
    ({"arm": "five_dof"}, "load_arm"),
    ({"states": [HERE, 3]}, "rollout 1: state = 3"),
    ({"states": [State("x", HERE.q, HERE.v, HERE.tau)]}, r"rollout 0: time \[s\] = 'x'"),
    ({"states": [State(np.nan, HERE.q, HERE.v, HERE.tau)]}, r"rollout 0: time \[s\] = nan"),
    ({"states": [State(0.0, HERE.q, HERE.v, np.zeros(3))]}, r"rollout 0: tau.*shape = \(3,\)"),
    ({"states": starts().astype(complex)}, "states = .*real numbers"),
    ({"states": starts().astype(str)}, "states = .*real numbers"),
    ({"dt": []}, r"dt \[s\]: shape = \(0,\)"),
    ({"dt": True}, r"dt \[s\] = True"),
    ({"record_every": "x"}, "record_every = 'x'; expected an integer"),
    ({"record_every": np.nan}, "record_every = nan; expected an integer"),
    ({"record_every": 10**30, "outputs": ("q",)}, "expected at most"),
    ({"outputs": None}, "outputs = None; expected a list of names"),
    ({"outputs": "q"}, "outputs = 'q'; expected a list of names"),
    ({"threads": 0}, "threads = 0; expected an integer of at least 1"),
    ({"threads": np.nan}, "threads = nan"),
    ({"executor": 3}, "executor = 3; expected an Executor"),
    ({"progress": 3}, "progress = 3; expected a callable"),
    ({"memory_limit": np.nan, "outputs": ("q",)}, "memory_limit = nan"),
    ({"vary": "x"}, "vary = 'x'; expected a Mapping"),
    ({"vary": {3: [1, 1, 1]}}, "name in vary = 3"),
    ({"vary": {"payload": ["a"] * 3}}, "payload = .*real numbers"),
    ({"vary": {"link.mass": [[1.0] * 5, [1, 1, -2, 1, 1], [-9.0] * 5]}}, "'R3': link.mass = -2"),
    (
        {"vary": {"motor.kt": [[1.0] * 5, [1, 1, -2, 1, 1], [9.0] * 5]}},
        "rollout 1: actuator .* 'R3'",
    ),
]


@pytest.mark.parametrize("call", [run, loop])
@pytest.mark.parametrize(("changes", "words"), BOTH)
def test_invalid_input_is_rejected_by_name(call, changes, words):
    with pytest.raises(InvalidValue, match=words):
        call(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps_per_command": np.inf}, "steps_per_command = inf; expected an integer"),
        ({"steps_per_command": 10**30, "outputs": ()}, "time steps = .*; expected at most"),
        ({"commands": [[0.0] * 5, [0.0] * 4]}, "voltage commands = .*real numbers"),
        ({"commands": [True] * 5}, "voltage commands = .*real numbers"),
        ({"interface": 3}, "interface = 3; expected a str"),
    ],
)
def test_invalid_commands_are_rejected_by_name(changes, words):
    with pytest.raises(InvalidValue, match=words):
        run(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 1.5}, "steps = 1.5"),
        ({"state": starts()}, "expected a State"),
        ({"dt": [DT, DT]}, r"dt \[s\] = .*a number"),
        ({"command": np.zeros((2, 1, 5)), "interface": "voltage"}, "voltage command: shape"),
        ({"interface": "effort"}, "expected 'voltage' or None"),
    ],
)
def test_a_single_state_is_a_batch_of_one(changes, words):
    with pytest.raises(InvalidValue, match=words):
        one(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"controller": Pid}, r"controller = .*expected Pid\(arm\)"),
        ({"controller": 3}, "controller = 3"),
        ({"one_period_delay": "x"}, "one_period_delay = 'x'; expected a bool"),
        ({"noise": (0, 0)}, "noise = .*a MeasurementNoise"),
        ({"duration": 1e300}, r"duration = 1e\+300 s; expected at most"),
        ({"duration": 1e9}, "reference and noise of 500000000000 periods"),
        ({"duration": 0.0}, r"duration \[s\] = 0"),
        ({"duration": 5e-3}, "duration = 0.005 s; expected an integer multiple of the period"),
        ({"period": 0.0}, r"period \[s\] = 0"),
        ({"dt": 3e-4}, "period = 0.002 s; expected .* multiple of"),
        ({"vary": {"gains.p": [1.0, -2.0, 1.0]}}, "rollout 1: gains of joint 'R1': p = -2"),
        (
            {"controller": lambda q, v, t: q, "executor": ThreadPoolExecutor(1)},
            "executor: set with a policy",
        ),
        (
            {"controller": lambda q, v, t: q, "dt": [1e-4, 2e-4, 1e-4]},
            "rollout 1: dt = 0.0002 s; expected 0.0001",
        ),
    ],
)
def test_invalid_closed_loops_are_rejected_by_name(changes, words):
    with pytest.raises(InvalidValue, match=words):
        loop(**changes)


def test_an_effort_controller_rejects_the_position_interface():
    arm = five_dof().with_actuator("rate_limited")
    with pytest.raises(
        UnknownName, match="interface of a controller 'position'; known: effort, voltage"
    ):
        loop(arm=arm, states=HERE, controller=Pid(arm), interface="position")


@pytest.mark.parametrize("seed", [-1, 1.5, "x", None])
def test_a_seed_must_be_a_non_negative_integer(seed):
    with pytest.raises(InvalidValue, match="seed of the noise = "):
        MeasurementNoise(seed=seed)


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        ("x", "'x'; expected real numbers"),
        (None, "None; expected real numbers"),
        (np.zeros((3, 5), complex), "real numbers"),
        ([[0.0] * 5, [0.0] * 4, [0.0] * 5], "real numbers"),
        (np.full((3, 5), [0, 0, np.inf, 0, 0]), r"commands\[0, 2\] = inf"),
    ],
)
def test_commands_of_a_policy_are_checked(commands, words):
    with pytest.raises(CommandRejected, match=f"policy, tick 0: .*{words}"):
        loop(controller=lambda q, v, t: commands)


def test_a_policy_cannot_change_the_states():
    def greedy(q, v, time):
        q[:], v[:] = 9.0, 1e9
        return np.zeros_like(q)

    still, meddled = (loop(controller=p, outputs=("q",)) for p in (lambda q, v, t: 0 * q, greedy))
    np.testing.assert_array_equal(still.q, meddled.q)


def test_a_policy_has_no_gains_to_vary():
    with pytest.raises(UnknownName, match=r"'gains.p'; known: joint.damping"):
        loop(controller=lambda q, v, t: q, vary={"gains.p": np.ones(3)})


def test_final_state_rejects_unknown_rollouts():
    batch = run()
    assert batch.final_state(-1).time == batch.final_state(2).time
    for index in (3, -4, "x"):
        with pytest.raises(InvalidValue, match="rollout = "):
            batch.final_state(index)


def test_results_are_read_only():
    batch = loop(outputs=("q",))
    for array in (
        batch.q,
        batch.time,
        batch.final_array,
        batch.failed_step,
        *batch.metrics.values(),
    ):
        assert not array.flags.writeable


# Records ------------------------------------------------------------------------------------


SLIDING = chain({"kind": "prismatic", "axis": "0 0.6 0.8"}, {}, {"axis": "0.6 0 0.8"})


@pytest.mark.parametrize("arm", [five_dof(), load_arm("puma560"), SLIDING], ids=lambda a: a.name)
def test_tool_positions_equal_forward_kinematics(arm):
    q = np.random.default_rng(0).normal(size=(2, 3, arm.nv))
    expected = [[tool_position(arm, row) for row in index] for index in q]
    np.testing.assert_allclose(tool_positions(arm, q), expected, atol=1e-14)


@pytest.mark.quick(1)
@pytest.mark.parametrize("backend", ["generated", "plant"])
def test_the_tool_output_equals_the_plants(backend):
    options = {
        "commands": np.ones(5),
        "steps_per_command": 40,
        "record_every": 20,
        "backend": backend,
    }
    alone = run(**options, outputs=("tool_position",))
    both = run(**options, outputs=("q", "tool_position"))
    assert list(alone.arrays) == ["tool_position"]
    np.testing.assert_array_equal(alone.tool_position, both.tool_position)
    expected = [[tool_position(five_dof(), q) for q in index] for index in both.q]
    np.testing.assert_allclose(both.tool_position, expected, atol=1e-14)


def test_without_outputs_only_the_final_state_is_kept():
    batch = run(outputs=(), steps_per_command=10)
    np.testing.assert_allclose(batch.time, np.full((COUNT, 1), 10 * DT))
    need = COUNT * (10 * 8 + 10 * 5 * 8)
    with pytest.raises(InvalidValue, match=f"{need} bytes"):
        run(outputs=("q",), steps_per_command=10, memory_limit=need - 1)
    run(outputs=("q",), steps_per_command=10, memory_limit=need)


@pytest.mark.parametrize("backend", ["generated", "plant"])
def test_records_of_a_diverged_rollout_are_nan(backend):
    states = starts()
    states[1, 5] = 1e160
    batch = run(
        states=states, steps_per_command=20, record_every=5, backend=backend,
        outputs=("q", "v", "effort", "tool_position"),
    )  # fmt: skip
    first = -(-batch.failed_step[1] // 5) - 1
    assert batch.failed_step[[0, 2]].tolist() == [-1, -1]
    for array in batch.arrays.values():
        assert np.isnan(array[1, first:]).all()
        assert np.isfinite(array[[0, 2]]).all()
    assert np.isnan(batch.final_array[1, 1:]).all()


# Parameter variation --------------------------------------------------------------------------


def test_variation_equals_changing_the_arm_joint_by_joint():
    arm, random = five_dof().with_payload(0.1, (0.0, 0.1, 0.0)), np.random.default_rng(0)
    varied = {
        name: random.uniform(0.5, 1.0, variation.values_per_rollout(arm, name))
        for name in ("payload", "joint.friction", "joint.damping", "motor.kt", "motor.resistance")
    }
    expected = arm.with_payload(varied["payload"][0], arm.payload.center)
    for i, name in enumerate(arm.joint_names):
        joint = {n: float(varied[f"joint.{n}"][i]) for n in ("friction", "damping")}
        motor = {n: float(varied[f"motor.{n}"][i]) for n in ("kt", "resistance")}
        expected = expected.with_joint(name, **joint).with_motor(name, **motor)
    found = variation.rollout_arm(arm, varied)
    assert found.joints == expected.joints
    assert found.payload.mass == expected.payload.mass
    for mine, theirs in zip(found.model.inertias, expected.model.inertias, strict=True):
        assert mine == theirs


def test_limits_are_checked_by_rollout_and_not_by_the_extremes():
    """Minimum resistance with the maximum constant occurs in no rollout, and is not rejected."""
    vary = {"motor.kt": [1e160, 0.1, 0.1], "motor.resistance": [1e300, 1.0, 1.0]}
    assert len(run(vary=vary)) == COUNT


# Failing callbacks ----------------------------------------------------------------------------


class Boom(Exception):
    pass


@pytest.mark.parametrize("threads", [1, 2])
def test_a_callback_that_fails_stops_the_rest(threads):
    calls = []

    def progress(done, total):
        calls.append(done / total)
        raise Boom

    with pytest.raises(Boom):
        run(states=starts(200), backend="plant", steps_per_command=30_000, threads=threads,
            progress=progress,
            outputs=())  # fmt: skip
    assert max(calls) < 1


def test_threads_stop_when_one_fails():
    calls = []

    def progress(done, total):
        calls.append(done)
        raise Boom

    with pytest.raises(Boom):
        run(states=starts(320), backend="generated", steps_per_command=50_000, threads=2,
            progress=progress,
            outputs=())  # fmt: skip
    assert len(calls) <= 4


class CancellingExecutor(Executor):
    """Executor that cancels every task."""

    def submit(self, function, *arguments):
        task = Future()
        task.cancel()
        task.set_running_or_notify_cancel()
        return task


def test_a_failing_executor_is_named():
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    for executor, words in (
        (CancellingExecutor(), "CancellingExecutor: state = CancelledError"),
        (closed, "ThreadPool.*shut"),
    ):
        with pytest.raises(ConfigError, match=words):
            run(executor=executor)


# Files ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache, "_folder", lambda: tmp_path)
    monkeypatch.setattr(kernel_cache, "_LOADED", {})
    return tmp_path


SOURCE = kernel_cache.ModuleSource("x = 1\n", (2.0, np.inf))
NAME = f"code_{hashlib.sha256(SOURCE.text.encode()).hexdigest()[:20]}.py"


def made(key="a", generate=lambda: SOURCE, check=lambda module: None):
    return kernel_cache.cached_module(key, generate, check)


def unexpected():
    pytest.fail("generated")


@pytest.mark.parametrize("file", ["kernel_a.json", "kernel_a.checked", NAME])
@pytest.mark.parametrize("corrupt", [b"x = (", b"", b"\xff\xfe", b"x = 2\n", None])
def test_a_corrupt_or_missing_file_is_regenerated(folder, corrupt, file, monkeypatch):
    generated = []

    def make():
        return made(generate=lambda: generated.append(1) or SOURCE)

    assert make().x == 1
    assert make() is make()
    if corrupt is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(corrupt)
    monkeypatch.setattr(kernel_cache, "_LOADED", {})
    assert make().x == 1
    assert len(generated) == 2


def test_a_checked_module_is_loaded_without_generation(folder, monkeypatch):
    made()
    monkeypatch.setattr(kernel_cache, "_LOADED", {})
    assert made(generate=unexpected, check=unexpected).x == 1


def test_arms_with_the_same_text_use_the_same_module(folder, monkeypatch):
    """Each has its own constants, checked on their own; also if read from the files."""
    text = "import numba\n@numba.njit(cache=True)\ndef f(x):\n    return 2 * x\n"
    sources = {"a": (0.1, 2.0), "b": (np.inf, -1e-300)}
    checked = []
    for key, constants in sources.items():
        source = kernel_cache.ModuleSource(text, constants)
        made(key, lambda source=source: source, checked.append)
    assert [tuple(module.CONSTANTS) for module in checked] == [*sources.values()]
    assert len([*folder.glob("code_*.py")]) == 1
    assert checked[0].f is checked[1].f
    monkeypatch.setattr(kernel_cache, "_LOADED", {})
    stored = [made(key, unexpected, unexpected) for key in sources]
    assert [tuple(module.CONSTANTS) for module in stored] == [*sources.values()]
    assert stored[0].f is stored[1].f


def test_a_rejected_module_is_not_stored(folder):
    def reject(module):
        raise InvalidValue("wrong")

    for _ in range(2):
        with pytest.raises(ArmDynamicsError, match="wrong"):
            made(check=reject)
        assert not [*folder.glob("kernel_a.*")]


def test_the_kernel_of_another_process_is_waited_for(folder, monkeypatch):
    """The kernel that another process generates is loaded."""
    made()
    files = {path: path.read_bytes() for path in folder.glob("kernel_a.*")}
    for path in files:
        path.unlink()
    monkeypatch.setattr(kernel_cache, "_LOADED", {})
    with ThreadPoolExecutor(1) as other:
        with file_lock((folder / NAME).with_suffix(".lock")):
            found = other.submit(made, check=unexpected)
            with pytest.raises(TimeoutError):
                found.result(timeout=0.2)
            for path, content in files.items():
                path.write_bytes(content)
        assert found.result(timeout=180).x == 1


def test_a_folder_that_cannot_be_written_is_named(folder, monkeypatch):
    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel_cache, "write_private", full)
    with pytest.raises(ConfigError, match=r"kernel_a.json: .*No space left"):
        made()
